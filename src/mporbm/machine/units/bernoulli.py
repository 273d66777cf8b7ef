"""Binary units."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import entr
from jax.typing import DTypeLike

from ...tensor.arrays import HostTensor, Samples
from ..hash_rng import hash_bits
from .base import (
    HIDDEN_UNITS,
    SMALLEST_NOISE,
    UNITS,
    Observation,
    Units,
    log_odds,
    observed_mean,
    observed_rates,
)


@UNITS.register("bernoulli")
@HIDDEN_UNITS.register("bernoulli")
class Bernoulli(Units):
    """Units in {0, 1} with ``p(x = 1) = sigmoid(f)``."""

    @property
    def is_binary(self) -> bool:
        """Whether each unit is 0 or 1, which it is."""
        return True

    def potential(self, state: Array) -> Array:
        """No energy of its own: zeros."""
        return jnp.zeros_like(state)

    def log_partition(self, field: Array) -> Array:
        """``softplus(f)``."""
        return jax.nn.softplus(field)

    def mean(self, field: Array) -> Array:
        """``sigmoid(f)``."""
        return jax.nn.sigmoid(field)

    def sample(self, key: Array, field: Array) -> Array:
        """Zeros and ones, in the field's precision."""
        return _drawn(key, field, _unlikely(field))

    def sample_and_mean(self, key: Array, field: Array) -> tuple[Array, Array]:
        """Both from the same exponentials."""
        # XLA would compute them twice if it did not have to keep them.
        unlikely = jax.lax.optimization_barrier(_unlikely(field))  # type: ignore[no-untyped-call]
        mean = jnp.where(field > 0, 1.0 - unlikely, unlikely).astype(field.dtype)
        return _drawn(key, field, unlikely), mean

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """``mean (1 - mean)``: the variance of a binary unit follows from its mean."""
        return mean * (1.0 - mean)

    def entropy(self, mean: Array) -> Array:
        """``-m log m - (1 - m) log(1 - m)``."""
        return entr(mean) + entr(1.0 - mean)

    def base_bias(self, rows: Samples) -> HostTensor:
        """The log-odds of the base rates."""
        mean, number = observed_rates(rows)
        rate = (np.clip(mean, 0.0, 1.0) * number + 0.5) / (number + 1.0)
        return np.asarray(np.log(rate) - np.log1p(-rate))

    def observe(self, values: Array, observed: Array, noise: Array) -> Observation:
        """Units that were flipped with probability e, `noise`.

        ``p(y | v)`` as a function of v is ``exp(v (2y - 1) log((1 - e) / e))``, up to a factor.
        """
        field = jnp.where(observed, (2.0 * values - 1.0) * log_odds(noise), 0.0)
        return Observation(self, jnp.zeros((), bool), field)

    def fit_noise(
        self,
        values: Array,
        observed: Array,
        field: Array,
        extra: Array,
        scale: Array | float = 1.0,
    ) -> Array:
        """The expected share of units that were flipped."""
        flipped = values + (1.0 - 2.0 * values) * self.mean(field)
        return jnp.clip(observed_mean(flipped, observed), SMALLEST_NOISE, 0.5)

    def n_states(self, shape: tuple[int, ...]) -> int:
        """``2^n`` for n units."""
        return int(2 ** math.prod(shape))

    def states(self, numbers: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """The binary digits of each number, highest first."""
        shifts = jnp.arange(math.prod(shape) - 1, -1, -1)
        digits = (numbers[:, None] >> shifts) & 1
        return digits.astype(dtype).reshape(-1, *shape)


def _unlikely(field: Array) -> Array:
    """The probability of the less likely state, ``sigmoid(-|f|)``."""
    precise = field.astype(jnp.promote_types(field.dtype, jnp.float32))
    return jax.nn.sigmoid(-jnp.abs(precise))


def _drawn(key: Array, field: Array, unlikely: Array) -> Array:
    """The likelier state, unless a uniform number of 32 bits falls below the other's probability.

    Small probabilities keep their relative precision on both sides.
    """
    uniform = (hash_bits(key, field.shape).astype(unlikely.dtype) + 0.5) * 2.0**-32
    return ((field > 0) ^ (uniform < unlikely)).astype(field.dtype)
