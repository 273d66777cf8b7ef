"""Enumeration of one layer against enumeration of both, and against integrals."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import strategies
from mporbm.machine import DenseCoupling, Gaussian, Machine, exact


def both_layers(machine):
    """Every pair of states and its energy."""
    v = exact.states(math.prod(machine.visible_shape)).reshape(-1, *machine.visible_shape)
    h = exact.states(math.prod(machine.hidden_shape)).reshape(-1, *machine.hidden_shape)
    return v, h, np.asarray(machine.energy(v[:, None], h[None]))


@pytest.mark.parametrize("kind", strategies.KINDS)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 1)), ((2, 1), (2, 3))])
def test_log_partition_distribution_and_expectations(kind, shapes, rng):
    """Both with the visible and with the hidden layer as the smaller one."""
    machine = strategies.random_machine(strategies.random_coupling(kind, *shapes, 2, rng), rng)
    v, h, energy = both_layers(machine)
    log_z = logsumexp(-energy)
    joint = np.exp(-energy - log_z)
    assert_allclose(exact.log_partition(machine), log_z, rtol=1e-12)
    assert_allclose(exact.visible_distribution(machine), joint.sum(axis=1), atol=1e-13)
    assert_allclose(jnp.exp(exact.log_probability(machine, v)), joint.sum(axis=1), atol=1e-13)
    means = exact.expectations(machine)
    assert_allclose(means.visible, np.tensordot(joint.sum(axis=1), v, 1), atol=1e-12)
    assert_allclose(means.hidden, np.tensordot(joint.sum(axis=0), h, 1), atol=1e-12)
    product = np.einsum("mn,ma,nb->ab", joint, v.reshape(len(v), -1), h.reshape(len(h), -1))
    assert_allclose(means.product.reshape(product.shape), product, atol=1e-12)


@given(strategies.machines())
def test_expectations_are_the_gradient_of_log_partition(machine):
    """``d log Z / d bias`` is the mean of its layer, ``d log Z / dW`` that of the product."""
    means = exact.expectations(machine)
    gradient = eqx.filter_jit(jax.grad(exact.log_partition))(machine)
    assert_allclose(gradient.visible_bias, means.visible, atol=1e-10)
    assert_allclose(gradient.hidden_bias, means.hidden, atol=1e-10)
    # For any factor of W: contract E[V H] with the slope of W.
    product = means.product.reshape(machine.coupling.to_matrix().shape)
    slope = eqx.filter_jit(jax.grad(lambda coupling: jnp.sum(coupling.to_matrix() * product)))(
        machine.coupling
    )
    for ours, theirs in zip(
        jax.tree.leaves(gradient.coupling), jax.tree.leaves(slope), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def test_gaussian_log_partition_by_integration(rng):
    machine = Machine(
        DenseCoupling(rng.normal(size=(2, 3))),
        rng.normal(size=2),
        rng.normal(size=3),
        Gaussian(np.array([0.7, 1.4])),
    )

    # A grid is exact enough for a smooth, fast-decaying integrand.
    grid = np.linspace(-16.0, 16.0, 801)
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    total = np.exp(-np.asarray(machine.free_energy(points))).sum() * (grid[1] - grid[0]) ** 2
    assert_allclose(exact.log_partition(machine), np.log(total), rtol=1e-10)
    with pytest.raises(ValueError, match="expected visible units whose states can be listed"):
        exact.visible_distribution(machine)


def test_many_chunks_equal_one(rng, monkeypatch):
    """Several chunks; a machine without weights has a product for Z."""
    monkeypatch.setattr(exact, "CHUNK_ENTRIES", 2**16)
    bias = rng.normal(size=14)
    machine = Machine(DenseCoupling(np.zeros((20, 14))), None, bias)
    expected = 20 * np.log(2.0) + np.sum(np.logaddexp(0.0, bias))
    assert_allclose(exact.log_partition(machine), expected, rtol=1e-12)
    means = exact.expectations(machine)
    assert_allclose(means.hidden, 1.0 / (1.0 + np.exp(-bias)), rtol=1e-10)
    assert_allclose(means.visible, 0.5, rtol=1e-10)
    gradient = jax.grad(exact.log_partition)(machine)
    assert_allclose(gradient.hidden_bias, means.hidden, rtol=1e-10)


def test_memory_of_a_gradient_does_not_grow_with_the_number_of_states(rng):
    """What XLA sets aside for 2^16 states is hardly more than for 2^13."""

    def temporary_bytes(n_hidden):
        machine = Machine(DenseCoupling(rng.normal(size=(784, n_hidden)).astype(np.float32)))
        lowered = jax.jit(jax.grad(exact._log_partition.__wrapped__)).lower(machine)
        return lowered.compile().memory_analysis().temp_size_in_bytes

    assert temporary_bytes(16) < 1.5 * temporary_bytes(13)


def test_a_large_other_layer_is_summed_out(rng):
    machine = Machine(DenseCoupling(0.1 * rng.normal(size=(28, 28, 8)), n_visible_modes=2))
    h = exact.states(8)
    fields = np.asarray(h @ machine.coupling.to_matrix().T)
    expected = logsumexp(np.logaddexp(0.0, fields).sum(axis=1))
    assert_allclose(exact.log_partition(machine), expected, rtol=1e-12)


def test_too_many_states_are_refused():
    machine = Machine(DenseCoupling(np.zeros((30, 25))))
    with pytest.raises(ValueError, match=r"hidden_shape: .* 2\^24 states.*got 2\^25"):
        exact.log_partition(machine)
    with pytest.raises(ValueError, match=r"visible_shape: .* 2\^24 states.*got 2\^30"):
        exact.visible_distribution(machine)
