"""What is watched: likelihoods that are right, and machines that are worse than none."""

import itertools
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm import DBM, DBN, MPORBM, RBM, MvRBM, TvRBM
from mporbm.learning.monitor import pseudo_log_likelihood, scored_units
from mporbm.machine import exact
from mporbm.training import ArraySource, watch
from mporbm.training.loop import DivergenceWarning


def stripes(size):
    """All images whose rows are all on or all off, as often as they can be told from noise."""
    lines = np.array(list(itertools.product([0, 1], repeat=size)), bool)
    return np.tile(np.repeat(lines[:, :, None], size, axis=2), (4, 1, 1))


DATA = stripes(4)
INDEPENDENT = -16.0 * np.log(2.0)
PLAIN = {"rule": "plain", "schedule": "constant", "momentum": 0.5}
SLOW = {**PLAIN, "learning_rate": 0.05}
SETTINGS = [
    {**PLAIN, "negative_phase": phase, "learning_rate": rate, "scheme": scheme}
    for phase, rate, scheme in itertools.product(["cd", "pcd"], [3.0, 30.0, 300.0], ["aop", "su"])
]
SETTINGS += [{**PLAIN, "learning_rate": 1.0, "momentum": momentum} for momentum in (0.95, 0.99)]
SETTINGS += [{"rule": "centred", "learning_rate": 300.0}]


def likelihood(model):
    return float(np.mean(exact.log_probability(model.machine_, DATA)))


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_bad_settings_are_noticed_or_end_well(number):
    model = MPORBM((3, 3), rank=3, n_iter=30, batch_size=16, random_state=0, **SETTINGS[number])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(DATA)
    noticed = any(issubclass(w.category, DivergenceWarning) for w in caught)
    assert model.diverged_ == noticed
    # What is kept is never worse than independent units, but for the tolerance.
    assert likelihood(model) > INDEPENDENT * (1.0 + watch.TOLERANCE) - 1.1


def test_healthy_trainings_raise_no_alarm():
    for seed in range(5):
        for parameters in ({}, SLOW, {"negative_phase": "cd"}, {"init": "random", **SLOW}):
            model = MPORBM((3, 3), rank=3, n_iter=30, batch_size=16, random_state=seed)
            model.set_params(**parameters).fit(DATA)
            assert not model.diverged_


def test_back_off_goes_on_where_a_machine_was_worse_than_none():
    model = MPORBM((3, 3), rank=3, n_iter=30, batch_size=16, random_state=0, **SETTINGS[2])
    model.set_params(on_divergence="back-off").fit(DATA)
    assert model.n_iter_ == 30
    assert likelihood(model) > INDEPENDENT


def test_the_likelihood_of_small_machines_is_exact():
    model = MPORBM((3, 3), rank=3, n_iter=3, random_state=0).fit(DATA)
    assert_allclose(model.history_[-1]["log_likelihood"], likelihood(model), rtol=1e-6)
    assert model.history_[-1]["log_partition_error"] == 0.0


def test_larger_machines_are_estimated(monkeypatch):
    """13 x 13 units are the most that are summed up here, and more than are in training."""
    data = np.random.default_rng(0).random((200, 13)) < 0.3
    monkeypatch.setattr(watch, "ANNEALING_SHARE", 10.0)
    model = RBM(13, n_iter=40, batch_size=20, random_state=0).fit(data)
    seen = [entry for entry in model.history_ if "log_likelihood" in entry]
    assert "effective_sample_size" in seen[-1]
    true = float(np.mean(exact.log_probability(model.machine_, data)))
    assert abs(seen[-1]["log_likelihood"] - true) < 4.0 * seen[-1]["log_partition_error"] + 0.01


def test_scores_do_not_depend_on_the_seed():
    """Units are the same for all seeds, so that only machines differ."""
    scores = [
        MPORBM((3, 3), rank=3, n_iter=0, init="random", random_state=seed)
        .fit(DATA)
        .pseudo_log_likelihood(DATA)
        .mean()
        for seed in range(4)
    ]
    assert np.ptp(scores) < 0.02 * abs(np.mean(scores))


@pytest.mark.parametrize(("n_samples", "n_units"), [(40, 32), (1600, 50), (8000, 128)])
def test_short_epochs_are_scored_by_few_units(n_samples, n_units):
    data = np.random.default_rng(0).random((n_samples, 150)) < 0.3
    model = RBM(3, n_iter=1, random_state=0).fit(data)
    rows = data[np.arange(min(n_samples, 128)) * n_samples // min(n_samples, 128)]
    units = scored_units(150, n_units)
    assert len(units) == n_units
    visible = jnp.asarray(rows, jnp.float32)
    score = pseudo_log_likelihood(model.machine_, visible, jnp.asarray(units)).mean()
    assert_allclose(model.history_[0]["score"], score, rtol=1e-5)


SETTINGS_OF_ALL = [
    (RBM, {"hidden_shape": 9}, "pcd"),
    (RBM, {"hidden_shape": 9}, "cd"),
    (MvRBM, {"hidden_shape": (3, 3), "scheme": "su"}, "fpcd"),
    (TvRBM, {"hidden_shape": 9, "rank": 4, "scheme": "aop"}, "pt"),
    (MPORBM, {"hidden_shape": (3, 3), "rank": 3, "scheme": "aop"}, "pcd"),
    (MPORBM, {"hidden_shape": (3, 3), "rank": 3, "scheme": "su"}, "pt"),
    (MPORBM, {"hidden_shape": (3, 3), "rank": 3, "scheme": "two-site"}, "cd"),
    (MPORBM, {"hidden_shape": (3, 3), "rank": 3, "boundary": "periodic"}, "fpcd"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parameters", "phase"), SETTINGS_OF_ALL)
def test_estimates_cover_the_exact_likelihood(monkeypatch, kind, parameters, phase):
    """20 seeds of every coupling, scheme and negative phase, of machines that can be enumerated."""
    monkeypatch.setattr(watch, "N_ENUMERATED", 0)
    monkeypatch.setattr(watch, "ANNEALING_SHARE", 40.0)
    rows = DATA[np.arange(64)]
    deviations = []
    for seed in range(20):
        model = kind(**parameters, negative_phase=phase, n_iter=30, batch_size=16)
        model.set_params(random_state=seed).fit(DATA)
        entry = model.history_[-1]
        assert entry["effective_sample_size"] > 10
        true = float(np.mean(exact.log_probability(model.machine_, rows)))
        deviations.append((entry["log_likelihood"] - true) / entry["log_partition_error"])
    # 13 or fewer of 20 happen once in 30,000 times at 95 %.
    assert np.sum(np.abs(deviations) < 1.96) >= 14


def test_when_the_likelihood_is_watched():
    """At even distances, the last time by three times as many steps, within the share allowed."""
    model = MPORBM((3, 3), rank=3, random_state=0).fit(DATA)
    specification = model._specify_start(0, ArraySource(DATA))
    look = watch.Watch(
        specification.algorithm,
        specification.machine,
        ArraySource(DATA),
        None,
        100,
        specification.base_bias,
    )
    for n_batches, n_epochs, n_times in [(600, 10, 3), (1, 10, 0), (6000, 10, 10)]:
        total = watch.ANNEALING_SHARE * 2 * 3 * 100 / 256 * n_batches * n_epochs
        steps = [look.n_steps(n_batches, k + 1, n_epochs) for k in range(n_epochs)]
        used = [number for number in steps if number]
        assert len(used) == n_times
        assert sum(used) <= total
        if used:
            assert min(used) >= watch.STEPS_AT_ONCE
            assert steps[-1] == 3 * used[0]
            assert sum(used) > 0.9 * total


@pytest.mark.parametrize(
    ("share", "name"), [(0.16, "validation_score"), (100.0, "validation_log_likelihood")]
)
def test_early_stopping_goes_by_one_measure_only(monkeypatch, share, name):
    """The likelihood if it can be watched after every epoch, or the score after every epoch."""
    monkeypatch.setattr(watch, "ANNEALING_SHARE", share)
    data = np.random.default_rng(0).random((400, 13)) < 0.3
    model = RBM(13, n_iter=40, batch_size=20, early_stopping=True, n_iter_no_change=3)
    model.set_params(random_state=0, rule="plain", learning_rate=0.2).fit(data)
    scores = [entry.get(name) for entry in model.history_]
    assert None not in scores
    assert ("validation_log_likelihood" in model.history_[0]) == (share > 1.0)
    assert model.n_iter_ == int(np.argmax(scores)) + 1 + 3 < 40


@pytest.mark.parametrize("kind", [DBN, DBM])
def test_bounds_of_larger_deep_machines_are_estimated(monkeypatch, kind):
    """Against the log Z that is exact."""
    data = np.random.default_rng(0).random((200, 6)) < 0.3
    options = {"n_iter": 3, "n_iter_fine_tuning": 20, "batch_size": 20, "random_state": 0}
    monkeypatch.setattr(watch, "ANNEALING_SHARE", 10.0)
    known = kind([5, 4], **options).fit(data)
    monkeypatch.setattr(watch, "N_ENUMERATED", 0)
    estimated = kind([5, 4], **options).fit(data)
    one, other = known.history_[-1], estimated.history_[-1]
    assert one["log_partition_error"] == 0.0 < other["log_partition_error"] < 0.2
    error = 4.0 * other["log_partition_error"]
    assert abs(one["log_likelihood"] - other["log_likelihood"]) < error


@pytest.mark.slow
def test_estimates_by_the_real_share_cover_the_exact_likelihood(monkeypatch):
    """In the middle of a training, too, where chains lag behind the mean of the parameters."""
    monkeypatch.setattr(watch, "N_ENUMERATED", 0)
    rng = np.random.default_rng(0)
    prototypes = rng.random((5, 14)) < 0.5
    data = prototypes[np.arange(4000) % 5] ^ (rng.random((4000, 14)) < 0.1)
    deviations = []
    for seed in range(10):
        model = RBM(14, n_iter=60, schedule="constant", random_state=seed).fit(data)
        entry = model.history_[-1]
        assert entry["effective_sample_size"] > 10
        rows = data[np.arange(1024) * 4000 // 1024]
        true = float(np.mean(exact.log_probability(model.machine_, rows)))
        deviations.append((entry["log_likelihood"] - true) / entry["log_partition_error"])
    # 6 or fewer of 10 happen once in 1000 times at 95 %.
    assert np.sum(np.abs(deviations) < 1.96) >= 7
