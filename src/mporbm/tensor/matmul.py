"""Products of a network W with batches, along a plan of the least cost, and their gradients.

Neighbouring nodes are merged into groups, once for all products with the same W. Groups on a line
are the cores of an open MPO, whatever the network was (`MergedMPO`): one group is the dense matrix,
two are the train cut at one bond, and no merging is the train itself. A product with a batch goes
along the groups from one end to the other.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, PyTree

from .network import Node, contract, index_names

N_USES = 4
"""Products between two changes of W, while learning: up, down, up and a gradient."""
MANY_USES = 200
"""Products of a W that does not change, as while sampling."""
BYTES_PER_NUMBER = 4
"""The size of a number in single precision."""
TRAFFIC = 8
"""The time to read or write a number, in floating-point operations of a large matrix product."""
MEMORY_LIMIT = 2**30
"""The most bytes of a merged group and of what it makes of a batch, if it can be helped."""
TALL = 16
"""From this ratio of its sides on a gradient is computed as its transpose."""

Structure = tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
"""The indices and the shape of each node."""


class Plan(NamedTuple):
    """How to multiply a network W of nodes 0..n-1 with batches."""

    groups: tuple[int, ...]
    """The first node of each group, and of the one that would follow the last."""
    transposed: bool
    """Whether rows of W are contracted from the last group to the first, not from the first."""
    n_operations: int
    """Floating-point operations of a product with a batch."""
    n_moved: int
    """Numbers that it reads and writes."""
    n_merging: int
    """Operations of merging."""
    n_bytes: int
    """Memory for all groups and the largest result of one, in single precision."""

    @property
    def n_groups(self) -> int:
        """How many matrix products a product with a batch takes."""
        return len(self.groups) - 1

    def __str__(self) -> str:
        ways = {1: "dense matrix", 2: f"cut after factor {self.groups[1]}"}
        way = ways.get(self.n_groups, f"{self.n_groups} groups of factors")
        number = str(self.n_operations)
        for unit, name in ((10**3, "thousand"), (10**6, "million"), (10**9, "billion")):
            if self.n_operations >= unit:
                number = f"{self.n_operations / unit:.3g} {name}"
        return f"{way}, {number} operations a product"


def make_plan(nodes: Sequence[Node], n_rows: int, n_uses: int = N_USES) -> Plan:
    """The plan of the least cost for batches of `n_rows`, `n_uses` times for each W."""
    return _make_plan(_structure(nodes), n_rows, n_uses)


def _structure(nodes: Sequence[Node]) -> Structure:
    return tuple((node.indices, node.array.shape) for node in nodes)


class _Stage(NamedTuple):
    """One matrix product: `n_batch` times (n_in, n_out)^T by (n_in, n_beside)."""

    n_batch: int
    n_in: int
    n_out: int
    n_beside: int

    @property
    def n_operations(self) -> int:
        return 2 * self.n_batch * self.n_in * self.n_out * self.n_beside

    @property
    def n_results(self) -> int:
        return self.n_batch * self.n_out * self.n_beside

    @property
    def n_moved(self) -> int:
        """The number of entries that are read and written, copied ones included."""
        entries = (self.n_in + self.n_out) * self.n_beside
        copied = 0
        if one_by_one_is_cheaper(self.n_in, self.n_out, self.n_beside):
            copied = self.n_in * self.n_out
        elif self.n_beside > 1:
            copied = 2 * entries
        return self.n_in * self.n_out + self.n_batch * (entries + copied)


@lru_cache(maxsize=1024)
def _make_plan(structure: Structure, n_rows: int, n_uses: int) -> Plan:
    _check_order(structure)
    n_nodes = len(structure)
    size = {i: n for indices, shape in structure for i, n in zip(indices, shape, strict=True)}
    cuts = [cut_bonds(structure, k) for k in range(n_nodes + 1)]
    bonds = [math.prod(size[i] for i in cut) for cut in cuts]
    rows, columns = (
        [math.prod(size[i] for i in indices if i[0] == letter) for indices, _ in structure]
        for letter in "ij"
    )
    # An index over two bonds, as of a ring or of CP, must not pass a group by.
    is_line = not any(set(a) & set(b) for a, b in pairwise(cuts))

    def stage(a: int, b: int, transposed: bool) -> _Stage:
        """The product with the group of nodes a..b-1."""
        taken, given = (columns, rows) if transposed else (rows, columns)
        return _Stage(
            n_rows * math.prod(given[:a]),
            bonds[a] * math.prod(taken[a:b]),
            math.prod(given[a:b]) * bonds[b],
            math.prod(taken[b:]),
        )

    def cost(a: int, b: int, transposed: bool) -> int:
        """The cost of merging nodes a..b-1, of its reverse for gradients, and of all products."""
        step = stage(a, b, transposed)
        product = step.n_operations + TRAFFIC * step.n_moved
        merged = step.n_in * step.n_out if b - a > 1 else 0
        n_bytes = BYTES_PER_NUMBER * (merged + step.n_results)
        # Too large a group is taken only where there is no other way.
        penalty = n_bytes << 64 if n_bytes > MEMORY_LIMIT else 0
        return n_uses * product + 2 * merging_operations(structure, a, b) + penalty

    def cheapest(transposed: bool) -> tuple[int, tuple[int, ...]]:
        """The groups of the least cost, as a shortest path from the first node to the last."""
        best: list[tuple[int, tuple[int, ...]]] = [(0, (0,))]
        for b in range(1, n_nodes + 1):
            starts = range(b) if is_line or b == n_nodes else range(1)
            best.append(
                min((best[a][0] + cost(a, b, transposed), (*best[a][1], b)) for a in starts)
            )
        return best[-1]

    (_, groups), transposed = min(
        (cheapest(transposed), transposed) for transposed in (False, True)
    )
    stages = [stage(a, b, transposed) for a, b in pairwise(groups)]
    n_merged = sum(step.n_in * step.n_out for step in stages)
    return Plan(
        groups,
        transposed,
        sum(step.n_operations for step in stages),
        sum(step.n_moved for step in stages),
        sum(merging_operations(structure, a, b) for a, b in pairwise(groups)),
        BYTES_PER_NUMBER * (n_merged + max(step.n_results for step in stages)),
    )


def _check_order(structure: Structure) -> None:
    for letter in "ij":
        modes = [i for indices, _ in structure for i in indices if i[0] == letter]
        if modes != [*index_names(letter, len(modes))]:
            raise ValueError(
                f"nodes: expected the modes {letter}1, {letter}2, ... in order, got {modes}."
            )


def cut_bonds(structure: Structure, cut: int) -> tuple[str, ...]:
    """The indices that nodes on both sides of a cut have, in the order of the left ones."""
    right = {i for indices, _ in structure[cut:] for i in indices}
    left = dict.fromkeys(i for indices, _ in structure[:cut] for i in indices)
    return tuple(i for i in left if i in right)


def merging_operations(structure: Structure, a: int, b: int) -> int:
    """Operations to merge nodes a..b-1, one after the other."""
    size = {i: n for indices, shape in structure for i, n in zip(indices, shape, strict=True)}
    total, merged = 0, set(structure[a][0])
    for k in range(a + 1, b):
        merged |= set(structure[k][0])
        total += 2 * math.prod(size[i] for i in merged)
        # What nobody else has was summed over.
        others = {i for indices, _ in (*structure[:a], *structure[k + 1 :]) for i in indices}
        merged = {i for i in merged if i[0] in "ij" or i in others}
    return total


def one_by_one_is_cheaper(n_in: int, n_out: int, n_beside: int) -> bool:
    """Whether to multiply the matrices (n_in, n_beside) of a batch one by one, where they lie.

    This is best if the matrix (n_in, n_out) is smaller than what it is multiplied with and what
    results; else all are multiplied at once, for which they have to be transposed.
    """
    return n_beside > 1 and n_in * n_out <= (n_in + n_out) * n_beside


# Products


class MatmulForm(eqx.Module):
    """A matrix W in some form that multiplies batches.

    Both contractions return what `gradient` needs of them besides, in a form of its own.
    """

    @abstractmethod
    def contract_rows(
        self, batch: Float[Array, "n rows"]
    ) -> tuple[Float[Array, "n columns"], PyTree[Array]]:
        """``W^T x`` for each x of a batch, and what `gradient` needs of it."""

    @abstractmethod
    def contract_columns(
        self, batch: Float[Array, "n columns"]
    ) -> tuple[Float[Array, "n rows"], PyTree[Array]]:
        """``W y`` for each y of a batch, and what `gradient` needs of it."""

    @abstractmethod
    def gradient(self, rows: PyTree[Array], columns: PyTree[Array]) -> Self:
        """The derivative of ``sum_n <x_n, W y_n>``, from both contractions."""


class MergedMPO(MatmulForm):
    """A matrix W as the open MPO that is cheapest to multiply: the merged nodes of a network.

    A batch of rows goes from core to core as a tensor (n, columns so far, bond, rows left) in C
    order, a batch of columns the other way in the same form: what is contracted next always lies
    together, so that modes are never permuted.

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
        structure = _structure(nodes)
        cores, sizes = [], []
        for a, b in pairwise(plan.groups):
            left, right = cut_bonds(structure, a), cut_bonds(structure, b)
            open_indices = [i for node in nodes[a:b] for i in node.indices]
            rows, columns = ([i for i in open_indices if i[0] == letter] for letter in "ij")
            if plan.transposed:
                rows, columns = columns, rows
            merged = contract(nodes[a:b], (*left, *rows, *columns, *right))
            axes = iter(merged.shape)
            n_left, n_rows, n_columns, n_right = (
                math.prod(next(axes) for _ in group) for group in (left, rows, columns, right)
            )
            cores.append(merged.reshape(n_left * n_rows, n_columns * n_right))
            sizes.append((n_rows, n_columns))
        return cls(tuple(cores), tuple(sizes), plan.transposed)

    def contract_rows(
        self, batch: Float[Array, "n rows"]
    ) -> tuple[Float[Array, "n columns"], list[Array]]:
        """``W^T x`` for each x of a batch, and the states between cores."""
        states = self._states(batch, backward=self.transposed)
        return states[-1], states

    def contract_columns(
        self, batch: Float[Array, "n columns"]
    ) -> tuple[Float[Array, "n rows"], list[Array]]:
        """``W y`` for each y of a batch, and the states between cores."""
        states = self._states(batch, backward=not self.transposed)
        return states[-1], states

    def gradient(self, rows: list[Array], columns: list[Array]) -> Self:
        """The derivative of ``sum_n <x_n, W y_n>`` for each core, from both contractions.

        A core takes the rows from one side and the columns from the other.
        """
        forward, backward = (columns, rows) if self.transposed else (rows, columns)
        sides = zip(forward[:-1], backward[-2::-1], strict=True)
        cores = tuple(
            _outer(
                before.reshape(n_batch, core.shape[0], n_beside),
                after.reshape(n_batch, core.shape[1], n_beside),
            )
            for (core, n_batch, n_beside), (before, after) in zip(
                self._steps(len(rows[0])), sides, strict=True
            )
        )
        return type(self)(cores, self.sizes, self.transposed)

    def _states(self, batch: Array, backward: bool) -> list[Array]:
        """The states of a batch before the first core, between cores, and after the last."""
        states = [batch]
        for core, n_batch, n_beside in self._steps(len(batch))[:: -1 if backward else 1]:
            state = states[-1].reshape(n_batch, core.shape[backward], n_beside)
            states.append(_multiply(core, state, backward))
        size = math.prod(sizes[not backward] for sizes in self.sizes)
        states[-1] = states[-1].reshape(len(batch), size)
        return states

    def _steps(self, n: int) -> list[tuple[Array, int, int]]:
        """The cores with the numbers of entries before and after the indices that each takes."""
        rows, columns = zip(*self.sizes, strict=True)
        return [
            (core, n * math.prod(columns[:k]), math.prod(rows[k + 1 :]))
            for k, core in enumerate(self.cores)
        ]


def flatten_batch(
    batch: Float[Array, "..."], n_modes: int
) -> tuple[tuple[int, ...], Float[Array, "n entries"]]:
    """The leading axes of a batch of tensors, and the batch as a matrix with a tensor per row."""
    leading, shape = batch.shape[: batch.ndim - n_modes], batch.shape[batch.ndim - n_modes :]
    return leading, batch.reshape(math.prod(leading), math.prod(shape))


def _multiply(
    matrix: Float[Array, "n_in n_out"], batch: Float[Array, "n _taken beside"], transposed: bool
) -> Float[Array, "n _given beside"]:
    """Multiply the middle axis of a batch by a matrix or its transpose, without transposing it."""
    if batch.shape[-1] == 1:
        return (batch[..., 0] @ (matrix.T if transposed else matrix))[..., None]
    n_in, n_out = matrix.shape
    if one_by_one_is_cheaper(n_in, n_out, batch.shape[-1]):
        # XLA would transpose the whole batch if it were not told to take one after the other.
        each = jnp.broadcast_to(matrix, (len(batch), *matrix.shape))
        return lax.dot_general(each, batch, (((1 + transposed,), (1,)), ((0,), (0,))))
    return jnp.einsum("io,nob->nib" if transposed else "io,nib->nob", matrix, batch)


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
