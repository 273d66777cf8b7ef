"""Intervals against scipy's."""

import numpy as np
import pytest
import scipy.stats

from mporbm.evaluation.statistics import Interval, cell, interval, paired


@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_interval_is_that_of_student(rng, n):
    values = rng.normal(20.0, 3.0, n).tolist()
    found = interval(values)
    scale = np.std(values, ddof=1) / np.sqrt(n)
    expected = scipy.stats.t.interval(0.95, n - 1, np.mean(values), scale)
    assert found.mean == pytest.approx(np.mean(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.n == n


def test_one_value_has_no_interval():
    assert interval([4.5]) == Interval(4.5, 4.5, 4.5, 1)


def test_differences_are_taken_split_by_split(rng):
    first = rng.normal(size=6)
    # What both have in common does not matter.
    second = first + rng.normal(1.0, 0.01, 6)
    expected = interval((first - second).tolist())
    assert paired(first.tolist(), second.tolist()) == pytest.approx(expected)
    assert expected.high < -0.9


def test_cells():
    assert cell(None) is None
    assert cell([]) is None
    assert cell([3.0]) == {"value": 3.0}
    found = interval([3.0, 4.0])
    expected = {"mean": 3.5, "low": found.low, "high": found.high, "n": 2}
    assert cell([3.0, 4.0]) == expected
