"""What every kind of units says about itself.

A unit x in a field f has the unnormalised log-density ``x f - potential(x)``, whatever its kind. A
layer is an array; the last axes of fields and states are those of the layer, the others a batch.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ...registry import Registry
from ...tensor.arrays import HostTensor, Samples

SMALLEST_NOISE = 1e-4
"""The least noise that `Units.fit_noise` finds."""


class Units(eqx.Module):
    """The kind of the units of one layer.

    Units are independent of each other in a field, alone or in groups along the last axis.
    """

    @property
    def is_binary(self) -> bool:
        """Whether each unit is 0 or 1, whatever the others are."""
        return False

    @property
    def rest_variance(self) -> float:
        """About the variance of a unit that feels nothing: a quarter, that of a binary one."""
        return 0.25

    @property
    def single(self) -> "Units":
        """One copy of the units; see `Copies`."""
        return self

    @abstractmethod
    def potential(self, state: Array) -> Array:
        """The energy that a unit has by itself, elementwise."""

    @abstractmethod
    def log_partition(self, field: Array) -> Array:
        """Terms of ``log sum_x exp(x f - potential(x))``, the sum being over states of the layer.

        The layer's value is the sum of the terms: one for each unit, or one for a group of units,
        whose axis then has size 1.
        """

    @abstractmethod
    def mean(self, field: Array) -> Array:
        """The mean state of each unit in a field."""

    @abstractmethod
    def sample(self, key: Array, field: Array) -> Array:
        """Random states in a field."""

    @abstractmethod
    def total_variance(self, mean: Array, spread: Array) -> Array:
        """The variance of units whose conditional mean has a mean and, as variance, a spread."""

    @abstractmethod
    def entropy(self, mean: Array) -> Array:
        """Terms of the entropy of a layer with given means, one for each unit."""

    @abstractmethod
    def base_bias(self, rows: Samples) -> HostTensor:
        """The bias of independent units whose means are those of samples `rows`.

        Half a sample of each state keeps the biases of states that never occur finite. NaN are
        missing values: means are over what was observed.
        """

    def sample_and_mean(self, key: Array, field: Array) -> tuple[Array, Array]:
        """`sample` and `mean` of the same field."""
        return self.sample(key, field), self.mean(field)

    def of_values(self, values: Array) -> Array:
        """The states that values of data stand for: the values themselves."""
        return values

    def log_density(self, state: Array, field: Array) -> Array:
        """Terms of the normalised conditional log-density ``log p(x | f)`` of a layer."""
        return state * field - self.potential(state) - self.log_partition(field)

    def joined(self, mask: Array) -> Array:
        """A mask of units that is True wherever it is for a unit that is observed together."""
        return mask

    def zero_sum(self, array: Array, axis: int, shape: tuple[int, ...]) -> Array:
        """What units feel of weights or biases, which lie along an axis; here all there is.

        `shape` is that of the layer. The axis stands for the last mode of the layer, or for that
        merged with modes before it.
        """
        return array

    # Model files

    def file_arrays(self) -> dict[str, Array]:
        """List the parameters of these units by the names that files have for them."""
        return {}

    @classmethod
    def from_file_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Build units from what `file_arrays` listed."""
        return cls()

    # Noise on what is observed

    def observe(self, values: Array, observed: Array, noise: Array) -> "Observation":
        """What values that were observed with some noise tell about the units."""
        raise NotImplementedError(f"{type(self).__name__} units have no model of noise.")

    def fit_noise(
        self,
        values: Array,
        observed: Array,
        field: Array,
        extra: Array,
        scale: Array | float = 1.0,
    ) -> Array:
        """The noise that explains observed values best, if the units felt a field.

        `extra` is the part of the field that is due to the observation, with the noise so far. The
        noise of real values is the same for all units where these are multiplied by a scale.
        """
        raise NotImplementedError(f"{type(self).__name__} units have no model of noise.")

    # Shapes

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise an error if the units cannot be those of a layer of this shape."""

    def reshape(self, old: tuple[int, ...], new: tuple[int, ...]) -> "Units":
        """The same units in a layer of another shape, in C order."""
        return self

    def slice(self, start: int, stop: int) -> "Units":
        """The units at some positions of a layer with one axis."""
        return self

    # Lists of all states

    def n_states(self, shape: tuple[int, ...]) -> int | None:
        """The number of states of a layer; None if they cannot be listed."""
        return None

    def states(self, numbers: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """The states of a layer with some of the numbers 0, 1, .. `n_states` - 1."""
        raise NotImplementedError(f"The states of {type(self).__name__} units cannot be listed.")


UNITS: Registry[Units] = Registry()
"""The kinds that data may have, by name; each can be made without arguments."""
HIDDEN_UNITS: Registry[Units] = Registry()
"""The kinds that a hidden layer may have, by name; each can be made without arguments."""


class Observation(NamedTuple):
    """What is known about a layer after its units were observed."""

    units: Units
    """The units, which may be of other parameters than before."""
    known: Array
    """Whether the value of a unit is known exactly."""
    field: Array
    """What the others feel in addition."""


def observed_rates(rows: Samples) -> tuple[HostTensor, int | np.ndarray]:
    """The mean of each unit over the samples in which it is not NaN, and the number of these.

    The mean of a unit that was never observed is 0.
    """
    mean = rows.mean(axis=0, dtype=np.float64)
    if not np.isnan(mean).any():
        return mean, len(rows)
    n_observed = np.asarray((~np.isnan(rows)).sum(axis=0))
    return np.nansum(rows, axis=0, dtype=np.float64) / np.maximum(n_observed, 1), n_observed


def observed_mean(values: Array, observed: Array) -> Array:
    """The mean of values over what was observed; 0 if nothing was."""
    return jnp.where(observed, values, 0.0).sum() / jnp.maximum(observed.sum(), 1)


def log_odds(noise: Array, n_others: int = 1) -> Array:
    """How much likelier a state is that stayed than one of the others that noise made of it."""
    return jnp.log1p(-noise) - jnp.log(noise) + jnp.log(jnp.asarray(n_others, noise.dtype))
