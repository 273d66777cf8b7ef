"""Matrix product operators that span the directions in which samples vary.

A low-rank coupling of large layers reaches a tiny part of all weights, and random cores a random
one: the gradient of the data has next to nothing in it, and training waits on a plateau. Cores that
span the data's own directions start where the gradient is.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Shaped

from .mpo import MPO


def sketch_rows(
    rng: np.random.Generator,
    rows: Shaped[np.ndarray, "n ..."],
    hidden_shape: Sequence[int],
    ranks: Sequence[int],
    std: float = 0.01,
) -> MPO:
    """Build an open MPO close to ``W = sum_n (V_n - mean) x A_n``, with entries of size `std`.

    A_n is the product of random vectors, one for each hidden mode: every column of W is a random
    combination of centred samples. The cores are found one after the other from random sketches of
    W, which is never formed: cost and memory are those of a few passes over the rows.
    """
    rest = np.asarray(rows, np.float64)
    rest = rest - rest.mean(axis=0)
    # A little noise, so that there is a direction even where samples do not differ.
    rest = (rest + (0.01 * rest.std() + 1e-6) * rng.normal(size=rest.shape))[:, None]
    codes = [rng.normal(size=(len(rest), size)) for size in hidden_shape]
    cores = []
    for k, rank in enumerate(ranks):
        # rest: (n, R_k, I_k, ..., I_d), the samples seen through the cores before.
        sketch = rest
        for mode in range(rest.ndim - 1, 2, -1):
            test = rng.normal(size=(rest.shape[mode], rank))
            if sketch.ndim == mode + 1:
                sketch = sketch @ test
            else:
                sketch = np.einsum("...ir,ir->...r", sketch, test)
        later = [code @ rng.normal(size=(code.shape[1], rank)) for code in codes[k + 1 :]]
        weight = math.prod(later[1:], start=later[0])
        image = np.einsum("nair,nj,nr->aijr", sketch, codes[k], weight)
        core, _ = np.linalg.qr(image.reshape(-1, rank))
        core = np.pad(core, ((0, 0), (0, rank - core.shape[1]))).reshape(image.shape)
        cores.append(core)
        rest = np.einsum("nai...,nj,aijr->nr...", rest, codes[k], core, optimize=True)
    cores.append(np.einsum("nai,nj->aij", rest, codes[-1])[..., None])
    size = math.prod(core.shape[1] * core.shape[2] for core in cores)
    scale = np.linalg.norm(cores[-1]) / math.sqrt(size)
    cores[-1] *= std / scale
    # The norm is shared out among the cores, as random ones have it.
    norms = [np.linalg.norm(core) for core in cores]
    mean = math.prod(norms) ** (1.0 / len(norms))
    return MPO([core * (mean / norm) for core, norm in zip(cores, norms, strict=True)])
