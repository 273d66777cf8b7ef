"""Sums of units that feel the same field, as the doubled layers of pre-training do."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from ...tensor.arrays import HostTensor, Samples
from .base import Units


class Copies(Units):
    """Each unit is the sum of some copies of a unit that all feel the same field.

    Two copies of a layer drive the other one twice as strongly as it drives them. Their energy is
    given up to the number of ways to reach a sum, which no field changes.
    """

    unit: Units
    n_copies: int = eqx.field(static=True)

    @property
    def single(self) -> Units:
        """The units that are copied."""
        return self.unit

    def potential(self, state: Array) -> Array:
        """The energy of copies that share the sum equally."""
        return self.n_copies * self.unit.potential(state / self.n_copies)

    def log_partition(self, field: Array) -> Array:
        """The terms of the unit, as often as there are copies."""
        return self.n_copies * self.unit.log_partition(field)

    def mean(self, field: Array) -> Array:
        """The mean of the unit, as often as there are copies."""
        return self.n_copies * self.unit.mean(field)

    def sample(self, key: Array, field: Array) -> Array:
        """The sum of independent states."""
        shape = (self.n_copies, *field.shape)
        return self.unit.sample(key, jnp.broadcast_to(field, shape)).sum(axis=0)

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """The variance of copies that are independent in a field, and vary together with it."""
        common = spread / self.n_copies**2
        own = self.unit.total_variance(mean / self.n_copies, common) - common
        return self.n_copies * own + spread

    def entropy(self, mean: Array) -> Array:
        """The entropy of all copies."""
        return self.n_copies * self.unit.entropy(mean / self.n_copies)

    def base_bias(self, rows: Samples) -> HostTensor:
        """The bias of the unit: samples are values of one copy."""
        return self.unit.base_bias(rows)

    def of_values(self, values: Array) -> Array:
        """Every copy has the value."""
        return self.n_copies * values

    def zero_sum(self, array: Array, axis: int, shape: tuple[int, ...]) -> Array:
        """What the unit feels of weights or biases."""
        return self.unit.zero_sum(array, axis, shape)

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise an error if the unit cannot be that of a layer of this shape."""
        self.unit.check_shape(name, shape)

    def reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Copies":
        """The same units in a layer of another shape, in C order."""
        return Copies(self.unit.reshape(old, new), self.n_copies)

    def slice(self, start: int, stop: int) -> "Copies":
        """The units at some positions of a layer with one axis."""
        return Copies(self.unit.slice(start, stop), self.n_copies)
