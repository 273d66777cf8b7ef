"""Malformed results are refused with an error that says where."""

import math
import re

import numpy as np
import pytest

from reproduction.report import render
from reproduction_support import example
from reproduction_support.markup import place_name, put, walk

# What a user sees, who does not run with the checks of tests.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

OPTIONAL = {"note", "digits"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "figures").mkdir()
    (folder / "figures" / "figure7-fields.svg").write_text("<svg/>")
    return folder


def small():
    """A results dictionary with something of everything in it."""
    results = example.results()
    results["summary"] = results["summary"][:1]
    results["sections"] = results["sections"][1:3]
    (table4, figure7) = results["sections"]
    table4["tables"] = table4["tables"][-1:]
    rows = table4["tables"][0]["rows"]
    table4["tables"][0]["rows"] = rows[:2]
    rows[0]["cells"][2:] = [{"count": 22400}, {"text": "28 x 28", "note": "a note"}]
    figure7["figures"] = figure7["figures"][:1]
    return results


def refused(results, folder):
    with pytest.raises(ValueError, match=r"^results") as caught:
        render(results, folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_message_says_where_and_what(folder):
    results = small()
    del results["sections"][0]["tables"][0]["rows"][1]["cells"][0]
    assert refused(results, folder) == (
        'results["sections"][0]["tables"][0]["rows"][1]: expected 4 cells, as there are columns, '
        "got 3"
    )


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("format", 2, "expected 1, got 2"),
        ("format", "1", "expected 1, got '1'"),
        ("format", True, "expected 1, got True"),
        ("mode", "fast", "expected 'quick' or 'full', got 'fast'"),
        ("title", " ", "expected text that is not empty, got ' '"),
        ("date", "16.11.2026", "expected a date such as 2026-11-16, got '16.11.2026'"),
        ("seconds", math.inf, "expected a finite number, or null if there is none, got inf"),
        ("seconds", "60", "expected a number, got '60'"),
        ("environment", ["a"], "expected a dictionary, got ['a']"),
        ("environment", {3: "a"}, "expected names of entries to be text, got 3"),
        ("summary", "yes", "expected a list, got 'yes'"),
        ("summary.0.holds", 1, "expected true, false or null, got 1"),
        ("summary.0.text", "", "expected text that is not empty, got ''"),
        ("sections.0.name", "table 4", "expected a name of letters, digits, dots, hyphens and"),
        ("sections.0.name", "_main", "expected a name of letters, digits, dots, hyphens and"),
        ("sections.0.text", "paragraph", "expected a list, got 'paragraph'"),
        ("sections.0.tables.0.columns", [], "expected at least one column, got []"),
        ("sections.0.tables.0.better", "less", "expected 'lower' or 'higher' or null, got 'less'"),
        ("sections.0.tables.0.rows.0.kind", "other", "expected 'machine' or 'baseline' or 'ours'"),
        ("sections.0.tables.0.rows.0.cells.0", {}, "expected null, or one of the entries value,"),
        ("sections.0.tables.0.rows.0.cells.0", 26.9, "expected a dictionary, got 26.9"),
        (
            "sections.0.tables.0.rows.0.cells.0",
            {"value": 1, "count": 1},
            "expected null, or one of the entries value, mean, count, text, got {'",
        ),
        (
            "sections.0.tables.0.rows.0.cells.0",
            {"mean": 1, "low": 0, "n": 2},
            'expected an entry "high", got mean, low, n',
        ),
        (
            "sections.0.tables.0.rows.0.cells.0",
            {"value": 1, "remark": "a"},
            "expected only the entries value, note, digits, got remark",
        ),
        ("sections.0.tables.0.rows.1.cells.1.low", 99.0, "expected at most the high end, 8."),
        ("sections.0.tables.0.rows.1.cells.1.low", None, "expected a number, as the other end"),
        ("sections.0.tables.0.rows.1.cells.1.n", 0, "expected an integer of at least 1, got 0"),
        ("sections.0.tables.0.rows.1.cells.0.digits", 1.5, "expected an integer, got 1.5"),
        ("sections.0.tables.0.rows.1.cells.0.value", True, "expected a number, got True"),
        ("sections.1.figures.0.alt", "", "expected text that is not empty, got ''"),
    ],
)
def test_reasons(folder, path, value, reason):
    steps = tuple(int(step) if step.isdecimal() else step for step in path.split("."))
    results = small()
    put(results, steps, value)
    assert refused(results, folder).startswith(f"{place_name(steps)}: {reason}")


def test_other_formats_are_named_before_their_entries(folder):
    assert refused({"format": 2, "all": "new"}, folder) == 'results["format"]: expected 1, got 2'
    assert refused({}, folder) == 'results["format"]: expected 1, got None'
    assert refused([], folder) == "results: expected a dictionary, got []"


def test_names_have_to_differ(folder):
    results = small()
    results["sections"][1]["figures"][0]["name"] = "table4"
    expected = "results[\"sections\"]: expected names that differ, got 'table4' twice"
    assert refused(results, folder) == expected


def test_no_entry_may_be_missing_or_misspelt(folder):
    for path, value in walk(small()):
        if not isinstance(value, dict) or path == ("environment",):
            continue
        for entry in sorted(value.keys() - OPTIONAL):
            results = small()
            here = results
            for step in path:
                here = here[step]
            here[f"{entry}x"] = here.pop(entry)
            place = place_name(path)
            assert refused(results, folder).startswith((f"{place}: ", f'{place}["format"]: '))


@pytest.mark.slow
def test_whatever_stands_anywhere_is_refused_there(folder):
    for path, _ in list(walk(small()))[1:]:
        for wrong in (..., [...], {"a": ...}):
            results = small()
            put(results, path, wrong)
            # A row says how many cells it has.
            place = path[:-1] if path[-1] == "cells" else path
            assert refused(results, folder).startswith(place_name(place))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_numbers_are_finite_or_null(folder, wrong):
    checked = 0
    for path, value in walk(small()):
        if type(value) in (int, float):
            results = small()
            put(results, path, wrong)
            assert refused(results, folder).startswith(f"{place_name(path)}: expected ")
            checked += 1
    assert checked > 10


def test_numbers_of_numpy_are_numbers(folder):
    results = small()
    cell = results["sections"][0]["tables"][0]["rows"][1]["cells"][1]
    cell |= {"mean": np.float32(7.25), "n": np.int64(10)}
    assert re.search(r">7\.2<", render(results, folder))
