"""The best setting is named with those that may be as good, and no other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ttest_rel

from mporbm.sweep import MEASURES, rank


def outcome(value, measure="reconstruction_error", status="done"):
    measures = {} if value is None else {measure: value}
    return {"status": status, "measures": measures, "seconds": 2.0, "n_parameters": 5}


def ranking(*rows, measure="reconstruction_error"):
    """Settings numbered from 0, each with values by seed."""
    settings = [({"rank": k}, [outcome(v, measure) for v in row]) for k, row in enumerate(rows)]
    return rank(settings, measure)


def places(found):
    return [setting.place for setting in found.settings]


@pytest.mark.parametrize("measure", MEASURES)
def test_settings_are_ordered_by_their_means(measure):
    found = ranking([3.0, 3.2], [1.0, 1.4], [2.0, 2.2], measure=measure)
    larger = measure == "pseudo_log_likelihood"
    assert places(found) == ([1, 3, 2] if larger else [3, 1, 2])
    assert found.best is found.settings[0 if larger else 1]
    assert [s.place for s in found.in_order()] == [1, 2, 3]
    assert found.settings[0].mean(measure) == pytest.approx(3.1)
    assert found.settings[0].std(measure) == pytest.approx(np.std([3.0, 3.2], ddof=1))
    assert (found.best.mean("seconds"), found.best.mean("n_parameters")) == (2.0, 5.0)


@pytest.mark.parametrize("n_settings", [2, 3, 8])
def test_settings_are_told_apart_by_paired_tests(rng, n_settings):
    """As many tests as there are other settings share 5 %."""
    told = set()
    for _ in range(20):
        common = rng.normal(size=5)
        values = common + 0.3 * rng.normal(size=(n_settings, 5)) + rng.normal(size=(n_settings, 1))
        found = ranking(*values.tolist())
        best = int(np.argmin(values.mean(axis=1)))
        for k, setting in enumerate(found.settings):
            level = (
                1.0 if k == best else ttest_rel(values[k], values[best], alternative="greater")[1]
            )
            assert setting.told_apart == (level < 0.05 / (n_settings - 1))
            told.add(setting.told_apart)
        alike = [s for s in found.settings if not s.told_apart and s.place != 1]
        assert found.like_the_best == sorted(alike, key=lambda s: s.place)
    assert told == {True, False}


def test_the_best_is_among_those_named_as_often_as_promised(rng):
    """Eight settings, of which all are equally good: whichever is taken for the truth."""
    n_trials, missed = 400, 0
    for values in rng.normal(size=(n_trials, 8, 4)):
        missed += bool(ranking(*values.tolist()).settings[0].told_apart)
    # 5 %, and four standard errors of the simulation.
    assert missed / n_trials <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_trials)


def test_one_seed_tells_nothing_apart():
    found = ranking([1.0], [2.0], [9.0])
    assert places(found) == [1, 2, 3]
    assert [s.told_apart for s in found.settings] == [False] * 3
    assert found.settings[0].std("reconstruction_error") is None


def test_settings_with_runs_that_did_not_end_well_have_no_place():
    """Not even if they seem to be the best: the mean of what is left says too much."""
    measure = "reconstruction_error"
    settings = [
        ({"rank": 0}, [outcome(0.1), {"status": "failed", "reason": "no"}]),
        ({"rank": 1}, [outcome(0.2), outcome(0.3, status="diverged")]),
        ({"rank": 2}, [outcome(None, status="diverged"), outcome(None, status="diverged")]),
        ({"rank": 3}, [outcome(1.0), outcome(1.1)]),
        ({"rank": 4}, [outcome(0.1), {"status": "pruned"}]),
    ]
    found = rank(settings, measure)
    assert places(found) == [None, None, None, 1, None]
    assert [s.told_apart for s in found.settings] == [None, None, None, False, None]
    assert found.like_the_best == []
    assert_allclose([s.mean(measure) for s in found.settings[:2]], [0.1, 0.25])
    assert found.settings[2].mean(measure) is None
    counts = [[s.count(n) for n in ("done", "diverged", "failed")] for s in found.settings]
    assert counts == [[1, 0, 1], [1, 1, 0], [0, 2, 0], [2, 0, 0], [1, 0, 0]]
    nothing = rank(settings[:3], measure)
    assert (nothing.best, nothing.like_the_best) == (None, [])
