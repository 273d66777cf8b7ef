"""Cores of an open MPO in balance, and with room for larger ranks; W stays the same."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from .mpo import MPO
from .truncation import diagonal_cores, host_cores, host_grams

UNBALANCED = 10.0
"""By which factor cores may be too large before they are brought into balance."""


def rebalance_if_needed(mpo: MPO) -> MPO:
    """Return the same MPO, in balance if its cores have grown large and cancel each other.

    A ring has no canonical form, and stays as it is.
    """
    if mpo.boundary == "periodic":
        return mpo
    size = _product_of_norms(mpo)
    norm = math.sqrt(max(host_grams(host_cores(mpo.cores))[-1].item(), 0.0))
    # In balance the product of the norms is |W| times at most the root of every rank.
    if size <= UNBALANCED * norm:
        return mpo
    candidate = balance(mpo)
    return candidate if size > UNBALANCED * _product_of_norms(candidate) else mpo


def _product_of_norms(mpo: MPO) -> float:
    return math.prod(float(np.linalg.norm(core)) for core in mpo.cores)


def balance(mpo: MPO) -> MPO:
    """Return the same open MPO with equal, diagonal Gram matrices on both sides of every bond.

    Gradient steps leave the gauge to chance; large cores that cancel each other lose digits.
    """
    cores = [np.asarray(core, np.float64) for core in mpo.canonical(-1).cores]
    cores, values = diagonal_cores(cores)
    # Now every core but the first is right-orthonormal: half of each weight goes to its right.
    for k, half in enumerate(map(np.sqrt, values)):
        cores[k] = cores[k] / np.maximum(half, 1e-8 * half.max() + np.finfo(float).tiny)
        cores[k + 1] = half[:, None, None, None] * cores[k + 1]
    # Bonds larger than the cores can fill keep their size.
    bonds = [core.shape[0] for core in mpo.cores[1:]]
    return pad_ranks(MPO([core.astype(mpo.dtype) for core in cores]), bonds)


def pad_ranks(mpo: MPO, ranks: Sequence[int]) -> MPO:
    """Return the same open MPO with zero rows and columns up to the given ranks."""
    sizes = (1, *ranks, 1)
    rooms = [
        ((0, left - core.shape[0]), (0, 0), (0, 0), (0, right - core.shape[-1]))
        for core, left, right in zip(mpo.cores, sizes, sizes[1:], strict=False)
    ]
    return MPO([jnp.pad(core, room) for core, room in zip(mpo.cores, rooms, strict=True)])


def used_ranks(mpo: MPO) -> tuple[int, ...]:
    """Count the ranks without the zero rows and columns of padded cores."""
    if mpo.boundary == "periodic":
        return mpo.ranks
    return tuple(len(_used_rows(core)) for core in mpo.cores[1:])


def trim_ranks(mpo: MPO) -> MPO:
    """Return the same MPO without the zero rows and columns of padded cores."""
    used = [[0], *(_used_rows(core) for core in mpo.cores[1:]), [0]]
    bonds = zip(mpo.cores, used, used[1:], strict=False)
    return MPO([np.asarray(core)[left][..., right] for core, left, right in bonds])


def _used_rows(core: Array) -> list[int]:
    """List the rows of a core that are not zero; one at least, for W = 0 has rank 1 too."""
    sizes = np.abs(np.asarray(core)).max(axis=(1, 2, 3))
    return np.flatnonzero(sizes).tolist() or [0]
