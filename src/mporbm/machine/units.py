"""Kinds of units: what one unit does with the field it feels.

A unit x in a field f has the unnormalised log-density ``x f - potential(x)``, whatever its kind.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..tensor.check import check_array
from .bits import random_bits


class Units(eqx.Module):
    """One layer's kind of units."""

    @abstractmethod
    def potential(self, state: Array) -> Array:
        """The energy a unit has by itself, elementwise."""

    @abstractmethod
    def log_partition(self, field: Array) -> Array:
        """``log sum_x exp(x f - potential(x))`` over all states of a unit, elementwise."""

    @abstractmethod
    def mean(self, field: Array) -> Array:
        """The mean state of a unit in a field, elementwise."""

    @abstractmethod
    def sample(self, key: Array, field: Array) -> Array:
        """Independent random states in a field."""

    def sample_and_mean(self, key: Array, field: Array) -> tuple[Array, Array]:
        """`sample` and `mean` of the same field."""
        return self.sample(key, field), self.mean(field)

    def log_density(self, state: Array, field: Array) -> Array:
        """The normalised conditional log-density ``log p(x | f)``, elementwise."""
        return state * field - self.potential(state) - self.log_partition(field)


class Bernoulli(Units):
    """Units in {0, 1} with ``p(x = 1) = sigmoid(f)``."""

    def potential(self, state: Array) -> Array:
        """Zero."""
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


def _unlikely(field: Array) -> Array:
    """The probability of the less likely state, ``sigmoid(-|f|)``."""
    precise = field.astype(jnp.promote_types(field.dtype, jnp.float32))
    return jax.nn.sigmoid(-jnp.abs(precise))


def _drawn(key: Array, field: Array, unlikely: Array) -> Array:
    """The likelier state, unless a uniform number of 32 bits falls below the other's probability.

    Small probabilities keep their relative precision on both sides.
    """
    uniform = (random_bits(key, field.shape).astype(unlikely.dtype) + 0.5) * 2.0**-32
    return ((field > 0) ^ (uniform < unlikely)).astype(field.dtype)


class Gaussian(Units):
    """Real units with ``potential(x) = x^2 / (2 variance)``: normal with mean ``variance * f``.

    Parameters
    ----------
    variance
        One for all units, or one per unit of the layer.
    learnable
        Whether gradients reach the variance; a fixed one gets zeros.
    """

    log_variance: Array
    learnable: bool = eqx.field(static=True)

    def __init__(self, variance: Any = 1.0, learnable: bool = False):
        value = check_array("variance", variance)
        if not isinstance(value, jax.core.Tracer) and not bool(np.all(np.asarray(value) > 0)):
            raise ValueError(
                f"variance: expected numbers above 0, got a smallest one of {value.min()}."
            )
        if not isinstance(learnable, bool):
            raise TypeError(f"learnable={learnable!r}: expected True or False.")
        self.log_variance = jnp.log(value)
        self.learnable = learnable

    @property
    def variance(self) -> Array:
        """The variance of a unit in any field."""
        variance = jnp.exp(self.log_variance)
        return variance if self.learnable else jax.lax.stop_gradient(variance)

    def potential(self, state: Array) -> Array:
        """``x^2 / (2 variance)``."""
        return state * (state / (2.0 * self.variance))

    def log_partition(self, field: Array) -> Array:
        """``variance f^2 / 2 + log(2 pi variance) / 2``."""
        return 0.5 * (self.variance * field**2 + jnp.log(2.0 * jnp.pi * self.variance))

    def mean(self, field: Array) -> Array:
        """``variance * f``."""
        return self.variance * field

    def sample(self, key: Array, field: Array) -> Array:
        """Normal states around the mean."""
        noise = jax.random.normal(key, field.shape, field.dtype)
        return self.mean(field) + jnp.sqrt(self.variance) * noise
