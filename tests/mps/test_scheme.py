"""Machines in MPS form equal the dense computation: fields, energies, gradients, whole steps."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mporbm.learning import (
    Algorithm,
    Batch,
    ContrastiveDivergence,
    Parameters,
    Rates,
    UpdateRule,
    gradient,
)
from mporbm.learning.gauge import precondition
from mporbm.learning.monitor import snapshot
from mporbm.machine import Gaussian, Machine, MPOCoupling
from mporbm.machine.hash_rng import hash_split
from mporbm.mps.machine import MPSMachine
from mporbm.mps.scheme import MPSLikelihood, MPSScheme
from mporbm.tensor import MPO, MPS, MPSBatch
from strategies import mpos, mps, seeds

RATES = Rates(0.05, 0.02)
UNITS = jnp.zeros(1, jnp.int32)


@st.composite
def mps_machines(draw, most_cores=4):
    """A machine of some order, and samples of it as MPS."""
    mpo = draw(mpos(order=draw(st.integers(1, most_cores)), max_size=16))
    rng = np.random.default_rng(draw(seeds))
    machine = MPSMachine(
        MPOCoupling(mpo),
        draw(mps(mpo.row_shape, boundary="open")),
        rng.normal(size=mpo.column_shape),
        rng.uniform(0.5, 2.0),
    )
    samples = [draw(mps(mpo.row_shape, boundary="open")) for _ in range(3)]
    return machine, MPSBatch.from_mps(samples)


def dense(machine: MPSMachine) -> Machine:
    """The same machine with a full visible layer."""
    variance = jnp.broadcast_to(machine.variance, machine.visible_shape)
    bias = machine.visible_bias.to_tensor()
    return Machine(machine.coupling, bias, machine.hidden_bias, Gaussian(variance))


@eqx.filter_jit
def quantities(machine, samples):
    """The same numbers by the chain and by full tensors, in one program."""
    other, tensors = dense(machine), samples.to_tensors()
    hidden = machine.hidden_mean(samples)
    matrix, flat = other.coupling.to_matrix(), tensors.reshape(len(samples), -1)
    return {
        "field": (machine.hidden_field(samples), other.hidden_field(tensors)),
        "free energy": (machine.free_energy(samples), other.free_energy(tensors)),
        "energy": (machine.energy(samples, hidden), other.energy(tensors, hidden)),
        "mean": (machine.visible_mean(hidden).to_tensors(), other.visible_mean(hidden)),
        "gram": (machine.gram(), matrix.T @ matrix),
        "bias field": (machine.bias_field(), other.visible_bias.reshape(-1) @ matrix),
        "inner": (samples.inner(samples), flat @ flat.T),
        "watched": (
            MPSLikelihood().watch(machine, samples, UNITS),
            snapshot(other, tensors, UNITS),
        ),
    }


# Every example compiles, and shrinking would compile hundreds.
@given(mps_machines())
@settings(max_examples=4, phases=[Phase.generate])
def test_fields_and_energies(drawn):
    for name, (fast, slow) in quantities(*drawn).items():
        for one, other in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True):
            scale = 1e-11 * max(float(jnp.abs(other).max()), 1.0)
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=scale, err_msg=name)


def dense_update(key, algorithm, machine, samples, weight, velocity, moved):
    """One update by full tensors; B is moved through the Jacobian of its tensor."""
    rule, other, tensors = algorithm.rule, dense(machine), samples.to_tensors()
    field = other.hidden_field(tensors)
    for step_key in hash_split(key, algorithm.negative_phase.n_gibbs):
        negative = other.visible_mean(other.hidden_units.sample(step_key, field))
        field = other.hidden_field(negative)
    ascent, _ = gradient(other, Batch(tensors, weight), Batch(negative, weight))
    jacobian = jax.jacobian(lambda cores: MPS(cores).to_tensor())(machine.visible_bias.cores)
    d = len(machine.visible_shape)
    bias = [jnp.tensordot(ascent.visible_bias, j, d) for j in jacobian]
    factors = list(ascent.factors)
    if rule.gauge:
        factors = [precondition(machine.coupling, k, g) for k, g in enumerate(factors)]
        own = MPOCoupling(MPO(machine.bias_cores))
        bias = [precondition(own, k, g) for k, g in enumerate(bias)]
    share = 1.0 / len(moved) if rule.gauge else 1.0
    cores, b_cores = list(machine.coupling.mpo.cores), list(machine.visible_bias.cores)
    v_cores, v_bias = list(velocity.factors), list(velocity.visible_bias.cores)
    for k in moved:
        v_cores[k] = rule.momentum * v_cores[k] + RATES.coupling * factors[k]
        v_bias[k] = rule.momentum * v_bias[k] + RATES.bias * bias[k].reshape(v_bias[k].shape)
        cores[k] = rule.decay(cores[k], share * RATES.coupling) + share * v_cores[k]
        b_cores[k] = b_cores[k] + share * v_bias[k]
    rate = jnp.tensordot(weight, other.hidden_mean(tensors), 1)
    sparse = rule.sparsity_cost * (rule.sparsity_target - rate)
    v_hidden = rule.momentum * velocity.hidden_bias + RATES.bias * (ascent.hidden_bias + sparse)
    hidden = machine.hidden_bias + v_hidden
    machine = Parameters(tuple(cores), MPS(b_cores), hidden).into(machine)
    return machine, Parameters(tuple(v_cores), MPS(v_bias), v_hidden)


@eqx.filter_jit
def both_steps(key, algorithm, machine, samples, weight, velocity):
    state = algorithm.init(key, machine, 1)
    state = eqx.tree_at(lambda s: s.velocity, state, velocity)
    data = algorithm.objective.batch(machine, samples, weight)
    state, _ = algorithm.step(key, state, data, RATES)
    d = len(machine.visible_shape)
    alternating = algorithm.scheme.alternating
    updates = [[k] for k in range(d)] if alternating else [range(d)]
    keys = hash_split(key, d) if alternating else [key]
    for update_key, moved in zip(keys, updates, strict=True):
        machine, velocity = dense_update(
            update_key, algorithm, machine, samples, weight, velocity, moved
        )
    return state, machine, velocity


@given(mps_machines(most_cores=3), st.booleans(), st.booleans(), st.integers(1, 2), seeds)
@settings(max_examples=4, phases=[Phase.generate])
def test_a_whole_step_is_that_of_full_tensors(drawn, alternating, gauge, n_gibbs, seed):
    machine, samples = drawn
    gauge = gauge and machine.coupling.mpo.boundary == "open"
    rule = UpdateRule(
        gauge=gauge,
        momentum=0.4,
        weight_decay=0.1,
        sparsity_target=0.2,
        sparsity_cost=0.3,
    )
    scheme, phase = MPSScheme(alternating), ContrastiveDivergence(n_gibbs)
    algorithm = Algorithm(scheme, phase, rule, MPSLikelihood())
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.5, 2.0, len(samples))
    velocity = jax.tree.map(
        lambda p: jnp.asarray(0.01 * rng.normal(size=p.shape)), Parameters.of(machine)
    )
    key = jax.random.key(seed % 2**31)
    state, expected, velocities = both_steps(
        key, algorithm, machine, samples, weight / weight.sum(), velocity
    )
    if gauge:
        # Redundant bonds leave cores to chance, but not W and B; a ridge of 1e-8 shows.
        assert_same(tensors_of(state.machine), tensors_of(expected), 1e-6)
    else:
        found = Parameters.of(state.machine), state.velocity
        assert_same(found, (Parameters.of(expected), velocities), 1e-12)


def tensors_of(machine):
    return machine.coupling.to_matrix(), machine.visible_bias.to_tensor(), machine.hidden_bias


def assert_same(found, expected, precision):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        scale = precision * max(float(jnp.abs(other).max()), 1.0)
        np.testing.assert_allclose(one, other, rtol=precision, atol=scale)


def chain_machine(order, rng, n_samples=4):
    """A machine and samples with cores of one shape, but for the ends."""
    pairs = list(itertools.pairwise([1, *[2] * (order - 1), 1]))
    hidden = [3, *[1] * (order - 1)]
    cores = [rng.normal(size=(a, 2, j, b)) / 2 for (a, b), j in zip(pairs, hidden, strict=True)]
    bias = MPS([rng.normal(size=(a, 2, b)) / 2 for a, b in pairs])
    samples = MPSBatch([rng.normal(size=(n_samples, a, 2, b)) for a, b in pairs])
    return MPSMachine(MPOCoupling(MPO(cores)), bias), samples


@pytest.mark.slow
@pytest.mark.parametrize("alternating", [True, False])
def test_long_chains_share_a_loop(alternating):
    """Cores of one shape are computed in a loop: a longer chain is no longer a program."""
    rng, key = np.random.default_rng(0), jax.random.key(0)
    scheme = MPSScheme(alternating)
    algorithm = Algorithm(scheme, ContrastiveDivergence(), objective=MPSLikelihood())
    weight = jnp.full(4, 0.25)
    machine, samples = chain_machine(6, rng)
    state, expected, _ = both_steps(
        key, algorithm, machine, samples, weight, Parameters.zeros_like(machine)
    )
    assert_same(tensors_of(state.machine), tensors_of(expected), 1e-6)

    def n_products(order):
        longer, batch = chain_machine(order, rng)
        start = algorithm.init(key, longer, 4)
        program = eqx.filter_make_jaxpr(
            lambda s, b: algorithm.step(key, s, Batch(b, weight), RATES)
        )(start, batch)[0]
        return str(program).count("dot_general")

    # What is left are the norms of each core's gradients.
    assert n_products(12) - n_products(8) <= 2 * 4
