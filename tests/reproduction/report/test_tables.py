"""Tables say what their cells say, in numbers that line up."""

import pytest

from reproduction.report import render
from reproduction.report.numerals import count, decimal, duration, interval
from reproduction_support import example
from reproduction_support.markup import find, parse, text


def one_table(folder, rows, **changes):
    """The page of one table; rows are (label, kind, cells)."""
    results = example.results()
    table = results["sections"][0]["tables"][0]
    table["rows"] = [{"label": label, "kind": kind, "cells": cells} for label, kind, cells in rows]
    table["columns"] = [f"column {k}" for k in range(len(rows[0][2]))]
    table |= {"unit": "%", "better": None, "notes": [], **changes}
    return find(parse(render(results, folder)), table["name"])


def one_cell(folder, cell, **changes):
    return next(one_table(folder, [("row", "machine", [cell])], **changes).iterfind(".//tbody//td"))


def bold(table):
    """The bold texts of the columns of a table."""
    rows = [row.findall("td") for row in table.iterfind("div/table/tbody/tr")]
    return [
        [text(cell.find("strong")) for cell in column if cell.find("strong") is not None]
        for column in zip(*rows, strict=True)
    ]


@pytest.mark.parametrize(
    ("cell", "unit", "shown"),
    [
        (None, "%", "\u2013 none"),
        ({"value": 26.94}, "%", "26.9"),
        ({"value": 26.94}, "dB", "26.94"),
        ({"value": 26}, "", "26.00"),
        ({"value": 26.945, "digits": 2}, "%", "26.95"),
        ({"value": 27.4, "digits": 0}, "%", "27"),
        ({"value": -3.25}, "dB", "\u22123.25"),
        ({"value": -0.04}, "%", "0.0"),
        ({"value": None}, "%", "\u2013 not available"),
        ({"mean": 26.3, "low": 25.1, "high": 27.5, "n": 10}, "%", "26.3 25.1\u201327.5"),
        ({"mean": 0.1, "low": -1, "high": 1.2, "n": 3}, "%", "0.1 \u22121.0 to 1.2"),
        ({"mean": 26.3, "low": None, "high": None, "n": 1}, "%", "26.3"),
        ({"mean": 1, "low": 0, "high": 2, "n": 2, "digits": 3}, "%", "1.000 0.000\u20132.000"),
        ({"mean": None, "low": None, "high": None, "n": 10}, "%", "\u2013 not available"),
        ({"count": 196608000}, "%", "196\u2009608\u2009000"),
        ({"count": 560}, "dB", "560"),
        ({"count": None}, "%", "\u2013 not available"),
        ({"text": "28 x 28"}, "%", "28 x 28"),
        ({"text": '<b> & "c"'}, "%", '<b> & "c"'),
    ],
)
def test_cells_of_every_kind(folder, cell, unit, shown):
    found = one_cell(folder, cell, unit=unit)
    if shown.startswith("\u2013"):
        dash, word = found.findall("span")
        assert f"{dash.text} {word.text}" == shown
        assert dash.get("aria-hidden") == "true"
    else:
        assert text(found) == shown
    assert found.get("title") is None
    if cell is not None:
        noted = one_cell(folder, {**cell, "note": 'a "note"'}, unit=unit)
        assert noted.get("title") == text(noted.find("small[@class='note']")) == 'a "note"'


def test_numbers_as_people_read_them():
    assert decimal(-1234.5678, 2) == "\u22121234.57"
    assert interval(1, 2, 0) == "1\u20132"
    assert interval(-0.01, 2, 1) == "0.0\u20132.0"
    assert [count(n) for n in (0, 999, 1000)] == ["0", "999", "1\u2009000"]
    times = {0: "0.0 s", 9.96: "10.0 s", 59.6: "1 min 0 s", 60: "1 min 0 s", 3599.6: "1 h 0 min"}
    times |= {5400: "1 h 30 min", 90000: "25 h 0 min"}
    assert {seconds: duration(seconds) for seconds in times} == times


def test_numbers_of_a_column_are_padded_to_line_up(folder):
    column = [{"value": 1.25, "digits": 2}, {"value": 1.2}, {"count": 12}, None, {"text": "a"}]
    table = one_table(folder, [(f"row {k}", "machine", [c]) for k, c in enumerate(column)])
    pads = [cell.find("span") for cell in table.iterfind(".//tbody//td")]
    expected = [None, "0", ".00", None, None]
    assert [None if pad is None else pad.get("data-pad") for pad in pads] == expected


def test_only_long_texts_are_broken_into_lines(folder):
    table = one_table(folder, [("row", "machine", [{"text": "a" * 20}, {"text": "a" * 21}])])
    assert [cell.get("class") for cell in table.iterfind(".//tbody//td")] == [None, "long"]


def test_columns_of_text_are_no_columns_of_numbers(folder):
    table = one_table(folder, [("row", "machine", [{"text": "a"}, {"count": 1}, None])])
    heads = table.iterfind(".//th[@scope='col']")
    assert [head.get("class") for head in heads] == [None, "numeric", None]


@pytest.mark.parametrize(
    ("better", "expected"),
    [
        ("lower", [["1.0", "1.0"], ["1.2"], []]),
        ("higher", [["3.0"], ["1.4"], []]),
        (None, 3 * [[]]),
    ],
)
def test_the_best_of_a_column_is_bold(folder, better, expected):
    def spread(mean):
        return {"mean": mean, "low": 0.0, "high": 9.0, "n": 2}

    rows = [
        ("a", "machine", [{"value": 1.04}, spread(1.4), {"value": 1}]),
        ("b", "baseline", [{"value": 0.96}, spread(1.2), None]),
        ("c", "ours", [{"value": 3.0}, None, {"count": 0}]),
    ]
    table = one_table(folder, rows, better=better)
    assert bold(table) == expected
    legend = " ".join(text(p) for p in table.iterfind("p"))
    word = {"lower": "Bold: lowest of its column.", "higher": "Bold: highest of its column."}
    assert ("Bold" in legend) == (better is not None)
    assert word.get(better, "") in legend


def test_the_numbers_of_the_paper_do_not_compete(folder):
    rows = [(label, "machine", [{"value": v}] * 3) for label, v in (("a", 1.0), ("b", 2.0))]
    columns = ["paper", "15 % noise, paper", "newspapers"]
    table = one_table(folder, rows, better="lower", columns=columns)
    assert bold(table) == [[], [], ["1.0"]]


def test_baselines_stand_apart_and_ours_are_marked(folder):
    kinds = ["machine", "ours", "baseline", "baseline", "machine"]
    rows = [(f"row {k}", kind, [{"value": k}]) for k, kind in enumerate(kinds)]
    table = one_table(folder, rows)
    bodies = table.findall("div/table/tbody")
    assert [body.get("class") for body in bodies] == [None, "baselines", None]
    assert [row.get("class") for body in bodies for row in body] == kinds
    assert text(table.find("p")) == "Shaded: ours. Ruled off: baselines."


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1], "One run with its 95\u00a0% confidence interval."),
        ([10, 10], "Mean of 10 runs with its 95\u00a0% confidence interval."),
        ([10, 4, 7], "Mean of 4\u201310 runs with its 95\u00a0% confidence interval."),
    ],
)
def test_the_legend_says_how_many_runs(folder, numbers, said):
    cells = [{"mean": 1.0, "low": 0.5, "high": 1.5, "n": n} for n in numbers]
    assert text(one_table(folder, [("row", "machine", cells)]).find("p")) == said


def test_a_table_without_signs_has_no_legend(folder):
    assert one_table(folder, [("row", "machine", [{"value": 1.0}])]).find("p") is None


def test_the_measure_stands_beside_the_caption(folder):
    row = [("row", "machine", [{"value": 1.0}])]
    for unit, better, said in [
        ("%", "lower", "Caption in %, lower is better"),
        ("", "higher", "Caption higher is better"),
        ("dB", None, "Caption in dB"),
        ("", None, "Caption"),
    ]:
        table = one_table(folder, row, unit=unit, better=better, caption="Caption")
        assert text(table.find("figcaption")) == said


def test_a_table_may_have_no_rows_yet(folder):
    results = example.results()
    results["sections"][0]["tables"][0]["rows"] = []
    table = find(parse(render(results, folder)), "sizes-weights")
    assert len(table.findall(".//th")) == 5
