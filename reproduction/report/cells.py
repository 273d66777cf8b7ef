"""Cells of tables: what they say, how they line up, and which are the best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .numerals import EN_DASH, count, decimal, interval
from .validated import Validated

DIGITS = {"%": 1, "dB": 2}
"""Digits after the point, by the unit of the table."""
OTHER_DIGITS = 2
KINDS = {"value": (), "mean": ("low", "high", "n"), "count": (), "text": ()}
"""What a cell can be, by the entry that says so, and the entries that it needs besides."""


@dataclass(frozen=True)
class Cell:
    """A cell as the page shows it.

    Attributes
    ----------
    text
        What it says.
    word
        What a dash stands for.
    spread
        The confidence interval.
    digits
        How many follow the point; None if it is no number.
    number
        What other cells are compared with; None if it is no measure.
    n
        How many runs the mean is of.
    note
        A remark.
    pad
        What the number lacks behind its last digit to line up with its column.
    best
        Whether no other cell of the column is better.
    """

    text: str = EN_DASH
    word: str = ""
    spread: str = ""
    digits: int | None = None
    number: float | None = None
    n: int | None = None
    note: str = ""
    pad: str = ""
    best: bool = False


def read_cell(place: Validated, unit: str) -> Cell:
    """A cell of the results."""
    if place.value is None:
        return Cell(word="none")
    kinds = [kind for kind in KINDS if kind in place.mapping()]
    if len(kinds) != 1:
        raise place.error(f"null, or one of the entries {', '.join(KINDS)}")
    (kind,) = kinds
    optional = ("note", "digits") if kind in ("value", "mean") else ("note",)
    entries = place.entries(kind, *KINDS[kind], optional=optional)
    cell = Cell(note=entries["note"].text() if "note" in entries else "")
    if kind == "text":
        return replace(cell, text=entries["text"].text())
    digits = DIGITS.get(unit, OTHER_DIGITS)
    if "digits" in entries:
        digits = entries["digits"].integer(minimum=0)
    if kind == "mean":
        spread = _spread(entries["low"], entries["high"], digits)
        cell = replace(cell, spread=spread, n=entries["n"].integer(minimum=1))
    if entries[kind].value is None:
        return replace(cell, word="not available", spread="", n=None)
    if kind == "count":
        return replace(cell, text=count(entries["count"].integer(minimum=0)), digits=0)
    number = entries[kind].number()
    return replace(cell, text=decimal(number, digits), digits=digits, number=round(number, digits))


def _spread(low: Validated, high: Validated, digits: int) -> str:
    """The confidence interval; empty if there is none, as of a single run."""
    ends = [end.number() for end in (low, high) if end.value is not None]
    if not ends:
        return ""
    if len(ends) == 1:
        raise (low if low.value is None else high).error("a number, as the other end has one")
    if ends[0] > ends[1]:
        raise low.error(f"at most the high end, {ends[1]}")
    return interval(ends[0], ends[1], digits)


def align(column: Sequence[Cell]) -> list[Cell]:
    """The cells of a column, padded so that their points stand below each other."""
    tails = [f".{'0' * cell.digits}" if cell.digits else "" for cell in column]
    longest = max(tails, key=len, default="")
    return [
        cell if cell.digits is None else replace(cell, pad=longest[len(tail) :])
        for cell, tail in zip(column, tails, strict=True)
    ]


def mark_best(column: Sequence[Cell], better: str | None) -> list[Cell]:
    """The cells of a column, the best ones marked; as shown, so equal numbers are equally good."""
    numbers = [cell.number for cell in column if cell.number is not None]
    if better is None or len(numbers) < 2:
        return list(column)
    best = min(numbers) if better == "lower" else max(numbers)
    return [replace(cell, best=cell.number == best) for cell in column]
