"""Cross interpolation: the MPS of a function from a few of its values.

A function of d indices is looked at on crosses only: all values of two neighbouring indices, with
the others at pivots. The pivots of a rank-revealing LU decomposition represent such a block where
it has low rank; sweeps over all pairs of neighbours find them (Oseledets & Tyrtyshnikov 2010; in
this two-site form Savostyanov 2014).
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

MAX_SWEEPS = 12
"""The sweeps over all pairs of neighbours after which the pivots are taken as they are."""
N_PROBES = 256
"""Random points among which the first pivot is the one with the largest value."""


Points = Int[np.ndarray, "_points _modes"]
"""Places where a function is asked, one per row."""
Block = Float[np.ndarray, "_rows _columns"]
"""Values at all pairs of first and last indices."""
FunctionOfIndices = Callable[[Points], ArrayLike]
"""A function of d indices: values (m,) at points (m, d)."""


def cross_cores(
    function: FunctionOfIndices, shape: Sequence[int], max_rank: int, tolerance: float
) -> list[Float[np.ndarray, "_left _mode _right"]]:
    """The cores of an MPS that interpolates a function; see `mporbm.tensor.interpolate`."""
    # A mode without a choice would keep its neighbours from seeing each other.
    chosen = [k for k, size in enumerate(shape) if size > 1] or [0]

    def values_at(index: Points) -> ArrayLike:
        full = np.zeros((len(index), len(shape)), np.int64)
        full[:, chosen] = index
        return function(full)

    cores = iter(_cores(values_at, [shape[k] for k in chosen], max_rank, tolerance))
    found: list[Float[np.ndarray, "_left _mode _right"]] = []
    for k in range(len(shape)):
        bond = found[-1].shape[2] if found else 1
        found.append(next(cores) if k in chosen else np.eye(bond)[:, None])
    return found


def _cores(
    function: FunctionOfIndices, sizes: Sequence[int], max_rank: int, tolerance: float
) -> list[Float[np.ndarray, "_left _mode _right"]]:
    values = _Values(function)
    d = len(sizes)
    modes = [np.arange(size)[:, None] for size in sizes]
    probes = np.random.default_rng(0).integers(0, sizes, (N_PROBES, d))
    first = probes[[np.argmax(np.abs(values.at(probes)))]]
    # Bond k is between mode k - 1 and mode k: pivots of the modes before and after it.
    before = [first[:, :k] for k in range(d)]
    after = [first[:, k:] for k in range(d + 1)]
    for sweep in range(MAX_SWEEPS):
        ranks = [len(rows) for rows in before]
        worst = 0.0
        bonds = range(1, d)
        for k in bonds if sweep % 2 == 0 else reversed(bonds):
            rows, columns = _pairs(before[k - 1], modes[k - 1]), _pairs(modes[k], after[k + 1])
            block = values.on(rows, columns)
            pivots, error = _pivots(block, tolerance * values.largest, max_rank)
            before[k], after[k] = rows[pivots[0]], columns[pivots[1]]
            worst = max(worst, error)
        if ranks == [len(rows) for rows in before] and (
            worst <= tolerance * values.largest or sweep > 2
        ):
            break
    cores = []
    for k in range(d):
        rows = _pairs(before[k], modes[k])
        core = values.on(rows, after[k + 1])
        if k < d - 1:
            # core times the inverse of the pivots' own values
            joint = values.on(before[k + 1], after[k + 1])
            core = np.asarray(np.linalg.lstsq(joint.T, core.T, rcond=None)[0].T, np.float64)
        cores.append(core.reshape(len(before[k]), sizes[k], -1))
    return cores


class _Values:
    """A function that checks what it gives and remembers its largest value so far."""

    def __init__(self, function: FunctionOfIndices):
        self.function = function
        self.largest = 0.0

    def at(self, index: Points) -> Float[np.ndarray, " points"]:
        found = np.asarray(self.function(index))
        if found.shape != (len(index),) or found.dtype.kind not in "biuf":
            raise ValueError(
                f"function: expected real values of shape ({len(index)},), one for each row of the "
                f"indices, got dtype {found.dtype} and shape {found.shape}."
            )
        if not np.isfinite(found).all():
            bad = index[~np.isfinite(found)][0]
            raise ValueError(f"function: expected finite values, got one that is not at {bad}.")
        values = found.astype(np.float64)
        self.largest = max(self.largest, float(np.abs(values).max()))
        return values

    def on(self, rows: Points, columns: Points) -> Block:
        """The values at all pairs of first and last indices, as a matrix."""
        return self.at(_pairs(rows, columns)).reshape(len(rows), len(columns))


def _pairs(first: Points, last: Points) -> Points:
    """Every index of the first modes with every index of the last ones."""
    return np.hstack([np.repeat(first, len(last), axis=0), np.tile(last, (len(first), 1))])


def _pivots(block: Block, error: float, max_rank: int) -> tuple[tuple[list[int], list[int]], float]:
    """Rows and columns of an LU decomposition with full pivoting, and the largest value left."""
    rest = block.copy()
    rows: list[int] = []
    columns: list[int] = []
    while True:
        row, column = np.unravel_index(np.argmax(np.abs(rest)), rest.shape)
        left = float(abs(rest[row, column]))
        # At least one, so that no bond is empty.
        if rows and (left <= error or len(rows) == min(max_rank, *block.shape)):
            return (rows, columns), left
        rows.append(int(row))
        columns.append(int(column))
        if left == 0.0:
            return (rows, columns), 0.0
        rest -= np.outer(rest[:, column] / rest[row, column], rest[row])
        # Rounding errors must not be chosen again.
        rest[row], rest[:, column] = 0.0, 0.0
