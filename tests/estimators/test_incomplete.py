"""Samples with missing values in every form, against enumeration of what is missing."""

import functools
import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

import mporbm
from mporbm import MPODBN, MPORBM, MPSRBM, RBM, MPOClassRBM, MvRBM, TvRBM
from mporbm.machine import exact
from mporbm.training import ArraySource, StreamSource
from strategies import HIDDEN, VISIBLE, all_states, exact_samples, tiny_machine
from trainings import arrays

NAN = np.nan
SMALL = {"hidden_shape": HIDDEN, "rank": 2, "random_state": 0}
QUICK = {**SMALL, "n_iter": 2, "batch_size": 10}


@functools.cache
def data(n_samples=40, share=0.4):
    """Samples of a machine, and the same ones with missing values."""
    rng = np.random.default_rng(0)
    rows = exact_samples(tiny_machine(scale=0.7), n_samples, rng)
    missing = rng.random(rows.shape) < share
    missing[:, 1, 1] &= ~missing.all(axis=(1, 2))
    return rows, np.where(missing, NAN, rows)


def assert_same_machine(one, other):
    for a, b in zip(arrays(one.machine_), arrays(other.machine_), strict=True):
        assert_array_equal(a, b)


def observed_log_likelihood(machine, rows):
    """``log p(V_observed)`` of each sample by enumeration."""
    states = all_states(machine)[None]
    agree = (np.isnan(rows)[:, None] | (states == rows[:, None])).all(axis=(2, 3))
    energies = np.asarray(machine.free_energy(states[0]), np.float64)
    log_z = float(exact.log_partition(machine))
    return logsumexp(np.where(agree, -energies, -np.inf), axis=1) - log_z


@functools.cache
def fitted():
    """An estimator that tests share, and so must not change."""
    return MPORBM(**{**QUICK, "n_iter": 20}).fit(data()[1])


# Every way in which data may come


FORMS = {
    "flat": lambda rows, missing: missing.reshape(len(missing), -1),
    "masked": lambda rows, missing: masked(np.where(np.isnan(missing), 255.0, rows)),
    "masked integers": lambda rows, missing: masked(rows.astype(np.int64)),
    "float32": lambda rows, missing: missing.astype(np.float32),
    "masked bits": lambda rows, missing: masked(rows.astype(bool)),
    "masked bytes": lambda rows, missing: masked(
        np.where(np.isnan(missing), 255, rows).astype(np.uint8)
    ),
}


def masked(rows):
    """What is behind the mask does not matter."""
    return np.ma.array(rows, mask=np.isnan(data()[1]))


@pytest.mark.parametrize("form", FORMS)
def test_missing_values_come_in_many_forms(form):
    rows, missing = data()
    given = FORMS[form](rows, missing)
    single = form in ("float32", "masked bits", "masked bytes")
    plain = missing.astype(np.float32 if single else np.float64)
    expected = MPORBM(**QUICK).fit(plain)
    model = MPORBM(visible_shape=VISIBLE, **QUICK).fit(given)
    assert_same_machine(model, expected)
    assert_array_equal(model.base_bias_, expected.base_bias_)
    assert_array_equal(model.transform(given), expected.transform(missing))
    assert_array_equal(model.score_samples(given), expected.score_samples(missing))


def test_missing_values_in_a_file(tmp_path):
    missing = data()[1]
    np.save(tmp_path / "X.npy", missing)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected, model = (MPORBM(**QUICK).fit(rows) for rows in (missing, mapped))
    assert_same_machine(model, expected)
    assert_array_equal(model.transform(mapped), model.transform(missing))


def test_missing_values_in_a_store(tmp_path):
    zarr = pytest.importorskip("zarr")
    missing = data()[1]
    store = zarr.create_array(tmp_path / "X.zarr", shape=missing.shape, dtype=missing.dtype)
    store[:] = missing
    stored = zarr.open_array(tmp_path / "X.zarr", mode="r")
    settings = {**QUICK, "batch_size": len(missing), "negative_phase": "cd"}
    model = MPORBM(**settings).fit(stored)
    assert_array_equal(model.transform(stored), model.transform(missing))
    assert_allclose(model.base_bias_, MPORBM(**settings).fit(missing).base_bias_)


def pieces(rows, size=10):
    return lambda: (rows[start : start + size] for start in range(0, len(rows), size))


def test_missing_values_in_a_stream():
    missing = data()[1]
    streamed = MPORBM(**QUICK).fit(pieces(missing))
    whole = MPORBM(**QUICK).fit(lambda: [missing])
    assert_same_machine(streamed, whole)
    masked = np.ma.masked_invalid(missing)
    assert_same_machine(MPORBM(**QUICK).fit(pieces(masked)), whole)


def test_missing_values_in_parts():
    missing = data()[1]
    parts = [MPORBM(**QUICK) for _ in range(2)]
    for start in range(0, 40, 20):
        part = missing[start : start + 20]
        parts[0].partial_fit(part)
        parts[1].partial_fit(np.ma.masked_invalid(part))
    assert_same_machine(*parts)
    assert parts[0].n_iter_ == 2
    # Complete parts and others in turns.
    mixed = MPORBM(**QUICK).partial_fit(data()[0]).partial_fit(missing)
    assert_array_equal(mixed.partial_fit(iter([missing[:20], data()[0]])).n_iter_, 3)


def test_a_stream_says_at_its_beginning_that_values_may_be_missing():
    rows, missing = data(2400)
    late = [rows[:1200], missing[1200:]]
    message = "X: expected the first NaN of a stream among its first samples.*np.ma.masked_invalid"
    with pytest.raises(ValueError, match=message):
        MPORBM(**QUICK).fit(lambda: late)
    assert MPORBM(**QUICK).fit(lambda: [np.ma.array(late[0]), late[1]]).n_iter_ == 2


@pytest.mark.parametrize("kind", [RBM, MvRBM, TvRBM])
def test_other_machines_take_missing_values(kind):
    shape = HIDDEN if kind is MvRBM else 4
    model = kind(hidden_shape=shape, n_iter=2, batch_size=10, random_state=0).fit(data()[1])
    expected = observed_log_likelihood(model.machine_, data()[1])
    assert_allclose(model.score_samples(data()[1]), expected, atol=0.2)


@pytest.mark.parametrize(
    "settings",
    [
        {"negative_phase": "cd", "rule": "plain"},
        {"negative_phase": "pt", "n_gibbs": 2},
        {"negative_phase": "fpcd", "scheme": "su", "rule": "plain"},
        {"scheme": "two-site"},
        {"init": "random"},
        {"hidden_units": "rectified"},
        {"batch_size": 7, "early_stopping": True},
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
def test_every_way_of_learning_takes_missing_values(settings):
    model = MPORBM(**{**QUICK, **settings}).fit(data()[1])
    assert all(np.isfinite(leaf).all() for leaf in arrays(model.machine_))
    assert not model.diverged_


def test_gaussian_and_categorical_units(rng):
    real = rng.normal(size=(40, 3, 2))
    states = np.eye(4)[rng.integers(4, size=(40, 3))]
    lost = rng.random((40, 3)) < 0.3
    for units, rows in (
        ("gaussian", np.where(lost[..., None], NAN, real)),
        ("categorical", np.where(lost[..., None], NAN, states)),
    ):
        model = MPORBM(**{**QUICK, "visible_units": units}).fit(rows)
        assert np.isfinite(model.score_samples(rows)).all()
        assert np.isfinite(model.transform(rows)).all()


# What is learnt


def bars_and_stripes():
    """The 14 images of 3x3 pixels whose rows, or columns, are all on or all off."""
    lines = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    stripes = np.repeat(lines[:, None, :], 3, axis=1)
    return np.unique(np.concatenate([stripes, stripes.transpose(0, 2, 1)]), axis=0)


def test_learning_nears_what_complete_samples_teach(rng):
    """Unlike the mean in place of what is missing, which teaches next to nothing."""
    images = bars_and_stripes()
    rows = np.tile(images, (50, 1, 1))
    missing = np.where(rng.random(rows.shape) < 0.3, NAN, rows)
    missing = missing[~np.isnan(missing).all(axis=(1, 2))]
    settings = {"rank": 6, "n_iter": 60, "batch_size": 28, "random_state": 0}
    found = {
        name: MPORBM((4, 2), **settings).fit(given).machine_
        for name, given in {
            "complete": rows,
            "incomplete": missing,
            "imputed": np.where(np.isnan(missing), np.nanmean(missing, axis=0), missing),
        }.items()
    }
    start = MPORBM((4, 2), **{**settings, "n_iter": 0}).fit(missing).machine_
    observed = {name: observed_log_likelihood(m, missing).mean() for name, m in found.items()}
    before = observed_log_likelihood(start, missing).mean()
    assert observed["incomplete"] > max(before, observed["imputed"]) + 1.0, observed
    assert observed["incomplete"] > observed["complete"] - 0.2, observed
    nats = {name: float(exact.log_probability(m, images).mean()) for name, m in found.items()}
    # Independent pixels have -6.2 nats, the images themselves -2.6.
    assert nats["incomplete"] > nats["complete"] - 0.7, nats
    assert nats["imputed"] < nats["incomplete"] - 2.0, nats


def test_complete_data_pay_nothing(monkeypatch):
    """Their objective is the one that they always had: nothing is filled in."""
    rows, missing = data()

    def filled(*arguments):
        raise AssertionError("filled in")

    monkeypatch.setattr("mporbm.learning.incomplete.fill", filled)
    for given in (rows, rows.astype(bool), lambda: [rows]):
        MPORBM(**QUICK).fit(given)
    with pytest.raises(AssertionError, match="filled in"):
        MPORBM(**{**QUICK, "batch_size": 11}).fit(missing)


def test_samples_of_which_nothing_is_known_are_left_out():
    missing = data()[1]
    more = np.insert(missing, [3, 17], NAN, axis=0)
    weight = np.linspace(0.5, 2.0, 40)
    weights = np.insert(weight, [3, 17], [9.0, 7.0])
    expected = MPORBM(**QUICK).fit(missing, sample_weight=weight)
    message = "X: 2 of 42 samples, the first of them sample 3, are NaN alone"
    with pytest.warns(UserWarning, match=message):
        found = MPORBM(**QUICK).fit(more, sample_weight=weights)
    assert found.machine_.visible_bias.shape == VISIBLE
    assert_allclose(found.base_bias_, expected.base_bias_)
    with pytest.warns(UserWarning, match="are NaN alone"):
        MPORBM(**QUICK).fit(pieces(more))
    with pytest.warns(UserWarning, match="are NaN alone"):
        MPORBM(early_stopping=True, **QUICK).fit(more)
    with pytest.raises(ValueError, match="X: expected samples of which something was observed"):
        MPORBM(**QUICK).fit(np.full((5, 3, 2), NAN))


def test_sources_leave_the_same_samples_out_of_both_parts(rng):
    rows = rng.random((12, 2))
    used = np.array([0, 2, 3, 4, 7, 8, 9, 11])
    parts = ArraySource(rows, None, used, incomplete=True).split(0.25)
    assert all(part.incomplete for part in parts)
    assert sorted([*parts[0].used, *parts[1].used]) == used.tolist()
    assert len(parts[1].used) == 2
    assert StreamSource(lambda: [rows], np.asarray).incomplete is None


def test_values_that_were_never_observed_are_named():
    missing = data()[1].copy()
    missing[:, 2, 1] = NAN
    with pytest.warns(UserWarning, match=r"X: 1 of 6 values are NaN in every sample, at \(2, 1\)"):
        model = MPORBM(**QUICK).fit(missing)
    assert model.base_bias_[2, 1] == 0.0


def test_what_is_watched():
    rows, missing = data(400, 0.1)
    settings = {**QUICK, "n_iter": 3}
    complete = ~np.isnan(missing).any(axis=(1, 2))
    assert 32 <= complete.sum() < len(rows)
    model = MPORBM(**settings).fit(missing, X_val=rows)
    last = model.history_[-1]
    # The machine is small: log Z is exact. Only complete samples have a likelihood to tell.
    measured = observed_log_likelihood(model.machine_, rows)
    assert_allclose(last["log_likelihood"], measured[complete].mean(), rtol=1e-4)
    assert_allclose(last["validation_log_likelihood"], measured.mean(), rtol=1e-4)
    last = MPORBM(**settings).fit(data()[1]).history_[-1]
    assert "log_likelihood" not in last
    assert {"score", "reconstruction_error", "free_energy"} <= last.keys()
    last = MPORBM(**settings).fit(rows, X_val=missing).history_[-1]
    assert {"log_likelihood", "validation_score"} <= last.keys()
    assert "validation_log_likelihood" not in last
    model = MPORBM(**{**settings, "early_stopping": True}).fit(missing)
    assert np.isfinite(model.history_[-1]["validation_score"])


def test_a_training_goes_on_from_its_checkpoint(tmp_path):
    missing = data()[1]
    settings = {**QUICK, "n_iter": 4}
    expected = MPORBM(**settings).fit(missing)
    path = tmp_path / "checkpoint"
    # The rate is that of the whole training, and does not change.
    settings |= {"checkpoint": path}
    MPORBM(**settings).fit(missing)
    again = MPORBM(**settings).fit(missing)
    assert_same_machine(again, expected)
    other = np.where(np.isnan(missing), NAN, 1.0 - missing)
    with pytest.raises(ValueError, match="checkpoint"):
        MPORBM(**settings).fit(other)


# What is known of a sample with missing values


def posterior(machine, rows):
    """``p(V | V_observed)`` of each sample over all states."""
    states = all_states(machine)[None]
    agree = (np.isnan(rows)[:, None] | (states == rows[:, None])).all(axis=(2, 3))
    weights = np.asarray(exact.visible_distribution(machine)) * agree
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("feature", ["probability", "field"])
def test_features_are_means_over_what_is_missing(feature):
    model = mporbm.MPORBM(**QUICK).fit(data()[1]).set_params(feature=feature)
    missing = np.repeat(data()[1][:4], 200, axis=0)
    of_states = model.transform(all_states(model.machine_))
    expected = posterior(model.machine_, data()[1][:4]) @ of_states
    found = model.transform(missing)
    assert_array_equal(found, model.transform(missing))
    found = found.reshape(4, 200, -1)
    error = found.std(axis=1, ddof=1) / np.sqrt(200) + 1e-6
    assert (np.abs(found.mean(axis=1) - expected) <= 6.0 * error).all()


def test_random_states_are_those_of_the_posterior():
    model = mporbm.MPORBM(feature="state", **QUICK).fit(data()[1])
    missing = np.repeat(data()[1][:1], 2000, axis=0)
    hidden = np.asarray(model.machine_.hidden_mean(all_states(model.machine_))).reshape(64, -1)
    expected = posterior(model.machine_, missing[:1])[0] @ hidden
    found = model.transform(missing)
    assert set(np.unique(found)) == {0.0, 1.0}
    assert_allclose(found.mean(axis=0), expected, atol=0.06)


def test_complete_samples_among_others_are_as_ever():
    model, (rows, missing) = fitted(), data()
    mixed = np.where(np.arange(40)[:, None, None] % 2, rows, missing)
    for method in (model.transform, model.score_samples):
        assert_array_equal(method(mixed)[1::2], method(rows)[1::2])
        assert_array_equal(method(mixed), method(mixed))


def test_scores_are_those_of_what_was_observed():
    model, missing = fitted(), data()[1]
    expected = observed_log_likelihood(model.machine_, missing)
    assert_allclose(model.score_samples(missing), expected, atol=0.05)
    assert_allclose(model.score(missing), expected.mean(), atol=0.01)
    nothing = np.full((3, *VISIBLE), NAN)
    assert_allclose(model.score_samples(nothing), 0.0, atol=0.1)


def test_completed_samples_and_those_with_missing_values_have_similar_features():
    model, missing = fitted(), data()[1]
    drawn = model.posterior_samples(missing, n_samples=200, random_state=0)
    features = model.transform(drawn.reshape(-1, *VISIBLE)).reshape(40, 200, -1).mean(axis=1)
    assert_allclose(model.transform(missing), features, atol=0.15)


# What is refused


@pytest.mark.parametrize("method", ["reconstruct", "free_energy", "pseudo_log_likelihood", "gibbs"])
def test_what_needs_complete_samples_says_so(method):
    hint = "NaN.*transform and score_samples take .* missing values, and complete fills them in"
    with pytest.raises(ValueError, match=hint):
        getattr(fitted(), method)(data()[1])


def test_estimators_that_take_none_name_those_that_do():
    missing, labels = data()[1], np.arange(40) % 2
    message = "NaN.*MPORBM, RBM, MvRBM and TvRBM take samples with missing values, {} does not"
    for model in (MPODBN([HIDDEN]), MPOClassRBM(HIDDEN)):
        name = type(model).__name__
        for given in (missing, np.ma.masked_invalid(missing)):
            with pytest.raises(ValueError, match=message.format(name)):
                model.fit(given, labels)
        assert not model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match=message.format("MPODBN")):
        MPODBN([HIDDEN], n_iter=1).fit(data()[0], X_val=missing)
    with pytest.raises(TypeError, match="X: expected an MPSBatch"):
        MPSRBM(2).fit(missing)
    assert not MPSRBM().__sklearn_tags__().input_tags.allow_nan
    assert MPORBM().__sklearn_tags__().input_tags.allow_nan


def test_infinite_numbers_are_not_missing(tmp_path):
    infinite = data()[1].copy()
    infinite[3, 0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        MPORBM(**QUICK).fit(infinite)
    np.save(tmp_path / "X.npy", infinite)
    with pytest.raises(ValueError, match="X: expected finite numbers, got NaN or inf in samples 0"):
        MPORBM(**QUICK).fit(np.load(tmp_path / "X.npy", mmap_mode="r"))


def test_values_of_another_scale_are_refused_beside_missing_ones():
    with pytest.raises(ValueError, match=r"expected values from 0 to 1 .*got 0 to 255"):
        MPORBM(**QUICK).fit(255.0 * data()[1])


def test_nothing_else_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in itertools.chain([data()[1], np.ma.masked_invalid(data()[1])]):
            MPORBM(**QUICK).fit(given).transform(given)
