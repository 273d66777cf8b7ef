"""Deep machines: samplers and bounds against the enumeration of all layers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.machine import DeepBelief, deep_boltzmann, exact
from mporbm.machine.layered import layered
from mporbm.sampling import Evidence, gibbs, log_partition
from mporbm.sampling.deep import belief_bound, belief_sample, infer_layers, variational_free_energy
from mporbm.sampling.evidence import posterior_average
from strategies import (
    all_states,
    assert_distributed,
    data_distribution,
    exact_samples,
    tiny_machine,
    tiny_stack,
)

N = 20_000
V = all_states(tiny_machine())
"""Every state of the data."""


@pytest.fixture(scope="module")
def deep():
    """A deep Boltzmann machine of 6-4-2-2 units."""
    return deep_boltzmann(tiny_stack(3))


@pytest.fixture(scope="module")
def belief():
    """A network of 6-4-2-2 units whose recognition is not its generation."""
    stack, other = tiny_stack(3), tiny_stack(3, seed=1)
    return DeepBelief(other[:-1], stack[:-1], stack[-1])


# Deep Boltzmann machines


def test_gibbs_leaves_all_layers_as_they_are(deep, key, rng):
    """Even layers against their enumerated distribution, and so the data among them."""
    start = exact_samples(deep, N, rng)
    end = jax.jit(gibbs, static_argnums=3)(key, deep, start, 2)
    assert (np.asarray(end) != start).any(axis=1).mean() > 0.5
    assert_distributed(end, exact.visible_distribution(deep))
    assert_distributed(np.asarray(end)[:, :6], data_distribution(deep))


def test_mean_field_bounds_the_log_likelihood_of_every_state(deep):
    log_p = np.log(data_distribution(deep))
    log_z = float(exact.log_partition(deep))
    gaps = []
    for n_steps in (0, 3, 10):
        bound = -variational_free_energy(deep, infer_layers(deep, jnp.asarray(V), n_steps)) - log_z
        assert (np.asarray(bound) <= log_p + 1e-12).all()
        gaps.append((log_p - bound).mean())
    # Every pass is a coordinate ascent on the bound.
    assert gaps[0] > gaps[1] >= gaps[2] > 0.0


def test_the_bound_is_the_energy_and_the_entropy_of_independent_units(deep, rng):
    """``E_q[-E] + entropy(q)`` with all units of q written out, for means that are not optimal."""
    coupling = layered(deep)
    n_hidden = deep.visible_shape[0] - 6
    even = np.concatenate([V.reshape(64, 6), rng.uniform(0.1, 0.9, (64, n_hidden))], axis=1)
    odd = np.asarray(deep.hidden_mean(even))
    w = np.asarray(coupling.to_matrix())
    energy = np.einsum("ni,ij,nj->n", even, w, odd)
    energy += even @ np.asarray(deep.visible_bias) + odd @ np.asarray(deep.hidden_bias)
    hidden = np.concatenate([even[:, 6:], odd], axis=1)
    entropy = -(hidden * np.log(hidden) + (1 - hidden) * np.log1p(-hidden)).sum(axis=1)
    assert_allclose(-variational_free_energy(deep, jnp.asarray(even)), energy + entropy)


def test_the_bound_of_one_layer_is_exact():
    machine = tiny_machine()
    deep = deep_boltzmann([machine])
    bound = -variational_free_energy(deep, infer_layers(deep, jnp.asarray(V)))
    assert_allclose(bound, -machine.free_energy(V))


def test_annealing_finds_log_z(deep, key):
    found = log_partition(key, deep, n_chains=128, n_temperatures=300)
    assert found.standard_error < 0.1
    assert abs(found.value - float(exact.log_partition(deep))) < 5 * found.standard_error


def test_evidence_on_the_data_gives_their_exact_posterior_mean(deep, key):
    """Half of the data known: the mean of the others against the enumerated posterior."""
    known = np.array([1, 1, 1, 0, 0, 0], bool)
    p, flat = data_distribution(deep), V.reshape(64, 6)
    agree = (flat[:, :3] == [1, 0, 1]).all(axis=1)
    expected = (p[agree] @ flat[agree]) / p[agree].sum()
    n_even = deep.visible_shape[0]
    value = np.zeros((200, n_even))
    value[:, :3] = [1, 0, 1]
    observed = np.pad(np.broadcast_to(known, (200, 6)), ((0, 0), (0, n_even - 6)))
    evidence = Evidence.from_known(jnp.asarray(value), jnp.asarray(observed))
    mean = jax.jit(posterior_average)(key, deep, evidence, 400).mean[:, :6]
    assert_allclose(mean.mean(axis=0), expected, atol=0.02)


# Deep belief networks


def conditional(machine, hidden):
    """``p(V | H)`` for all visible states V (columns) and all hidden states H (rows)."""
    field = machine.visible_field(hidden)[:, None]
    terms = machine.visible_units.log_density(jnp.asarray(all_states(machine)), field)
    return np.exp(np.asarray(terms).reshape(len(hidden), -1, np.prod(machine.visible_shape)).sum(2))


def belief_distribution(belief):
    """``p(V) = sum p(V | X_1) p(X_1 | X_2) ... p(X_{L-1})`` by enumeration."""
    machines = [*belief.generation, belief.top]
    p = np.asarray(exact.visible_distribution(belief.top))
    for lower, upper in zip(machines[-2::-1], machines[:0:-1], strict=True):
        p = p @ conditional(lower, jnp.asarray(all_states(upper)))
    return p


def test_samples_are_those_of_the_definition(belief, key):
    """Chains from nowhere that are long enough, and a pass down."""
    drawn = jax.jit(belief_sample, static_argnums=2)(key, belief, N, 30)
    p = belief_distribution(belief)
    assert_allclose(p.sum(), 1.0)
    assert_distributed(drawn, p)


def test_a_pass_down_from_exact_samples_gives_the_distribution(belief, key, rng):
    start = exact_samples(belief.top, N, rng)
    assert_distributed(belief.down_samples(key, jnp.asarray(start))[0], belief_distribution(belief))


def exact_bound(belief):
    """``E_q[log p(X_0..X_{L-1}) - log q]`` of all states of the data, every X enumerated."""
    machines = [*belief.generation, belief.top]
    log_top = np.log(np.asarray(exact.visible_distribution(belief.top)))
    n_states = [2 ** np.prod(machine.visible_shape) for machine in machines]
    q, bound = np.eye(n_states[0]), np.zeros(n_states[0])
    for k, (up, down) in enumerate(zip(belief.recognition, belief.generation, strict=True)):
        low, high = (jnp.asarray(all_states(machine)) for machine in machines[k : k + 2])
        terms = up.hidden_units.log_density(high, up.hidden_field(low)[:, None])
        log_q = np.asarray(terms).reshape(len(low), len(high), -1).sum(axis=2)
        log_p = np.log(conditional(down, high)).T
        bound += q @ (np.exp(log_q) * (log_p - log_q)).sum(axis=1)
        q = q @ np.exp(log_q)
    return bound + q @ log_top


def test_the_bound_is_the_enumerated_one_and_holds(belief, key):
    expected = exact_bound(belief)
    log_p = np.log(belief_distribution(belief))
    assert (expected <= log_p + 1e-12).all()
    assert (expected < log_p - 0.01).any()
    estimates = [
        jax.jit(belief_bound, static_argnums=3)(k, belief, jnp.asarray(V), 500)
        for k in jax.random.split(key, 4)
    ]
    found = np.mean(estimates, axis=0) - float(exact.log_partition(belief.top))
    error = np.std(estimates, axis=0, ddof=1).mean() / 2.0
    assert error < 0.2
    assert_allclose(found, expected, atol=8 * error)
    assert abs((found - expected).mean()) < 3 * error


def test_the_bound_of_one_layer_needs_no_samples(key):
    machine = tiny_machine()
    found = belief_bound(key, DeepBelief.of_stack((machine,)), jnp.asarray(V), 1)
    assert_allclose(found, -machine.free_energy(V))
