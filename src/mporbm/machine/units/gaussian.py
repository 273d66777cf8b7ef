"""Real units."""

from collections.abc import Mapping
from typing import Self, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ...tensor.arrays import HostTensor, Samples
from ...tensor.check import check_array
from .base import (
    HIDDEN_UNITS,
    SMALLEST_NOISE,
    UNITS,
    Observation,
    Units,
    observed_mean,
    observed_rates,
)


@UNITS.register("gaussian")
@HIDDEN_UNITS.register("gaussian")
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

    def __init__(self, variance: ArrayLike = 1.0, learnable: bool = False):
        value = check_array("variance", variance)
        if not isinstance(value, jax.core.Tracer) and not bool(np.all(np.asarray(value) > 0)):
            raise ValueError(
                f"variance: expected numbers above 0, got a smallest one of {value.min()}."
            )
        if not isinstance(learnable, bool):
            raise TypeError(f"learnable={learnable!r}: expected True or False.")
        self.log_variance = jnp.log(value)
        self.learnable = learnable

    def file_arrays(self) -> dict[str, Array]:
        """List the logarithm of the variance."""
        return {"log_variance": self.log_variance}

    @classmethod
    def from_file_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Build units of the variance in a file."""
        # What is too large is found infinite and refused, without a warning.
        log_variance = arrays["log_variance"]
        with np.errstate(over="ignore"):
            units = cls(np.exp(log_variance))
        # Through the exponential it would not be quite the same.
        return units._with(jnp.asarray(log_variance, units.log_variance.dtype))

    @property
    def variance(self) -> Array:
        """The variance of a unit in any field."""
        variance = jnp.exp(self.log_variance)
        return variance if self.learnable else jax.lax.stop_gradient(variance)

    @property
    def rest_variance(self) -> float:
        """The mean variance of all units."""
        return float(np.mean(np.exp(np.asarray(self.log_variance, np.float64))))

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

    def entropy(self, mean: Array) -> Array:
        """``log(2 pi e variance) / 2``."""
        terms = 0.5 * (1.0 + jnp.log(2.0 * jnp.pi * self.variance))
        return jnp.broadcast_to(terms, mean.shape)

    def base_bias(self, rows: Samples) -> HostTensor:
        """The mean of the samples over the variance."""
        return np.asarray(observed_rates(rows)[0] / np.asarray(self.variance))

    def observe(self, values: Array, observed: Array, noise: Array) -> Observation:
        """Values with normal noise of standard deviation s, `noise`.

        ``exp(-(y - v)^2 / (2 s^2))`` is the field ``y / s^2`` and, as its quadratic part, a smaller
        variance of the units.
        """
        precision = jnp.where(observed, 1.0 / noise**2, 0.0).astype(values.dtype)
        log_variance = -jnp.log(1.0 / self.variance + precision)
        return Observation(self._with(log_variance), jnp.zeros((), bool), values * precision)

    def fit_noise(
        self,
        values: Array,
        observed: Array,
        field: Array,
        extra: Array,
        scale: Array | float = 1.0,
    ) -> Array:
        """The root of what is left of ``(y - E[V | H])^2`` without the variance of the units.

        Given H, values have the variance ``variance + noise^2``; V in place of its mean would tie
        the noise to what it was.
        """
        rest = (values - self.mean(field - extra)) ** 2 - self.variance
        level = observed_mean(scale**2 * rest, observed)
        return jnp.sqrt(jnp.maximum(level, SMALLEST_NOISE**2))

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise an error unless the variance is a number, or one for each unit."""
        if self.log_variance.shape not in ((), shape):
            raise ValueError(
                f"{name}: expected a variance of shape () or {shape}, got "
                f"{self.log_variance.shape}."
            )

    def reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Gaussian":
        """The same units in a layer of another shape, in C order."""
        return self._with(self.log_variance.reshape(new)) if self.log_variance.ndim else self

    def slice(self, start: int, stop: int) -> "Gaussian":
        """The units at some positions of a layer with one axis."""
        return self._with(self.log_variance[start:stop]) if self.log_variance.ndim else self

    def _with(self, log_variance: Array) -> Self:
        return cast("Self", eqx.tree_at(lambda u: u.log_variance, self, log_variance))
