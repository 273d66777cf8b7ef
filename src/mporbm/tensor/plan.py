"""Plans: how a network is multiplied with batches at the least cost.

Neighbouring nodes are merged into groups, once for all products with the same W. Groups on a line
are the cores of an open MPO, whatever the network was: one group is the dense matrix, two are the
train cut at one bond, and no merging is the train itself. A product with a batch then goes along
the groups from one end to the other (`mporbm.tensor.matmul`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from .network import Node

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

Structure = tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]
"""The indices and the shape of each node."""


@dataclass(frozen=True)
class Plan:
    """How to multiply a network W of nodes 0..n-1 with batches.

    Parameters
    ----------
    groups
        The first node of each group, and of the one that would follow the last.
    transposed
        Whether rows of W are contracted from the last group to the first, not from the first.
    n_operations
        Floating-point operations of a product with a batch.
    n_moved
        Numbers that it reads and writes.
    n_merging
        Operations of merging.
    n_bytes
        Memory for all groups, and for what the largest of them makes of a batch, in single
        precision.
    """

    groups: tuple[int, ...]
    transposed: bool
    n_operations: int
    n_moved: int
    n_merging: int
    n_bytes: int

    @property
    def n_groups(self) -> int:
        """How many matrix products a product with a batch takes."""
        return len(self.groups) - 1

    def __str__(self) -> str:
        if self.n_groups == 1:
            way = "dense matrix"
        elif self.n_groups == 2:
            way = f"cut after factor {self.groups[1]}"
        else:
            way = f"{self.n_groups} groups of factors"
        return f"{way}, {_in_words(self.n_operations)} operations a product"


def make_plan(nodes: Sequence[Node], n_rows: int, n_uses: int = N_USES) -> Plan:
    """The plan of the least cost for batches of `n_rows`, `n_uses` times for each W."""
    structure = tuple((node.indices, node.array.shape) for node in nodes)
    return _make_plan(structure, n_rows, n_uses)


@lru_cache(maxsize=1024)
def _make_plan(structure: Structure, n_rows: int, n_uses: int) -> Plan:
    line = _Line(structure)
    (_, groups), transposed = min(
        (line.path(n_rows, n_uses, transposed), transposed) for transposed in (False, True)
    )
    stages = [line.stage(a, b, n_rows, transposed) for a, b in pairwise(groups)]
    n_merged = sum(s.n_in * s.n_out for s in stages)
    return Plan(
        groups,
        transposed,
        sum(stage.n_operations for stage in stages),
        sum(stage.n_moved for stage in stages),
        sum(line.merging(a, b) for a, b in pairwise(groups)),
        BYTES_PER_NUMBER * (n_merged + max(s.n_results for s in stages)),
    )


def cut_bonds(structure: Structure, cut: int) -> tuple[str, ...]:
    """The indices that nodes on both sides of a cut have, in the order of the left ones."""
    right = {i for indices, _ in structure[cut:] for i in indices}
    left = dict.fromkeys(i for indices, _ in structure[:cut] for i in indices)
    return tuple(i for i in left if i in right)


@dataclass(frozen=True)
class Stage:
    """One matrix product: `n_batch` times (n_in, n_out)^T by (n_in, n_beside)."""

    n_batch: int
    n_in: int
    n_out: int
    n_beside: int

    @property
    def n_operations(self) -> int:
        """The number of additions and multiplications."""
        return 2 * self.n_batch * self.n_in * self.n_out * self.n_beside

    @property
    def n_results(self) -> int:
        """The number of entries of the result."""
        return self.n_batch * self.n_out * self.n_beside

    @property
    def one_by_one(self) -> bool:
        """Whether each of the batch is multiplied by itself, without transposing the batch."""
        return one_by_one_is_cheaper(self.n_in, self.n_out, self.n_beside)

    @property
    def n_moved(self) -> int:
        """The number of entries that are read and written."""
        entries = (self.n_in + self.n_out) * self.n_beside
        copied = 0
        if self.n_beside > 1:
            copied = self.n_in * self.n_out if self.one_by_one else 2 * entries
        return self.n_in * self.n_out + self.n_batch * (entries + copied)

    @property
    def cost(self) -> int:
        """The time of a product in operations, reading and writing of all numbers included."""
        return self.n_operations + TRAFFIC * self.n_moved


def one_by_one_is_cheaper(n_in: int, n_out: int, n_beside: int) -> bool:
    """Whether to multiply the matrices (n_in, n_beside) of a batch one by one, where they lie.

    This is best if the matrix (n_in, n_out) is smaller than what it is multiplied with and what
    results; else all are multiplied at once, for which they have to be transposed.
    """
    return n_beside > 1 and n_in * n_out <= (n_in + n_out) * n_beside


class _Line:
    """The sizes of a network's nodes and bonds."""

    def __init__(self, structure: Structure):
        n_nodes = len(structure)
        size = {i: n for indices, shape in structure for i, n in zip(indices, shape, strict=True)}
        cuts = [cut_bonds(structure, k) for k in range(n_nodes + 1)]
        self.n_nodes, self.size = n_nodes, size
        self.indices = [indices for indices, _ in structure]
        self.bond = [math.prod(size[i] for i in cut) for cut in cuts]
        self.rows, self.columns = (
            [math.prod(size[i] for i in indices if i[0] == letter) for indices, _ in structure]
            for letter in "ij"
        )
        # An index over two bonds, as of a ring or of CP, must not pass a group by.
        self.is_line = not any(set(a) & set(b) for a, b in pairwise(cuts))

    def stage(self, a: int, b: int, n_rows: int, transposed: bool) -> Stage:
        """The product with the group of nodes a..b-1."""
        rows, columns = (self.columns, self.rows) if transposed else (self.rows, self.columns)
        return Stage(
            n_rows * math.prod(columns[:a]),
            self.bond[a] * math.prod(rows[a:b]),
            math.prod(columns[a:b]) * self.bond[b],
            math.prod(rows[b:]),
        )

    def merging(self, a: int, b: int) -> int:
        """Operations to merge nodes a..b-1, one after the other."""
        total, merged = 0, set(self.indices[a])
        for k in range(a + 1, b):
            merged |= set(self.indices[k])
            total += 2 * math.prod(self.size[i] for i in merged)
            # What nobody else has was summed over.
            others = {i for m in (*range(a), *range(k + 1, self.n_nodes)) for i in self.indices[m]}
            merged = {i for i in merged if i[0] in "ij" or i in others}
        return total

    def cost(self, a: int, b: int, n_rows: int, n_uses: int, transposed: bool) -> int:
        """The cost of merging nodes a..b-1, of its reverse for gradients, and of all products."""
        stage = self.stage(a, b, n_rows, transposed)
        merged = stage.n_in * stage.n_out if b - a > 1 else 0
        n_bytes = BYTES_PER_NUMBER * (merged + stage.n_results)
        cost = n_uses * stage.cost + 2 * self.merging(a, b)
        # Too large a group is taken only where there is no other way.
        return cost + (n_bytes << 64 if n_bytes > MEMORY_LIMIT else 0)

    def path(self, n_rows: int, n_uses: int, transposed: bool) -> tuple[int, tuple[int, ...]]:
        """The groups of the least cost, as a shortest path from the first node to the last."""
        best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, (0,))}
        for b in range(1, self.n_nodes + 1):
            found = []
            for a in range(b):
                if a not in best or not (self.is_line or a == 0 or b == self.n_nodes):
                    continue
                before, groups = best[a]
                cost = self.cost(a, b, n_rows, n_uses, transposed)
                found.append((before + cost, (*groups, b)))
            best[b] = min(found)
        return best[self.n_nodes]


def _in_words(number: int) -> str:
    for unit, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return str(number)
