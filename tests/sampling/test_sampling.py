"""Samplers leave the exact distribution as it is: started from exact samples, nothing drifts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.machine import exact
from mporbm.sampling import Tempering, gibbs, gibbs_step, independent_units
from strategies import KINDS, all_states, assert_distributed, exact_samples, tiny_machine

N = 20_000


def tempered_distribution(machine, b):
    """p_b(V) by enumeration of both layers, in NumPy."""
    v = all_states(machine).reshape(64, 6)
    h = np.array([[int(d) for d in f"{n:04b}"] for n in range(16)])
    w = np.asarray(machine.coupling.to_matrix())
    bias, c = np.asarray(machine.visible_bias).ravel(), np.asarray(machine.hidden_bias).ravel()
    log_joint = b * (v @ w @ h.T + h @ c) + (v @ bias)[:, None]
    joint = np.exp(log_joint - log_joint.max())
    return joint.sum(axis=1) / joint.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_gibbs_is_stationary(kind, key, rng):
    machine = tiny_machine(kind)
    start = exact_samples(machine, N, rng)
    end = jax.jit(gibbs, static_argnums=3)(key, machine, start, 3)
    assert (np.asarray(end) != start).any(axis=(1, 2)).mean() > 0.5
    assert_distributed(end, exact.visible_distribution(machine))


def test_a_wrong_kernel_is_noticed(key, rng):
    """The test has the power to fail: a machine with slightly other weights drifts."""
    machine = tiny_machine()
    other = jax.tree.map(lambda x: 0.9 * x, machine)
    end = jax.jit(gibbs, static_argnums=3)(key, other, exact_samples(machine, N, rng), 3)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(end, exact.visible_distribution(machine))


def test_tempered_gibbs_is_stationary(key, rng):
    machine, b = tiny_machine(), 0.4
    p = tempered_distribution(machine, b)
    start = all_states(machine)[rng.choice(64, N, p=p)]
    assert_distributed(jax.jit(gibbs_step)(key, machine, start, b), p)


def test_no_steps_give_the_start_back(key, rng):
    machine = tiny_machine()
    start = exact_samples(machine, 10, rng)
    np.testing.assert_array_equal(gibbs(key, machine, start, 0), start)


def test_independent_units_follow_the_visible_bias(key):
    machine = tiny_machine()
    rate = independent_units(key, machine, (N,)).mean(axis=0)
    expected = 1.0 / (1.0 + np.exp(-np.asarray(machine.visible_bias)))
    np.testing.assert_allclose(rate, expected, atol=5.0 * 0.5 / np.sqrt(N))


def test_tempering_is_stationary_at_every_temperature(key, rng):
    machine, tempering = tiny_machine(), Tempering(4)
    distributions = [tempered_distribution(machine, b) for b in (0.0, 1 / 3, 2 / 3, 1.0)]
    starts = [all_states(machine)[rng.choice(64, N, p=p)] for p in distributions]
    state = tempering.init(key, machine, N)
    state = type(state)(jnp.asarray(np.stack(starts)), state.n_steps)
    step = jax.jit(tempering.step)
    for number in range(3):
        state, info = step(jax.random.fold_in(key, number), machine, state)
        assert 0.0 < info.acceptance < 1.0
    for visible, p in zip(state.visible, distributions, strict=True):
        assert_distributed(visible, p)
    np.testing.assert_allclose(distributions[-1], exact.visible_distribution(machine), rtol=1e-10)


def test_exchanges_are_accepted_with_the_metropolis_probability(key, rng):
    """The share of accepted exchanges against the exact mean of min(1, ratio) over both chains."""
    machine, tempering = tiny_machine(), Tempering(2)
    hot, cold = (tempered_distribution(machine, b) for b in (0.0, 1.0))
    ratio = hot[None, :] * cold[:, None] / (hot[:, None] * cold[None, :])
    exact_mean = (hot[:, None] * cold[None, :] * np.minimum(1.0, ratio)).sum()
    chosen = np.stack([rng.choice(64, N, p=p) for p in (hot, cold)])
    visible = jnp.asarray(all_states(machine)[chosen])
    source, acceptance = tempering._exchange(
        key, machine, visible, tempering.inverse_temperatures, 0
    )
    error = np.sqrt(exact_mean * (1.0 - exact_mean) / N)
    assert abs(float(acceptance) - exact_mean) < 5.0 * error
    swapped = np.asarray(source)[0] == 1
    np.testing.assert_array_equal(swapped, np.asarray(source)[1] == 0)
    pair = ratio[chosen[0], chosen[1]]
    assert swapped[pair >= 1.0].all()
    likely = (pair > 0.4) & (pair < 0.6)
    assert abs(swapped[likely].mean() - pair[likely].mean()) < 5.0 * 0.5 / np.sqrt(likely.sum())


def test_exchanges_alternate_between_the_pairs(key):
    machine, tempering = tiny_machine(scale=0.0), Tempering(3)
    visible = tempering.init(key, machine, 5).visible
    for parity, expected in ((0, [1, 0, 2]), (1, [0, 2, 1])):
        # Without weights every exchange is accepted.
        source, acceptance = tempering._exchange(
            key, machine, visible, tempering.inverse_temperatures, parity
        )
        np.testing.assert_array_equal(source, np.repeat(np.array(expected)[:, None], 5, axis=1))
        assert acceptance == 1.0
