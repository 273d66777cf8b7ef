"""The singular values of W across each of its cuts: how much every rank would carry."""

import numpy as np
from jaxtyping import Float

from ..tensor import MPO
from .couplings import Coupling


def singular_values_by_cut(coupling: Coupling) -> dict[str, Float[np.ndarray, " _rank"]]:
    """The singular values of W in decreasing order, by the name of the cut.

    There is one cut for every bond of the MPO of W, between the modes before the bond and those
    after it, visible and hidden ones together. A ring is cut open first. A dense W between layers
    with one mode, or with different numbers of modes, has the singular values of its matrix.
    """
    visible, hidden = coupling.visible_shape, coupling.hidden_shape
    unpaired = len(coupling.factors) == 1 and len(visible) != len(hidden)
    if unpaired or len(visible) == 1:
        matrix = np.asarray(coupling.to_matrix(), np.float64)
        return {"visible | hidden": np.linalg.svd(matrix, compute_uv=False)}
    mpo = MPO(coupling.to_mpo().factors).to_open()
    names = [f"modes {k} | {k + 1}" for k in range(1, mpo.n_cores)]
    return dict(zip(names, mpo.singular_values(), strict=True))
