"""What was observed of a sample: the sum over the missing units, against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from mporbm.machine import Categorical, Gaussian, Machine, Rectified, exact
from mporbm.sampling import Evidence
from mporbm.sampling.incomplete import clamped_log_weights, log_mean_weights
from strategies import HIDDEN, KINDS, all_states, binary_states, tiny_machine

N, N_STEPS = 4000, 5
NAN = np.nan
SEEN = np.array([[1.0, NAN], [NAN, 1.0], [0.0, NAN]])
NOTHING = np.full((3, 2), NAN)
weights = jax.jit(clamped_log_weights)


def with_units(visible=None, hidden=None, **options):
    machine = tiny_machine(**options)
    return Machine(machine.coupling, machine.visible_bias, machine.hidden_bias, visible, hidden)


def summed_over_missing(machine, seen):
    """``log sum exp(-F(V))`` over the binary states that agree with what was seen."""
    states = all_states(machine)
    agree = (np.isnan(seen) | (states == seen)).all(axis=(1, 2))
    return float(logsumexp(-np.asarray(machine.free_energy(states[agree]))))


def summed_over_hidden(machine, seen):
    """The same for any visible units, by all states of binary hidden ones."""
    hidden = binary_states(HIDDEN).reshape(-1, *machine.hidden_shape)
    field = machine.visible_field(hidden)
    units, known = machine.visible_units, ~np.isnan(seen)
    terms = np.asarray(units.log_partition(field))
    value = jnp.where(known, seen, 0.0)
    own = np.asarray(value * field - units.potential(value))
    if terms.shape != field.shape:  # One term for each group.
        known = known.all(axis=-1, keepdims=True)
        own = own.sum(axis=-1, keepdims=True)
    each = np.where(known, own, terms).sum(axis=(1, 2))
    return float(logsumexp(each + hidden.reshape(16, -1) @ np.ravel(machine.hidden_bias)))


def assert_unbiased(key, machine, seen, expected, n_steps=N_STEPS):
    """The mean of the weights, not of their logarithms, is the sum within its standard error."""
    found = np.asarray(weights(key, machine, np.broadcast_to(seen, (N, *seen.shape)), n_steps))
    ratio = np.exp(found - expected)
    error = ratio.std(ddof=1) / np.sqrt(N)
    assert abs(ratio.mean() - 1.0) <= 5.0 * error, f"{ratio.mean()} with an error of {error}"
    assert error < 0.1


@pytest.mark.parametrize("seen", [SEEN, NOTHING], ids=["half", "nothing"])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_unbiased(kind, seen, key):
    machine = tiny_machine(kind)
    expected = summed_over_missing(machine, seen)
    assert_allclose(summed_over_hidden(machine, seen), expected, rtol=1e-9)
    assert_unbiased(key, machine, seen, expected)
    if seen is NOTHING:
        assert_allclose(expected, exact.log_partition(machine), rtol=1e-9)


@pytest.mark.parametrize("n_steps", [1, 2, 30])
def test_weights_are_unbiased_however_few_the_steps(n_steps, key):
    machine = tiny_machine()
    assert_unbiased(key, machine, SEEN, summed_over_missing(machine, SEEN), n_steps)


def test_other_values_are_noticed(key):
    """The test has the power to fail: another value, or one more that is known."""
    machine = tiny_machine()
    expected = summed_over_missing(machine, SEEN)
    for place, value in (((0, 0), 0.0), ((0, 1), 1.0)):
        other = SEEN.copy()
        other[place] = value
        with pytest.raises(AssertionError, match="with an error of"):
            assert_unbiased(key, machine, other, expected)


@pytest.mark.parametrize("hidden", [Gaussian(), Rectified()], ids=["gaussian", "rectified"])
def test_real_hidden_units(hidden, key):
    machine = with_units(hidden=hidden, scale=0.5)
    assert_unbiased(key, machine, SEEN, summed_over_missing(machine, SEEN), 20)


def test_gaussian_units(key, rng):
    machine = with_units(Gaussian(rng.uniform(0.5, 2.0, (3, 2))), scale=0.5)
    seen = np.where(np.isnan(SEEN), NAN, rng.normal(size=(3, 2)))
    assert_unbiased(key, machine, seen, summed_over_hidden(machine, seen), 20)


def test_a_group_of_categorical_units_is_missing_as_a_whole(key):
    machine = with_units(Categorical())
    seen = np.array([[1.0, 0.0], [NAN, NAN], [0.0, 1.0]])
    assert_unbiased(key, machine, seen, summed_over_hidden(machine, seen))
    part = seen.copy()
    part[1, 0] = 1.0
    found = [weights(key, machine, np.broadcast_to(rows, (3, 3, 2)), 5) for rows in (seen, part)]
    assert_allclose(*found)
    known = Evidence.from_missing(machine.visible_units, jnp.asarray(part)).known
    assert known.tolist() == [[True, True], [False, False], [True, True]]


def test_of_complete_samples_there_is_nothing_to_estimate(key):
    machine = tiny_machine()
    states = all_states(machine)
    assert_allclose(weights(key, machine, states, 3), -machine.free_energy(states), rtol=1e-9)


def test_the_mean_weight_and_its_error():
    logs = np.log([[1.0, 3.0], [2.0, 2.0]]) + 1000.0
    values, errors = log_mean_weights(logs)
    assert_allclose(values, np.log(2.0) + 1000.0)
    # The standard deviation of 1 and 3 is sqrt(2): over their mean and the root of 2, one half.
    assert_allclose(errors, [0.5, 0.0], atol=1e-12)
