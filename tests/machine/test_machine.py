"""Energies, conditionals and free energies against enumeration; the machines' special cases."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import strategies
from mporbm.machine import DenseCoupling, Gaussian, KroneckerCoupling, Machine, MPOCoupling, exact
from mporbm.tensor import MPO


def all_states(shape):
    """Every state of a layer of binary units, by NumPy alone."""
    n = math.prod(shape)
    return np.array(list(np.ndindex(*[2] * n)), float).reshape(-1, *shape)


def explicit_energy(machine, matrix, visible, hidden):
    """``-E = v^T W h + b^T v + c^T h - sum potential`` of one pair, by NumPy alone."""
    v, h = visible.reshape(-1), hidden.reshape(-1)
    b, c = np.asarray(machine.visible_bias), np.asarray(machine.hidden_bias)
    energy = -(v @ matrix @ h + v @ b.reshape(-1) + h @ c.reshape(-1))
    if isinstance(machine.visible_units, Gaussian):
        energy += np.sum(visible**2 / (2.0 * np.asarray(machine.visible_units.variance)))
    return energy


@given(strategies.machines(), strategies.seeds)
def test_energy_and_fields(machine, seed):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(2, *machine.visible_shape))
    h = rng.normal(size=(2, *machine.hidden_shape))
    matrix = np.asarray(machine.coupling.to_matrix())
    expected = [explicit_energy(machine, matrix, *pair) for pair in zip(v, h, strict=True)]
    energies, fields = eqx.filter_jit(lambda m: (m.energy(v, h), m.hidden_field(v)))(machine)
    assert_allclose(energies, expected, rtol=1e-10, atol=1e-10)
    # The flattened form users know, in C order.
    field = v.reshape(2, -1) @ matrix + np.asarray(machine.hidden_bias).reshape(-1)
    assert_allclose(fields.reshape(2, -1), field, rtol=1e-10, atol=1e-10)


@given(strategies.machines(), strategies.seeds)
def test_hidden_conditional_and_free_energy_by_enumeration(machine, seed):
    rng = np.random.default_rng(seed)
    v = rng.integers(0, 2, size=machine.visible_shape).astype(float)
    hidden = all_states(machine.hidden_shape)
    minus_energy = -np.asarray(eqx.filter_jit(Machine.energy)(machine, v[None], hidden))
    total = logsumexp(minus_energy)
    weights = np.exp(minus_energy - total)
    log_probability, mean = eqx.filter_jit(
        lambda m: (m.unnormalized_log_probability(v), m.hidden_mean(v))
    )(machine)
    assert_allclose(log_probability, total, rtol=1e-10, atol=1e-10)
    assert_allclose(mean, np.tensordot(weights, hidden, 1), atol=1e-10)


@given(strategies.machines(), strategies.seeds)
def test_visible_conditional_by_enumeration_or_completed_square(machine, seed):
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 2, size=machine.hidden_shape).astype(float)
    if isinstance(machine.visible_units, Gaussian):
        # Energy is quadratic in V: its minimum is the mean, its curvature the precision.
        @eqx.filter_jit
        def slopes(machine):
            slope = jax.grad(lambda v: machine.energy(v, h))
            mean = machine.visible_mean(h)
            return slope(mean), slope(mean + 1.0)

        at_mean, beyond = slopes(machine)
        assert_allclose(at_mean, 0.0, atol=1e-9)
        assert_allclose(beyond, 1.0 / np.asarray(machine.visible_units.variance), rtol=1e-8)
    else:
        visible = all_states(machine.visible_shape)
        minus_energy, mean, free_energy = map(
            np.asarray,
            eqx.filter_jit(
                lambda m: (-m.energy(visible, h[None]), m.visible_mean(h), m.hidden_free_energy(h))
            )(machine),
        )
        weights = np.exp(minus_energy - logsumexp(minus_energy))
        assert_allclose(mean, np.tensordot(weights, visible, 1), atol=1e-10)
        assert_allclose(free_energy, -logsumexp(minus_energy), rtol=1e-9)


def assert_same_machine(a, b, rng):
    """Equal energies, free energies, conditionals and log Z, up to modes of size 1."""
    v = rng.integers(0, 2, size=(3, math.prod(a.visible_shape))).astype(float)
    h = rng.integers(0, 2, size=(3, math.prod(a.hidden_shape))).astype(float)

    @eqx.filter_jit
    def quantities(machine):
        visible = v.reshape(3, *machine.visible_shape)
        hidden = h.reshape(3, *machine.hidden_shape)
        return [
            machine.energy(visible, hidden),
            machine.free_energy(visible),
            machine.hidden_mean(visible).reshape(3, -1),
            machine.visible_mean(hidden).reshape(3, -1),
            exact.log_partition(machine),
        ]

    for ours, theirs in zip(quantities(a), quantities(b), strict=True):
        assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


@given(strategies.machines(kinds=["dense", "kronecker", "cp"]), strategies.seeds)
def test_every_machine_is_an_mporbm(machine, seed):
    """Embedded RBM, MvRBM and TvRBM equal themselves."""
    assert_same_machine(machine, machine.to_mpo(), np.random.default_rng(seed))


@given(strategies.machines(kinds=["mpo", "mpo-periodic"]), strategies.seeds)
def test_every_mporbm_is_an_rbm(machine, seed):
    """The dense machine with the MPO's matrix, layers flattened to vectors."""
    rbm = Machine(
        DenseCoupling(machine.coupling.to_matrix()),
        np.asarray(machine.visible_bias).reshape(-1),
        np.asarray(machine.hidden_bias).reshape(-1),
        jax.tree.map(lambda x: jnp.asarray(np.asarray(x).reshape(-1)), machine.visible_units),
    )
    assert_same_machine(rbm, machine, np.random.default_rng(seed))


@given(
    strategies.machines(kinds=["dense"]), st.sampled_from(["open", "periodic"]), strategies.seeds
)
def test_full_rank_mporbm_is_the_rbm(machine, boundary, seed):
    shapes = machine.visible_shape, machine.hidden_shape
    mpo = MPO.from_matrix(machine.coupling.to_matrix(), *shapes, boundary=boundary).train
    mporbm = Machine(
        MPOCoupling(mpo), machine.visible_bias, machine.hidden_bias, machine.visible_units
    )
    assert_same_machine(machine, mporbm, np.random.default_rng(seed))


@given(st.integers(1, 5), strategies.seeds, st.data())
def test_rank_one_mporbm_is_the_mvrbm(order, seed, data):
    visible, hidden = (data.draw(strategies.shapes(order, 6)) for _ in range(2))
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=size) for size in zip(visible, hidden, strict=True)]
    biases = rng.normal(size=visible), rng.normal(size=hidden)
    mvrbm = Machine(KroneckerCoupling(factors), *biases)
    mpo = MPO([factor[None, :, :, None] for factor in factors])
    assert_same_machine(mvrbm, Machine(MPOCoupling(mpo), *biases), rng)


def test_batches_broadcast(rng):
    machine = strategies.random_machine(
        strategies.random_coupling("mpo", (2, 2), (2, 3), 2, rng), rng
    )
    v, h = rng.normal(size=(5, 1, 2, 2)), rng.normal(size=(4, 2, 3))
    energies = machine.energy(v, h)
    assert energies.shape == (5, 4)
    assert_allclose(energies[2, 3], machine.energy(v[2, 0], h[3]))


def test_biases_start_at_zero(key):
    machine = Machine(MPOCoupling.random(key, (3, 2), (2, 2), rank=2))
    assert machine.visible_bias.shape == (3, 2)
    assert machine.hidden_bias.shape == (2, 2)
    assert not np.any(machine.visible_bias)
    assert not np.any(machine.hidden_bias)


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_single_precision_is_close_to_double(kind, rng):
    double = strategies.random_machine(
        strategies.random_coupling(kind, (3, 2), (2, 2), 2, rng), rng
    )
    single = jax.tree.map(lambda x: x.astype(np.float32), double)
    v = rng.integers(0, 2, size=(4, *double.visible_shape))
    free_energy = single.free_energy(v.astype(np.float32))
    assert free_energy.dtype == np.float32
    assert_allclose(free_energy, double.free_energy(v), rtol=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "bool", "float16"])
@pytest.mark.parametrize("gaussian", [False, True])
def test_narrow_data_is_widened_before_arithmetic(dtype, gaussian, rng):
    machine = strategies.random_machine(
        strategies.random_coupling("mpo", (2, 2), (2, 2), 2, rng), rng, gaussian
    )
    visible = np.array([[0, 255], [1, 200]]).astype(dtype)
    hidden = np.array([[0, 1], [1, 1]]).astype(dtype)
    v, h = visible.astype(float), hidden.astype(float)
    assert_allclose(machine.energy(visible, hidden), machine.energy(v, h), rtol=1e-12)
    assert_allclose(machine.free_energy(visible), machine.free_energy(v), rtol=1e-12)


def test_a_machine_has_one_precision(key):
    """So that chains of samples fit into a scan, whatever the biases and the data came in."""
    machine = Machine(
        MPOCoupling.random(key, (2, 2), (2, 2), rank=2, dtype=jnp.float32),
        visible_bias=np.zeros((2, 2)),
        visible_units=Gaussian(np.ones((2, 2))),
    )
    assert {leaf.dtype for leaf in jax.tree.leaves(machine)} == {jnp.dtype("float32")}

    def step(visible, key):
        return machine.sample_visible(key, machine.sample_hidden(key, visible)), None

    visible, _ = jax.lax.scan(step, jnp.zeros((3, 2, 2), jnp.float32), jax.random.split(key, 4))
    assert visible.dtype == jnp.float32
    assert machine.energy(np.zeros((2, 2)), np.zeros((2, 2))).dtype == jnp.float32


def test_machines_do_not_change_with_the_arrays_they_were_made_of():
    # JAX shares memory with NumPy arrays that are aligned to 64 bytes.
    buffer = np.zeros(64 + 64, np.float64)
    offset = (-buffer.ctypes.data // 8) % 8
    weights, bias = np.zeros((4, 2)), buffer[offset : offset + 4]
    machine = Machine(DenseCoupling(weights), bias)
    weights += 7.0
    bias += 7.0
    assert not np.any(machine.coupling.to_matrix())
    assert not np.any(machine.visible_bias)


def test_shapes_are_enough_to_count_parameters(key):
    machine = jax.eval_shape(
        lambda key: Machine(MPOCoupling.random(key, (28, 28), (10, 10), rank=40)), key
    )
    assert machine.coupling.n_parameters == 22400


@pytest.mark.parametrize("gaussian", [False, True])
def test_gibbs_sampling_keeps_the_model_distribution(gaussian, rng):
    """Start from exact samples, take steps, see no drift of means and correlations."""
    machine = strategies.random_machine(
        strategies.random_coupling("mpo", (2, 2), (2, 1), 2, rng), rng, gaussian
    )
    n = 100_000
    log_weights = -machine.hidden_free_energy(exact.states(2).reshape(-1, 2, 1))
    keys = jax.random.split(jax.random.key(5), 12)
    drawn = jax.random.categorical(keys[0], log_weights, shape=(n,))
    h = exact.states(2)[drawn].reshape(n, 2, 1)
    for down, up in zip(keys[1:6], keys[6:11], strict=True):
        v = machine.sample_visible(down, h)
        h = machine.sample_hidden(up, v)
    means = exact.expectations(machine)
    products = np.asarray(v).reshape(n, 4)[:, :, None] * np.asarray(h).reshape(n, 1, 2)
    for samples, expected in [(v, means.visible), (h, means.hidden)]:
        error = samples.std(axis=0) / np.sqrt(n)
        assert np.all(abs(samples.mean(axis=0) - expected) < 5 * error)
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(abs(products.mean(axis=0) - means.product.reshape(4, 2)) < 5 * error)
