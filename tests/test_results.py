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
N_SPLITS = {"table4-coil100": 3, "beyond-errors": 3, "beyond-psnr": 3, "beyond-labels": 3}
N_SPLITS |= {f"likelihood-{name}": 3 for name in DENSITIES}
"""How many splits tables have, if not 10 or more."""


@pytest.fixture(scope="module")
def results():
    return json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))


def test_they_are_of_a_full_run(results):
    assert results["mode"] == "full"
    assert [section["name"] for section in results["sections"]] == [
        # The experiment of likelihoods takes hours and was not run in full yet.
        name
        for name in EXPERIMENTS
        if name != "likelihood"
    ]
    for section in results["sections"]:
        for table in section["tables"]:
            cells = [cell for row in table["rows"] for cell in row["cells"] if cell]
            runs = {cell["n"] for cell in cells if "mean" in cell}
            assert min(runs, default=10) >= N_SPLITS.get(table["name"], 10) or (
                table["name"] == "table4-overview"
            )


def test_the_reports_show_these_results(results):
    assert (FOLDER / "report.md").read_text(encoding="utf-8") == render_markdown(results, FOLDER)
    assert "figure8" in render(results, FOLDER)


def test_the_readme_quotes_the_report():
    """Its tables of results, word for word."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    report = (FOLDER / "report.md").read_text(encoding="utf-8").splitlines()
    section = readme[readme.index("## The paper, reproduced") : readme.index("## Use it")]
    rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)
    assert len(rows) >= 6
    for row in rows:
        assert row in report, row
    for path in re.findall(r"\]\((docs/[^)]*)\)", section):
        assert (ROOT / path).is_file(), path
