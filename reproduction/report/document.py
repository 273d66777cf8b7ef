"""The results, checked and ready to be shown: format 1 of ``results.json``."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from .cells import Cell, align, mark_best, read_cell
from .numerals import EN_DASH, duration, keep_units
from .picture import data_address
from .validated import Validated

FORMAT = 1
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names become addresses within the page; its own ones begin with an underscore."""
PAPER = re.compile(r"\bpaper\b")
"""Titles of columns with the paper's numbers, which take no part in a comparison."""
VERDICTS = {
    True: ("Confirmed", "\u2713", "confirmed"),
    False: ("Not confirmed", "\u2717", "refuted"),
    None: ("Open", "\u25cb", "open"),
}
"""The word, the sign and the style of a verdict."""


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds."""

    word: str
    sign: str
    style: str
    text: str


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    label: str
    kind: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Column:
    """The head of a column."""

    title: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """A table; its rows in groups, baselines apart from the others."""

    name: str
    caption: str
    measure: str
    columns: Sequence[Column]
    groups: Sequence[tuple[bool, Sequence[Row]]]
    legend: str
    shading: str
    verdicts: Sequence[Verdict]
    notes: Sequence[str]


@dataclass(frozen=True)
class Figure:
    """A picture with its address."""

    name: str
    path: str
    address: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Section:
    """One experiment."""

    name: str
    title: str
    text: Sequence[str]
    tables: Sequence[Table]
    figures: Sequence[Figure]
    verdicts: Sequence[Verdict]

    @property
    def names(self) -> list[str]:
        """List the names of the section and of its tables and figures."""
        return [self.name, *(t.name for t in self.tables), *(f.name for f in self.figures)]


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    title: str
    mode: str
    version: str
    command: str
    date: date
    duration: str
    environment: Mapping[str, str]
    summary: Sequence[Verdict]
    sections: Sequence[Section]
    references: Sequence[str]


def read(results: Mapping[str, Any], folder: Path) -> Report:
    """The results as a page shows them; pictures are read from the folder."""
    place = Validated(results)
    mapping = place.mapping()
    # First of all: another format has other entries.
    mapping.get("format", Validated(None, f'{place.name}["format"]')).choice(FORMAT)
    entries = place.entries(
        *("format", "title", "mode", "version", "command", "date", "seconds", "environment"),
        *("summary", "sections", "references"),
    )
    seconds = entries["seconds"]
    sections = [_section(item, folder) for item in entries["sections"].items()]
    names = [name for section in sections for name in section.names]
    if twice := [name for name in names if names.count(name) > 1]:
        raise entries["sections"].error("names that differ", f"{twice[0]!r} twice")
    return Report(
        title=_prose(entries["title"]),
        mode=entries["mode"].choice("quick", "full"),
        version=entries["version"].text(),
        command=entries["command"].text(),
        date=_date(entries["date"]),
        duration="" if seconds.value is None else duration(seconds.number()),
        environment={key: item.text() for key, item in entries["environment"].mapping().items()},
        summary=_verdicts(entries["summary"]),
        sections=sections,
        references=_texts(entries["references"]),
    )


def _section(place: Validated, folder: Path) -> Section:
    entries = place.entries("name", "title", "text", "tables", "figures", "verdicts")
    return Section(
        name=_name(entries["name"]),
        title=_prose(entries["title"]),
        text=_texts(entries["text"]),
        tables=[_table(item) for item in entries["tables"].items()],
        figures=[_figure(item, folder) for item in entries["figures"].items()],
        verdicts=_verdicts(entries["verdicts"]),
    )


def _figure(place: Validated, folder: Path) -> Figure:
    entries = place.entries("name", "path", "caption", "alt")
    return Figure(
        name=_name(entries["name"]),
        path=entries["path"].text(),
        address=data_address(entries["path"], folder),
        caption=_prose(entries["caption"]),
        alt=entries["alt"].filled(),
    )


def _table(place: Validated) -> Table:
    entries = place.entries(
        *("name", "caption", "unit", "better", "columns", "rows", "verdicts", "notes")
    )
    unit, better = entries["unit"].text(), entries["better"].choice("lower", "higher", None)
    titles = _texts(entries["columns"])
    if not titles:
        raise entries["columns"].error("at least one column")
    rows = [_row(item, unit, len(titles)) for item in entries["rows"].items()]
    columns = [
        align(mark_best([row.cells[k] for row in rows], None if PAPER.search(title) else better))
        for k, title in enumerate(titles)
    ]
    rows = [
        Row(row.label, row.kind, [column[k] for column in columns]) for k, row in enumerate(rows)
    ]
    groups = itertools.groupby(rows, key=lambda row: row.kind == "baseline")
    measure = [f"in {unit}"] * bool(unit) + [f"{better} is better"] * (better is not None)
    return Table(
        name=_name(entries["name"]),
        caption=_prose(entries["caption"]),
        measure=", ".join(measure),
        columns=[
            Column(title, any(cell.digits is not None for cell in column))
            for title, column in zip(titles, columns, strict=True)
        ],
        groups=[(baselines, list(group)) for baselines, group in groups],
        legend=_legend(rows, better),
        shading=_shading({row.kind for row in rows}),
        verdicts=_verdicts(entries["verdicts"]),
        notes=_texts(entries["notes"]),
    )


def _row(place: Validated, unit: str, n_columns: int) -> Row:
    entries = place.entries("label", "kind", "cells")
    cells = entries["cells"].items()
    if len(cells) != n_columns:
        raise place.error(f"{n_columns} cells, as there are columns", str(len(cells)))
    return Row(
        label=_prose(entries["label"]),
        kind=entries["kind"].choice("machine", "baseline", "ours"),
        cells=[read_cell(cell, unit) for cell in cells],
    )


def _legend(rows: Sequence[Row], better: str | None) -> str:
    """Explain the numbers of a table, but for kinds that it does not have."""
    cells = [cell for row in rows for cell in row.cells]
    runs = sorted({cell.n for cell in cells if cell.n is not None})
    said = []
    if runs:
        several = f"{runs[0]}{EN_DASH}{runs[-1]}" if len(runs) > 1 else f"{runs[0]}"
        said.append("One run" if runs == [1] else f"Mean of {several} runs")
    if any(cell.spread for cell in cells):
        said[-1] += " with its 95\u00a0% confidence interval"
    if any(cell.best for cell in cells):
        said.append(f"Bold: {'lowest' if better == 'lower' else 'highest'} of its column")
    return _sentences(said)


def _shading(kinds: set[str]) -> str:
    """Explain how rows of these kinds look on the page."""
    said = ["Shaded: ours"] * ("ours" in kinds) + ["Ruled off: baselines"] * ({"baseline"} < kinds)
    return _sentences(said)


def _sentences(said: Sequence[str]) -> str:
    return " ".join(f"{sentence}." for sentence in said)


def _verdicts(place: Validated) -> list[Verdict]:
    verdicts = []
    for item in place.items():
        entries = item.entries("holds", "text")
        if not isinstance(entries["holds"].value, bool | None):
            raise entries["holds"].error("true, false or null")
        verdicts.append(Verdict(*VERDICTS[entries["holds"].value], _prose(entries["text"])))
    return verdicts


def _texts(place: Validated) -> list[str]:
    return [_prose(item) for item in place.items()]


def _prose(place: Validated) -> str:
    return keep_units(place.filled())


def _name(place: Validated) -> str:
    if not NAME.fullmatch(place.text()):
        raise place.error("a name of letters, digits, dots, hyphens and underscores")
    return place.text()


def _date(place: Validated) -> date:
    try:
        return date.fromisoformat(place.text())
    except ValueError as error:
        raise place.error("a date such as 2026-11-16") from error
