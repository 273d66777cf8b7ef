"""Estimators whose hidden units are real numbers, or come in groups."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mporbm
from mporbm import MPORBM, MPSRBM, RBM, ClassRBM, MvRBM, TvRBM
from mporbm.learning.rates import centred_rates
from mporbm.machine import Categorical, Gaussian, Rectified, exact
from mporbm.training import FileFormatError, safetensors_io
from strategies import assert_distributed, assert_numbers_distributed

KINDS = {"rectified": Rectified, "gaussian": Gaussian, "categorical": Categorical}
X = np.random.default_rng(0).random((40, 3, 2)) < np.linspace(0.2, 0.8, 6).reshape(3, 2)
TRAINING = {"n_iter": 3, "batch_size": 10, "random_state": 0}
by_units = pytest.mark.parametrize("units", KINDS)


def fitted(units, **parameters):
    return MPORBM((2, 2), rank=2, hidden_units=units, **{**TRAINING, **parameters}).fit(X)


@by_units
def test_features_are_means(units):
    model = fitted(units)
    field = X.reshape(40, -1) @ model.weight_matrix() + model.hidden_bias_.ravel()
    mean = KINDS[units]().mean(jnp.asarray(field.reshape(40, 2, 2))).reshape(40, 4)
    assert_allclose(model.transform(X), mean, rtol=1e-5)
    states = model.set_params(feature="state").transform(X)
    if units == "categorical":
        assert_array_equal(states.reshape(40, 2, 2).sum(axis=2), np.ones((40, 2)))
        return
    assert len(np.unique(states)) == states.size
    assert (states.min() >= 0.0) == (units == "rectified")


@by_units
def test_scores_and_samples_are_those_of_the_exact_distribution(units):
    model = fitted(units)
    expected = np.asarray(exact.log_probability(model.machine_, np.asarray(X, np.float32)))
    assert_allclose(model.score_samples(X), expected, rtol=1e-4)
    found = model.log_partition("ais", n_temperatures=100)
    assert abs(found.value - model.log_partition().value) < 4.0 * found.standard_error + 0.01
    drawn = model.sample(20_000, n_gibbs=50, random_state=1)
    assert_distributed(drawn, exact.visible_distribution(model.machine_))
    assert_allclose(model.history_[-1]["log_likelihood"], model.score(X), rtol=1e-4)


@by_units
@pytest.mark.parametrize("kind", [RBM, MvRBM, TvRBM, MPORBM])
def test_training_raises_the_likelihood(units, kind):
    rng = np.random.default_rng(0)
    patterns = np.array([[1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 1]], bool).reshape(2, 3, 2)
    data = np.tile(patterns, (60, 1, 1)) ^ (rng.random((120, 3, 2)) < 0.1)
    shape = {RBM: 4, TvRBM: 4}.get(kind, (2, 2))
    rank = {} if kind in (RBM, MvRBM) else {"rank": 2}
    model = kind(shape, **rank, hidden_units=units, n_iter=100, random_state=0).fit(data)
    # Binary hidden units reach -2.4, or -2.6 by a Kronecker product; independent units have -4.1.
    assert model.score(data) > -2.75
    assert not model.diverged_


@by_units
def test_files_and_conversions_keep_the_units(units, tmp_path):
    model = fitted(units)
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors")
    assert type(again.machine_.hidden_units) is KINDS[units]
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    dense = RBM(4, hidden_units=units, **TRAINING).fit(X.reshape(40, -1))
    # A group stays one.
    hidden = (1, 4) if units == "categorical" else (2, 2)
    train = MPORBM.from_rbm(dense, visible_shape=(3, 2), hidden_shape=hidden)
    assert train.hidden_units == units
    assert_allclose(train.score_samples(X), dense.score_samples(X.reshape(40, -1)), rtol=1e-4)
    assert type(train.compress(rank=1).machine_.hidden_units) is KINDS[units]
    assert train.partial_fit(X).n_iter_ == 1


def test_files_with_a_variance_of_something_else_are_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    fitted("gaussian").save(path)
    arrays, header = safetensors_io.read(path, "model")
    arrays["hidden_units.log_variance"] = np.full(3, np.nan)
    safetensors_io.write(path, "model", arrays, header)
    with pytest.raises(FileFormatError, match="incomplete or corrupted"):
        mporbm.load(path)


def test_units_that_vary_more_take_shorter_steps():
    lengths = [
        float(centred_rates(fitted(units, n_iter=0).machine_).coupling)
        for units in ("bernoulli", "rectified", "gaussian")
    ]
    assert_allclose(lengths, lengths[0] * np.array([1.0, 0.5 / np.sqrt(1 - 2 / np.pi), 0.5]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            MPORBM(hidden_units="relu"),
            "hidden_units='relu': expected 'bernoulli', 'categorical', 'gaussian', 'rectified' or",
        ),
        (
            MPORBM(visible_units="gaussian", hidden_units="rectified"),
            "hidden_units='rectified': expected 'gaussian', 'bernoulli' or 'categorical' for",
        ),
        (MPSRBM(hidden_units="rectified"), "hidden_units='rectified': expected .*'bernoulli'"),
    ],
)
def test_pairs_without_a_distribution_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.check_parameters()


def test_classifiers_have_no_gaussian_hidden_units():
    labels = np.arange(40) % 2
    with pytest.raises(ValueError, match="'gaussian': expected 'bernoulli' or 'rectified'"):
        ClassRBM(4, hidden_units="gaussian").fit(X, labels)
    model = ClassRBM(4, hidden_units="rectified", n_iter=3, random_state=0).fit(X, labels)
    assert model.predict_proba(X).shape == (40, 2)


@by_units
def test_a_categorical_layer_goes_with_them(units):
    states = np.eye(3)[np.random.default_rng(0).integers(3, size=(30, 4))]
    model = MPORBM((2, 2), rank=2, visible_units="categorical", hidden_units=units, **TRAINING)
    model.fit(states)
    assert_array_equal(model.sample(5).sum(axis=-1), np.ones((5, 4)))
    assert np.isfinite(model.score(states))


def test_categorical_layers_on_both_sides(tmp_path):
    """Samples, scores and completions against the list of all 81 states."""
    states = np.eye(3)[np.random.default_rng(0).integers(3, size=(60, 4))]
    states[:, 1] = states[:, 0]
    options = {"visible_units": "categorical", "hidden_units": "categorical", "n_iter": 40}
    model = MPORBM((2, 3), rank=3, random_state=0, batch_size=10, **options).fit(states)
    machine = model.machine_
    p = np.asarray(exact.visible_distribution(machine))
    every = np.asarray(Categorical().states(jnp.arange(81), (4, 3), float))
    assert_allclose(np.exp(model.score_samples(every)), p, rtol=1e-4)
    # Independent squares have -4 log 3; to know that two are the same saves one of them.
    assert model.score(states) > -4.0 * np.log(3.0) + 0.5
    drawn = model.sample(20_000, n_gibbs=50, random_state=1)
    assert_array_equal(drawn.sum(axis=2), np.ones((20_000, 4)))
    numbers = drawn.argmax(axis=2) @ 3 ** np.arange(3, -1, -1)
    assert_numbers_distributed(numbers, p)
    known = np.zeros((4, 3), bool)
    known[1:] = True
    seen = every[5]
    completed = model.complete(seen[None], known, n_gibbs=4000, random_state=0)[0]
    same = (every[:, 1:] == seen[1:]).all(axis=(1, 2))
    wanted = (p[same, None] * every[same, 0]).sum(axis=0) / p[same].sum()
    assert_allclose(completed[0], wanted, atol=0.05)
    assert_array_equal(completed[1:], seen[1:])
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors")
    assert_array_equal(again.score_samples(states), model.score_samples(states))


def test_one_group_is_a_mixture():
    """A single hidden group of K states mixes K products of independent units."""
    model = RBM(3, hidden_units="categorical", **TRAINING).fit(X)
    weights = model.weight_matrix() + model.visible_bias_.reshape(-1, 1)
    total = np.logaddexp(0.0, weights).sum(axis=0) + model.hidden_bias_
    share = np.exp(total - np.logaddexp.reduce(total))
    on = 1.0 / (1.0 + np.exp(-weights))
    flat = X.reshape(40, -1)[:, :, None]
    density = np.where(flat, on, 1.0 - on).prod(axis=1) @ share
    assert_allclose(model.score_samples(X), np.log(density), rtol=1e-4)


def test_real_visible_units_go_with_categorical_hidden_ones():
    rows = np.random.default_rng(0).normal(size=(40, 3, 2))
    rows[::2] += 2.0
    options = {"visible_units": "gaussian", "hidden_units": "categorical", "n_iter": 30}
    model = MPORBM((2, 2), rank=2, random_state=0, **options).fit(rows)
    independent = -0.5 * (np.var(rows, axis=0) + np.log(2 * np.pi)).sum()
    assert model.score(rows) > independent
