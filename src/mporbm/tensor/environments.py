"""Contractions of two trains, one pair of cores after the other.

What stands to the left of a pair is an *environment*, and so is what stands to the right: with both
at hand a contraction costs as much as one pair, whatever the number of cores. Hidden indices stay
open and are gathered in their order; the rest is summed over.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .arrays import Tensor

Carry = TypeVar("Carry")
Site = TypeVar("Site")
Result = TypeVar("Result")

Cores = Sequence[Tensor]
"""The cores of a train, or of a batch of trains (with an axis of samples first)."""


def fold(
    step: Callable[[Carry, Site], tuple[Carry, Result]], carry: Carry, sites: Sequence[Site]
) -> tuple[Carry, list[Result]]:
    """Take ``carry, result = step(carry, site)`` for one site after the other.

    Neighbours of the same structure, shapes and types share a loop, so that long trains compile
    like short ones.
    """
    results: list[Result] = []
    start = 0
    while start < len(sites):
        stop = start + 1
        while stop < len(sites) and _signature(sites[stop]) == _signature(sites[start]):
            stop += 1
        run = sites[start:stop]
        after = jax.eval_shape(step, carry, run[0])[0] if len(run) > 1 else None
        if after is not None and _signature(after) == _signature(carry):
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *run)
            carry, found = jax.lax.scan(step, carry, stacked)
            results += [jax.tree.map(itemgetter(k), found) for k in range(len(run))]
        else:
            for site in run:
                carry, result = step(carry, site)
                results.append(result)
        start = stop
    return carry, results


def _signature(tree: object) -> tuple[object, list[object]]:
    """The structure of a pytree, and the shapes and types of its arrays."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def next_gram(
    gram: Float[Array, "left left"], core: Float[Array, "left *modes right"]
) -> Float[Array, "right right"]:
    """The Gram matrix of a part of a train and the next core, over the bond to its right."""
    flat = core.reshape(core.shape[0], -1, core.shape[-1])
    return jnp.einsum("rq,rns,qnt->st", gram, flat, flat)


def left_grams(cores: Sequence[Float[Array, "_left _modes _right"]]) -> list[Array]:
    """For each core of an open train, the Gram matrix (R_k, R_k) of what stands to its left."""
    ones = jnp.ones((1, 1), cores[0].dtype)
    return fold(lambda gram, core: (next_gram(gram, core), gram), ones, cores)[1]


@dataclass(frozen=True)
class EnvironmentContraction:
    """A contraction of two trains, as index formulas of how a pair of cores extends environments.

    The first axes of an environment say where a ring begins (``e``, ``f``; of size 1 for an open
    train), then come its hidden indices, then the two bonds to the next pair.

    Parameters
    ----------
    to_left, to_right
        From an environment and a pair of cores to the environment of the next pair.
    between
        From the environments on both sides and the pair between them to the result.
    groups
        The first axis of each group of axes of new environments that are merged into one.
    n_row_axes
        How many axes of the result are its rows; the others are its columns.
    batched
        Whether the first train is a batch of open ones, with an axis of samples.
    """

    to_left: str
    to_right: str
    between: str
    groups: tuple[int, ...]
    n_row_axes: int
    batched: bool

    def next_left(self, environment: Tensor, first: Tensor, second: Tensor) -> Array:
        """The environment to the left of the next pair, from that of a pair."""
        return self._merge(jnp.einsum(self.to_left, environment, first, second))

    def next_right(self, environment: Tensor, first: Tensor, second: Tensor) -> Array:
        """The environment to the right of the pair before, from that of a pair."""
        return self._merge(jnp.einsum(self.to_right, environment, first, second))

    def contract_between(
        self, left: Tensor, first: Tensor, second: Tensor, right: Tensor
    ) -> Float[Array, "rows columns"]:
        """The whole contraction, from both environments of a pair."""
        result = jnp.einsum(self.between, left, first, second, right)
        return result.reshape(math.prod(result.shape[: self.n_row_axes]), -1)

    def right_environments(self, first: Cores, second: Cores) -> list[Array]:
        """The environment to the right of every pair."""
        pairs = list(zip(reversed(first), reversed(second), strict=True))
        end = self.boundary(first, second)
        return fold(lambda right, pair: (self.next_right(right, *pair), right), end, pairs)[1][::-1]

    def contract(self, first: Cores, second: Cores) -> Float[Array, "rows columns"]:
        """Contract both trains from left to right."""
        end = self.boundary(first, second)
        pairs = list(zip(first[:-1], second[:-1], strict=True))
        environment, _ = fold(lambda left, pair: (self.next_left(left, *pair), None), end, pairs)
        return self.contract_between(environment, first[-1], second[-1], end)

    def boundary(self, first: Cores, second: Cores) -> Array:
        """The environment beyond the first or the last pair: empty, but for the bond of rings."""
        dtype = jnp.result_type(first[0], second[0])
        eye = jnp.eye(second[0].shape[0], dtype=dtype)
        if self.batched:
            return jnp.broadcast_to(
                eye[None, :, None, None], (len(first[0]), len(eye), 1, 1, *eye.shape[1:])
            )
        other = jnp.eye(first[0].shape[0], dtype=dtype)
        return jnp.einsum("fp,er->fepr", other, eye)[:, :, None, None]

    def _merge(self, environment: Array) -> Array:
        """Merge neighbouring hidden indices of one train into one."""
        return environment.reshape(np.multiply.reduceat(environment.shape, self.groups))


FIELD_CONTRACTION = EnvironmentContraction(
    to_left="neasr,nsit,rijq->neajtq",
    to_right="nebtq,nsit,rijq->nejbsr",
    between="neasr,nsit,rijq,nebtq->najb",
    groups=(0, 1, 2, 4, 5),
    n_row_axes=1,
    batched=True,
)
"""A batch of MPS with an MPO, ``W^T(V_n)``: an array (n, J)."""

OVERLAP_CONTRACTION = EnvironmentContraction(
    to_left="fexapr,piyq,rijs->fexyajqs",
    to_right="fezbqs,piyq,rijs->feyzjbpr",
    between="fexapr,piyq,rijs,fezbqs->xyzajb",
    groups=(0, 1, 2, 4, 6, 7),
    n_row_axes=3,
    batched=False,
)
"""An MPO with another one, ``W'^T W``: an array (J', J)."""
