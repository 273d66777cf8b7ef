"""Automatic learning rates: their formula, on data whose variance is known."""

import numpy as np
import pytest

from mporbm.learning import automatic_rates
from mporbm.learning.rates import BIAS_RATE

N_UNITS = 400
DARK_AND_BRIGHT = np.repeat(np.array([[0.0], [1.0]]), N_UNITS, axis=1)
"""Two samples: along their difference the variance is a quarter of the number of units."""
VARIANCE = N_UNITS / 4.0


@pytest.mark.parametrize(
    ("n_updates", "growth"), [(None, 0.06), (10**6, 0.06), (100, 0.4), (10, 0.5), (0, 0.5)]
)
def test_weights_grow_by_as_much_as_the_number_of_updates_asks_for(n_updates, growth):
    rates = automatic_rates(DARK_AND_BRIGHT, n_updates)
    np.testing.assert_allclose(rates.coupling, 4.0 * growth / VARIANCE, rtol=1e-5)
    np.testing.assert_allclose(rates.bias, BIAS_RATE)


def test_a_rate_is_at_most_one():
    assert automatic_rates(DARK_AND_BRIGHT[:, :1], 10).coupling == 1.0


def test_large_values_divide_the_rate_by_their_mean_square():
    rates = automatic_rates(10.0 * DARK_AND_BRIGHT)
    np.testing.assert_allclose(rates.coupling, 4.0 * 0.06 / (100.0 * VARIANCE) / 50.0, rtol=1e-5)
