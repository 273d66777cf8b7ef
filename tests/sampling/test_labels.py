"""Samplers of machines with a label are those of all machines: exact samples stay exact."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from mporbm.machine import exact, with_labels
from mporbm.sampling import Tempering, gibbs, log_partition, observe
from mporbm.sampling.evidence import posterior_average, posterior_sample
from strategies import (
    all_states,
    assert_numbers_distributed,
    label_distribution,
    label_numbers,
    log_joint,
    random_labelled,
    tiny_machine,
)

N, K = 20_000, 3


@functools.cache
def machine_and_start():
    """A machine, its p(V, y) as a list, and exact samples of it."""
    rng = np.random.default_rng(0)
    machine = random_labelled(tiny_machine(), rng, K)
    p = label_distribution(machine).sum(axis=2).ravel()
    state, label = np.divmod(rng.choice(len(p), N, p=p), K)
    start = with_labels(machine, all_states(tiny_machine())[state], label)
    return machine, p, np.asarray(start)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_gibbs_is_stationary(n_steps, key):
    machine, p, start = machine_and_start()
    end = np.asarray(jax.jit(gibbs, static_argnums=3)(key, machine, start, n_steps))
    assert (end[:, -K:] != start[:, -K:]).any(axis=1).mean() > 0.1
    assert_numbers_distributed(label_numbers(end, K), p)


@pytest.mark.parametrize("part", ["all", "labels"])
def test_a_wrong_kernel_is_noticed(part, key):
    """The test has the power to fail: other weights drift, and labels of their neighbours."""
    machine, p, start = machine_and_start()
    if part == "all":
        other = jax.tree.map(lambda x: 0.9 * x, machine)
        end = jax.jit(gibbs, static_argnums=3)(key, other, start, 3)
    else:
        end = np.asarray(jax.jit(gibbs, static_argnums=3)(key, machine, start, 3))
        end = np.concatenate([end[:, :-K], np.roll(end[:, -K:], 1, axis=0)], axis=1)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_numbers_distributed(label_numbers(end, K), p)


def test_tempering_is_stationary(key):
    machine, p, start = machine_and_start()
    tempering = Tempering(2)
    state = tempering.init(key, machine, N)
    # The hottest chains are exact from the beginning: independent units and labels.
    state = type(state)(state.visible.at[-1].set(start), state.n_steps)
    step = jax.jit(tempering.step)
    for number in range(3):
        state, info = step(jax.random.fold_in(key, number), machine, state)
    assert 0.0 < info.acceptance < 1.0
    assert_numbers_distributed(label_numbers(state.visible[-1], K), p)


def test_annealed_importance_sampling_finds_log_z(key):
    machine, _, _ = machine_and_start()
    expected = logsumexp(log_joint(machine, all_states(tiny_machine())))
    found = log_partition(key, machine, n_chains=500, n_temperatures=100)
    assert found.standard_error < 0.1
    assert abs(found.value - expected) < 4.0 * found.standard_error
    assert abs(found.reverse - expected) < 6.0 * found.standard_error
    np.testing.assert_allclose(exact.log_partition(machine), expected, rtol=1e-12)


SEEN = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
OBSERVED = np.array([True, False, False, True, True, False])


@pytest.mark.parametrize("noise", [None, 0.1], ids=["known", "flipped"])
@pytest.mark.parametrize("label", [None, 2], ids=["unknown-label", "label"])
def test_completion_is_the_posterior_by_enumeration(label, noise, key):
    """Some pixels are seen, maybe flipped; the label is seen as it is, or not at all."""
    machine, p, _ = machine_and_start()
    right = 1.0 if noise is None else 1.0 - noise
    v = all_states(tiny_machine()).reshape(-1, 6)
    likelihood = np.where(v == SEEN, right, 1.0 - right)[:, OBSERVED].prod(axis=1)
    posterior = p.reshape(-1, K) * likelihood[:, None]
    if label is not None:
        posterior = posterior * np.eye(K)[label]
    posterior = posterior / posterior.sum()

    seen = with_labels(machine, np.tile(SEEN, (N, 1)).reshape(N, 3, 2), 0 if label is None else 2)
    observed = np.append(OBSERVED, [label is not None] * K)
    observed = jnp.asarray(np.broadcast_to(observed, seen.shape))
    found = observe(machine, seen, observed, noise)
    drawn = jax.jit(posterior_sample)(key, *found, 30)
    assert_numbers_distributed(label_numbers(drawn, K), posterior.ravel())
    average = jax.jit(posterior_average)(key, *found, 30)
    states = np.concatenate([np.repeat(v, K, axis=0), np.tile(np.eye(K), (len(v), 1))], axis=1)
    means = np.asarray(average.mean)
    error = means.std(axis=0) / np.sqrt(N)
    assert (abs(means.mean(axis=0) - posterior.ravel() @ states) <= 5.0 * error + 1e-12).all()
    assert average.variance.shape == means.shape
    np.testing.assert_allclose(average.variance, means * (1.0 - means), atol=1e-10)
