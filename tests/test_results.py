"""What the documentation says of the full run is what the full run found."""

import json
import re
from pathlib import Path

import pytest

from reproduction.densities import DENSITIES
from reproduction.experiments import EXPERIMENTS
from reproduction.report import render, render_markdown

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "results"
FOLDERS = {
    FOLDER: [name for name in EXPERIMENTS if name != "likelihood"],
    FOLDER / "likelihood": ["likelihood"],
}
"""Folders of results, and the experiments that each has."""
N_SPLITS = {"table4-coil100": 3, "beyond-errors": 3, "beyond-psnr": 3, "beyond-labels": 3}
N_SPLITS |= {f"likelihood-{name}": 3 for name in DENSITIES}
"""How many splits tables have, if not 10 or more."""


def read(folder):
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_they_are_of_a_full_run(folder):
    results = read(folder)
    assert results["mode"] == "full"
    assert [section["name"] for section in results["sections"]] == FOLDERS[folder]
    for section in results["sections"]:
        for table in section["tables"]:
            cells = [cell for row in table["rows"] for cell in row["cells"] if cell]
            runs = {cell["n"] for cell in cells if "mean" in cell}
            assert min(runs, default=10) >= N_SPLITS.get(table["name"], 10) or (
                table["name"] == "table4-overview"
            )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_reports_show_these_results(folder):
    results = read(folder)
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert report == render_markdown(results, folder)
    figure = "figure8" if folder == FOLDER else "likelihood-mnist-curves"
    assert figure in render(results, folder)


@pytest.mark.parametrize(
    ("folder", "begin", "end"),
    [
        (FOLDER, "## The paper, reproduced", "## Use it"),
        (FOLDER / "likelihood", "## What it is good at", "## The paper, reproduced"),
    ],
)
def test_the_readme_quotes_the_report(folder, begin, end):
    """Its tables of results, word for word."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    report = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    section = readme[readme.index(begin) : readme.index(end)]
    rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    assert len(rows) >= 6
    for row in rows:
        assert row in report, row
    for path in re.findall(r"\]\((docs/[^)]*)\)", section):
        assert (ROOT / path).is_file(), path
