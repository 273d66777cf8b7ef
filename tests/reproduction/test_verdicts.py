"""Sentences say no more than the numbers do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mporbm.evaluation.statistics import Interval
from reproduction.verdicts import compare, number, reaches, with_interval

MINUS = "\N{MINUS SIGN}"


@given(st.floats(-1e3, 1e3), st.integers(0, 3))
def test_numbers_are_rounded_and_nothing_is_minus_zero(value, digits):
    text = number(value, digits)
    assert float(text.replace(MINUS, "-")) == round(value, digits)
    assert len(text.rpartition(".")[2]) == digits or digits == 0
    assert "-" not in text
    assert text.startswith(MINUS) == (round(value, digits) < 0)


def test_small_negative_numbers_are_zero():
    assert number(-0.04) == "0.0"
    assert number(-0.0) == "0.0"
    assert number(-0.06) == f"{MINUS}0.1"
    assert number(-0.004, 2) == "0.00"


def test_an_interval_in_words():
    assert with_interval(Interval(-1.25, -2.04, -0.04, 3), "dB", 1) == (
        f"{MINUS}1.2 dB ({MINUS}2.0 to 0.0)"
    )
    assert with_interval(Interval(1.0, 1.0, 1.0, 1), "points") == "1.0 points"


BETTER, WORSE = [1.0, 2.0, 3.0], [2.1, 3.0, 3.9]


@pytest.mark.parametrize(
    ("values", "others", "lower", "holds", "word"),
    [
        (BETTER, WORSE, True, True, "better"),
        (WORSE, BETTER, True, False, "worse"),
        (BETTER, WORSE, False, False, "worse"),
        (WORSE, BETTER, False, True, "better"),
        (BETTER, BETTER, True, None, "no clear difference"),
        (BETTER, BETTER, False, None, "no clear difference"),
        # One split tells nothing, however far the numbers are apart.
        ([1.0], [50.0], True, None, "one run cannot tell"),
        ([0.0, 0.0, 9.0], [1.0, 1.0, 1.0], True, None, "no clear difference"),
    ],
)
def test_only_an_interval_on_one_side_of_zero_decides(values, others, lower, holds, word):
    found = compare("a", "b", values, others, "%", lower_is_better=lower)
    assert found["holds"] is holds
    assert found["text"].startswith(f"a {MINUS} b = ")
    assert found["text"].endswith(f": {word}.")
    assert number(float(np.mean(values) - np.mean(others))) + " %" in found["text"]


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_an_interval_that_touches_zero_is_open(monkeypatch, side):
    touching = Interval(side, min(0.0, 2 * side), max(0.0, 2 * side), 4)
    monkeypatch.setattr("reproduction.verdicts.paired", lambda *values: touching)
    for lower in (True, False):
        assert compare("a", "b", [0.0], [0.0], "%", lower_is_better=lower)["holds"] is None


@pytest.mark.parametrize(
    ("mean", "lower", "holds"),
    [
        *((8.0, True, True), (8.06, True, True), (8.1, True, False)),
        *((8.1, False, True), (8.06, False, True), (8.0, False, False)),
    ],
)
def test_a_number_is_reached_or_not(mean, lower, holds):
    found = reaches("ours", [mean], 8.06, "%", "the paper's", lower_is_better=lower, digits=2)
    relation = "at or below" if lower else "at or above"
    not_ = "" if holds else "not "
    assert found == {
        "holds": holds,
        "text": f"ours: {mean:.2f} % is {not_}{relation} the paper's 8.06 %.",
    }
