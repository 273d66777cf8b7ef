"""With exact expectations instead of samples, gradients are those of the exact log-likelihood."""

import re
from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.learning import (
    Algorithm,
    Alternating,
    Batch,
    LearningState,
    Parameters,
    Rates,
    Simultaneous,
    UpdateRule,
    gradient,
)
from mporbm.learning.gauge import precondition
from mporbm.learning.negative_phases import ContrastiveDivergence
from mporbm.learning.two_site import TwoSite
from mporbm.machine import DenseCoupling, Machine, MPOCoupling
from mporbm.tensor.balance import pad_ranks
from strategies import KINDS, tiny_machine
from trainings import Exact, data_batch, log_likelihood

RATES = Rates(0.1, 0.1)


def natural(coupling, gradients):
    """The natural gradient of every factor."""
    return tuple(precondition(coupling, k, g) for k, g in enumerate(gradients))


@pytest.mark.parametrize("scheme", [Simultaneous(), Alternating()])
def test_sampling_and_gradients_share_their_products(scheme):
    """Of CD-1: up with the data, down, up again, and one product for each phase."""
    machine, n = Machine(DenseCoupling.random(jax.random.key(0), (11,), (5,))), 13
    rule = (ContrastiveDivergence(), UpdateRule(gauge=False))
    state = Algorithm(scheme, *rule).init(jax.random.key(1), machine, n)
    data = Batch(jnp.ones((n, 11)), jnp.full(n, 1.0 / n))
    step = jax.jit(
        lambda state, data: Algorithm(scheme, *rule).step(jax.random.key(2), state, data, RATES)
    )
    program = step.lower(state, data).compile().as_text()
    shapes = re.findall(r"= f64\[(\d+,\d+)\]\S* dot\(", program)
    products = Counter(shape for shape in shapes if not shape.startswith("1,"))
    assert products == {"13,5": 2, "13,11": 1, "11,5": 2}


def finite_difference(machine, data, direction, step=1e-5):
    """The slope of the exact log-likelihood along a direction of the parameters."""

    def moved(sign):
        theta = jax.tree.map(lambda p, d: p + sign * step * d, Parameters.of(machine), direction)
        return float(log_likelihood(theta.into(machine), data))

    return (moved(1.0) - moved(-1.0)) / (2.0 * step)


def random_direction(machine, rng, only=None):
    """Normal numbers for one parameter array, zeros for the others."""
    arrays, structure = jax.tree.flatten(Parameters.of(machine))
    return jax.tree.unflatten(
        structure,
        [
            rng.normal(size=a.shape) if only in (None, k) else np.zeros(a.shape)
            for k, a in enumerate(arrays)
        ],
    )


def exact_gradient(machine, data):
    _, samples = Exact().step(None, machine, None, data)
    return eqx.filter_jit(gradient)(machine, data, samples)[0]


def inner(a, b):
    return float(sum(np.vdot(x, y) for x, y in zip(*map(jax.tree.leaves, (a, b)), strict=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_finite_differences_of_the_exact_log_likelihood(kind, rng):
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    found = exact_gradient(machine, data)
    for only in range(len(jax.tree.leaves(found))):
        direction = random_direction(machine, rng, only)
        expected = finite_difference(machine, data, direction)
        np.testing.assert_allclose(inner(found, direction), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_autodiff(kind, rng):
    machine, data = tiny_machine(kind), data_batch(rng)
    by_autodiff = eqx.filter_jit(eqx.filter_grad(log_likelihood))(machine, data)
    pairs = zip(
        jax.tree.leaves(exact_gradient(machine, data)),
        jax.tree.leaves(Parameters.of(by_autodiff)),
        strict=True,
    )
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_moved_factors_get_a_gradient(kind, rng):
    machine, data = tiny_machine(kind), data_batch(rng)
    every = exact_gradient(machine, data)
    last = len(every.factors) - 1
    samples = Exact().step(None, machine, None, data)[1]
    one, _ = gradient(machine, data, samples, (last,))
    assert [g is None for g in one.factors] == [k != last for k in range(last + 1)]
    np.testing.assert_allclose(one.factors[last], every.factors[last], rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "gauge"), [*((kind, True) for kind in KINDS), ("mpo", False), ("cp", False)]
)
@pytest.mark.parametrize("scheme", [Simultaneous(), Alternating()], ids=["su", "aop"])
def test_one_step_is_the_rate_times_the_exact_gradient(scheme, kind, gauge, rng, key):
    """Of each factor in turn, at the machine as the updates before have left it."""
    machine, data, rate = tiny_machine(kind, scale=0.7), data_batch(rng), 1e-3
    rule = (Exact(), UpdateRule(gauge=gauge, momentum=0.0))
    start = Algorithm(scheme, *rule).init(key, machine, 1)
    end, _ = eqx.filter_jit(Algorithm(scheme, *rule).step)(key, start, data, Rates(rate, rate))
    n = len(jax.tree.leaves(machine.coupling))
    groups = [tuple(range(n))] if isinstance(scheme, Simultaneous) else [(k,) for k in range(n)]
    expected = machine
    for group in groups:
        g, theta = exact_gradient(expected, data), Parameters.of(expected)
        steps = natural(expected.coupling, g.factors) if gauge else g.factors
        share = 1.0 / len(group) if gauge else 1.0
        factors = tuple(
            w + share * rate * steps[k] if k in group else w for k, w in enumerate(theta.factors)
        )
        expected = Parameters(
            factors,
            theta.visible_bias + rate * g.visible_bias,
            theta.hidden_bias + rate * g.hidden_bias,
        ).into(expected)
    for a, b in zip(*map(jax.tree.leaves, (end.machine, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert log_likelihood(end.machine, data) > log_likelihood(machine, data)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_a_two_site_step_is_the_exact_gradient_of_the_merged_core(momentum, rng, key):
    """With room for every rank, d = 2: the step in W is the dense gradient itself.

    It is as long as momentum would make it in the end.
    """
    dense, data, rate = tiny_machine("dense", scale=0.7), data_batch(rng), 1e-2
    machine = dense.to_mpo()
    biases = machine.visible_bias, machine.hidden_bias
    machine = Machine(MPOCoupling(pad_ranks(machine.coupling.mpo, (4,))), *biases)
    scheme, rule = TwoSite(), (Exact(), UpdateRule(momentum=momentum))
    start = Algorithm(scheme, *rule).init(key, machine, 1)
    np.testing.assert_allclose(
        start.machine.coupling.to_matrix(), dense.coupling.to_matrix(), atol=1e-12
    )
    end, _ = eqx.filter_jit(Algorithm(scheme, *rule).step)(key, start, data, Rates(rate, rate))
    g = exact_gradient(dense, data)
    expected = dense.coupling.weights + rate / (1.0 - momentum) * g.factors[0]
    np.testing.assert_allclose(
        end.machine.coupling.to_matrix(), expected.reshape(6, 4), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        end.machine.visible_bias, dense.visible_bias + rate * g.visible_bias, rtol=1e-12
    )
    assert isinstance(end, LearningState)
