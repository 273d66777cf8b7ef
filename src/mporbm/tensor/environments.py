"""Contractions of two trains along the chain, one pair of cores after the other.

What stands to the left of a pair is an *environment*, and so is what stands to the right: with both
at hand a contraction costs as much as one pair, whatever the number of cores. Hidden indices stay
open and are gathered in their order; the rest is summed over.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Cores = Sequence[Any]


def fold(
    step: Callable[[Any, Any], tuple[Any, Any]], carry: Any, sites: Sequence[Any]
) -> tuple[Any, list[Any]]:
    """``carry, result = step(carry, site)`` for one site after the other.

    Neighbours that look the same share a loop, so that long chains compile like short ones.
    """
    results: list[Any] = []
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


def _signature(tree: Any) -> Any:
    """The structure, shapes and types of a pytree."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def next_gram(gram: Array, core: Array) -> Array:
    """The Gram matrix of a part of a train and the next core (R, ..., S), over the bond S."""
    flat = core.reshape(core.shape[0], -1, core.shape[-1])
    return jnp.einsum("rq,rns,qnt->st", gram, flat, flat)


def left_grams(cores: Cores) -> list[Array]:
    """For each core of an open train, the Gram matrix (R_k, R_k) of what stands to its left."""
    ones = jnp.ones((1, 1), cores[0].dtype)
    return fold(lambda gram, core: (next_gram(gram, core), gram), ones, cores)[1]


@dataclass(frozen=True)
class EnvironmentContraction:
    """How a pair of cores extends environments, as index formulas.

    The first axes of an environment say where a ring begins (``e``, ``f``; of size 1 for an open
    train), then come its hidden indices, then the two bonds to the next pair.
    """

    to_left: str
    to_right: str
    between: str
    hidden: tuple[int, ...]
    """How many axes come before the hidden ones, and between them."""

    def next_left(self, environment: Any, first: Any, second: Any) -> Array:
        """The environment of the next pair to the right."""
        return self._merged(jnp.einsum(self.to_left, environment, first, second))

    def next_right(self, environment: Any, first: Any, second: Any) -> Array:
        """The environment of the next pair to the left."""
        return self._merged(jnp.einsum(self.to_right, environment, first, second))

    def contract_between(self, left: Any, first: Any, second: Any, right: Any) -> Array:
        """The whole, from both environments of a pair."""
        result = jnp.einsum(self.between, left, first, second, right)
        if self is FIELD_CONTRACTION:
            return result.reshape(len(result), -1)
        rows = math.prod(result.shape[:3])
        return result.reshape(rows, -1)

    def right_environments(self, first: Cores, second: Cores) -> list[Array]:
        """The environment to the right of every pair."""
        pairs = list(zip(reversed(first), reversed(second), strict=True))
        end = self.boundary(first, second)
        return fold(lambda right, pair: (self.next_right(right, *pair), right), end, pairs)[1][::-1]

    def contract(self, first: Cores, second: Cores) -> Array:
        """Both trains contracted from left to right."""
        end = self.boundary(first, second)
        pairs = list(zip(first[:-1], second[:-1], strict=True))
        environment, _ = fold(lambda left, pair: (self.next_left(left, *pair), None), end, pairs)
        return self.contract_between(environment, first[-1], second[-1], end)

    def boundary(self, first: Cores, second: Cores) -> Array:
        """The environment beyond the first or the last pair: nothing, but for the bond of rings."""
        dtype = jnp.result_type(first[0], second[0])
        eye = jnp.eye(second[0].shape[0], dtype=dtype)
        if self is FIELD_CONTRACTION:
            return jnp.broadcast_to(
                eye[None, :, None, None], (len(first[0]), len(eye), 1, 1, *eye.shape[1:])
            )
        other = jnp.eye(first[0].shape[0], dtype=dtype)
        return jnp.einsum("fp,er->fepr", other, eye)[:, :, None, None]

    def _merged(self, environment: Array) -> Array:
        """Neighbouring hidden indices of one train as one."""
        shape: list[int] = []
        for axis, size in enumerate(environment.shape):
            if axis in self.hidden:
                shape[-1] *= size
            else:
                shape.append(size)
        return environment.reshape(shape)


FIELD_CONTRACTION = EnvironmentContraction(
    to_left="neasr,nsit,rijq->neajtq",
    to_right="nebtq,nsit,rijq->nejbsr",
    between="neasr,nsit,rijq,nebtq->najb",
    hidden=(3,),
)
"""A batch of MPS with an MPO, ``W^T(V_n)``: an array (n, J)."""

OVERLAP_CONTRACTION = EnvironmentContraction(
    to_left="fexapr,piyq,rijs->fexyajqs",
    to_right="fezbqs,piyq,rijs->feyzjbpr",
    between="fexapr,piyq,rijs,fezbqs->xyzajb",
    hidden=(3, 5),
)
"""An MPO with another one, ``W'^T W``: an array (J', J)."""
