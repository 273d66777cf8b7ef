"""What is watched: the units whose conditionals stand for all."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.learning.monitor import N_SCORED_UNITS, pseudo_log_likelihood, scored_units
from mporbm.machine import DenseCoupling, Machine, exact
from mporbm.tensor.random import normal_arrays


@pytest.mark.parametrize("n_visible", [129, 150, 784, 3072, 10**6])
def test_scored_units_lie_evenly(n_visible):
    units = scored_units(n_visible)
    assert len(np.unique(units)) == len(units) == N_SCORED_UNITS
    # The shares of all beginnings; random units would be off by about 0.08.
    shares = np.searchsorted(np.sort(units), np.arange(n_visible)) / N_SCORED_UNITS
    assert_allclose(shares, np.arange(n_visible) / n_visible, atol=0.04)


@pytest.mark.parametrize("n_visible", [1, 20, 128])
def test_few_units_are_all_scored(n_visible):
    assert_allclose(scored_units(n_visible), np.arange(n_visible))


def test_conditionals_are_those_of_the_enumerated_distribution():
    """``log p(v_i | rest) = log p(V) - log(p(V) + p(V with v_i flipped))``."""
    weights, visible_bias, hidden_bias = normal_arrays(
        jax.random.key(0), [(6, 4), (6,), (4,)], 1.0, None
    )
    machine = Machine(DenseCoupling(weights), visible_bias, hidden_bias)
    states = jnp.array(list(itertools.product([0.0, 1.0], repeat=6)))
    units = np.array([4, 0, 3])
    log_p = np.asarray(exact.log_probability(machine, states))
    found = pseudo_log_likelihood(machine, states, jnp.asarray(units))
    flipped = np.arange(64)[:, None] ^ (1 << (5 - units))
    conditionals = log_p[:, None] - np.logaddexp(log_p[:, None], log_p[flipped])
    assert_allclose(found, 6.0 * conditionals.mean(axis=1), rtol=1e-4, atol=1e-5)
