"""Automatic learning rates: their formula, on data whose variance is known."""

import numpy as np
import pytest

from mporbm.learning import automatic_rates
from mporbm.learning.rates import BIAS_RATE, automatic_epochs, centred_rates, largest_variance
from mporbm.tensor import MPSBatch
from strategies import tiny_machine

DARK_AND_BRIGHT = np.array([[0.0] * 400 + [1.0] * 400, [1.0] * 800])
"""Two samples: along their difference the variance is a quarter of the units that differ."""
VARIANCE = 400 / 4.0


@pytest.mark.parametrize(
    ("n_updates", "growth"), [(None, 0.06), (10**6, 0.06), (100, 0.4), (10, 0.5), (0, 0.5)]
)
def test_weights_grow_by_as_much_as_the_number_of_updates_asks_for(n_updates, growth):
    rates = automatic_rates(DARK_AND_BRIGHT, n_updates)
    np.testing.assert_allclose(rates.coupling, 4.0 * growth / VARIANCE, rtol=1e-5)
    np.testing.assert_allclose(rates.bias, BIAS_RATE)


@pytest.mark.parametrize(("n_updates", "growth"), [(None, 0.06), (100, 0.4)])
def test_centred_steps_are_as_long_as_the_hidden_layer_is_large(n_updates, growth):
    """The weights of a hidden unit move by 0.085, in the root mean square, in a long training."""
    machine = tiny_machine()
    n_hidden = machine.hidden_bias.size
    rates = centred_rates(machine, n_updates)
    np.testing.assert_allclose(rates.coupling, 0.085 * growth / 0.06 * np.sqrt(n_hidden))
    assert rates.bias == rates.coupling


def test_a_rate_is_at_most_one():
    assert automatic_rates(DARK_AND_BRIGHT[:, :1], 10).coupling == 1.0


def test_large_values_divide_the_rate_by_their_mean_square():
    rates = automatic_rates(10.0 * DARK_AND_BRIGHT)
    np.testing.assert_allclose(rates.coupling, 4.0 * 0.06 / (100.0 * VARIANCE) / 75.0, rtol=1e-5)


def test_the_variance_of_trains_is_that_of_their_tensors(rng):
    tensors = rng.normal(1.0, 2.0, (7, 3, 2, 4))
    expected = np.linalg.eigvalsh(np.cov(tensors.reshape(7, -1).T, bias=True))[-1]
    np.testing.assert_allclose(largest_variance(tensors), expected, rtol=1e-5)
    trains = MPSBatch.from_tensors(tensors)
    np.testing.assert_allclose(largest_variance(trains), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("n_batches", "expected"), [(None, 10), (600, 10), (200, 10), (100, 20), (5, 400), (1, 400)]
)
def test_automatic_epochs(n_batches, expected):
    assert automatic_epochs(n_batches) == expected
