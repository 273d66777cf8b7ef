"""Training on several devices, of one process or of many: who holds what.

The samples of every batch, and chains, are shared out over all devices; parameters are the same
everywhere. XLA adds up gradients where they meet. A random bit depends on its place in the whole
batch, not on who draws it (`mporbm.machine.hash_rng`), so that the number of devices changes
nothing but the order of sums.

`compiled` makes the program that devices run, by the library that multiplies its matrices fastest.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.errors import JaxRuntimeError
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..learning import LearningState
from ..learning.gradient import SAMPLE_AXIS
from ..learning.negative_phases import REPLICATED, NegativePhase
from ..tensor.arrays import AnyArray

SMALL = 2**17
"""Entries of W up to which Eigen multiplies a batch faster than YNNPACK, XLA's own choice.

Measured for batches of 100: 784x100 takes 0.8 of the time, 784x500 takes 1.1 of it.
"""
EIGEN = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"}
"""YNNPACK may fuse reductions, but no products."""

T = TypeVar("T")
Tree = TypeVar("Tree")
Number = TypeVar("Number", bool, int, float)


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

    def at_work(self) -> AbstractContextManager[object]:
        """Within this context programs know of the team (`mporbm.learning.gradient`)."""
        return jax.sharding.use_abstract_mesh(self.mesh.abstract_mesh)

    def share(self, batch_size: int) -> slice:
        """The samples of a batch that this process reads."""
        width = batch_size // jax.process_count()
        return slice(jax.process_index() * width, (jax.process_index() + 1) * width)

    def everywhere(self, tree: Tree) -> Tree:
        """Arrays and keys that all processes have alike, on all devices."""
        placed: Tree = jax.tree.map(self._put, tree)
        return placed

    def batches(self, tree: Tree) -> Tree:
        """Arrays (n_batches, this process's share of a batch, ...) as those of whole batches."""
        placed: Tree = jax.tree.map(lambda array: self._put(array, None, SAMPLE_AXIS), tree)
        return placed

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

    def gathered(self, tree: Tree) -> Tree:
        """The whole arrays of a tree, in the memory of every process."""
        whole: Tree = jax.tree.map(_gathered, tree)
        return whole

    def _shardings(self, phase: NegativePhase, state: LearningState) -> LearningState:
        def along(axis: int) -> NamedSharding:
            return (
                self._sharding()
                if axis == REPLICATED
                else self._sharding(*[None] * axis, SAMPLE_AXIS)
            )

        same: LearningState = jax.tree.map(lambda _: along(REPLICATED), state)
        chains = jax.tree.map(along, phase.chain_axes(state.chains))
        return LearningState(same.machine, same.velocity, same.former, chains, same.centre)

    def _put(self, value: AnyArray | np.generic, *axes: str | None) -> Array:
        if isinstance(value, Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            data = self._put(jax.random.key_data(value), *axes)
            key: Array = jax.random.wrap_key_data(data, impl=jax.random.key_impl(value))
            return key
        placed: Array = jax.make_array_from_process_local_data(  # type: ignore[no-untyped-call]
            self._sharding(*axes), np.asarray(value)
        )
        return placed

    def _sharding(self, *axes: str | None) -> NamedSharding:
        return NamedSharding(self.mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def broadcast_from_first(value: Number) -> Number:
    """What the first process says of a number, so that no two go different ways."""
    if jax.process_count() == 1:
        return value
    # As bytes: JAX would round numbers of double precision.
    data = np.frombuffer(np.float64(value).tobytes(), np.uint8)
    said = np.asarray(multihost_utils.broadcast_one_to_all(data))
    return type(value)(np.frombuffer(said.tobytes(), np.float64)[0])


def process_rank() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    return jax.process_index(), jax.process_count()


def common_range(smallest: float, largest: float) -> tuple[float, float]:
    """The smallest and the largest of the numbers that the processes have."""
    if jax.process_count() == 1:
        return smallest, largest
    ends = multihost_utils.process_allgather(np.array([smallest, -largest])).min(axis=0)
    return float(ends[0]), -float(ends[1])


def _gathered(array: Array) -> Array:
    here = array.is_fully_addressable or array.is_fully_replicated
    whole = array if here else multihost_utils.process_allgather(array, tiled=True)
    local: Array = jax.device_put(np.asarray(whole))
    return local


def compiled(function: Callable[..., T], n_entries: int) -> Callable[..., T]:
    """A function as a program for products with a W of so many entries."""
    return _compiled(function, n_entries <= SMALL and _known())


@cache
def _compiled(function: Callable[..., T], by_eigen: bool) -> Callable[..., T]:
    options = EIGEN if by_eigen else {}
    program: Callable[..., T] = eqx.filter_jit(  # type: ignore[call-overload]
        function, compiler_options=options
    )
    return program


@cache
def _known() -> bool:
    """Whether this XLA computes on a CPU and knows the option, which may go as it came."""
    if jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda: 0, compiler_options=EIGEN).lower().compile()
    except JaxRuntimeError:
        return False
    return True
