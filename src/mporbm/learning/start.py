"""Where training starts: small weights that already look where the data vary.

A low-rank coupling of large layers reaches a tiny part of all weights, and random cores a random
one: the gradient of the data has next to nothing in it, and training waits on a plateau. Cores that
span the data's own directions start where the gradient is.
"""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..machine import Bernoulli, Coupling, Machine
from ..tensor import MPO


def base_rate_bias(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The visible bias of Bernoulli units that are on as often as in the data."""
    return Bernoulli().base_bias(rows)


def with_unit_fields(machine: Machine, rows: NDArray[Any]) -> Machine:
    """The machine with W at a scale at which hidden fields of the samples spread by 1 around 0.

    Labels teach W only as far as hidden units tell samples apart: of small weights, the gradient
    of ``log p(y | V)`` is as small.
    """
    visible = np.asarray(rows, machine.coupling.dtype)
    field = np.asarray(_hidden_fields(machine.coupling, visible), np.float64)
    spread = float(field.std(axis=0).mean())
    # Samples that are all the same have no scale.
    scale = 1.0 / spread if spread > 0.0 else 1.0
    arrays, structure = jax.tree.flatten(machine.coupling)
    share = scale ** (1.0 / len(arrays))
    scaled = jax.device_put([share * np.asarray(array) for array in arrays])
    coupling = jax.tree.unflatten(structure, scaled)
    center = -scale * field.mean(axis=0)
    return Machine(coupling, machine.visible_bias, center, machine.visible_units)


@eqx.filter_jit
def _hidden_fields(coupling: Coupling, visible: Any) -> Array:
    return coupling.apply_transpose(visible)


def data_mpo(
    rng: np.random.Generator,
    rows: NDArray[Any],
    hidden_shape: Sequence[int],
    ranks: Sequence[int],
    std: float = 0.01,
) -> MPO:
    """An open MPO close to ``W = sum_n (V_n - mean) x A_n``, with entries of size `std`.

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
