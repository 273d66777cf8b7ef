"""What the documentation says of speed is what the benchmarks found."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "performance"


@pytest.fixture(scope="module")
def performance():
    """The program that writes the tables."""
    place = ROOT / "benchmarks" / "performance.py"
    spec = importlib.util.spec_from_file_location("performance", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_show_what_was_measured(performance):
    tables = performance.tables(performance.read(FOLDER))
    for page in performance.PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count(performance.END) == text.count("<!-- measured: ") > 0
        assert performance.filled(text, tables) == text, page.name
    for name in tables:
        mark = performance.START.format(name)
        places = [page for page in performance.PAGES if mark in page.read_text(encoding="utf-8")]
        assert len(places) == 1, name


def test_it_was_measured_as_it_should_be(performance):
    speed = performance.read(FOLDER)["speed"]
    for case in speed["cases"].values():
        rounds = {len(seconds) for seconds in case["seconds"].values()}
        assert len(rounds) == 1
        assert rounds.pop() >= 5


def test_cost_of_a_chain_is_linear(performance):
    for curve in performance.read(FOLDER)["chain"].values():
        assert curve["orders"] == [10, 20, 30, 40]
        assert max(curve["time_exponent"], curve["memory_exponent"]) <= 1.15


def test_pictures_are_drawn(performance):
    measured = performance.read(FOLDER)
    for name, draw in performance.PICTURES.items():
        assert any(panel.lines for panel in draw(measured[name]).axes), name
