"""Machines of two Gaussian layers against the joint normal distribution, formed in full."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from mporbm.machine import Gaussian, Machine, exact, gaussian
from strategies import random_coupling

VISIBLE, HIDDEN = (3, 2), (2, 2)


def factor_model(kind="mpo", seed=0, share=0.6):
    """A machine at a share of the weights at which there would be no distribution any more."""
    rng = np.random.default_rng(seed)
    hidden = (4,) if kind == "cp" else HIDDEN
    coupling = random_coupling(kind, VISIBLE, hidden, 2, rng)
    s, t = rng.uniform(0.5, 2.0, VISIBLE), rng.uniform(0.5, 2.0, hidden)
    weights = np.asarray(coupling.to_matrix())
    strongest = np.linalg.svd(np.sqrt(s).reshape(-1, 1) * weights * np.sqrt(t).reshape(-1))[1][0]
    n_factors = len(coupling.factors)
    coupling = jax.tree.map(lambda x: x * (share / strongest) ** (1.0 / n_factors), coupling)
    biases = rng.normal(size=VISIBLE), rng.normal(size=hidden)
    return Machine(coupling, *biases, Gaussian(s), Gaussian(t))


def joint(machine):
    """Mean and covariance of both layers together, by inverting their precision."""
    w = np.asarray(machine.coupling.to_matrix())
    s, t = (np.ravel(units.variance) for units in (machine.visible_units, machine.hidden_units))
    precision = np.block([[np.diag(1 / s), -w], [-w.T, np.diag(1 / t)]])
    covariance = np.linalg.inv(precision)
    linear = np.concatenate([np.ravel(machine.visible_bias), np.ravel(machine.hidden_bias)])
    return covariance @ linear, covariance


def conditional(mean, covariance, known, values):
    """Mean and covariance of all but the known coordinates of a normal vector."""
    free = ~known
    gain = covariance[np.ix_(free, known)] @ np.linalg.inv(covariance[np.ix_(known, known)])
    rest = covariance[np.ix_(free, free)] - gain @ covariance[np.ix_(known, free)]
    return mean[free] + gain @ (values - mean[known]), rest


KINDS = pytest.mark.parametrize("kind", ["dense", "kronecker", "cp", "mpo"])


@KINDS
def test_log_densities_are_those_of_the_normal_distribution(kind, rng):
    machine = factor_model(kind)
    mean, covariance = joint(machine)
    rows = rng.normal(size=(5, 6))
    expected = multivariate_normal(mean[:6], covariance[:6, :6]).logpdf(rows)
    found = exact.log_probability(machine, rows.reshape(-1, *VISIBLE))
    assert_allclose(found, expected, rtol=1e-11)


@KINDS
@pytest.mark.parametrize("alike", [True, False])
def test_known_units_condition_the_others(kind, alike, rng):
    """By one K where all samples have the same holes, by one for each where they do not."""
    machine = factor_model(kind)
    mean, covariance = joint(machine)
    rows = rng.normal(size=(11, 6))
    known = rng.random((11, 6)) < 0.6
    known = np.broadcast_to(known[0], known.shape) if alike else known
    shaped = [jnp.asarray(array.reshape(-1, *VISIBLE)) for array in (rows, known)]
    found = eqx.filter_jit(gaussian.given)(machine, *shaped)
    density = found.log_density - exact.log_partition(machine)
    for k, (row, seen) in enumerate(zip(rows, known, strict=True)):
        part = np.concatenate([seen, np.zeros(4, bool)])
        rest_mean, rest = conditional(mean, covariance, part, row[seen])
        free = ~seen
        assert_allclose(np.ravel(found.visible_mean[k])[free], rest_mean[: free.sum()], rtol=1e-9)
        variance = np.diag(rest)[: free.sum()]
        assert_allclose(np.ravel(found.visible_variance[k])[free], variance, rtol=1e-9)
        assert_allclose(np.ravel(found.visible_variance[k])[seen], 0.0)
        assert_allclose(np.ravel(found.hidden[k]), rest_mean[free.sum() :], rtol=1e-8, atol=1e-12)
        own = multivariate_normal(mean[:6][seen], covariance[:6, :6][np.ix_(seen, seen)])
        assert_allclose(density[k], own.logpdf(row[seen]) if seen.any() else 0.0, atol=1e-10)


def test_fields_and_variances_are_those_of_noise(rng):
    """Noise on what is seen is a field and a smaller variance; without weights, Bayes's rule."""
    machine = factor_model(share=1e-9)
    rows, noise = rng.normal(size=(3, *VISIBLE)), 0.7
    everything = jnp.ones(rows.shape, bool)
    seen = machine.visible_units.observe(jnp.asarray(rows), everything, jnp.asarray(noise))
    nothing = jnp.zeros(rows.shape, bool)
    noisy = eqx.tree_at(lambda m: m.visible_units.log_variance, machine, seen.units.log_variance)
    found = gaussian.given(noisy, jnp.asarray(rows), nothing, seen.field)
    s = np.asarray(machine.visible_units.variance)
    prior = s * np.asarray(machine.visible_bias)
    expected = (prior / s + rows / noise**2) / (1 / s + 1 / noise**2)
    assert_allclose(found.visible_mean, expected, rtol=1e-6)


def moments_agree(machine, key, n=40_000):
    """Whether draws given some units have the mean and the covariance of the distribution."""
    mean, covariance = joint(machine)
    row, seen = np.linspace(-1.0, 1.0, 6), np.array([True, False, False, True, False, False])
    part = np.concatenate([seen, np.zeros(4, bool)])
    expected, rest = conditional(mean, covariance, part, row[seen])
    rows = jnp.broadcast_to(row.reshape(VISIBLE), (n, *VISIBLE))
    known = jnp.broadcast_to(seen.reshape(VISIBLE), rows.shape)
    drawn = np.asarray(eqx.filter_jit(gaussian.draw)(key, machine, rows, known)).reshape(n, 6)
    assert_allclose(drawn[:, seen], np.broadcast_to(row[seen], (n, 2)))
    free, spread = drawn[:, ~seen], np.diag(rest)[:4]
    error = np.abs(free.mean(axis=0) - expected[:4]) / np.sqrt(spread / n)
    wide = np.abs(np.cov(free.T) - rest[:4, :4]) / np.sqrt(np.outer(spread, spread) * 2.0 / n)
    return max(error.max(), wide.max()) < 5.0


def test_draws_have_the_moments_of_the_distribution(key):
    assert moments_agree(factor_model(share=0.9), key)


def test_wrong_draws_are_noticed(key, monkeypatch):
    monkeypatch.setattr(
        gaussian,
        "solve_root",
        lambda root, right, transposed=False: jax.scipy.linalg.solve_triangular(
            root, right, lower=True
        ),
    )
    eqx.clear_caches()
    assert not moments_agree(factor_model(share=0.9), key)
    eqx.clear_caches()


def test_beyond_the_boundary_there_is_no_distribution():
    assert np.isfinite(exact.log_partition(factor_model(share=0.999)))
    assert exact.log_partition(factor_model(share=1.001)) == np.inf
