"""What the documentation says of speed is what the benchmarks found."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "performance"


def _benchmark(name):
    place = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def performance():
    """The program that writes the tables."""
    return _benchmark("performance")


@pytest.fixture
def quality(monkeypatch):
    """The program that measures the time to quality."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return _benchmark("quality")


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


def test_time_to_a_target_is_interpolated_in_its_logarithm(quality):
    points = [quality.Point(seconds, 0, nats, nats, 9.0) for seconds, nats in ((1, -110), (4, -90))]
    assert quality.crossing(points, -100.0) == pytest.approx(2.0)
    assert quality.crossing(points[::-1], -90.0) == pytest.approx(4.0)
    assert quality.crossing(points, -120.0) == 1
    assert quality.crossing(points, -80.0) is None
    lost = quality.Point(2, 0, float("nan"), float("nan"), 1.0)
    assert quality.crossing([lost, points[1]], -100.0) == 4


def test_turns_are_judged_where_a_target_is_passed(quality):
    asked = []

    def judge(stand):
        number = stand.n_updates
        asked.append(number)
        return quality.Point(stand.seconds, number, -100.0 + number, -100.0 + number, 9.0)

    stands = [quality.Stand(1.0 + number, 0.0, number, None) for number in range(9)]
    points = {number: judge(stands[number]) for number in (0, 8)}
    quality._narrow(points, stands, -97.5, judge)
    assert asked == [0, 8, 4, 2, 3]
    assert quality.crossing(points.values(), -97.5) == pytest.approx(12**0.5)


def test_times_to_quality_lie_between_what_was_judged(performance, quality):
    measured = performance.read(FOLDER)["quality"]
    targets = measured["setting"]["targets"]
    for entries in measured["rounds"]:
        for found in entries.values():
            points = [quality.Point(**point) for point in found["points"]]
            assert found["crossings"] == [quality.crossing(points, target) for target in targets]
    assert measured["learners"] == quality.summary(measured["rounds"], measured["chosen"])


def test_cost_of_a_chain_is_linear(performance):
    for curve in performance.read(FOLDER)["chain"].values():
        assert curve["orders"] == [10, 20, 30, 40]
        assert max(curve["time_exponent"], curve["memory_exponent"]) <= 1.15


def test_pictures_are_drawn(performance):
    measured = performance.read(FOLDER)
    for name, draw in performance.PICTURES.items():
        assert any(panel.lines for panel in draw(measured[name]).axes), name
