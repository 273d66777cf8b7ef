"""Tensor networks as lists of named nodes with named indices.

One description serves the arithmetic (`contract`) and the picture (`mporbm.diagram`). Index names
follow the paper: ``i1..id`` row (visible) modes, ``j1..jd`` column (hidden) modes, ``r1..rd``
bonds. An index that stands on several nodes is summed over unless it is kept in the output.
"""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


class Node(eqx.Module):
    """One tensor of a network; `name` is its label in formulas, such as ``W^{(1)}``."""

    name: str = eqx.field(static=True)
    array: Float[Array, "..."]
    indices: tuple[str, ...] = eqx.field(static=True)


def index_names(letter: str, n_modes: int) -> tuple[str, ...]:
    """The names of one layer's modes: ``("i1", "i2", ...)``."""
    return tuple(f"{letter}{k}" for k in range(1, n_modes + 1))


def contract(nodes: Sequence[Node], output: Sequence[str]) -> Float[Array, "..."]:
    """Sum the product of all nodes over every index that is not in `output`."""
    number = {name: k for k, name in enumerate({i: None for node in nodes for i in node.indices})}
    numbered = tuple(tuple(number[i] for i in node.indices) for node in nodes)
    arrays = [node.array for node in nodes]
    result: Array = _einsum(arrays, numbered, tuple(number[i] for i in output))
    return result


@partial(jax.jit, static_argnums=(1, 2))
def _einsum(
    arrays: list[Array], indices: tuple[tuple[int, ...], ...], output: tuple[int, ...]
) -> Array:
    # Compiled once for each structure, whatever the names of nodes and indices.
    operands = [part for pair in zip(arrays, indices, strict=True) for part in pair]
    return jnp.einsum(*operands, output)


class Gram(eqx.Module):
    """The Gram tensor of one part of a network over the bonds that leave it.

    `array` has the axes of `indices` twice: the part times itself (or the same part of another
    network), summed over all other indices.
    """

    indices: tuple[str, ...] = eqx.field(static=True)
    array: Float[Array, "..."]


def squared_norm(nodes: Sequence[Node]) -> Float[Array, ""]:
    """``<W, W>`` of a network with open indices ``i...`` and ``j...``."""
    return contract([*nodes, *_with_own_bonds(nodes)], ())


def environment_grams(
    nodes: Sequence[Node], position: int, others: Sequence[Node] | None = None
) -> list[Gram]:
    """The Gram tensors of everything but one node, one for each part that it holds together.

    W is linear in the node's array A: ``<W, W> = <A, G A>``, where G is the product of these
    tensors. What stands to the left and to the right of a core of an open MPO falls apart when
    the core is removed, and so do the factors of a Kronecker product; a ring stays in one part.

    `others` are the nodes of another network of the same structure, whose bonds then make the
    last half of the axes: ``<W, W'> = <A, G A'>``.
    """
    others = nodes if others is None else others
    rest = [k for k in range(len(nodes)) if k != position]
    bonds_of = {k: {i for i in nodes[k].indices if not _is_open(i)} for k in rest}
    grams = []
    while rest:
        part = [rest.pop(0)]
        bonds = bonds_of[part[0]]
        while touching := [k for k in rest if bonds_of[k] & bonds]:
            part.append(touching[0])
            rest.remove(touching[0])
            bonds = bonds | bonds_of[touching[0]]
        leaving = tuple(i for i in nodes[position].indices if i in bonds)
        pair = [*(nodes[k] for k in part), *_with_own_bonds([others[k] for k in part])]
        grams.append(Gram(leaving, contract(pair, (*leaving, *(f"{i}'" for i in leaving)))))
    return grams


def _is_open(index: str) -> bool:
    """Whether an index is a row or column mode, not a bond."""
    return index[0] in "ij"


def _with_own_bonds(nodes: Sequence[Node]) -> list[Node]:
    """The same nodes on bonds of another name, so that only open indices meet."""
    renamed = [tuple(i if _is_open(i) else f"{i}'" for i in node.indices) for node in nodes]
    return [Node(node.name, node.array, i) for node, i in zip(nodes, renamed, strict=True)]
