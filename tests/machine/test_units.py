"""Units against sums and integrals over their states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.machine import Bernoulli, Gaussian, Machine
from strategies import random_coupling

FIELDS = (-700.0, -3.0, -0.1, 0.0, 0.5, 4.0, 700.0)


def test_bernoulli_partition_and_mean():
    units, fields = Bernoulli(), jnp.array(FIELDS)
    assert_allclose(units.log_partition(fields), np.logaddexp(0.0, FIELDS), rtol=1e-14)
    one = jnp.ones_like(fields)
    assert_allclose(units.mean(fields), jnp.exp(units.log_density(one, fields)), rtol=1e-10)


def test_gaussian_partition_mean_and_density():
    units = Gaussian(1.7)
    x = jnp.linspace(-30.0, 30.0, 6001)
    for field in jnp.array([-2.0, 0.0, 0.8]):
        weights = jnp.exp(x * field - units.potential(x))
        total = np.trapezoid(weights, x)
        assert_allclose(units.log_partition(field), np.log(total), rtol=1e-9)
        assert_allclose(units.mean(field), np.trapezoid(x * weights, x) / total, atol=1e-9)
        assert_allclose(jnp.exp(units.log_density(x, field)), weights / total, atol=1e-9)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_mean_is_the_slope_of_the_log_partition(units):
    fields = jnp.linspace(-3.0, 3.0, 7)
    slopes = jax.vmap(jax.grad(units.log_partition))(fields)
    assert_allclose(slopes, units.mean(fields), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_samples_have_the_right_mean_and_variance(units, key):
    fields = jnp.array([-1.5, 0.0, 0.7])
    n = 200_000
    samples = units.sample(key, jnp.broadcast_to(fields, (n, 3)))
    variance = jax.vmap(jax.grad(lambda f: units.mean(f)))(fields)
    error = jnp.sqrt(variance / n)
    assert np.all(abs(samples.mean(axis=0) - units.mean(fields)) < 5 * error)
    assert_allclose(samples.var(axis=0), variance, rtol=0.02)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_samples_and_means_at_once(units, key):
    fields = jnp.linspace(-3.0, 3.0, 700).reshape(7, 100)
    state, mean = units.sample_and_mean(key, fields)
    assert_allclose(state, units.sample(key, fields), rtol=1e-14)
    assert_allclose(mean, units.mean(fields), rtol=1e-14)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_improbable_states_stay_improbable(dtype, key):
    """2^-23 steps of a uniform number would turn one unit in ten million on by mistake."""
    n = 20_000_000
    for field, state in [(-40.0, 0), (40.0, 1)]:
        samples = Bernoulli().sample(key, jnp.full(n, field, dtype))
        assert int((samples != state).sum()) == 0
    # sigmoid(-14) = 8.3e-7
    rare = int(Bernoulli().sample(key, jnp.full(n, -14.0, jnp.float32)).sum())
    assert abs(rare - n * 8.315e-7) < 5 * np.sqrt(n * 8.315e-7)


def test_only_a_learnable_variance_gets_gradients(rng):
    coupling = random_coupling("dense", (2,), (2,), 1, rng)
    visible = rng.normal(size=(2,))

    def gradient(learnable):
        machine = Machine(coupling, visible_units=Gaussian(0.5, learnable=learnable))
        return jax.grad(lambda m: m.free_energy(visible))(machine).visible_units.log_variance

    assert gradient(learnable=False) == 0.0
    # d/d(log s) of v^2 / (2 s) summed over units
    assert_allclose(gradient(learnable=True), -np.sum(visible**2) / (2 * 0.5))
