"""Learning of several layers: gradients against the exact log-likelihood, which rises."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.learning import (
    Algorithm,
    Batch,
    ContrastiveDivergence,
    MeanFieldBound,
    Parameters,
    PassOfMeans,
    PersistentCD,
    Rates,
    Simultaneous,
    UpdateRule,
    WakeSleep,
    gradient,
)
from mporbm.learning.deep import conditional_gradient
from mporbm.learning.gauge import precondition, step_shares, transport_velocity
from mporbm.learning.monitor import weight_norm
from mporbm.machine import DeepBelief, deep_boltzmann, exact
from mporbm.sampling.deep import infer_layers
from strategies import all_states, data_distribution, tiny_machine, tiny_stack

V = all_states(tiny_machine())


@jax.jit
def log_likelihood(machine, weight):
    """``sum_V weight(V) log p(V)`` of a deep machine, V enumerated."""
    even = -machine.free_energy(jnp.asarray(all_states(machine)))
    log_p = jax.nn.logsumexp(even.reshape(64, -1), axis=1) - jax.nn.logsumexp(even)
    return weight @ log_p


def test_with_enumerated_expectations_it_is_the_gradient_of_the_log_likelihood(rng):
    machine = deep_boltzmann(tiny_stack(3))
    weight = rng.dirichlet(np.ones(64))
    p = np.asarray(exact.visible_distribution(machine)).reshape(64, -1)
    posterior = weight[:, None] * p / p.sum(axis=1, keepdims=True)
    even = jnp.asarray(all_states(machine))
    found, _ = jax.jit(gradient)(
        machine,
        Batch(even, jnp.asarray(posterior.ravel())),
        Batch(even, jnp.asarray(p.ravel())),
    )
    expected = Parameters.of(jax.jit(jax.grad(log_likelihood))(machine, jnp.asarray(weight)))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert_allclose(one, other, atol=1e-10)
    # And that is what finite differences say.
    slope, step = jax.tree.leaves(expected), 1e-5
    leaves, structure = jax.tree.flatten(machine)
    for k in range(len(slope)):
        change = rng.normal(size=leaves[k].shape)

        def value(length, k=k, change=change):
            moved = [*leaves[:k], leaves[k] + length * change, *leaves[k + 1 :]]
            return log_likelihood(jax.tree.unflatten(structure, moved), jnp.asarray(weight))

        difference = (value(step) - value(-step)) / (2 * step)
        assert_allclose(difference, (slope[k] * change).sum(), atol=1e-7)


def test_the_data_part_has_the_other_layers_at_their_means(rng):
    machine = deep_boltzmann(tiny_stack(2))
    stored = rng.integers(0, 2, (5, 3, 2)).astype(bool)
    batch = MeanFieldBound().batch(machine, jnp.asarray(stored), jnp.full(5, 0.2))
    even = np.asarray(infer_layers(machine, jnp.asarray(stored, float)))
    assert_allclose(batch.visible, even)
    # A fixed point of both conditionals.
    again = machine.visible_mean(machine.hidden_mean(even))
    assert_allclose(again[:, 6:], even[:, 6:], atol=1e-3)


def test_natural_steps_are_those_of_every_coupling_alone(rng):
    parts = [machine.coupling for machine in tiny_stack(2)]
    others = [machine.coupling for machine in tiny_stack(2, seed=1)]
    coupling = deep_boltzmann(tiny_stack(2)).coupling
    former = deep_boltzmann(tiny_stack(2, seed=1)).coupling
    gradients = [rng.normal(size=leaf.shape) for leaf in jax.tree.leaves(coupling)]
    gradients = [jnp.asarray(g) for g in gradients]
    found = [precondition(coupling, k, g) for k, g in enumerate(gradients)]
    expected = [
        *(precondition(parts[0], k, g) for k, g in enumerate(gradients[:2])),
        *(precondition(parts[1], k, g) for k, g in enumerate(gradients[2:])),
    ]
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10)
    assert_allclose(
        transport_velocity(coupling, 3, former, gradients[3]),
        transport_velocity(parts[1], 1, others[1], gradients[3]),
    )
    assert step_shares(coupling, (0, 1, 2, 3)) == {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}
    assert step_shares(coupling, (0, 1, 3)) == {0: 0.5, 1: 0.5, 3: 1.0}
    assert_allclose(weight_norm(coupling), np.linalg.norm(coupling.to_matrix()))


@pytest.mark.parametrize("upwards", [True, False])
def test_conditionals_learn_along_the_gradient_of_their_likelihood(upwards, rng):
    machine = tiny_machine()
    low = jnp.asarray(rng.integers(0, 2, (7, 3, 2)).astype(float))
    high = jnp.asarray(rng.integers(0, 2, (7, 2, 2)).astype(float))
    weight = jnp.asarray(rng.dirichlet(np.ones(7)))
    found, info = conditional_gradient(machine, Batch(low, weight), high, upwards=upwards)
    mean = machine.hidden_mean(low) if upwards else machine.visible_mean(high)
    pairs = (low, high - mean) if upwards else (low - mean, high)
    # The dense gradient of W is an outer product; a core sees it through the other one.
    flat = [x.reshape(7, -1) for x in pairs]
    dense = (weight[:, None] * flat[0]).T @ flat[1]

    def slope(coupling):
        return (coupling.to_matrix() * dense).sum()

    expected = jax.tree.leaves(jax.grad(slope)(machine.coupling))
    for one, other in zip(found.factors, expected, strict=True):
        assert_allclose(one, other, atol=1e-10)
    moved, still = (1, 0) if upwards else (0, 1)
    biases = found.visible_bias, found.hidden_bias
    assert_allclose(biases[moved], jnp.tensordot(weight, pairs[moved], axes=1), atol=1e-12)
    assert (np.asarray(biases[still]) == 0.0).all()
    field = machine.hidden_field(low) if upwards else machine.visible_field(high)
    assert_allclose(info.largest_field, np.abs(field).max())


def trained(scheme, objective, phase, machine, weight, n_steps, rate):
    """The machine after many steps on all states with their weights."""
    algorithm = Algorithm(scheme, phase, UpdateRule(momentum=0.0), objective)
    state = algorithm.init(jax.random.key(1), machine, 500)
    rates = Rates(rate, rate)

    @jax.jit
    def run(state, keys):
        def step(state, key):
            chosen = jax.random.choice(key, 64, (500,), p=jnp.asarray(weight))
            data = objective.batch(state.machine, jnp.asarray(V)[chosen], jnp.full(500, 1 / 500))
            new, info = algorithm.step(key, state, data, rates)
            return new, (info.gradient_norm, info.largest_field)

        return jax.lax.scan(step, state, keys)

    state, (norms, fields) = run(state, jax.random.split(jax.random.key(2), n_steps))
    assert np.isfinite(norms).all()
    assert (np.asarray(fields) > 0.0).all()
    return state.machine


def small(stack):
    """The same stack with weak weights and no biases."""
    return tuple(jax.tree.map(lambda x: 0.1 * x, machine) for machine in stack)


def test_joint_learning_raises_the_exact_log_likelihood():
    target = data_distribution(deep_boltzmann(tiny_stack(2, seed=3)))
    start = deep_boltzmann(small(tiny_stack(2)))
    end = trained(Simultaneous(), MeanFieldBound(), PersistentCD(2), start, target, 400, 0.2)
    values = [float(log_likelihood(m, jnp.asarray(target))) for m in (start, end)]
    best = float(target @ np.log(target))
    # Most of the way to the distribution itself.
    assert values[1] > values[0] + 0.7 * (best - values[0]), (values, best)
    assert values[1] <= best


def belief_log_likelihood(belief, weight):
    """``sum_V weight(V) log p(V)`` of a network of two layers."""
    low, top = belief.generation[0], belief.top
    p = np.asarray(exact.visible_distribution(top))
    terms = low.visible_units.log_density(
        jnp.asarray(V), low.visible_field(jnp.asarray(all_states(top)))[:, None]
    )
    conditional = np.exp(np.asarray(terms).reshape(len(p), 64, -1).sum(axis=2))
    return float(weight @ np.log(p @ conditional))


def test_wake_and_sleep_raise_the_exact_log_likelihood():
    target = data_distribution(deep_boltzmann(tiny_stack(2, seed=3)))
    start = DeepBelief.of_stack(small(tiny_stack(2)))
    end = trained(WakeSleep(), PassOfMeans(), ContrastiveDivergence(2), start, target, 400, 0.2)
    values = [belief_log_likelihood(m, target) for m in (start, end)]
    best = float(target @ np.log(target))
    assert values[1] > values[0] + 0.5 * (best - values[0]), (values, best)
    # Recognition and generation went different ways.
    assert not np.allclose(
        end.recognition[0].coupling.to_matrix(), end.generation[0].coupling.to_matrix()
    )


def test_what_is_watched(rng):
    stored = jnp.asarray(rng.integers(0, 2, (8, 3, 2)).astype(bool))
    units = jnp.arange(4)
    deep = deep_boltzmann(tiny_stack(2))
    seen = MeanFieldBound().watch(deep, stored, units)
    even = infer_layers(deep, stored.astype(float))
    passed = deep.visible_mean(deep.hidden_mean(even))
    assert_allclose(seen.reconstruction_error, ((passed - even)[:, :6] ** 2).mean())
    assert -6 * math.log(2) * 3 < float(seen.score) < 0.0
    belief = DeepBelief.of_stack(tiny_stack(2))
    seen = PassOfMeans().watch(belief, stored, units)
    passed = belief.visible_mean(belief.hidden_mean(stored.astype(float)))
    assert_allclose(seen.reconstruction_error, ((passed - stored) ** 2).mean())
    assert float(seen.score) == -float(seen.reconstruction_error)
