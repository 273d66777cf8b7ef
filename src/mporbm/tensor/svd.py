"""Truncated SVD of trains, on the host: the kept ranks depend on the numbers, so nothing compiles.

All arithmetic is NumPy's in float64 whatever the precision of the result. Its rounding errors are
part of every bound, by the usual estimate for each factorisation: ``eps * size * norm`` times a
modest constant (Higham 2002, ch. 19).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
EPS = 10.0 * float(np.finfo(np.float64).eps)


class Split(NamedTuple):
    """``matrix ~ left @ right`` with orthonormal columns in `left`; `discarded` is the distance."""

    left: Matrix
    right: Matrix
    discarded: float


def split(matrix: Matrix, max_rank: int, budget: float | None) -> Split:
    """Best approximation of rank at most `max_rank`, lower where the error stays within `budget`.

    The error is the Frobenius norm; without a budget nothing below `max_rank` is dropped.
    """
    u, s, vt = np.linalg.svd(matrix, full_matrices=False)
    # tail[r] is the error of keeping the first r singular values.
    tail = np.append(np.sqrt(np.cumsum(s[::-1] ** 2))[::-1], 0.0)
    rank = len(s) if budget is None else max(int(np.argmax(tail <= budget)), 1)
    rank = min(rank, max_rank)
    return Split(u[:, :rank], s[:rank, None] * vt[:rank], float(tail[rank]))


class Sweep(NamedTuple):
    """Cores (R_k, n_k, R_{k+1}), left-orthogonal but for the last, and the error they make."""

    cores: list[Matrix]
    error_bound: float


def sweep(tensor: Matrix, caps: Sequence[int], tolerance: float, periodic: bool = False) -> Sweep:
    """Decompose a tensor into a train by sequential SVD (Oseledets 2011, TT-SVD).

    Each split projects orthogonally what the one before has left, so the squared errors add up:
    with a budget of ``tolerance * norm / sqrt(d - 1)`` a split, the whole stays within tolerance.

    `caps` has one maximal rank per bond: (R_2..R_d), or (R_1..R_d) when `periodic`. The periodic
    form (Zhao et al. 2016, TR-SVD) factors the rank of the first split as R_1 R_2 and hands R_1
    on to the last core.
    """
    modes = tensor.shape
    if len(modes) == 1:
        return Sweep([tensor.reshape(1, -1, 1)], 0.0)
    tensor, scale = _normalize(tensor)
    budget = _budget(tolerance, tensor, len(modes))

    if not periodic:
        caps = (1, *caps)
    left, rest, error = split(tensor.reshape(modes[0], -1), caps[0] * caps[1], budget)
    first, second = _factor_rank(left.shape[1], caps[0], caps[1])
    padding = first * second - left.shape[1]
    left = np.pad(left, ((0, 0), (0, padding)))
    rest = np.pad(rest, ((0, padding), (0, 0)))
    cores = [left.reshape(modes[0], first, second).transpose(1, 0, 2)]
    # (R_1 R_2, rest) -> (R_2, rest R_1): the open end travels to the last core.
    rest = np.moveaxis(rest.reshape(first, second, -1), 0, 2).reshape(second, -1)

    squares = error**2
    for mode, cap in zip(modes[1:-1], caps[2:], strict=True):
        rank = cores[-1].shape[2]
        left, rest, error = split(rest.reshape(rank * mode, -1), cap, budget)
        cores.append(left.reshape(rank, mode, -1))
        squares += error**2
    cores.append(scale * rest.reshape(cores[-1].shape[2], modes[-1], first))
    rounding = EPS * sum(map(_size, cores)) * float(np.linalg.norm(tensor))
    return Sweep(cores, scale * (math.sqrt(squares) + rounding))


def round_sweep(cores: Sequence[Matrix], caps: Sequence[int], tolerance: float) -> Sweep:
    """Lower the ranks of an open train: orthogonalise from the right, truncate from the left."""
    cores, scales = map(list, zip(*map(_normalize, cores), strict=True))
    scale = math.prod(scales)
    rounding = EPS * _reach(cores)
    for k in range(len(cores) - 1, 0, -1):
        rank, mode, following_rank = cores[k].shape
        q, carry = np.linalg.qr(cores[k].reshape(rank, -1).T)
        cores[k] = q.T.reshape(-1, mode, following_rank)
        cores[k - 1] = np.tensordot(cores[k - 1], carry.T, axes=1)
    rest = cores[0]
    budget = _budget(tolerance, rest, len(cores))
    rounded: list[Matrix] = []
    squares = 0.0
    for following, cap in zip(cores[1:], caps, strict=True):
        rank, mode, _ = rest.shape
        left, right, error = split(rest.reshape(rank * mode, -1), cap, budget)
        rounded.append(left.reshape(rank, mode, -1))
        rest = np.tensordot(right, following, axes=1)
        squares += error**2
    return Sweep([*rounded, scale * rest], scale * (math.sqrt(squares) + rounding))


def _normalize(array: Matrix) -> tuple[Matrix, float]:
    """The array with a largest entry of 1, so that no square over- or underflows, and its scale."""
    scale = float(np.abs(array).max()) or 1.0
    return array / scale, scale


def _size(core: Matrix) -> int:
    """The longer side of the matrix that is factored at a core."""
    rank, mode, following_rank = core.shape
    return max(int(rank * mode), int(following_rank))


def _reach(cores: Sequence[Matrix]) -> float:
    """How far an open train moves, for each unit of relative error in its cores.

    A change E of core k moves the tensor by at most ``norm(E) sqrt(|L_k| |R_k|)`` with the
    spectral norms of the Gram matrices of its two sides; in a bad gauge that is more than the
    norm of the tensor itself.
    """
    left, right = [np.ones((1, 1))], [np.ones((1, 1))]
    for core in cores[:-1]:
        left.append(np.einsum("rq,rns,qnt->st", left[-1], core, core, optimize=True))
    for core in cores[:0:-1]:
        right.append(np.einsum("st,rns,qnt->rq", right[-1], core, core, optimize=True))
    return sum(
        _size(core)
        * float(np.linalg.norm(core) * math.sqrt(np.linalg.norm(a, 2) * np.linalg.norm(b, 2)))
        for core, a, b in zip(cores, left, reversed(right), strict=True)
    )


def _budget(tolerance: float, whole: Matrix, n_cores: int) -> float | None:
    """The error that each of the d - 1 splits may make; None if everything is to be kept."""
    if tolerance == 0.0:
        return None
    return tolerance * float(np.linalg.norm(whole)) / math.sqrt(max(n_cores - 1, 1))


def _factor_rank(rank: int, first_cap: int, second_cap: int) -> tuple[int, int]:
    """The most balanced R_1, R_2 with R_1 R_2 >= rank that respects both caps."""
    second = min(second_cap, math.isqrt(rank - 1) + 1)
    first = -(-rank // second)
    if first > first_cap:
        first = first_cap
        second = -(-rank // first)
    return first, second
