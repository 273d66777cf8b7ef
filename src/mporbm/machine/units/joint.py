"""Layers of one axis whose parts are of different kinds."""

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from ...tensor.arrays import HostTensor, Samples
from ..hash_rng import hash_split
from .base import Observation, Units


class JointUnits(Units):
    """Units that stand one part after the other along the last axis, the only one of the layer.

    The data are the first part, if only some of the units are data.

    Parameters
    ----------
    parts
        The kind of each part.
    sizes
        The number of units of each part.
    """

    parts: tuple[Units, ...]
    sizes: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, parts: Sequence[Units], sizes: Sequence[int]) -> Units:
        """The units of all parts; neighbours that are binary are one part, a single part alone."""
        merged: list[tuple[Units, int]] = []
        for part, size in zip(parts, sizes, strict=True):
            if merged and part.is_binary and merged[-1][0].is_binary:
                merged[-1] = part, merged[-1][1] + size
            else:
                merged.append((part, size))
        return merged[0][0] if len(merged) == 1 else cls(*zip(*merged, strict=True))

    @property
    def is_binary(self) -> bool:
        """Whether all parts are."""
        return all(part.is_binary for part in self.parts)

    def potential(self, state: Array) -> Array:
        """The energies that each part has."""
        return self._each("potential", state)

    def log_partition(self, field: Array) -> Array:
        """The terms of each part."""
        return self._each("log_partition", field)

    def mean(self, field: Array) -> Array:
        """The means of each part."""
        return self._each("mean", field)

    def sample(self, key: Array, field: Array) -> Array:
        """Random states of each part, by a key of its own."""
        keys, fields = hash_split(key, len(self.parts)), self._split(field)
        return _join([p.sample(k, f) for p, k, f in zip(self.parts, keys, fields, strict=True)])

    def sample_and_mean(self, key: Array, field: Array) -> tuple[Array, Array]:
        """Draw states, and compute means, of each part by the keys of `sample`."""
        every = zip(self.parts, hash_split(key, len(self.parts)), self._split(field), strict=True)
        samples, means = zip(*(p.sample_and_mean(k, f) for p, k, f in every), strict=True)
        return _join(samples), _join(means)

    def of_values(self, values: Array) -> Array:
        """The states that the values of each part stand for."""
        return self._each("of_values", values)

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """The variances of each part."""
        return self._each("total_variance", mean, jnp.broadcast_to(spread, mean.shape))

    def entropy(self, mean: Array) -> Array:
        """The terms of each part."""
        return self._each("entropy", mean)

    def log_density(self, state: Array, field: Array) -> Array:
        """The terms of each part."""
        return self._each("log_density", state, field)

    def joined(self, mask: Array) -> Array:
        """The mask that each part makes of its own."""
        return self._each("joined", mask)

    def base_bias(self, rows: Samples) -> HostTensor:
        """The biases of each part."""
        columns = [rows[..., a:b] for a, b in self._bounds()]
        pairs = zip(self.parts, columns, strict=True)
        return np.concatenate([part.base_bias(some) for part, some in pairs], axis=-1)

    def observe(self, values: Array, observed: Array, noise: Array) -> Observation:
        """The first part, the data, with noise; other parts are seen as they are."""
        (first, *_), (value, *_), (seen, *others) = (
            self.parts,
            self._split(values),
            self._split(jnp.broadcast_to(observed, values.shape)),
        )
        data = first.observe(value, seen, noise)
        return Observation(
            JointUnits((data.units, *self.parts[1:]), self.sizes),
            _join([jnp.broadcast_to(data.known, value.shape), *others]),
            _join([data.field, *(jnp.zeros(other.shape, data.field.dtype) for other in others)]),
        )

    def fit_noise(
        self,
        values: Array,
        observed: Array,
        field: Array,
        extra: Array,
        scale: Array | float = 1.0,
    ) -> Array:
        """The noise of the first part."""
        whole = values, jnp.broadcast_to(observed, values.shape), field, extra
        values, observed, field, extra = (self._split(array)[0] for array in whole)
        return self.parts[0].fit_noise(values, observed, field, extra, scale)

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise an error unless the layer has one axis, as long as all parts together."""
        if shape != (sum(self.sizes),):
            raise ValueError(
                f"{name}: expected parts of {shape} units in all, got sizes {self.sizes}."
            )
        for k, (part, size) in enumerate(zip(self.parts, self.sizes, strict=True)):
            part.check_shape(f"{name}.parts[{k}]", (size,))

    def slice(self, start: int, stop: int) -> Units:
        """The units at some positions."""
        found = [
            (part.slice(max(start, a) - a, min(stop, b) - a), min(stop, b) - max(start, a))
            for part, (a, b) in zip(self.parts, self._bounds(), strict=True)
            if max(start, a) < min(stop, b)
        ]
        return JointUnits.of(*zip(*found, strict=True))

    def n_states(self, shape: tuple[int, ...]) -> int | None:
        """The product over the parts, if the states of all can be listed."""
        counts = [part.n_states((n,)) for part, n in zip(self.parts, self.sizes, strict=True)]
        return reduce(lambda m, n: None if m is None or n is None else m * n, counts)

    def states(self, numbers: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
        """All states of the last part for each state of those before it."""
        found: list[Array] = []
        for part, size in zip(reversed(self.parts), reversed(self.sizes), strict=True):
            count = part.n_states((size,))
            assert count is not None
            found.insert(0, part.states(numbers % count, (size,), dtype))
            numbers = numbers // count
        return _join(found)

    def _bounds(self) -> list[tuple[int, int]]:
        """Where each part begins and ends."""
        return list(pairwise(accumulate(self.sizes, initial=0)))

    def _split(self, array: Array) -> list[Array]:
        return [array[..., a:b] for a, b in self._bounds()]

    def _each(self, method: str, *arrays: Array) -> Array:
        """What a method of each part makes of its share of some arrays."""
        shares = zip(*map(self._split, arrays), strict=True)
        pairs = zip(self.parts, shares, strict=True)
        return _join([getattr(part, method)(*share) for part, share in pairs])


def _join(arrays: Sequence[Array]) -> Array:
    return jnp.concatenate(arrays, axis=-1)
