"""Chains that follow a machine, against the exact log Z of machines small enough to enumerate."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.machine import exact
from mporbm.sampling.trajectory import Population, anneal, base_machine, follow
from strategies import KINDS, VISIBLE, assert_distributed, tiny_machine

BASE = np.linspace(-0.5, 0.5, 6).reshape(VISIBLE)
N_KEYS, N_CHAINS = 20, 100


def path(kind):
    """Independent units, and two machines of a training, the second with other weights."""
    first, second = (
        tiny_machine(kind, scale=scale, seed=seed) for scale, seed in ((0.5, 0), (1, 1))
    )
    return base_machine(first, BASE), first, second


def followed(key, machines, n_steps, n_chains=N_CHAINS):
    population = Population.begin(key, machines[0], n_chains)
    for number, (start, end) in enumerate(itertools.pairwise(machines)):
        own = jax.random.fold_in(key, number)
        population = follow(own, population, start, end, jnp.asarray(n_steps), cooling=number == 0)
    return population


@pytest.mark.parametrize("kind", KINDS)
def test_z_is_unbiased_and_intervals_cover(kind):
    machines = path(kind)
    true = float(exact.log_partition(machines[-1]))
    found = [followed(jax.random.key(k), machines, 3).summary() for k in range(N_KEYS)]
    ratios = np.exp([one.value - true for one in found])
    error = ratios.std(ddof=1) / np.sqrt(N_KEYS)
    assert abs(ratios.mean() - 1.0) < 4.0 * error + 1e-6
    covered = sum(low < true < high for low, high in (one.interval for one in found))
    # 13 or fewer of 20 happen once in 30,000 times at 95 %.
    assert covered >= 14


def test_chains_of_another_machine_are_noticed():
    """The test above has the power to fail: chains of independent units are not of the first."""
    base, first, second = path("mpo")
    true = float(exact.log_partition(second))
    ratios = []
    for number in range(N_KEYS):
        key = jax.random.key(number)
        population = Population.begin(key, base, N_CHAINS)
        moved = follow(key, population, first, second, jnp.asarray(3))
        ratios.append(np.exp(moved.summary().value - true))
    error = np.std(ratios, ddof=1) / np.sqrt(N_KEYS)
    assert abs(np.mean(ratios) - 1.0) > 4.0 * error


def test_weighted_chains_are_samples_of_the_machine():
    machines = path("mpo")
    population = followed(jax.random.key(0), machines, 20, n_chains=20_000)
    drawn = population.resampled(jax.random.key(1)).visible
    assert_distributed(drawn, exact.visible_distribution(machines[-1]))


def test_gains_of_one_step_are_differences_of_free_energies(rng):
    _, first, second = path("mpo")
    visible = jnp.asarray(rng.integers(2, size=(7, *VISIBLE)), first.coupling.dtype)
    _, gain = anneal(jax.random.key(0), first, second, visible, jnp.asarray(1))
    assert_allclose(gain, first.free_energy(visible) - second.free_energy(visible), rtol=1e-8)


def test_families_count_and_not_chains_that_were_drawn_twice():
    machines = path("mpo")
    population = Population.begin(jax.random.key(0), machines[0], 4)
    weight = jnp.log(jnp.asarray([0.7, 0.1, 0.1, 0.1]))
    heavy = Population(population.visible, weight, population.family, population.log_partition)
    _, error, size = heavy.estimate()
    assert_allclose(size, 1.0 / 0.52)
    assert_allclose(error, np.sqrt((0.52 - 0.25) * 4 / 3))
    again = heavy.resampled(jax.random.key(1))
    assert_allclose(again.log_partition, population.log_partition + np.log(0.25), rtol=1e-6)
    counts = np.bincount(np.asarray(again.family), minlength=4)
    assert counts[0] in (2, 3)
    assert_allclose(again.estimate()[2], 16.0 / (counts**2).sum(), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_machine_is_independent_units(kind):
    machine = tiny_machine(kind)
    base = base_machine(machine, BASE)
    assert_allclose(np.asarray(base.coupling.to_matrix()), 0.0)
    assert_allclose(base.visible_bias, BASE)
