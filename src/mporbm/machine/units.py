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
from .hash_rng import hash_bits


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

    def of_values(self, values: Array) -> Array:
        """The states that values of data stand for: they themselves."""
        return values

    @abstractmethod
    def total_variance(self, mean: Array, spread: Array) -> Array:
        """The variance of units whose conditional mean has a mean and, as variance, a spread."""

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

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """``mean (1 - mean)``: of a binary unit it follows from the mean."""
        return mean * (1.0 - mean)

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
    uniform = (hash_bits(key, field.shape).astype(unlikely.dtype) + 0.5) * 2.0**-32
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

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """``variance + spread``."""
        return jnp.broadcast_to(self.variance, mean.shape) + spread


class Mixed(Gaussian):
    """A layer whose first units are Gaussian and whose others are Bernoulli, along the last axis.

    Parameters
    ----------
    n_gaussian
        How many units are Gaussian.
    variance
        One for all of them, or one per unit of the layer; that of Bernoulli units means nothing.
    """

    n_gaussian: int = eqx.field(static=True)

    def __init__(self, n_gaussian: int, variance: Any = 1.0):
        super().__init__(variance)
        self.n_gaussian = n_gaussian

    def potential(self, state: Array) -> Array:
        """As each kind has it."""
        return self._choose(super().potential(state), Bernoulli().potential(state))

    def log_partition(self, field: Array) -> Array:
        """As each kind has it."""
        return self._choose(super().log_partition(field), Bernoulli().log_partition(field))

    def mean(self, field: Array) -> Array:
        """As each kind has it."""
        return self._choose(super().mean(field), Bernoulli().mean(field))

    def sample(self, key: Array, field: Array) -> Array:
        """As each kind has it."""
        noise = jnp.sqrt(self.variance) * jax.random.normal(key, field.shape, field.dtype)
        return self._choose(super().mean(field) + noise, Bernoulli().sample(key, field))

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """As each kind has it."""
        binary = Bernoulli().total_variance(mean, spread)
        return self._choose(super().total_variance(mean, spread), binary)

    def _choose(self, gaussian: Array, bernoulli: Array) -> Array:
        is_gaussian = jnp.arange(bernoulli.shape[-1]) < self.n_gaussian
        return jnp.where(is_gaussian, gaussian, bernoulli)


class Copies(Units):
    """Each unit is the sum of some copies of a unit that all feel the same field.

    Two copies of a layer drive the other one twice as strongly as it drives them. Their energy is
    given up to the number of ways to reach a sum, which no field changes.
    """

    unit: Units
    n_copies: int = eqx.field(static=True)

    def potential(self, state: Array) -> Array:
        """That of copies that share the sum equally."""
        return self.n_copies * self.unit.potential(state / self.n_copies)

    def log_partition(self, field: Array) -> Array:
        """That of the unit, as often as there are copies."""
        return self.n_copies * self.unit.log_partition(field)

    def mean(self, field: Array) -> Array:
        """The same of its mean."""
        return self.n_copies * self.unit.mean(field)

    def sample(self, key: Array, field: Array) -> Array:
        """The sum of independent states."""
        shape = (self.n_copies, *field.shape)
        return self.unit.sample(key, jnp.broadcast_to(field, shape)).sum(axis=0)

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """Copies are independent in a field, and vary together with it."""
        common = spread / self.n_copies**2
        own = self.unit.total_variance(mean / self.n_copies, common) - common
        return self.n_copies * own + spread

    def of_values(self, values: Array) -> Array:
        """Every copy has the value."""
        return self.n_copies * values
