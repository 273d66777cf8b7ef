"""MPSRBM, for samples in MPS form: an estimator like any other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import mporbm
from mporbm import MPORBM, MPSRBM, RBM
from mporbm.machine import Gaussian, Machine
from mporbm.mps.machine import MPSMachine, hidden_gibbs
from mporbm.tensor import MPSBatch
from strategies import assert_distributed

ORDER = 4


N_SAMPLES = 24


def sines(seed):
    """Sines and cosines of 2^4 points, of length 3, and which they are."""
    rng = np.random.default_rng(seed)
    labels = np.tile([0, 1], N_SAMPLES // 2)
    shifts = 0.25 * labels + rng.normal(scale=0.02, size=N_SAMPLES)
    x = np.arange(2**ORDER) / 2**ORDER
    rows = np.sin(2 * np.pi * (x + shifts[:, None]))
    return MPSBatch.from_signals(3 * rows / np.linalg.norm(rows, axis=1, keepdims=True)), labels


@pytest.fixture(scope="module")
def signals():
    return sines(0)


def estimator(**changes):
    parameters = {
        "hidden_shape": 4,
        "rank": 3,
        "n_iter": 4,
        "batch_size": 8,
        "random_state": 0,
    }
    return MPSRBM(**{**parameters, **changes})


@pytest.fixture(scope="module")
def fitted(signals):
    return estimator().fit(signals[0])


def test_features_are_those_of_full_tensors(fitted, signals):
    machine, (samples, _) = fitted.machine_, signals
    assert isinstance(machine, MPSMachine)
    dense = Machine(
        machine.coupling,
        fitted.visible_bias_.to_tensor(),
        machine.hidden_bias,
        Gaussian(),
    )
    tensors = samples.to_tensors()
    features = fitted.transform(samples)
    assert features.shape == (24, 4)
    np.testing.assert_allclose(features, dense.hidden_mean(tensors).reshape(24, 4), rtol=1e-6)
    np.testing.assert_allclose(fitted.free_energy(samples), dense.free_energy(tensors), rtol=1e-6)
    passed = dense.visible_mean(dense.hidden_mean(tensors))
    np.testing.assert_allclose(fitted.reconstruct(samples).to_tensors(), passed, atol=1e-6)
    assert fitted.n_features_in_ == 2**ORDER
    assert fitted.visible_shape_ == (2,) * ORDER


@pytest.mark.parametrize(
    ("scheme", "gauge"),
    [
        ("aop", "canonical"),
        ("su", None),
        pytest.param("su", "canonical", marks=pytest.mark.slow),
        pytest.param("aop", None, marks=pytest.mark.slow),
    ],
)
def test_training_explains_the_samples(signals, scheme, gauge):
    model = estimator(scheme=scheme, gauge=gauge, n_iter=8, learning_rate=0.05).fit(signals[0])
    errors = [epoch["reconstruction_error"] for epoch in model.history_]
    assert errors[-1] < errors[0]


def test_a_pipeline_classifies(signals):
    model = make_pipeline(estimator(n_iter=10), KNeighborsClassifier(1))
    assert model.fit(*signals).score(*sines(1)) == 1.0


@pytest.mark.slow
def test_weights_and_further_samples(fitted, signals):
    samples = signals[0]
    weighted = estimator().fit(samples, sample_weight=np.arange(1.0, 25.0))
    assert np.abs(weighted.hidden_bias_ - fitted.hidden_bias_).max() > 0
    again = estimator().partial_fit(samples[:8]).partial_fit(samples[8:16])
    assert again.n_iter_ == 2
    assert estimator(warm_start=True).fit(samples).fit(samples).n_iter_ == 4


def test_files_keep_the_machine(fitted, signals, tmp_path):
    path = tmp_path / "signals.safetensors"
    fitted.save(path)
    loaded = mporbm.load(path)
    np.testing.assert_array_equal(loaded.transform(signals[0]), fitted.transform(signals[0]))
    assert isinstance(loaded, MPSRBM)
    assert loaded.visible_bias_.ranks == fitted.visible_bias_.ranks


def test_training_goes_on_from_a_checkpoint(fitted, signals, tmp_path):
    path = tmp_path / "checkpoint"
    estimator(n_iter=2, learning_rate=0.05, checkpoint=path).fit(signals[0])
    whole = estimator(learning_rate=0.05).fit(signals[0])
    resumed = estimator(learning_rate=0.05, checkpoint=path).fit(signals[0])
    for one, other in zip(resumed.cores_, whole.cores_, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="data"):
        estimator(learning_rate=0.05, checkpoint=path).fit(2.0 * signals[0])


def test_hidden_states_are_drawn_from_the_machine(fitted):
    """Against enumeration: V is integrated out, so p(H) is exp(<C, H> + |W(H) + B|^2 / 2)."""
    machine = fitted.machine_
    states = (np.arange(16)[:, None] >> np.arange(4)[::-1] & 1).astype(float)
    matrix = np.asarray(machine.coupling.to_matrix())
    means = states @ matrix.T + np.asarray(machine.visible_bias.to_tensor()).reshape(-1)
    logs = states @ np.asarray(machine.hidden_bias).reshape(-1) + 0.5 * (means**2).sum(axis=1)
    probabilities = np.exp(logs - logs.max())
    drawn = jax.jit(hidden_gibbs, static_argnums=2)(
        jax.random.key(0), machine, 4000, jnp.asarray(50)
    )
    assert_distributed(drawn, probabilities / probabilities.sum())


def test_samples_are_means_in_mps_form(fitted):
    drawn = fitted.sample(5, n_gibbs=3, random_state=1)
    assert isinstance(drawn, MPSBatch)
    assert drawn.shape == (5, *(2,) * ORDER)
    again = fitted.sample(5, n_gibbs=3, random_state=1)
    np.testing.assert_array_equal(drawn.to_tensors(), again.to_tensors())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"visible_units": "bernoulli"}, "visible_units='bernoulli': expected 'gaussian'"),
        ({"negative_phase": "pcd"}, "negative_phase='pcd': expected 'cd'"),
        ({"init": "random"}, "init='random': expected 'data'"),
        ({"scheme": "two-site"}, "scheme='two-site': expected 'aop' or 'su'"),
        ({"visible_shape": (2, 2)}, r"X: expected samples of shape \(2, 2\)"),
        ({"hidden_shape": (2,) * 5}, "hidden_shape"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(signals, changes, message):
    with pytest.raises(ValueError, match=message):
        estimator(**changes).fit(signals[0])


def test_samples_that_do_not_fit_are_refused(fitted, signals):
    samples = signals[0]
    with pytest.raises(TypeError, match="expected an MPSBatch, got"):
        fitted.transform(np.asarray(samples.to_tensors()))
    with pytest.raises(ValueError, match="X: expected samples of shape"):
        fitted.transform(MPSBatch.from_signals(np.ones((2, 8))))
    with pytest.raises(ValueError, match="X: expected finite numbers"):
        fitted.transform(samples * np.nan)
    with pytest.raises(ValueError, match="X: expected at least one sample"):
        fitted.transform(samples[:0])
    with pytest.raises(TypeError, match="expected an array for RBM, got an MPSBatch"):
        RBM(4, visible_units="gaussian").fit(samples)
    tensors = np.asarray(samples.to_tensors())
    arrays = MPORBM((2,) * ORDER, visible_units="gaussian", rank=2, n_iter=1).fit(tensors)
    with pytest.raises(TypeError, match="expected an array for MPORBM, got an MPSBatch"):
        arrays.transform(samples)


def test_it_has_nothing_that_needs_a_visible_tensor(fitted):
    for name in ("complete", "denoise", "gibbs", "score_samples", "pseudo_log_likelihood"):
        assert not hasattr(fitted, name)
