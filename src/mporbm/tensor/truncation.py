"""QR and SVD along trains: canonical forms and trains of low rank (Oseledets 2011).

Canonical forms take JAX arrays (also traced ones) and NumPy arrays alike. Truncation runs on the
host, as the kept ranks depend on the numbers: in float64 whatever the precision of the result, with
its rounding errors in every bound by the usual estimate for each factorisation, ``eps * size *
norm`` times a modest constant (Higham 2002, ch. 19).
"""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Generic, NamedTuple, TypeVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import DTypeLike

from .arrays import Tensor

T = TypeVar("T")
A = TypeVar("A", Array, np.ndarray)

HostCore = Float[np.ndarray, "_left ... _right"]
HostVector = Float[np.ndarray, " _rank"]
HostMatrix = Float[np.ndarray, "_rows _columns"]

EPS = 10.0 * float(np.finfo(np.float64).eps)


class Truncation(NamedTuple, Generic[T]):
    """A train of lower rank and what it costs: ``norm(original - train) <= error_bound``.

    The norm is Frobenius'. The bound covers the discarded singular values and the rounding errors
    of the decomposition; computing the norm in single precision has rounding errors of its own.
    """

    train: T
    error_bound: float


def canonical_cores(
    cores: Sequence[Float[A, "_left _modes _right"]], center: int
) -> list[Float[A, "_left _modes _right"]]:
    """The cores of the same train in mixed-canonical form, by QR from both ends to `center`.

    Cores before `center` become left-orthogonal, those after it right-orthogonal. A bond larger
    than the cores on one side of it can fill shrinks to what they can fill.
    """
    cores = list(cores)
    xp: ModuleType = jnp if isinstance(cores[0], Array) else np
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


def diagonal_cores(cores: Sequence[HostCore]) -> tuple[list[HostCore], list[HostVector]]:
    """Right-orthogonal cores and the singular values of every bond, from left-orthogonal cores.

    Returns the cores of the same train, right-orthogonal but for the first, in the basis in which
    the Gram matrix of what stands to the left of a bond is diagonal: the squares of the singular
    values of that bond, in decreasing order.
    """
    cores = list(cores)
    values = []
    for k in range(len(cores) - 1, 0, -1):
        left, bond, right, _ = split_matrix(cores[k].reshape(len(cores[k]), -1))
        cores[k] = right.reshape(-1, *cores[k].shape[1:])
        cores[k - 1] = np.tensordot(cores[k - 1], left * bond, axes=1)
        values.append(bond)
    return cores, values[::-1]


def split_matrix(
    matrix: HostMatrix, max_rank: int | None = None, allowed: float | None = None
) -> tuple[HostMatrix, HostVector, HostMatrix, float]:
    """The best approximation ``left @ diag(values) @ right`` of low rank by SVD, and its error.

    The rank falls to `max_rank`, if one is given, and as long as the error (Frobenius) stays within
    what is `allowed`.
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    rank = len(values)
    if allowed is not None:
        # tails[r] is the error of keeping the first r singular values.
        tails = np.append(np.sqrt(np.cumsum(values[::-1] ** 2))[::-1], 0.0)
        rank = max(int(np.argmax(tails <= allowed)), 1)
    rank = rank if max_rank is None else min(rank, max_rank)
    error = float(np.linalg.norm(values[rank:]))
    return left[:, :rank], values[:rank], right[:rank], error


def tt_svd(
    tensor: Float[np.ndarray, "..."],
    max_ranks: Sequence[int],
    tolerance: float,
    periodic: bool = False,
) -> Truncation[list[HostCore]]:
    """Decompose a tensor into a train by sequential SVD (Oseledets 2011, TT-SVD).

    `max_ranks` has one rank per bond: (R_2..R_d), or (R_1..R_d) when `periodic`. The periodic form
    (Zhao et al. 2016, TR-SVD) factors the rank of the first split as R_1 R_2 and hands R_1 on to
    the last core. All cores but the last are left-orthogonal.
    """
    modes = tensor.shape
    if len(modes) == 1:
        return Truncation([tensor.reshape(1, -1, 1)], 0.0)
    tensor, scale = _normalize(tensor)
    norm = float(np.linalg.norm(tensor))
    allowed = _allowed_error(tolerance, norm, len(modes) - 1)
    caps = (*max_ranks,) if periodic else (1, *max_ranks)
    rows = tensor.reshape(modes[0], -1)
    left, values, right, error = split_matrix(rows, caps[0] * caps[1], allowed)
    first, second = _factor_rank(len(values), caps[0], caps[1])
    padding = first * second - len(values)
    left = np.pad(left, ((0, 0), (0, padding)))
    rest = np.pad(values[:, None] * right, ((0, padding), (0, 0)))
    # (R_1 R_2, rest) -> (R_2, rest R_1): the open end travels to the last core.
    rest = np.moveaxis(rest.reshape(first, second, -1), 0, 2).reshape(second, modes[1], -1)
    others, errors = _truncate(
        rest, lambda k, carry: carry.reshape(len(carry), modes[k + 2], -1), caps[2:], allowed
    )
    cores = [left.reshape(modes[0], first, second).transpose(1, 0, 2), *others]
    cores[-1] = scale * cores[-1]
    rounding = EPS * sum(map(_longer_side, cores)) * norm
    return Truncation(cores, scale * (math.hypot(error, *errors) + rounding))


def tt_round(
    cores: Sequence[HostCore], max_ranks: Sequence[int], tolerance: float
) -> Truncation[list[HostCore]]:
    """Lower the ranks of an open train: orthogonalise from the right, truncate from the left."""
    cores, scale = normalize_cores(cores)
    rounding = EPS * _sensitivity(cores)
    rest, *others = canonical_cores(cores, 0)
    allowed = _allowed_error(tolerance, float(np.linalg.norm(rest)), len(others))
    rounded, errors = _truncate(
        rest, lambda k, carry: np.tensordot(carry, others[k], axes=1), max_ranks, allowed
    )
    rounded[-1] = scale * rounded[-1]
    return Truncation(rounded, scale * (math.hypot(*errors) + rounding))


def _allowed_error(tolerance: float, norm: float, n_splits: int) -> float | None:
    """The error of each split that keeps the whole within ``tolerance * norm``; None if that is 0.

    Each split projects orthogonally what the one before has left, so the squared errors add up.
    """
    return tolerance / math.sqrt(max(n_splits, 1)) * norm if tolerance > 0.0 else None


def _truncate(
    rest: HostCore,
    next_core: Callable[[int, HostMatrix], HostCore],
    max_ranks: Sequence[int],
    allowed: float | None,
) -> tuple[list[HostCore], list[float]]:
    """Split a core off at every bond: all cores, and the error of each split.

    What a split leaves is carried on: `next_core` makes of it the core to be split at bond k + 1.
    """
    cores, errors = [], []
    for k, max_rank in enumerate(max_ranks):
        rank, modes, n_columns = rest.shape
        rows = rest.reshape(rank * modes, n_columns)
        left, values, right, error = split_matrix(rows, max_rank, allowed)
        cores.append(left.reshape(rank, modes, -1))
        rest = next_core(k, values[:, None] * right)
        errors.append(error)
    return [*cores, rest], errors


def storage_error(cores: Sequence[HostCore], dtype: DTypeLike) -> float:
    """What storing float64 cores, left-orthogonal but for the last, in `dtype` adds to an error."""
    if dtype == np.float64:
        return 0.0
    *orthogonal, last = (float(np.linalg.norm(core)) for core in cores)
    return 0.5 * float(np.spacing(np.ones((), dtype))) * last * (1.0 + sum(orthogonal))


def host_cores(cores: Sequence[Tensor]) -> list[HostCore]:
    """The cores with merged modes, in NumPy and double precision."""
    return [
        np.asarray(core, np.float64).reshape(core.shape[0], -1, core.shape[-1]) for core in cores
    ]


def host_grams(cores: Sequence[HostCore]) -> list[HostMatrix]:
    """The Gram matrix of what stands to the left of each core, and last that of the open train."""
    grams = [np.ones((1, 1))]
    for core in cores:
        grams.append(np.einsum("rq,rns,qnt->st", grams[-1], core, core, optimize=True))
    return grams


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
    *left, _ = host_grams(cores)
    *right, _ = host_grams([core.T for core in reversed(cores)])
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
