"""Sums over samples that devices share (`mporbm.training.devices`): one message for each."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec

AXIS = "samples"
Sums = TypeVar("Sums")
Whole = TypeVar("Whole")


def sum_over_devices(
    function: Callable[..., tuple[Sums, Array]],
    prepare: Callable[[Whole], Whole],
    whole: Whole,
    *batches: Any,
) -> tuple[Sums, Array]:
    """Compute ``function(whole, *batches)``: sums over samples, and the largest of something.

    Where devices share the samples each takes its own, after it has prepared what all have, and
    what they send is as large as the sums, not as what these were computed from.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if AXIS not in mesh.axis_names:
        return function(whole, *batches)

    def own(whole: Whole, *batches: Any) -> tuple[Sums, Array]:
        sums, largest = function(prepare(whole), *batches)
        # In a place of its own, the largest is part of the same message.
        places = jnp.zeros(mesh.shape[AXIS], largest.dtype)
        places = places.at[jax.lax.axis_index(AXIS)].set(largest)
        # Every array would be a message, and a short one takes as long as a long one.
        message, read = ravel_pytree((sums, places))
        total, every = read(jax.lax.psum(message, AXIS))  # type: ignore[no-untyped-call]
        return total, every.max()

    along = [PartitionSpec(AXIS)] * len(batches)  # type: ignore[no-untyped-call]
    everywhere = PartitionSpec()  # type: ignore[no-untyped-call]
    shared: Any = jax.shard_map(
        own, in_specs=(everywhere, *along), out_specs=everywhere, check_vma=False
    )
    answer: tuple[Sums, Array] = shared(whole, *batches)
    return answer
