"""The natural gradient: projections of the dense one, the same in every gauge."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.learning import (
    Algorithm,
    Alternating,
    Batch,
    ContrastiveDivergence,
    Rates,
    Simultaneous,
    UpdateRule,
)
from mporbm.learning.gauge import precondition
from mporbm.machine import Machine, MPOCoupling
from mporbm.tensor import MPO
from mporbm.tensor.balance import balance, rebalance_if_needed
from mporbm.tensor.network import environment_grams, squared_norm
from strategies import HIDDEN, KINDS, VISIBLE, exact_samples, random_coupling, tiny_machine


def jacobian(coupling, position):
    """The matrix from the entries of one factor to those of W, column by column."""
    arrays, structure = jax.tree.flatten(coupling)
    columns = []
    for unit in np.eye(arrays[position].size):
        moved = list(arrays)
        moved[position] = jnp.asarray(unit.reshape(arrays[position].shape))
        columns.append(np.asarray(jax.tree.unflatten(structure, moved).to_matrix()).ravel())
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_gram_tensors_make_the_metric_of_a_factor(kind, rng):
    coupling = random_coupling(kind, VISIBLE, HIDDEN, 2, rng)
    w = np.asarray(coupling.to_matrix())
    np.testing.assert_allclose(squared_norm(coupling.nodes()), (w**2).sum(), rtol=1e-12)
    for position, node in enumerate(coupling.nodes()):
        metric = node.array
        for gram in environment_grams(coupling.nodes(), position):
            axes = [node.indices.index(i) for i in gram.indices]
            n = len(axes)
            product = np.tensordot(gram.array, metric, axes=(range(n, 2 * n), axes))
            metric = np.moveaxis(product, range(n), axes)
        j = jacobian(coupling, position)
        expected = j.T @ (j @ np.asarray(node.array).ravel())
        np.testing.assert_allclose(np.asarray(metric).ravel(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_step_in_w_is_the_projected_dense_gradient(kind, rng):
    coupling = random_coupling(kind, VISIBLE, HIDDEN, 2, rng)
    visible = jnp.asarray(rng.normal(size=(5, *coupling.visible_shape)))
    hidden = jnp.asarray(rng.normal(size=(5, *coupling.hidden_shape)))
    dense = np.einsum("ni,nj->ij", visible.reshape(5, -1), hidden.reshape(5, -1)).ravel()
    gradients = jax.grad(lambda c: jnp.vdot(c.apply_transpose(visible), hidden))(coupling)
    for position, slope in enumerate(gradients.factors):
        step = precondition(coupling, position, slope)
        j = jacobian(coupling, position)
        projected = j @ np.linalg.pinv(j) @ dense
        np.testing.assert_allclose(j @ np.asarray(step).ravel(), projected, rtol=1e-5, atol=1e-6)


def in_another_gauge(mpo, rng):
    """The same MPO with a random G G^-1 on every bond."""
    cores = [np.asarray(core) for core in mpo.cores]
    first = 0 if mpo.boundary == "periodic" else 1
    for k in range(first, len(cores)):
        g = rng.normal(size=2 * (cores[k].shape[0],)) + 2.0 * np.eye(cores[k].shape[0])
        cores[k - 1] = np.tensordot(cores[k - 1], g, axes=1)
        cores[k] = np.tensordot(np.linalg.inv(g), cores[k], axes=1)
    return MPO(cores)


def run(machine, scheme, rule, data, key, n_steps=20):
    """W and the biases after some batches, with momentum."""

    @eqx.filter_jit
    def steps(state):
        def body(state, key):
            return Algorithm(scheme, *rule).step(key, state, data, Rates(0.1, 0.1))[0], None

        return jax.lax.scan(body, state, jax.random.split(key, n_steps))[0]

    end = steps(Algorithm(scheme, *rule).init(key, machine, len(data.visible))).machine
    return np.asarray(end.coupling.to_matrix()), end.visible_bias, end.hidden_bias


@pytest.mark.parametrize("scheme", [Alternating(), Simultaneous()], ids=["aop", "su"])
@pytest.mark.parametrize("kind", ["mpo", "mpo-periodic"])
def test_training_does_not_depend_on_the_gauge_it_starts_in(kind, scheme, key, rng):
    machine = tiny_machine(kind, scale=0.7)
    other = Machine(
        MPOCoupling(in_another_gauge(machine.coupling.mpo, rng)),
        machine.visible_bias,
        machine.hidden_bias,
    )
    np.testing.assert_allclose(
        other.coupling.to_matrix(), machine.coupling.to_matrix(), rtol=1e-10, atol=1e-12
    )
    visible = exact_samples(tiny_machine(seed=5), 8, rng)
    data = Batch(jnp.asarray(visible), jnp.full(8, 1 / 8))
    rule = (ContrastiveDivergence(1), UpdateRule())
    one, two = (run(m, scheme, rule, data, key) for m in (machine, other))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    plain = (ContrastiveDivergence(1), UpdateRule(gauge=False))
    first, second = (run(m, scheme, plain, data, key)[0] for m in (machine, other))
    assert np.abs(first - second).max() > 0.01


@pytest.mark.parametrize("gauge", [True, False])
def test_rank_1_training_is_that_of_the_kronecker_machine(gauge, key, rng):
    machine = tiny_machine("kronecker")
    data = Batch(jnp.asarray(exact_samples(machine, 8, rng)), jnp.full(8, 1 / 8))
    rule = (ContrastiveDivergence(1), UpdateRule(gauge=gauge))
    one, two = (run(m, Alternating(), rule, data, key) for m in (machine, machine.to_mpo()))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_with_one_core_schemes_and_gauges_agree(key, rng):
    machine = tiny_machine("dense")
    data = Batch(jnp.asarray(exact_samples(machine, 8, rng)), jnp.full(8, 1 / 8))
    rules = [(ContrastiveDivergence(1), UpdateRule(gauge=gauge)) for gauge in (True, False)]
    results = [run(machine, Simultaneous(), rule, data, key) for rule in rules]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("ranks", [(1, 4, 6, 1), (1, 1, 9, 1)], ids=["usual", "one too large"])
def test_balancing_keeps_w_and_evens_out_both_sides_of_every_bond(ranks, rng):
    modes = zip(ranks, (2, 3, 2), (2, 1, 4), ranks[1:], strict=False)
    mpo = MPO([rng.normal(size=shape) for shape in modes])
    # A gauge in which the cores cancel each other.
    skewed = [np.asarray(core) for core in mpo.cores]
    g = np.diag(np.logspace(-4, 4, ranks[2])) @ rng.normal(size=2 * (ranks[2],))
    skewed[1] = np.tensordot(skewed[1], g, axes=1)
    skewed[2] = np.tensordot(np.linalg.inv(g), skewed[2], axes=1)
    tidy = balance(MPO(skewed))
    assert tidy.ranks == mpo.ranks
    np.testing.assert_allclose(tidy.to_matrix(), mpo.to_matrix(), rtol=1e-6, atol=1e-6)
    for left, right in zip(tidy.left_grams()[1:], tidy.right_grams()[:-1], strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)
        np.testing.assert_allclose(left, np.diag(np.diag(left)), atol=1e-6)
    np.testing.assert_array_equal(rebalance_if_needed(MPO(skewed)).cores[1], tidy.cores[1])
    assert rebalance_if_needed(tidy) is tidy


def test_cores_that_cancel_altogether_are_balanced():
    """|W|^2 from the Gram matrices may then be rounded below 0."""
    for scale in np.linspace(1.0, 2.0, 20):
        left = scale * np.array([1e8, 1e8]).reshape(1, 1, 1, 2)
        right = np.array([1.0, -1.0]).reshape(2, 1, 1, 1)
        assert np.abs(rebalance_if_needed(MPO([left, right])).to_matrix()).max() < 1.0


def test_weight_decay_takes_what_momentum_makes_of_a_steady_gradient():
    rule, rate = UpdateRule(momentum=0.6, weight_decay=0.1), jnp.asarray(0.01)
    factor, velocity = jnp.asarray([2.0, -1.0]), jnp.zeros(2)
    for _ in range(100):
        velocity = rule.accelerate(velocity, -0.1 * factor, rate)
    np.testing.assert_allclose(rule.decay(factor, rate), factor + velocity, rtol=1e-12)
