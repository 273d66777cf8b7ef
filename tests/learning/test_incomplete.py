"""Learning from samples with missing values, against enumeration of these."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from mporbm.learning import Batch, Objective, Parameters
from mporbm.learning.gradient import plan_update
from mporbm.learning.incomplete import IncompleteLikelihood, fill, with_base_rates
from mporbm.learning.monitor import snapshot
from mporbm.machine import Bernoulli, Categorical, Gaussian, Machine, exact
from strategies import all_states, assert_distributed, exact_samples, tiny_machine

NAN = np.nan
SAMPLES = np.array(
    [
        [[1.0, NAN], [NAN, 1.0], [0.0, NAN]],
        [[NAN, 0.0], [1.0, 1.0], [0.0, 1.0]],
        [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]],
        [[NAN, NAN], [NAN, NAN], [NAN, 1.0]],
    ]
)
N_COPIES, N_STEPS = 2000, 40
filled = eqx.filter_jit(fill)


def agreement(machine, samples):
    """Which of all states agree with what was observed of each sample."""
    states = all_states(machine)[None]
    return (np.isnan(samples)[:, None] | (states == samples[:, None])).all(axis=(2, 3))


@eqx.filter_jit
def observed_log_likelihood(machine, agree, states):
    """The mean ``log p(V_observed)``, by enumeration of what is missing."""
    minus_energies = jnp.where(agree, -machine.free_energy(states), -jnp.inf)
    return jax.nn.logsumexp(minus_energies, axis=1).mean() - exact.log_partition(machine)


def exact_gradient(machine, samples):
    """The gradient of that, by automatic differentiation."""
    agree, states = agreement(machine, samples), all_states(machine)
    return Parameters.of(eqx.filter_grad(observed_log_likelihood)(machine, agree, states))


def exact_negative(machine):
    return Batch(jnp.asarray(all_states(machine)), exact.visible_distribution(machine))


@eqx.filter_jit
def gradient_of(machine, visible, negative):
    batch = Batch.equal(visible)
    ascent, _ = Objective().gradient(*plan_update(machine, len(batch)), batch, negative)
    return ascent


def assert_gradient(machine, fill_in):
    """The gradient of filled-in samples is the exact one, within five standard errors."""
    negative, found = exact_negative(machine), []
    for number in range(20):
        rows = np.repeat(SAMPLES, N_COPIES // 20, axis=0)
        visible = fill_in(jax.random.key(number), jnp.asarray(rows))
        found.append(jax.tree.leaves(gradient_of(machine, visible, negative)))
    for each, expected in zip(
        zip(*found, strict=True), jax.tree.leaves(exact_gradient(machine, SAMPLES)), strict=True
    ):
        values = np.array(each)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        distance = np.abs(values.mean(axis=0) - np.asarray(expected))
        assert (distance <= 5.0 * error + 1e-9).all(), f"{distance} with errors {error}"


@pytest.mark.parametrize("kind", ["mpo", "dense", "kronecker", "cp"])
def test_the_gradient_is_that_of_what_was_observed(kind):
    machine = tiny_machine(kind)
    assert_gradient(machine, lambda key, rows: filled(key, machine, rows, N_STEPS))


def test_missing_values_that_start_at_chains(rng):
    """Few steps are enough where they start at the model's own samples."""
    machine = tiny_machine(scale=0.5)
    chains = jnp.asarray(exact_samples(machine, 400, rng))
    objective = IncompleteLikelihood()

    @eqx.filter_jit
    def fill_in(key, rows):
        # Each chain, anew, at samples of all kinds.
        mixed = jax.random.permutation(key, chains)
        return objective.draw(key, machine, Batch.equal(rows), mixed).visible

    assert_gradient(machine, fill_in)


def test_the_mean_in_place_of_missing_values_is_noticed():
    """The test has the power to fail: to impute is another gradient."""
    machine = tiny_machine()

    def impute(key, rows):
        return jnp.where(jnp.isnan(rows), jnp.nanmean(rows, axis=0), rows)

    with pytest.raises(AssertionError, match="with errors"):
        assert_gradient(machine, impute)


def test_finite_differences_agree_with_the_exact_gradient():
    machine = tiny_machine()
    agree, states = agreement(machine, SAMPLES), all_states(machine)

    def value(bias):
        moved = eqx.tree_at(lambda m: m.visible_bias, machine, jnp.asarray(bias))
        return float(observed_log_likelihood(moved, agree, states))

    slope, bias = np.asarray(exact_gradient(machine, SAMPLES).visible_bias), machine.visible_bias
    for place in np.ndindex(slope.shape):
        step = np.zeros(slope.shape)
        step[place] = 1e-5
        assert_allclose((value(bias + step) - value(bias - step)) / 2e-5, slope[place], atol=1e-8)


def test_what_was_observed_stays_as_it_is(key):
    machine = tiny_machine()
    drawn = np.asarray(filled(key, machine, jnp.asarray(SAMPLES), 3))
    seen = ~np.isnan(SAMPLES)
    assert_array_equal(drawn[seen], SAMPLES[seen])
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    batch = Batch.equal(jnp.asarray(SAMPLES))
    assert_array_equal(IncompleteLikelihood().draw(key, machine, batch).weight, batch.weight)


def test_complete_batches_are_learnt_as_they_are(key, rng):
    machine = tiny_machine()
    rows = jnp.asarray(rng.random((5, 3, 2)))
    assert_array_equal(filled(key, machine, rows, 3), rows)
    batch = Batch.equal(rows)
    for draw in (Objective().draw, IncompleteLikelihood().draw):
        assert_array_equal(draw(key, machine, batch, rows).visible, rows)


def test_draws_follow_the_posterior(key):
    machine = tiny_machine()
    rows = jnp.asarray(np.repeat(SAMPLES[:1], N_COPIES, axis=0))
    p = np.asarray(exact.visible_distribution(machine)) * agreement(machine, SAMPLES[:1])[0]
    assert_distributed(filled(key, machine, rows, N_STEPS), p / p.sum())


def test_of_nothing_observed_chains_go_on_as_samples_of_the_model(key, rng):
    """However few the steps: what starts distributed as the model stays so."""
    machine = tiny_machine(scale=1.5)
    chains = jnp.asarray(exact_samples(machine, N_COPIES, rng))
    nothing = jnp.full(chains.shape, NAN)
    p = np.asarray(exact.visible_distribution(machine))
    assert_distributed(filled(key, machine, nothing, 1, chains), p)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(filled(key, machine, nothing, 1), p)


def test_categorical_groups_are_filled_in_as_a_whole(key):
    start = tiny_machine()
    machine = Machine(start.coupling, start.visible_bias, start.hidden_bias, Categorical())
    rows = np.tile([[1.0, 0.0], [NAN, NAN], [0.0, NAN]], (50, 1, 1))
    drawn = np.asarray(filled(key, machine, jnp.asarray(rows), 3))
    assert_array_equal(drawn.sum(axis=-1), 1.0)
    assert_array_equal(drawn[:, 0], rows[:, 0])
    # The 0 that is known of a group in part is not kept.
    assert drawn[:, 2, 0].any()


# What is watched


def test_the_reconstruction_error_is_that_of_observed_values(rng):
    machine, units = tiny_machine(), jnp.arange(6)
    seen = IncompleteLikelihood().watch(machine, jnp.asarray(SAMPLES), units)
    complete = filled(jax.random.key(0), machine, jnp.asarray(SAMPLES), 50)
    passed = np.asarray(machine.visible_mean(machine.hidden_mean(complete)))
    assert_allclose(seen.reconstruction_error, np.nanmean((SAMPLES - passed) ** 2))
    expected = snapshot(machine, complete, units)
    for name in ("score", "free_energy", "largest_field"):
        assert_allclose(getattr(seen, name), getattr(expected, name))


def test_complete_samples_are_watched_as_ever(rng):
    machine, units = tiny_machine(), jnp.arange(6)
    rows = jnp.asarray(all_states(machine)[::3])
    both = [kind().watch(machine, rows, units) for kind in (Objective, IncompleteLikelihood)]
    for one, other in zip(*map(jax.tree.leaves, both), strict=True):
        assert_allclose(one, other, rtol=1e-12)
    limits = [
        IncompleteLikelihood().field_limit(machine, SAMPLES),
        Objective().field_limit(machine, np.nan_to_num(SAMPLES)),
    ]
    assert limits[0] == limits[1] == 1006.0


# What training starts with


def test_base_rates_are_those_of_what_was_observed(rng):
    rows = (rng.random((40, 3)) < 0.3).astype(float)
    missing = np.where(rng.random(rows.shape) < 0.5, NAN, rows)
    for units, data in ((Bernoulli(), missing), (Gaussian(np.array([0.5, 1.0, 2.0])), missing)):
        alone = [data[~np.isnan(data[:, k]), k] for k in range(3)]
        single = Gaussian() if isinstance(units, Gaussian) else units
        expected = np.array([single.base_bias(column[:, None])[0] for column in alone])
        if isinstance(units, Gaussian):
            expected = expected / np.asarray(units.variance)
        assert_allclose(units.base_bias(data), expected)
        # As do the rows in which they stand for what is missing.
        whole = with_base_rates(units, data)
        assert_allclose(units.base_bias(whole), expected)
        assert_array_equal(whole[~np.isnan(data)], data[~np.isnan(data)])
        # Integers and complete rows stay as they are.
        assert units.base_bias(rows.astype(np.uint8)).tolist() == units.base_bias(rows).tolist()
    assert_array_equal(with_base_rates(Bernoulli(), rows.astype(np.uint8)), rows)
    never = np.where(np.arange(3) == 1, NAN, rows)
    assert Bernoulli().base_bias(never)[1] == 0.0


def test_base_rates_of_categories(rng):
    states = np.eye(4)[rng.integers(4, size=(60, 2))]
    lost = rng.random((60, 2)) < 0.5
    data = np.where(lost[..., None], NAN, states)
    counts = np.array([states[~lost[:, k], k].sum(axis=0) for k in range(2)])
    frequency = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    units = Categorical()
    assert_allclose(softmax(units.base_bias(data), axis=-1), frequency)
    # A group of which a part is missing is not observed.
    data[:, 0, 1] = np.where(lost[:, 0], 0.0, data[:, 0, 1])
    whole = with_base_rates(units, data)
    assert_allclose(softmax(units.base_bias(whole), axis=-1), frequency)
