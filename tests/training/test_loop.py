"""The training loop: divergence, early stopping, schedules, weights, reproducibility, input."""

import re
import signal
import warnings

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mporbm import MPORBM
from mporbm.learning.rates import schedule_factor
from mporbm.training import DivergenceWarning, Training
from mporbm.training import sources as data
from mporbm.training.interrupts import Interrupts
from reproduction.settings import PAPER

ALL = {
    "epoch",
    "learning_rate",
    "reconstruction_error",
    "score",
    "free_energy",
    "log_likelihood",
    "log_partition_error",
    "gradient_norm",
    "weight_norm",
    "seconds",
    "ranks",
}


@pytest.fixture
def X():
    """Two patterns with noise: 12 samples, so that batches of 5 leave an odd last one."""
    rng = np.random.default_rng(0)
    pattern = np.array([[1, 1], [1, 0], [0, 0]])
    clean = np.where(np.arange(12)[:, None, None] % 2, pattern, 1 - pattern)
    return (clean ^ (rng.random(clean.shape) < 0.1)).astype(bool)


def model(**parameters):
    """A machine of one shape, so that it is compiled once."""
    common = {"hidden_shape": (2, 2), "rank": 2, "scheme": "su", "gauge": None, "batch_size": 5}
    common |= {"init": "random", "learning_rate": 0.1, "n_iter": 4, "random_state": 0, **PAPER}
    return MPORBM(**{**common, **parameters})


def arrays(fitted):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(fitted.machine_)]


def assert_same(one, other):
    for a, b in zip(arrays(one), arrays(other), strict=True):
        assert_array_equal(a, b)


def assert_close(one, other):
    for a, b in zip(arrays(one), arrays(other), strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def differ(one, other):
    return any((a != b).any() for a, b in zip(arrays(one), arrays(other), strict=True))


def largest_field(fitted, X):
    field = X.reshape(len(X), -1) @ fitted.weight_matrix() + fitted.hidden_bias_.reshape(-1)
    return np.abs(field).max()


# Divergence


# A batch of 12 leaves the last step of an epoch to be judged when the epoch is over.
@pytest.mark.parametrize("batch_size", [5, 12])
@pytest.mark.parametrize("learning_rate", [10.0, 1e4, 1e200])
def test_divergence_stops_with_the_last_good_parameters(X, batch_size, learning_rate):
    common = {"batch_size": batch_size, "learning_rate": learning_rate}
    diverging = model(n_iter=50, **common)
    with pytest.warns(DivergenceWarning, match="Try learning_rate=") as caught:
        diverging.fit(X)
    proposed = re.search(r"Try learning_rate=([-+.e\d]+),", str(caught[0].message))
    assert 0.0 < float(proposed[1]) < learning_rate
    assert diverging.n_iter_ < 50
    assert len(diverging.history_) == diverging.n_iter_
    assert all(np.isfinite(array).all() for array in arrays(diverging))
    # Half of the limit, 1000 and one for every visible unit.
    assert largest_field(diverging, X) < 503.0
    assert_same(diverging, model(n_iter=diverging.n_iter_, **common).fit(X))


@pytest.mark.parametrize("learning_rate", [10.0, 100.0])
def test_back_off_goes_on_with_smaller_rates(X, learning_rate):
    fitted = model(n_iter=50, learning_rate=learning_rate, on_divergence="back-off").fit(X)
    assert fitted.n_iter_ == len(fitted.history_) == 50
    assert all(np.isfinite(array).all() for array in arrays(fitted))
    rates = np.array([entry["learning_rate"] for entry in fitted.history_])
    assert rates[-1] < learning_rate
    assert (np.diff(rates) <= 0.0).all()
    assert_allclose(np.log(learning_rate / rates) / np.log(4.0) % 1.0, 0.0, atol=1e-9)


def test_back_off_gives_up_where_no_rate_is_small_enough(X):
    hopeless = model(learning_rate=1e200, on_divergence="back-off")
    with pytest.warns(DivergenceWarning, match="back-offs"):
        hopeless.fit(X)
    assert hopeless.n_iter_ == 0
    assert_same(hopeless, model(n_iter=0).fit(X))


def test_a_signal_that_came_before_training_ends_it(X):
    """One that a context around it has noted: training is not to begin as if there were none."""
    with Interrupts():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            model().fit(X)


def test_a_sensible_rate_does_not_diverge(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergenceWarning)
        assert model(n_iter=50, learning_rate=0.1).fit(X).n_iter_ == 50


# Early stopping


def test_early_stopping_keeps_the_best_machine(X):
    stopped = model(n_iter=200, early_stopping=True, n_iter_no_change=3).fit(X, X_val=~X[:4])
    scores = [entry["validation_score"] for entry in stopped.history_]
    best = int(np.argmax(scores)) + 1
    assert stopped.n_iter_ == len(scores) == best + 3 < 200
    assert_same(stopped, model(n_iter=best).fit(X))
    # partial_fit goes on from there, not from where training ended.
    kept = arrays(stopped)
    stopped.set_params(learning_rate=1e-12, momentum=0.0).partial_fit(X)
    for a, b in zip(arrays(stopped), kept, strict=True):
        assert_allclose(a, b, atol=1e-9)


def test_early_stopping_sets_samples_aside(X):
    fitted = model(n_iter=2, early_stopping=True, validation_fraction=0.25).fit(X)
    assert all("validation_score" in entry for entry in fitted.history_)
    # The samples set aside, the first and last of them at the ends, are not learnt from.
    changed = X.copy()
    changed[[0, -1]] = ~changed[[0, -1]]
    other = model(n_iter=2, early_stopping=True, validation_fraction=0.25).fit(changed)
    assert_allclose(
        [entry["reconstruction_error"] for entry in fitted.history_],
        [entry["reconstruction_error"] for entry in other.history_],
    )


def test_validation_without_early_stopping_only_watches(X):
    watched = model().fit(X, X_val=X[:4])
    assert_same(watched, model().fit(X))
    assert set(watched.history_[0]) == ALL | {
        "validation_score",
        "validation_log_likelihood",
        "free_energy_gap",
    }


# Rates


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_schedules_end_small(X, schedule):
    rates = [e["learning_rate"] for e in model(n_iter=8, schedule=schedule).fit(X).history_]
    assert rates[0] == pytest.approx(0.1)
    assert (np.diff(rates) < 0.0).all()
    assert 0.0 < rates[-1] <= rates[0] / 8 * (1.0 + 1e-12)


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_half_way_steps_are_half_as_long(X, schedule):
    # One update an epoch without momentum: the second step is the rate times one gradient.
    common = {"batch_size": 12, "momentum": 0.0}
    before = model(n_iter=1, **common).fit(X)
    whole = model(n_iter=2, **common).fit(X)
    half = model(n_iter=2, schedule=schedule, **common).fit(X)
    for a, b, c in zip(arrays(before), arrays(whole), arrays(half), strict=True):
        assert_allclose(c - a, 0.5 * (b - a), atol=1e-12)
    assert differ(whole, before)


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_rates_change_from_batch_to_batch(X, schedule, monkeypatch):
    """Epoch e of n begins where the schedule is at e / n and ends where it is at (e + 1) / n."""
    seen = []

    class Paced(Training):
        def _pace(self):
            seen.append(super()._pace())
            return seen[-1]

    monkeypatch.setattr("mporbm.estimators.boltzmann.Training", Paced)
    model(n_iter=3, schedule=schedule).fit(X)
    n_batches = 3
    for epoch, pace in enumerate(seen):
        ends = [0.1 * schedule_factor(schedule, (epoch + later) / 3) for later in (0, 1)]
        rates = [float(pace.at(number).coupling) for number in (0, n_batches)]
        assert_allclose(rates, ends, atol=1e-7)
        assert_allclose(
            float(pace.at(1).bias), ends[0] + (ends[1] - ends[0]) / n_batches, atol=1e-7
        )


def test_rates_of_a_stream_change_from_epoch_to_epoch(X):
    """It is not known how long an epoch is."""
    streamed = model(n_iter=2, schedule="linear", batch_size=6).fit(lambda: iter([X]))
    assert [entry["learning_rate"] for entry in streamed.history_] == pytest.approx([0.1, 0.05])


def test_partial_fit_takes_a_new_rate(X):
    def step(learning_rate):
        fitted = model(n_iter=2).fit(X).set_params(learning_rate=learning_rate, momentum=0.0)
        return fitted.partial_fit(X[:5])

    before, whole, half = arrays(model(n_iter=2).fit(X)), arrays(step(0.02)), arrays(step(0.01))
    for a, b, c in zip(before, whole, half, strict=True):
        assert_allclose(c - a, 0.5 * (b - a), atol=1e-12)


def test_sparsity_lowers_hidden_activity(X):
    plain = model(n_iter=30).fit(X)
    sparse = model(n_iter=30, sparsity_target=0.1, sparsity_cost=1.0).fit(X)
    activity = [fitted.transform(X).mean() for fitted in (plain, sparse)]
    assert abs(activity[1] - 0.1) < abs(activity[0] - 0.1)
    assert activity[1] < 0.7 * activity[0]


def test_weight_decay_lowers_the_weight_norm(X):
    plain, decayed = (model(n_iter=30, weight_decay=d) for d in (0.0, 0.2))
    norms = [np.linalg.norm(fitted.fit(X).weight_matrix()) for fitted in (plain, decayed)]
    assert norms[1] < 0.9 * norms[0]
    assert_allclose([f.history_[-1]["weight_norm"] for f in (plain, decayed)], norms)


# Weights and padding


def partially_fitted(X, weight=None):
    return model().partial_fit(X, sample_weight=weight)


def test_samples_of_weight_zero_do_not_count(X):
    weight = [1.0, 0.0, 2.0, 1.0, 0.0]
    changed = X[:5].copy()
    changed[[1, 4]] = ~changed[[1, 4]]
    assert_same(partially_fitted(X[:5], weight), partially_fitted(changed, weight))
    assert differ(partially_fitted(X[:5], weight), partially_fitted(changed))


def test_only_ratios_of_weights_count(X):
    weight = np.array([1.0, 0.0, 2.0, 1.0, 0.0])
    assert_same(partially_fitted(X[:5], weight), partially_fitted(X[:5], 4.0 * weight))


def test_a_batch_of_weight_zero_moves_nothing(X):
    weight = np.repeat([1.0, 0.0], [5, 7])
    assert_close(partially_fitted(X, weight), partially_fitted(X[:5]))


def test_padding_of_an_odd_last_batch_does_not_count(X):
    weight = np.repeat([1.0, 0.0], [7, 5])
    assert_close(partially_fitted(X[:7]), partially_fitted(X, weight))


def test_one_sample_trains(X):
    fitted = model(n_iter=2).fit(X[:1])
    assert fitted.n_iter_ == 2
    assert differ(fitted, model(n_iter=0).fit(X[:1]))


# What is reported


def test_history_has_an_entry_for_every_epoch(X):
    history = model(n_iter=3).fit(X).history_
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    assert all(set(entry) == ALL for entry in history)
    assert all(entry["seconds"] > 0.0 and entry["ranks"] == [2] for entry in history)


def test_the_history_tells_of_the_machine(X):
    fitted = model().fit(X)
    last = fitted.history_[-1]
    assert last["reconstruction_error"] == pytest.approx(np.mean((fitted.reconstruct(X) - X) ** 2))
    assert last["free_energy"] == pytest.approx(fitted.free_energy(X).mean())
    assert last["weight_norm"] == pytest.approx(np.linalg.norm(fitted.weight_matrix()))


# Reproducibility and kinds of input


@pytest.mark.parametrize("parameters", [{}, {"scheme": "aop", "gauge": "canonical"}])
def test_random_state_decides_everything(X, parameters):
    one, same, other = (model(**parameters, random_state=seed).fit(X) for seed in (0, 0, 1))
    assert_same(one, same)
    assert differ(one, other)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_types_of_data_give_one_model(X, dtype):
    assert_close(model().fit(X), model().fit(X.astype(dtype)))


def test_memory_mapped_data_give_the_same_model(X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    assert_close(model().fit(X), model().fit(np.load(tmp_path / "X.npy", mmap_mode="r")))


def test_flattened_data_give_the_same_model(X):
    assert_same(model().fit(X), model(visible_shape=(3, 2)).fit(X.reshape(12, -1)))


def test_data_in_several_blocks_give_the_same_model(X, monkeypatch):
    whole = model().fit(X)
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(data, "BLOCK_BYTES", 5 * 6)
    assert_close(whole, model().fit(X))


def test_a_stream_trains_as_its_rows_do(X):
    # Streams of one block are shuffled as arrays are.
    streamed = model(batch_size=12).fit(lambda: iter([X[:5], X[5:6], X[6:]]))
    assert streamed.n_iter_ == 4
    assert_close(streamed, model(batch_size=12).fit(X))


class Stream:
    """Makes a new iterator whenever it is asked for one."""

    def __init__(self, X):
        self.X = X

    def __iter__(self):
        return iter([self.X[:7], self.X[7:]])


def test_iterable_objects_and_functions_are_the_same(X):
    assert_same(model().fit(Stream(X)), model().fit(lambda: iter(Stream(X))))


def test_an_iterator_is_enough_for_one_epoch(X):
    expected = model(n_iter=1).fit(lambda: iter(Stream(X)))
    assert_same(expected, model(n_iter=1).fit(iter(Stream(X))))


def test_an_iterator_is_refused_for_more(X):
    with pytest.raises(ValueError, match=r"n_iter=4 times, got an iterator.*pass a function"):
        model().fit(iter(Stream(X)))


def test_an_empty_stream_is_refused():
    with pytest.raises(ValueError, match="empty"):
        model().fit(lambda: iter([]))


# partial_fit


@pytest.mark.parametrize("negative_phase", ["cd", "pcd"])
def test_partial_fit_goes_on(X, negative_phase):
    fitted = model(negative_phase=negative_phase, n_iter=2).fit(X)
    for epoch in range(3, 6):
        before = arrays(fitted)
        assert fitted.partial_fit(X) is fitted
        assert any((a != b).any() for a, b in zip(arrays(fitted), before, strict=True))
        assert fitted.n_iter_ == len(fitted.history_) == fitted.history_[-1]["epoch"] == epoch


def test_partial_fit_begins_without_fit_and_takes_streams(X):
    by_array = model().partial_fit(X).partial_fit(X)
    assert by_array.n_iter_ == 2
    assert differ(by_array, model(n_iter=0).fit(X))
    # In their order: nothing is shuffled.
    by_stream = model().partial_fit(iter(Stream(X))).partial_fit(iter(Stream(X)))
    assert_close(by_array, by_stream)


def test_velocity_goes_on_from_call_to_call(X):
    with_momentum, without = model(momentum=0.9), model(momentum=0.0)
    steps = []
    for fitted in (with_momentum, without):
        fitted.partial_fit(X[:5])
        before = fitted.visible_bias_
        fitted.partial_fit(X[:5])
        steps.append(fitted.visible_bias_ - before)
    assert not np.allclose(*steps)


def test_weights_count_in_batches_of_one(X):
    """A sample's weight is the length of its step, whatever else is in its batch."""
    weight = np.linspace(0.5, 2.0, len(X))
    one = model(batch_size=1).partial_fit(X, sample_weight=weight)
    assert differ(one, model(batch_size=1).partial_fit(X))
