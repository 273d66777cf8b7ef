"""Ranks of the bonds of a train: their number, their useful maximum, and checks of given ones.

Ranks are never changed silently: one that is too large is an error that says what to pass instead.
"""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from .check import check_choice, check_integer, check_shape

Boundary = Literal["open", "periodic"]


def max_ranks(sizes: Sequence[int], boundary: Boundary = "open") -> tuple[int, ...]:
    """The largest useful rank of each bond for cores with `sizes` entries per pair of bond values.

    Open: ``min(prod of the sizes before, prod of the sizes after)``. Periodic: the largest of
    these over all places where the ring could be cut open instead, so no larger bond is ever
    needed.
    """
    sizes = check_shape("sizes", sizes)
    check_choice("boundary", boundary, ("open", "periodic"))
    d = len(sizes)
    total = math.prod(sizes)

    def between(start: int, stop: int) -> int:
        left = math.prod(sizes[start:stop])
        return min(left, total // left)

    if boundary == "open":
        return tuple(between(0, k) for k in range(1, d))
    return tuple(
        max([between(min(cut, k), max(cut, k)) for cut in range(d) if cut != k], default=1)
        for k in range(d)
    )


def check_ranks(rank: object, sizes: Sequence[int], boundary: Boundary) -> tuple[int, ...]:
    """`rank` (one for all bonds, or one per bond) as one per bond, none larger than useful."""
    ranks = _one_per_bond("rank", rank, len(sizes), boundary)
    largest = max_ranks(sizes, boundary)
    useful = tuple(map(min, ranks, largest))
    if ranks != useful:
        raise ValueError(
            f"rank={rank!r}: expected ranks of at most {largest}, one per bond: with them every "
            f"tensor of this shape is reached, and larger ones only repeat it. "
            f"Pass rank={useful}."
        )
    return ranks


def rank_caps(
    max_rank: object, n_cores: int, boundary: Boundary, name: str = "max_rank"
) -> tuple[int, ...]:
    """`max_rank` as one cap per bond; None means no cap. Errors call it `name`."""
    cap = np.iinfo(np.int32).max if max_rank is None else max_rank
    return _one_per_bond(name, cap, n_cores, boundary)


def _one_per_bond(name: str, rank: object, n_cores: int, boundary: Boundary) -> tuple[int, ...]:
    check_choice("boundary", boundary, ("open", "periodic"))
    bonds = n_cores - 1 if boundary == "open" else n_cores
    rank = rank.tolist() if isinstance(rank, np.ndarray) else rank
    if not isinstance(rank, Sequence) or isinstance(rank, str):
        return (check_integer(name, rank),) * bonds
    if len(rank) != bonds:
        raise ValueError(
            f"{name}={rank!r}: expected one integer, or {bonds} of them, one per bond of "
            f"{n_cores} {boundary} cores; got {len(rank)}."
        )
    return tuple(check_integer(f"{name}[{k}]", r) for k, r in enumerate(rank))
