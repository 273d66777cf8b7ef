"""Categorical units (Potts): of each group of units exactly one is on."""

import math

import equinox as eqx
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
    observed_rates,
)


@UNITS.register("categorical")
@HIDDEN_UNITS.register("categorical")
class Categorical(Units):
    """Groups of K units along the last axis, one-hot: ``p(x_k = 1) = softmax(f)_k``.

    A group is observed as a whole or not at all.

    Parameters
    ----------
    n_categories
        The number K; by default the whole last axis is one group.
    """

    n_categories: int | None = eqx.field(static=True, default=None)

    def potential(self, state: Array) -> Array:
        """No energy of its own: zeros."""
        return jnp.zeros_like(state)

    def log_partition(self, field: Array) -> Array:
        """``log sum_k exp(f_k)``, one term for each group."""
        return jax.nn.logsumexp(self._groups(field), axis=-1)

    def mean(self, field: Array) -> Array:
        """``softmax(f)``."""
        return jax.nn.softmax(self._groups(field), axis=-1).reshape(field.shape)

    def sample(self, key: Array, field: Array) -> Array:
        """One-hot states, in the field's precision.

        The largest field after Gumbel noise, as `jax.random.categorical` does, by cheaper bits.
        """
        precise = field.astype(jnp.promote_types(field.dtype, jnp.float32))
        uniform = (hash_bits(key, field.shape).astype(precise.dtype) + 0.5) * 2.0**-32
        # In single precision a number may be rounded to 1, whose noise would be infinite.
        uniform = jnp.minimum(uniform, 1.0 - np.finfo(precise.dtype).epsneg)
        noisy = self._groups(precise - jnp.log(-jnp.log(uniform)))
        return _one_hot(jnp.argmax(noisy, axis=-1), noisy.shape[-1], field.dtype, field.shape)

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """``mean (1 - mean)`` of each of the K units, which is 0 or 1."""
        return mean * (1.0 - mean)

    def entropy(self, mean: Array) -> Array:
        """``-m_k log m_k``."""
        return entr(mean)

    def base_bias(self, rows: Samples) -> HostTensor:
        """The logarithms of the frequencies."""
        mean, number = observed_rates(rows)
        rate = np.clip(mean, 0.0, 1.0)
        count = (rate * number + 0.5).reshape(-1, self._size(rate.shape))
        frequency = count / count.sum(axis=1, keepdims=True)
        return np.asarray(np.log(frequency).reshape(rate.shape))

    def log_density(self, state: Array, field: Array) -> Array:
        """``<x, f> - log sum_k exp(f_k)``, one term for each group."""
        return self._groups(state * field).sum(axis=-1) - self.log_partition(field)

    def joined(self, mask: Array) -> Array:
        """A mask of whole groups: those in which it is True for any unit."""
        groups = self._groups(mask)
        whole = groups.any(axis=-1, keepdims=True)
        return jnp.broadcast_to(whole, groups.shape).reshape(mask.shape)

    def zero_sum(self, array: Array, axis: int, shape: tuple[int, ...]) -> Array:
        """An array less its mean over each group: exactly one unit of a group is on.

        What is the same for all units of a group therefore adds the same to every energy.
        """
        last = jnp.moveaxis(array, axis, -1)
        groups = last.reshape(*last.shape[:-1], -1, self._size(shape))
        rest = groups - groups.mean(axis=-1, keepdims=True)
        return jnp.moveaxis(rest.reshape(last.shape), -1, axis)

    def observe(self, values: Array, observed: Array, noise: Array) -> Observation:
        """Groups whose state became, with probability `noise`, any of the others."""
        n_others = max(self._size(values.shape) - 1, 1)
        field = jnp.where(observed, values * log_odds(noise, n_others), 0.0)
        return Observation(self, jnp.zeros((), bool), field)

    def fit_noise(
        self,
        values: Array,
        observed: Array,
        field: Array,
        extra: Array,
        scale: Array | float = 1.0,
    ) -> Array:
        """The expected share of groups whose state was another one."""
        k = self._size(values.shape)
        changed = jnp.where(observed, values * (1.0 - self.mean(field)), 0.0).sum()
        rate = changed * k / jnp.maximum(observed.sum(), 1)
        return jnp.clip(rate, SMALLEST_NOISE, max(1.0 - 1.0 / k, 0.5))

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise an error unless the last axis holds whole groups."""
        if shape[-1] % self._size(shape):
            raise ValueError(
                f"{name}: expected a last axis of groups of {self.n_categories} units, got a layer "
                f"of shape {shape}."
            )

    def reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Categorical":
        """The same units in a layer of another shape, whose last axis holds whole groups."""
        size = self._size(old)
        units = Categorical(None if new[-1] == size else size)
        units.check_shape("units", new)
        return units

    def n_states(self, shape: tuple[int, ...]) -> int:
        """``K^g`` for g groups."""
        k = self._size(shape)
        return int(k ** (math.prod(shape) // k))

    def states(self, numbers: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """The digits to the base K of each number, highest first, one-hot."""
        k = self._size(shape)
        places = k ** np.arange(math.prod(shape) // k - 1, -1, -1)
        digits = numbers[:, None] // jnp.asarray(places, numbers.dtype) % k
        return _one_hot(digits, k, dtype, (len(numbers), *shape))

    def _size(self, shape: tuple[int, ...]) -> int:
        """The number of units of a group."""
        return self.n_categories or shape[-1]

    def _groups(self, array: Array) -> Array:
        """An array with an axis for groups and an axis within groups in place of the last one."""
        return array.reshape(*array.shape[:-1], -1, self._size(array.shape))


def _one_hot(chosen: Array, n_categories: int, dtype: DTypeLike, shape: tuple[int, ...]) -> Array:
    states: Array = jax.nn.one_hot(chosen, n_categories, dtype=dtype)
    return states.reshape(shape)
