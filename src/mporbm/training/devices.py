"""Training on several devices, of one process or of many: who holds what.

The samples of every batch, and chains, are shared out over all devices; parameters are the same
everywhere. XLA adds up gradients where they meet. A random bit depends on its place in the whole
batch, not on who draws it (`mporbm.machine.hash_rng`), so that the number of devices changes
nothing but the order of sums.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from ..learning import LearningState
from ..learning.gradient import SAMPLE_AXIS
from ..learning.negative_phases import REPLICATED, NegativePhase


@dataclass(frozen=True)
class Team:
    """Devices that train together, each with as many samples of a batch."""

    mesh: Mesh

    @classmethod
    def of(cls, batch_size: int) -> "Team | None":
        """All devices of all processes; None if there is only one to train on."""
        devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
        if jax.process_count() == 1:
            # Nobody has asked for the others: as many as share a batch equally.
            n_used = max(n for n in range(1, len(devices) + 1) if batch_size % n == 0)
            return cls(Mesh(np.array(devices[:n_used]), (SAMPLE_AXIS,))) if n_used > 1 else None
        if batch_size % len(devices):
            raise ValueError(
                f"batch_size={batch_size}: expected a multiple of {len(devices)}, the number of "
                f"devices of all processes, which share every batch equally."
            )
        return cls(Mesh(np.array(devices), (SAMPLE_AXIS,)))

    def at_work(self) -> AbstractContextManager[Any]:
        """Within this context programs know of the team (`mporbm.learning.gradient`)."""
        return jax.sharding.use_abstract_mesh(self.mesh.abstract_mesh)

    def share(self, batch_size: int) -> slice:
        """The samples of a batch that this process reads."""
        width = batch_size // jax.process_count()
        return slice(jax.process_index() * width, (jax.process_index() + 1) * width)

    def everywhere(self, tree: Any) -> Any:
        """Arrays and keys that all processes have alike, on all devices."""
        return jax.tree.map(lambda array: self._put(array), tree)

    def batches(self, tree: Any) -> Any:
        """Arrays (n_batches, this process's share of a batch, ...) as those of whole batches."""
        return jax.tree.map(lambda array: self._put(array, None, SAMPLE_AXIS), tree)

    def spread(self, phase: NegativePhase, state: LearningState) -> LearningState:
        """The first process's state of learning: parameters everywhere, chains shared out."""
        if jax.process_count() > 1:
            state = multihost_utils.broadcast_one_to_all(state)
        placed: LearningState = jax.tree.map(
            lambda array, sharding: jax.make_array_from_callback(
                array.shape, sharding, np.asarray(array).__getitem__
            ),
            *(state, self._shardings(phase, state)),
        )
        return placed

    def constrain_sharding(self, phase: NegativePhase, state: LearningState) -> LearningState:
        """The same state, within a program: told to stay where it is."""
        kept: LearningState = jax.tree.map(
            jax.lax.with_sharding_constraint, state, self._shardings(phase, state)
        )
        return kept

    def gathered(self, tree: Any) -> Any:
        """The whole arrays of a tree, in the memory of every process."""
        return jax.tree.map(_gathered, tree)

    def _shardings(self, phase: NegativePhase, state: LearningState) -> LearningState:
        def along(axis: int) -> NamedSharding:
            return (
                self._sharding()
                if axis == REPLICATED
                else self._sharding(*[None] * axis, SAMPLE_AXIS)
            )

        same: LearningState = jax.tree.map(lambda _: along(REPLICATED), state)
        chains = jax.tree.map(along, phase.chain_axes(state.chains))
        return LearningState(same.machine, same.velocity, same.former, chains)

    def _put(self, value: Any, *axes: str | None) -> Any:
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            data = self._put(jax.random.key_data(value), *axes)
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
        return jax.make_array_from_process_local_data(  # type: ignore[no-untyped-call]
            self._sharding(*axes), np.asarray(value)
        )

    def _sharding(self, *axes: str | None) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


Number = TypeVar("Number", bool, int, float)


def broadcast_from_first(value: Number) -> Number:
    """What the first process says of a number, so that no two go different ways."""
    if jax.process_count() == 1:
        return value
    # As bytes: JAX would round numbers of double precision.
    data = np.frombuffer(np.float64(value).tobytes(), np.uint8)
    said: NDArray[Any] = multihost_utils.broadcast_one_to_all(data)
    return type(value)(np.frombuffer(np.asarray(said).tobytes(), np.float64)[0])


def process_rank() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    return jax.process_index(), jax.process_count()


def common_range(smallest: float, largest: float) -> tuple[float, float]:
    """The smallest and the largest of the numbers that the processes have."""
    if jax.process_count() == 1:
        return smallest, largest
    ends = multihost_utils.process_allgather(np.array([smallest, -largest])).min(axis=0)
    return float(ends[0]), -float(ends[1])


def largest(value: int) -> int:
    """The largest of the numbers that the processes have."""
    if jax.process_count() == 1:
        return value
    return int(multihost_utils.process_allgather(np.asarray(value)).max())


def _gathered(array: Array) -> Array:
    if array.is_fully_addressable or array.is_fully_replicated:
        whole = np.asarray(array)
    else:
        whole = multihost_utils.process_allgather(array, tiled=True)
    local: Array = jax.device_put(whole)
    return local
