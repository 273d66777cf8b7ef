"""Products of a matrix in network form with batches, along a plan, and their gradients.

A batch of rows goes from group to group as a tensor (n, columns so far, bond, rows left) in C
order, a batch of columns the other way in the same form: what is contracted next always lies
together, so that modes are never permuted. A core that is small beside its batch multiplies each
tensor of it where it lies; for a large one the batch is transposed, which its cost counts.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float

from .network import Node, contract, index_names
from .plan import Plan, cut_bonds, one_by_one_is_cheaper

TALL = 16
"""From this ratio of its sides on a gradient is computed as its transpose."""


Saved = Any
"""The arrays that a contraction saves for `MatmulForm.gradient`; their form is the form's own."""


class MatmulForm(eqx.Module):
    """A matrix W in some form that multiplies batches."""

    @abstractmethod
    def contract_rows(
        self, batch: Float[Array, "n rows"]
    ) -> tuple[Float[Array, "n columns"], Saved]:
        """``W^T x`` for each x of a batch, and what `gradient` needs of it."""

    @abstractmethod
    def contract_columns(
        self, batch: Float[Array, "n columns"]
    ) -> tuple[Float[Array, "n rows"], Saved]:
        """``W y`` for each y of a batch, and what `gradient` needs of it."""

    @abstractmethod
    def gradient(self, rows: Saved, columns: Saved) -> Self:
        """The derivative of ``sum_n <x_n, W y_n>``, from both contractions."""


class MergedMPO(MatmulForm):
    """A matrix W as the open MPO that is cheapest to multiply: the merged nodes of a network.

    Parameters
    ----------
    cores
        The cores of an open MPO equal to W (or to its transpose, if so planned), each as a matrix
        (bond and rows, columns and bond).
    sizes
        The numbers of rows and columns of each core.
    transposed
        Whether the MPO is the transpose of W.
    """

    cores: tuple[Float[Array, "_left_rows _columns_right"], ...]
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    transposed: bool = eqx.field(static=True)

    @classmethod
    def from_nodes(cls, nodes: Sequence[Node], plan: Plan) -> Self:
        """Merge a network with row indices ``i...`` and column indices ``j...`` as planned."""
        structure = tuple((node.indices, node.array.shape) for node in nodes)
        for letter in "ij":
            modes = [i for indices, _ in structure for i in indices if i[0] == letter]
            if modes != [*index_names(letter, len(modes))]:
                raise ValueError(
                    f"nodes: expected the modes {letter}1, {letter}2, ... in order, got {modes}."
                )
        cores, sizes = [], []
        for a, b in pairwise(plan.groups):
            left, right = cut_bonds(structure, a), cut_bonds(structure, b)
            open_indices = [i for node in nodes[a:b] for i in node.indices]
            rows, columns = ([i for i in open_indices if i[0] == letter] for letter in "ij")
            if plan.transposed:
                rows, columns = columns, rows
            output = (*left, *rows, *columns, *right)
            merged = contract(nodes[a:b], output)
            shape = dict(zip(output, merged.shape, strict=True))
            n_rows, n_columns = (math.prod(shape[i] for i in group) for group in (rows, columns))
            n_left, n_right = (math.prod(shape[i] for i in group) for group in (left, right))
            cores.append(merged.reshape(n_left * n_rows, n_columns * n_right))
            sizes.append((n_rows, n_columns))
        return cls(tuple(cores), tuple(sizes), plan.transposed)

    def contract_rows(
        self, batch: Float[Array, "n rows"]
    ) -> tuple[Float[Array, "n columns"], list[Array]]:
        """``W^T x`` for each x of a batch, and the states between cores."""
        states = (self._backward if self.transposed else self._forward)(batch)
        return states[0 if self.transposed else -1], states

    def contract_columns(
        self, batch: Float[Array, "n columns"]
    ) -> tuple[Float[Array, "n rows"], list[Array]]:
        """``W y`` for each y of a batch, and the states between cores."""
        states = (self._forward if self.transposed else self._backward)(batch)
        return states[-1 if self.transposed else 0], states

    def gradient(self, rows: list[Array], columns: list[Array]) -> Self:
        """The derivative of ``sum_n <x_n, W y_n>`` for each core, from both contractions.

        A core takes the rows from one side and the columns from the other.
        """
        forward, backward = (columns, rows) if self.transposed else (rows, columns)
        cores = tuple(
            _outer(
                before.reshape(n_batch, core.shape[0], n_beside),
                after.reshape(n_batch, core.shape[1], n_beside),
            )
            for core, before, after, (n_batch, n_beside) in zip(
                self.cores, forward[:-1], backward[1:], self._batches(len(rows[0])), strict=True
            )
        )
        return type(self)(cores, self.sizes, self.transposed)

    def _forward(self, batch: Array) -> list[Array]:
        """The states of a batch before the first core, between cores, and after the last."""
        states = [batch]
        for core, (n_batch, n_beside) in zip(self.cores, self._batches(len(batch)), strict=True):
            state = states[-1].reshape(n_batch, core.shape[0], n_beside)
            states.append(_multiply(core, state))
        states[-1] = states[-1].reshape(len(batch), math.prod(size for _, size in self.sizes))
        return states

    def _backward(self, batch: Array) -> list[Array]:
        """The states, in the order of `_forward`, of a batch that enters after the last core."""
        states = [batch]
        batches = self._batches(len(batch))
        for core, (n_batch, n_beside) in zip(self.cores[::-1], batches[::-1], strict=True):
            state = states[-1].reshape(n_batch, core.shape[1], n_beside)
            states.append(_multiply_transposed(core, state))
        states[-1] = states[-1].reshape(len(batch), math.prod(size for size, _ in self.sizes))
        return states[::-1]

    def _batches(self, n: int) -> list[tuple[int, int]]:
        """The numbers of entries before and after the indices that each core takes."""
        rows, columns = zip(*self.sizes, strict=True)
        return [
            (n * math.prod(columns[:k]), math.prod(rows[k + 1 :])) for k in range(len(self.cores))
        ]


def flatten_batch(
    batch: Float[Array, "..."], n_modes: int
) -> tuple[tuple[int, ...], Float[Array, "n entries"]]:
    """The leading axes of a batch of tensors, and the batch as a matrix with a tensor per row."""
    leading, shape = batch.shape[: batch.ndim - n_modes], batch.shape[batch.ndim - n_modes :]
    return leading, batch.reshape(math.prod(leading), math.prod(shape))


def _multiply(
    matrix: Float[Array, "n_in n_out"], batch: Float[Array, "n n_in beside"]
) -> Float[Array, "n n_out beside"]:
    """Multiply the middle axis of a batch by a matrix."""
    n_in, n_out = matrix.shape
    if batch.shape[-1] == 1:
        return (batch[..., 0] @ matrix)[..., None]
    if one_by_one_is_cheaper(n_in, n_out, batch.shape[-1]):
        # XLA would transpose the whole batch if it were not told to take one after the other.
        each = jnp.broadcast_to(matrix, (len(batch), *matrix.shape))
        return lax.dot_general(each, batch, (((1,), (1,)), ((0,), (0,))))
    return jnp.einsum("io,nib->nob", matrix, batch)


def _multiply_transposed(
    matrix: Float[Array, "n_in n_out"], batch: Float[Array, "n n_out beside"]
) -> Float[Array, "n n_in beside"]:
    """Multiply the middle axis of a batch by a transposed matrix, without transposing it."""
    n_in, n_out = matrix.shape
    if batch.shape[-1] == 1:
        return (batch[..., 0] @ matrix.T)[..., None]
    if one_by_one_is_cheaper(n_in, n_out, batch.shape[-1]):
        each = jnp.broadcast_to(matrix, (len(batch), *matrix.shape))
        return lax.dot_general(each, batch, (((2,), (1,)), ((0,), (0,))))
    return jnp.einsum("io,nob->nib", matrix, batch)


def _outer(
    before: Float[Array, "n n_in beside"], after: Float[Array, "n n_out beside"]
) -> Float[Array, "n_in n_out"]:
    """Sum the outer products of the middle axes over all the other ones."""
    if before.shape[-1] == 1:
        if before.shape[1] > TALL * after.shape[1]:
            # Eigen gives a wide result twice as fast as a tall one, and XLA would turn it back.
            wide: Array = lax.optimization_barrier(  # type: ignore[no-untyped-call]
                after[..., 0].T @ before[..., 0]
            )
            return wide.T
        return before[..., 0].T @ after[..., 0]
    if one_by_one_is_cheaper(before.shape[1], after.shape[1], before.shape[-1]):
        return lax.dot_general(before, after, (((2,), (2,)), ((0,), (0,)))).sum(axis=0)
    return jnp.einsum("nib,nob->io", before, after)
