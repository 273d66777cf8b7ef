"""Centred steps against the exact log-likelihood in centred parameters, by autodiff."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.learning import Algorithm, Alternating, Rates, Simultaneous, UpdateRule
from mporbm.learning.centring import centred_direction
from mporbm.learning.gradient import Batch, log_likelihood_gradient, plan_update
from mporbm.learning.two_site import TwoSite
from mporbm.machine import DenseCoupling, Machine
from strategies import KINDS, tiny_machine
from trainings import Exact, data_batch, log_likelihood

RATE = 1e-3
SCHEMES = {"su": Simultaneous(), "aop": Alternating(), "two-site": TwoSite()}


def means_of(machine, data):
    """mu and lambda, from sums over samples."""
    return data.mean(data.visible), data.mean(machine.hidden_mean(data.visible))


def centred_biases(machine, mu, mean):
    """``b = B + W(lambda)`` and ``c = C + W^T(mu)``, by the matrix W."""
    w = np.asarray(machine.coupling.to_matrix())
    b = machine.visible_bias + (w @ np.ravel(mean)).reshape(machine.visible_shape)
    c = machine.hidden_bias + (np.ravel(mu) @ w).reshape(machine.hidden_shape)
    return b, c


def direction_of(machine, data, moved):
    """The centred direction for some factors, with exact expectations."""
    planned = plan_update(machine, len(data), moved)
    _, samples = Exact().step(None, machine, None, data)
    return centred_direction(planned, *log_likelihood_gradient(*planned, data, samples))


def after_step(machine, data, scheme, rule=None):
    algorithm = Algorithm(scheme, Exact(), rule or UpdateRule(centred=True, momentum=0.0))
    key = jax.random.key(0)
    start = algorithm.init(key, machine, 1)
    return algorithm.step(key, start, data, Rates(RATE, RATE))[0].machine


@pytest.mark.parametrize("kind", KINDS)
def test_the_direction_is_the_gradient_in_centred_parameters(kind, rng):
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    mu, mean = means_of(machine, data)
    b, c = centred_biases(machine, mu, mean)

    def centred_likelihood(parameters):
        coupling, b, c = parameters
        biases = b - coupling.apply(mean), c - coupling.apply_transpose(mu)
        return log_likelihood(Machine(coupling, *biases), data)

    expected = jax.grad(centred_likelihood)((machine.coupling, b, c))
    for k in range(len(machine.coupling.factors)):
        found = direction_of(machine, data, (k,))
        wanted = expected[0].factors[k], *expected[1:]
        given = found.factors[k], *found.biases
        scale = np.linalg.norm(wanted[1]) / np.linalg.norm(given[1])
        for ours, theirs in zip(given, wanted, strict=True):
            assert_allclose(scale * ours, theirs, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["su", "aop"])
def test_a_step_is_as_long_as_the_rate(kind, scheme, rng):
    """In W, b and c together; several factors that share a step take a shorter one."""
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    n_factors = len(machine.coupling.factors)
    mu, mean = means_of(machine, data)
    first = (0,) if scheme == "aop" else tuple(range(n_factors))
    algorithm = Algorithm(SCHEMES[scheme], Exact(), UpdateRule(centred=True, momentum=0.0))
    state = algorithm.init(jax.random.key(0), machine, 1)
    state, _ = algorithm.update(jax.random.key(0), state, data, Rates(RATE, RATE), first)
    before, after = (
        np.concatenate(
            [np.ravel(m.coupling.to_matrix()), *map(np.ravel, centred_biases(m, mu, mean))]
        )
        for m in (machine, state.machine)
    )
    length = np.linalg.norm(after - before)
    assert length <= RATE * (1.0 + 1e-4)
    if len(first) == 1:
        assert_allclose(length, RATE, rtol=1e-4)
    assert log_likelihood(state.machine, data) > log_likelihood(machine, data)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_flipped_bits_are_learnt_alike(scheme, rng):
    """With V -> 1 - V, W -> -W, B -> -B and C -> C + W^T(1) the machine is the same."""
    machine, data = tiny_machine("mpo", scale=0.7), data_batch(rng)

    def flipped(machine):
        ones = jnp.ones(machine.visible_shape)
        first, *others = machine.coupling.factors
        coupling = machine.coupling.with_factors((-first, *others))
        hidden_bias = machine.hidden_bias + machine.coupling.apply_transpose(ones)
        return Machine(coupling, -machine.visible_bias, hidden_bias)

    other = Batch(1.0 - data.visible, data.weight)
    assert_allclose(log_likelihood(flipped(machine), other), log_likelihood(machine, data))
    one = flipped(after_step(machine, data, SCHEMES[scheme]))
    two = after_step(flipped(machine), other, SCHEMES[scheme])
    for a, b in zip(_dense(one), _dense(two), strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-10)
    plain = UpdateRule(momentum=0.0)
    one = flipped(after_step(machine, data, SCHEMES[scheme], plain))
    two = after_step(flipped(machine), other, SCHEMES[scheme], plain)
    assert np.abs(_dense(one)[0] - _dense(two)[0]).max() > 1e-6


def _dense(machine):
    return machine.coupling.to_matrix(), machine.visible_bias, machine.hidden_bias


def test_two_sites_with_room_for_all_ranks_step_as_a_dense_machine(rng):
    dense, data = tiny_machine("dense", scale=0.7), data_batch(rng)
    machine = dense.to_mpo()
    one = after_step(machine, data, TwoSite(max_ranks=(6,)))
    two = after_step(dense, data, Simultaneous())
    assert isinstance(dense.coupling, DenseCoupling)
    for a, b in zip(_dense(one), _dense(two), strict=True):
        assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-8, atol=1e-11)


def test_a_gradient_of_zero_is_a_step_of_zero():
    machine = tiny_machine("mpo")
    _, everything = Exact().step(None, machine, None, None)
    after = after_step(machine, everything, Simultaneous())
    leaves = [jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (machine, after)]
    for a, b in zip(*leaves, strict=True):
        assert np.isfinite(b).all()
        assert np.abs(a - b).max() < 2.0 * RATE
