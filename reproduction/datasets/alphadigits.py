"""Binary Alphadigits: handwritten digits and capital letters."""

from typing import Any

import numpy as np

from mporbm.datasets.fetch import Remote, fetch
from mporbm.datasets.loaders import as_bunch

REMOTE = Remote(
    "binaryalphadigs.mat",
    ("https://cs.nyu.edu/~roweis/data/binaryalphadigs.mat",),
    "3ee9392e64e4e3bb7b35502b69bf2555a0b4197c1b31048c4189b84bc0bc6ea7",
)
N_CLASSES, N_EACH = 36, 39
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
    from scipy.io import loadmat

    # Its hash was checked: it is what was published, or nothing.
    variables = loadmat(fetch("alphadigits", REMOTE), variable_names=["dat", "classlabels"])
    return as_bunch(
        np.stack([*variables["dat"].flat]).astype(np.uint8),
        np.repeat(np.arange(N_CLASSES), N_EACH),
        [str(name.item()) for name in variables["classlabels"].flat],
        description=DESCRIPTION,
        source=f"The file {REMOTE.name} as published.",
        return_X_y=return_X_y,
    )
