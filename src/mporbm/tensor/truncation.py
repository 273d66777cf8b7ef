"""Splitting matrices and sweeping along trains: the one place for SVD, QR and truncation.

`split_matrix` is the only SVD, `canonical_cores` the only QR; `tt_svd` and `tt_round` make trains
of low rank from them (Oseledets 2011). Splits and canonical forms take JAX arrays (also traced
ones) and NumPy arrays alike. Truncation runs on the host, as the kept ranks depend on the numbers:
in float64 whatever the precision of the result, with its rounding errors in every bound by the
usual estimate for each factorisation, ``eps * size * norm`` times a modest constant (Higham 2002,
ch. 19).
"""

import math
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import DTypeLike

T = TypeVar("T")
A = TypeVar("A", Array, np.ndarray)

HostCore = Float[np.ndarray, "_left _modes _right"]

EPS = 10.0 * float(np.finfo(np.float64).eps)


class Truncation(NamedTuple, Generic[T]):
    """A train of lower rank and what it costs: ``norm(original - train) <= error_bound``.

    The norm is Frobenius'. The bound covers the discarded singular values and the rounding errors
    of the decomposition; computing the norm in single precision has rounding errors of its own.
    """

    train: T
    error_bound: float


class Split(NamedTuple, Generic[A]):
    """A singular value decomposition, ``matrix ~ left @ diag(values) @ right``."""

    left: Float[A, "rows rank"]
    values: Float[A, " rank"]
    right: Float[A, "rank columns"]
    discarded: float | Float[A, ""]
    """The Frobenius norm of ``matrix - left @ diag(values) @ right``."""


def split_matrix(
    matrix: Float[A, "rows columns"],
    max_rank: int | None = None,
    tolerance: float = 0.0,
    norm: float | None = None,
) -> Split[A]:
    """Split a matrix by SVD into its best approximation of low rank.

    Parameters
    ----------
    matrix
        A JAX or NumPy matrix; a traced one if `tolerance` is 0.
    max_rank
        The largest rank kept; None keeps all.
    tolerance
        The rank falls as long as the error (Frobenius) stays within ``tolerance * norm``; 0 drops
        nothing below `max_rank`.
    norm
        The norm that `tolerance` refers to, by default that of the matrix.
    """
    xp = _numpy_of(matrix)
    u, values, v = xp.linalg.svd(matrix, full_matrices=False)
    rank = len(values)
    if tolerance > 0.0:
        # tails[r] is the error of keeping the first r singular values.
        tails = np.append(np.sqrt(np.cumsum(np.asarray(values)[::-1] ** 2))[::-1], 0.0)
        limit = tolerance * (tails[0] if norm is None else norm)
        rank = max(int(np.argmax(tails <= limit)), 1)
    rank = rank if max_rank is None else min(rank, max_rank)
    return Split(u[:, :rank], values[:rank], v[:rank], xp.linalg.norm(values[rank:]))


def canonical_cores(
    cores: Sequence[Float[A, "_left _modes _right"]], center: int
) -> list[Float[A, "_left _modes _right"]]:
    """The cores of the same train in mixed-canonical form, by QR from both ends to `center`.

    Cores before `center` become left-orthogonal, those after it right-orthogonal. A bond larger
    than the cores on one side of it can fill shrinks to what they can fill.
    """
    cores = list(cores)
    xp = _numpy_of(cores[0])
    for k in range(center):
        left, modes, right = cores[k].shape
        q, carry = xp.linalg.qr(cores[k].reshape(left * modes, right))
        cores[k] = q.reshape(left, modes, -1)
        cores[k + 1] = xp.tensordot(carry, cores[k + 1], axes=1)
    for k in range(len(cores) - 1, center, -1):
        left, modes, right = cores[k].shape
        q, carry = xp.linalg.qr(cores[k].reshape(left, modes * right).T)
        cores[k] = q.T.reshape(-1, modes, right)
        cores[k - 1] = xp.tensordot(cores[k - 1], carry.T, axes=1)
    return cores


def diagonal_cores(
    cores: Sequence[Float[A, "_left _modes _right"]],
) -> tuple[list[Float[A, "_left _modes _right"]], list[Float[A, " _rank"]]]:
    """Right-orthogonal cores and the singular values of every bond, from left-orthogonal cores.

    Returns the cores (R_k, n_k, R_{k+1}) of the same train, right-orthogonal but for the first, in
    the basis in which the Gram matrix of what stands to the left of a bond is diagonal: the squares
    of the singular values of that bond, in decreasing order.
    """
    cores = list(cores)
    xp = _numpy_of(cores[0])
    values = []
    for k in range(len(cores) - 1, 0, -1):
        split = split_matrix(cores[k].reshape(len(cores[k]), -1))
        cores[k] = split.right.reshape(-1, *cores[k].shape[1:])
        cores[k - 1] = xp.tensordot(cores[k - 1], split.left * split.values, axes=1)
        values.append(split.values)
    return cores, values[::-1]


def tt_svd(
    tensor: Float[np.ndarray, "..."],
    max_ranks: Sequence[int],
    tolerance: float,
    periodic: bool = False,
) -> Truncation[list[HostCore]]:
    """Decompose a tensor into a train by sequential SVD (Oseledets 2011, TT-SVD).

    Each split projects orthogonally what the one before has left, so the squared errors add up:
    with a tolerance of ``tolerance / sqrt(d - 1)`` a split, the whole stays within `tolerance`.

    `max_ranks` has one rank per bond: (R_2..R_d), or (R_1..R_d) when `periodic`. The periodic form
    (Zhao et al. 2016, TR-SVD) factors the rank of the first split as R_1 R_2 and hands R_1 on to
    the last core. All cores but the last are left-orthogonal.
    """
    modes = tensor.shape
    if len(modes) == 1:
        return Truncation([tensor.reshape(1, -1, 1)], 0.0)
    tensor, scale = _normalize(tensor)
    norm = float(np.linalg.norm(tensor))
    share = tolerance / math.sqrt(len(modes) - 1)

    if not periodic:
        max_ranks = (1, *max_ranks)
    rows = tensor.reshape(modes[0], -1)
    left, values, right, error = split_matrix(rows, max_ranks[0] * max_ranks[1], share, norm)
    first, second = _factor_rank(len(values), max_ranks[0], max_ranks[1])
    padding = first * second - len(values)
    left = np.pad(left, ((0, 0), (0, padding)))
    rest = np.pad(values[:, None] * right, ((0, padding), (0, 0)))
    cores = [left.reshape(modes[0], first, second).transpose(1, 0, 2)]
    # (R_1 R_2, rest) -> (R_2, rest R_1): the open end travels to the last core.
    rest = np.moveaxis(rest.reshape(first, second, -1), 0, 2).reshape(second, -1)

    squares = error**2
    for mode, max_rank in zip(modes[1:-1], max_ranks[2:], strict=True):
        rank = cores[-1].shape[2]
        rows = rest.reshape(rank * mode, -1)
        left, values, right, error = split_matrix(rows, max_rank, share, norm)
        cores.append(left.reshape(rank, mode, -1))
        rest = values[:, None] * right
        squares += error**2
    cores.append(scale * rest.reshape(cores[-1].shape[2], modes[-1], first))
    rounding = EPS * sum(map(_longer_side, cores)) * norm
    return Truncation(cores, scale * float(math.sqrt(squares) + rounding))


def tt_round(
    cores: Sequence[HostCore], max_ranks: Sequence[int], tolerance: float
) -> Truncation[list[HostCore]]:
    """Lower the ranks of an open train: orthogonalise from the right, truncate from the left."""
    cores, scale = normalize_cores(cores)
    rounding = EPS * _sensitivity(cores)
    rest, *others = canonical_cores(cores, 0)
    norm = float(np.linalg.norm(rest))
    share = tolerance / math.sqrt(max(len(others), 1))
    rounded: list[HostCore] = []
    squares = 0.0
    for following, max_rank in zip(others, max_ranks, strict=True):
        rank, modes, _ = rest.shape
        rows = rest.reshape(rank * modes, -1)
        left, values, right, error = split_matrix(rows, max_rank, share, norm)
        rounded.append(left.reshape(rank, modes, -1))
        rest = np.tensordot(values[:, None] * right, following, axes=1)
        squares += float(error) ** 2
    return Truncation([*rounded, scale * rest], scale * (math.sqrt(squares) + rounding))


def storage_error(cores: Sequence[HostCore], dtype: DTypeLike) -> float:
    """What storing float64 cores, left-orthogonal but for the last, in `dtype` adds to an error."""
    if dtype == np.float64:
        return 0.0
    *orthogonal, last = (float(np.linalg.norm(core)) for core in cores)
    return 0.5 * float(np.spacing(np.ones((), dtype))) * last * (1.0 + sum(orthogonal))


def normalize_cores(cores: Sequence[HostCore]) -> tuple[list[HostCore], float]:
    """The cores with a largest entry of 1 each, and the factor that they have lost together."""
    normalized, scales = zip(*map(_normalize, cores), strict=True)
    return list(normalized), math.prod(scales)


def _normalize(
    array: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], float]:
    """The array with a largest entry of 1, so that no square over- or underflows, and its scale."""
    scale = float(np.abs(array).max()) or 1.0
    return array / scale, scale


def _numpy_of(array: Array | np.ndarray[Any, Any]) -> Any:
    """The module that computes with an array: `jax.numpy` or `numpy`."""
    return jnp if isinstance(array, Array) else np


def _longer_side(core: HostCore) -> int:
    """The longer side of the matrix that is factored at a core."""
    left, modes, right = core.shape
    return max(int(left * modes), int(right))


def _sensitivity(cores: Sequence[HostCore]) -> float:
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
        _longer_side(core)
        * float(np.linalg.norm(core) * math.sqrt(np.linalg.norm(a, 2) * np.linalg.norm(b, 2)))
        for core, a, b in zip(cores, left, reversed(right), strict=True)
    )


def _factor_rank(rank: int, first_max: int, second_max: int) -> tuple[int, int]:
    """The most balanced R_1, R_2 with R_1 R_2 >= rank, neither above its maximum."""
    second = min(second_max, math.isqrt(rank - 1) + 1)
    first = -(-rank // second)
    if first > first_max:
        first = first_max
        second = -(-rank // first)
    return first, second
