"""Binary Alphadigits: handwritten digits and capital letters."""

from typing import Any

import numpy as np

from mporbm.datasets.archives import Blob
from mporbm.datasets.bunch import as_bunch
from mporbm.datasets.fetch import Remote, fetch

from .matlab import read_mat

REMOTE = Remote(
    "binaryalphadigs.mat",
    ("https://cs.nyu.edu/~roweis/data/binaryalphadigs.mat",),
    "3ee9392e64e4e3bb7b35502b69bf2555a0b4197c1b31048c4189b84bc0bc6ea7",
)
N_CLASSES, N_EACH, SHAPE = 36, 39, (20, 16)
DESCRIPTION = """\
Binary Alphadigits: handwritten digits 0 to 9 and capital letters A to Z, 39 of each, 1404 binary
images of 20x16 pixels (uint8, 0 or 1), 36 classes.

Sam Roweis's data page (https://cs.nyu.edu/~roweis/data.html); from the Algoval system of Simon
Lucas.

Terms of use: none are stated; use it for research, with attribution.
"""


def load_alphadigits(*, return_X_y: bool = False) -> Any:
    """Binary Alphadigits, handwritten digits and letters: images (1404, 20, 16) of 36 classes.

    Parameters
    ----------
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8, 0 or 1), target, target_names, DESCR and source
    """
    path = fetch("alphadigits", REMOTE)
    variables = read_mat(Blob(str(path), path.read_bytes()), "dat", "classlabels")
    cells, names = variables["dat"], variables["classlabels"]
    expected = (N_CLASSES, N_EACH)
    if cells.shape != expected or any(np.shape(cell) != SHAPE for cell in cells.flat):
        raise ValueError(
            f"{path}: expected {expected} cells 'dat' of {SHAPE} pixels each, got {cells.shape} "
            f"cells."
        )
    images = np.stack([np.asarray(cell) for cell in cells.flat])
    if not np.isin(images, (0, 1)).all():
        raise ValueError(f"{path}: expected pixels 0 and 1, got others.")
    return as_bunch(
        images.astype(np.uint8),
        np.repeat(np.arange(N_CLASSES), N_EACH),
        [str(np.asarray(name).item()) for name in names.flat],
        description=DESCRIPTION,
        source=f"The file {REMOTE.name} as published.",
        return_X_y=return_X_y,
    )
