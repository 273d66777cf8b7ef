"""Arcene: cancer against normal in mass spectra."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.fetch import Remote
from mporbm.datasets.loaders import as_bunch

from .archives import fetch_blob
from .tables import read_integers

REMOTE = Remote(
    "arcene.zip",
    ("https://archive.ics.uci.edu/static/public/167/arcene.zip",),
    aliases=("ARCENE.zip",),
    members=(
        "arcene_train.data",
        "arcene_train.labels",
        "arcene_valid.data",
        "arcene_valid.labels",
    ),
    checked_inside=True,
)
N_EACH, N_FEATURES, LARGEST = 100, 10000, 999
SHA256 = {
    "train": "42fd0e2ad8de56ce4b33b91c70f22248ec1b0d2373817dc9183c31f073904899",
    "valid": "1a1b52bf3b5bc908814497ed463b4c9983f581ab54d7fc84907ff7106fdfbbaf",
}
"""Hashes of the values and labels of each part: the files differ in blanks and line ends."""
N_POSITIVE = 44
DESCRIPTION = """\
Arcene: mass spectra of blood serum of patients with cancer and of healthy ones, with added features
that say nothing, 200 samples of 10000 integers (uint16, 0 to 999), 2 classes (normal 112, cancer
88). The first 100 samples are the training part of the NIPS 2003 feature selection challenge, the
other 100 its validation part; its test part has no published labels. The order of the features
carries no geometry.

I. Guyon, S. Gunn, A. Ben-Hur, G. Dror: Result analysis of the NIPS 2003 feature selection
challenge. Advances in Neural Information Processing Systems 17 (2004).

Terms of use: CC BY 4.0, as stated by the UCI Machine Learning Repository
(https://archive.ics.uci.edu/dataset/167/arcene).
"""


def load_arcene(*, return_X_y: bool = False) -> Any:
    """Arcene, mass spectra: 200 samples of 10000 integers, of 2 classes.

    The training part comes first, then the validation part, 100 samples each.

    Parameters
    ----------
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint16, 0 to 999), target (0 normal, 1 cancer), target_names, DESCR and source
    """
    parts = [_read_part(part) for part in SHA256]
    return as_bunch(
        np.concatenate([values for values, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        ["normal", "cancer"],
        description=DESCRIPTION,
        source="The training and validation parts of Arcene, with the published values.",
        return_X_y=return_X_y,
    )


def _read_part(part: str) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """The values of a part, and which of its samples are of cancer."""
    data, labels = (
        fetch_blob("arcene", REMOTE, f"arcene_{part}.{kind}") for kind in ("data", "labels")
    )
    values = read_integers(data, N_EACH, N_FEATURES)
    classes = read_integers(labels, N_EACH, 1)[:, 0]
    if values.min() < 0 or values.max() > LARGEST:
        raise ValueError(
            f"{data.label}: expected values from 0 to {LARGEST}, got {values.min()} to "
            f"{values.max()}."
        )
    positive = classes == 1
    if positive.sum() != N_POSITIVE or not np.isin(classes, (-1, 1)).all():
        raise ValueError(
            f"{labels.label}: expected {N_EACH} labels, {N_POSITIVE} of them 1 and the others -1, "
            f"got {positive.sum()} of them 1."
        )
    small = values.astype("<u2")
    if (found := hashlib.sha256(small.tobytes() + positive.tobytes()).hexdigest()) != SHA256[part]:
        raise ValueError(
            f"{data.label}: expected values and labels as they are published, of SHA-256 "
            f"{SHA256[part]}, got others, of {found}; get the files again from {REMOTE.urls[0]}."
        )
    return small.astype(np.uint16), positive
