"""The report as Markdown says the same as the page."""

import re

import pytest

from reproduction.report import render_markdown
from reproduction_support import example
from reproduction_support.markup import put, walk


@pytest.fixture(scope="module")
def markdown(folder):
    return render_markdown(example.results(), folder)


def plain(text):
    return re.sub(r"\\(.)", r"\1", text).replace("\u00a0", " ")


def tables(markdown):
    """The cells of each table, its head first."""
    blocks = re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE)
    return [[re.split(r"(?<!\\)\|", line)[1:-1] for line in block.splitlines()] for block in blocks]


def test_all_that_is_said_is_there(markdown):
    said = plain(markdown)
    silent = {"name", "kind", "unit", "better", "date", "mode"}
    checked = 0
    for path, value in walk(example.results()):
        if isinstance(value, str) and path[-1] not in silent and path[0] != "environment":
            assert value.replace("\u00a0", " ") in said, path
            checked += 1
    assert checked > 50


def test_tables_have_their_rows_and_columns(markdown):
    results = example.results()
    expected = [table for section in results["sections"] for table in section["tables"]]
    found = tables(markdown)
    assert len(found) == len(expected)
    for lines, table in zip(found, expected, strict=True):
        assert {len(line) for line in lines} == {1 + len(table["columns"])}
        assert len(lines) == 2 + len(table["rows"])
        shown = [[plain(cell).strip() for cell in line] for line in lines]
        assert shown[0][1:] == table["columns"]
        assert [line[0] for line in shown[2:]] == [row["label"] for row in table["rows"]]


def test_pictures_are_named(markdown):
    paths = [f["path"] for s in example.results()["sections"] for f in s["figures"]]
    assert re.findall(r"^!\[.*\]\((.*)\)$", markdown, re.MULTILINE) == paths


def test_no_text_is_taken_for_markup(folder):
    results = example.results()
    evil = "| *a* _b_ `c` [d](e) <f> # g"
    path = next(path for path, _ in walk(results) if path[-1:] == ("label",))
    put(results, path, evil)
    markdown = render_markdown(results, folder)
    assert evil in plain(markdown)
    assert "<f>" not in markdown
    assert all(len({len(line) for line in lines}) == 1 for lines in tables(markdown))


def test_a_command_cannot_end_its_own_quotation(folder):
    evil = "a ` <script> `` [x](javascript:alert(1))\n# b"
    markdown = render_markdown(example.results() | {"command": evil}, folder)
    assert "``` a ` <script> `` [x](javascript:alert(1)) # b ```." in markdown


def test_the_name_of_a_picture_cannot_end_its_address(tmp_path):
    folder = example.draw(tmp_path / "report")
    name = "a) [x](javascript:b) c.svg"
    (folder / name).write_text("<svg/>")
    results = example.results()
    results["sections"][2]["figures"][0]["path"] = name
    assert "](a%29%20%5Bx%5D%28javascript%3Ab%29%20c.svg)" in render_markdown(results, folder)
