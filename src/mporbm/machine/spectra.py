"""Singular values of a coupling at each of its bonds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .coupling import Coupling, DenseCoupling


def spectra(coupling: Coupling) -> dict[str, NDArray[Any]]:
    """Return the singular values of W at each cut between modes, by the name of the cut."""
    visible, hidden = coupling.visible_shape, coupling.hidden_shape
    unpaired = isinstance(coupling, DenseCoupling) and len(visible) != len(hidden)
    if unpaired or len(visible) == 1:
        matrix = np.asarray(coupling.to_matrix(), np.float64)
        return {"visible | hidden": np.linalg.svd(matrix, compute_uv=False)}
    mpo = coupling.to_mpo().mpo.to_open()
    names = [f"modes {k} | {k + 1}" for k in range(1, mpo.n_cores)]
    return dict(zip(names, mpo.singular_values(), strict=True))
