"""Where training on samples in MPS form starts: what `mporbm.learning.start` is for arrays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..tensor import MPO, MPS, MPSBatch
from ..tensor.environments import FIELD_CONTRACTION

FIELD_STD = 0.1
"""The root mean square of hidden fields that `mps_start` begins with."""


def mps_start(
    rng: np.random.Generator,
    samples: MPSBatch,
    hidden_shape: Sequence[int],
    ranks: Sequence[int],
) -> tuple[MPO, MPS]:
    """W and B for samples in MPS form: what `data_mpo` is for arrays, and the mean of the samples.

    W is close to ``sum_n V_n x A_n``, a random combination of samples for each hidden unit, with
    hidden fields of size `FIELD_STD`. B has at most the ranks of W.
    """
    cores = [np.asarray(core, np.float64) for core in samples.cores]
    n_samples = len(samples)
    codes = [_unit_rows(rng, n_samples, size) for size in hidden_shape]
    codes[-1] = codes[-1] * rng.choice([-1.0, 1.0], (n_samples, 1))
    mpo = _sketched(rng, cores, codes, ranks)
    ones = [np.ones((n_samples, 1)) for _ in codes]
    ones[-1] = ones[-1] / n_samples
    mean = _sketched(rng, cores, ones, ranks)
    field = np.asarray(FIELD_CONTRACTION.contract(cores, mpo))
    scale = FIELD_STD / max(float(np.sqrt(np.mean(field**2))), np.finfo(float).tiny)
    # The norm is shared out among the cores, so that none is far larger than the others.
    share = scale ** (1.0 / len(mpo))
    return MPO([core * share for core in mpo]), MPS([core[:, :, 0] for core in mean])


def _unit_rows(rng: np.random.Generator, n_rows: int, size: int) -> NDArray[np.float64]:
    """Random vectors of length 1; ones where there is no choice."""
    if size == 1:
        return np.ones((n_rows, 1))
    rows = rng.normal(size=(n_rows, size))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _sketched(
    rng: np.random.Generator,
    cores: Sequence[NDArray[np.float64]],
    codes: Sequence[NDArray[np.float64]],
    ranks: Sequence[int],
) -> list[NDArray[np.float64]]:
    """Cores of an MPO close to ``sum_n V_n x A_n`` with A_n the product of its codes.

    From left to right, an orthonormal basis of what each core has to span, seen through a random
    MPO that stands for everything to the right of it (Al Daas et al. 2023).
    """
    bonds = (1, *ranks, 1)
    d = len(cores)
    rights = [np.ones((len(codes[0]), 1, 1))]
    for k in range(d - 1, 0, -1):
        # What core k and all to its right make of the sample, for `bonds[k]` random tests.
        shape = (bonds[k], cores[k].shape[2], codes[k].shape[1], bonds[k + 1])
        test = rng.normal(size=shape)
        right = np.einsum(
            "nsit,nj,rijq,ntq->nsr", cores[k], codes[k], test, rights[-1], optimize=True
        )
        rights.append(right / max(np.abs(right).max(), np.finfo(float).tiny))
    rest = np.ones((len(codes[0]), 1, 1))
    found = []
    for k, right in enumerate(reversed(rights)):
        if k == d - 1:
            found.append(np.einsum("nas,nsit,nj->aijt", rest, cores[k], codes[k], optimize=True))
            break
        image = np.einsum("nas,nsit,nj,ntr->aijr", rest, cores[k], codes[k], right, optimize=True)
        rank = image.shape[3]
        basis, _ = np.linalg.qr(image.reshape(-1, rank))
        core = np.pad(basis, ((0, 0), (0, rank - basis.shape[1]))).reshape(image.shape)
        found.append(core)
        rest = np.einsum("nas,nsit,nj,aijr->nrt", rest, cores[k], codes[k], core, optimize=True)
    return found
