"""Gibbs steps are as many as asked for, and both layers have random numbers of their own."""

import jax
import numpy as np
import pytest

from mporbm.machine import DenseCoupling, Machine, exact
from mporbm.sampling import gibbs
from strategies import assert_distributed, exact_samples, random_coupling, random_machine


@pytest.mark.parametrize("n_steps", [0, 1, 2, 4])
def test_as_many_steps_as_asked_for(n_steps, key):
    """Hidden unit j joins the visible units j and j + 1: what is on spreads by one a step."""
    n_units, strong = 6, 200.0
    weights = strong * (np.eye(n_units) + np.eye(n_units, k=-1))
    bias = np.full(n_units, -0.5 * strong)
    machine = Machine(DenseCoupling(weights), bias, bias)
    end = jax.jit(gibbs, static_argnums=3)(key, machine, np.eye(n_units)[:1], n_steps)
    np.testing.assert_array_equal(np.flatnonzero(end[0]), np.arange(n_steps + 1))


def test_layers_of_one_size_have_random_numbers_of_their_own(key, rng):
    """Where unit k of both layers would have the same number, the distribution would drift."""
    machine = random_machine(random_coupling("mpo", (2, 2), (2, 2), 2, rng), rng)
    start = exact_samples(machine, 20_000, rng)
    end = jax.jit(gibbs, static_argnums=3)(key, machine, start, 1)
    assert_distributed(end, exact.visible_distribution(machine))
