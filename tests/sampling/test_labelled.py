"""Gibbs sampling of visible units and labels leaves their exact joint distribution as it is."""

import functools

import jax
import numpy as np
import pytest

from mporbm.sampling import labelled_gibbs
from strategies import (
    all_states,
    assert_numbers_distributed,
    joint_distribution,
    state_numbers,
    tiny_machine,
    with_labels,
)

N, N_CLASSES = 20_000, 3


@functools.cache
def machine_and_start():
    """A machine, its p(V, y) as a list, and exact samples of it."""
    rng = np.random.default_rng(0)
    machine = with_labels(tiny_machine(), rng, N_CLASSES)
    p = joint_distribution(machine).sum(axis=2).ravel()
    state, label = np.divmod(rng.choice(len(p), N, p=p), N_CLASSES)
    return machine, p, all_states(machine)[state], label


def numbers(visible, labels):
    return state_numbers(visible) * N_CLASSES + np.asarray(labels)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_the_kernel_is_stationary(n_steps, key):
    machine, p, visible, labels = machine_and_start()
    run = jax.jit(labelled_gibbs, static_argnums=4)
    ends = run(key, machine, visible, labels, n_steps)
    assert (np.asarray(ends[1]) != labels).mean() > 0.1
    assert_numbers_distributed(numbers(*ends), p)


def test_a_wrong_kernel_is_noticed(key):
    """The test has the power to fail: labels of a machine with other weights drift."""
    machine, p, visible, labels = machine_and_start()
    other = jax.tree.map(lambda x: 0.9 * x, machine)
    ends = jax.jit(labelled_gibbs, static_argnums=4)(key, other, visible, labels, 3)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_numbers_distributed(numbers(*ends), p)
