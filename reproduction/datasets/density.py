"""Binary data with a tensor shape on which density estimators are compared."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.fetch import Remote
from mporbm.datasets.formats import Blob

from .archives import fetch_blob
from .tables import read_integers

FOLDER = "density"
"""The folder of all of them."""
ADDRESS = (
    "https://raw.githubusercontent.com/arranger1044/DEBD/"
    "d5e0c95fef9e418a39feccddae5d7a7526c1e8de/datasets"
)
TERMS = """
H. Larochelle, I. Murray: The neural autoregressive distribution estimator. International
Conference on Artificial Intelligence and Statistics, 2011, compare density estimators on it; the
file is from the collection DEBD (https://github.com/arranger1044/DEBD).

Terms of use: none are stated there; use it for research, with attribution.
"""


@dataclass(frozen=True)
class Part:
    """A part of a data set.

    Parameters
    ----------
    n_samples
        How many samples it has.
    sha256
        The hash of its values as bytes, sample by sample: files differ in line ends.
    """

    n_samples: int
    sha256: str


OCR_LETTERS = {
    "valid": Part(10_000, "6a479926457c272a4ef65656c0396aae52ac8e50cb40621ebd9989c76dad8435"),
    "test": Part(10_000, "d143c4f6d68c473586c449eca6aae9e514a4cea285281f1572e6248a2fef053f"),
}
CONNECT_FOUR = {
    "train": Part(16_000, "66f16f5e0557149943a973dde30c08f720e501a774f197249fa91622ac9b3819"),
    "valid": Part(4_000, "fd3490a0962bd89889a0bea8dd4aee9ebcee61323b494eadc6a3fed3551ea0ce"),
}
LETTER_SHAPE = (16, 8)
BOARD_SHAPE = (7, 6, 3)
OCR_DESCRIPTION = f"""\
OCR letters: handwritten small letters of the OCR data of B. Taskar (collected by R. Kassel), binary
images of 16x8 pixels, 10000 in each of the parts "valid" and "test".
{TERMS}"""
CONNECT_FOUR_DESCRIPTION = f"""\
Connect Four: positions after 8 moves in which neither player has won, of J. Tromp, from the UCI
Machine Learning Repository; 16000 in the part "train" and 4000 in "valid". A sample is (7, 6, 3):
7 columns of 6 squares from the bottom up, each in one of 3 states, one-hot: of one player, empty,
or of the other.
{TERMS}"""


def load_ocr_letters(subset: str = "valid") -> Any:
    """OCR letters: binary images (10000, 16, 8) of handwritten letters, without labels.

    Parameters
    ----------
    subset
        "valid" or "test", 10000 images each.

    Returns
    -------
    Bunch of data (uint8, 0 or 1), DESCR and source
    """
    values, name = _load("ocr_letters", subset, OCR_LETTERS, LETTER_SHAPE)
    return _as_bunch(values, name, OCR_DESCRIPTION)


def load_connect_four(subset: str = "train") -> Any:
    """Connect Four: positions (16000 or 4000, 7, 6, 3), the state of each square one-hot.

    Parameters
    ----------
    subset
        "train", 16000 positions, or "valid", 4000.

    Returns
    -------
    Bunch of data (uint8, 0 or 1), DESCR and source
    """
    values, name = _load("connect4", subset, CONNECT_FOUR, BOARD_SHAPE)
    return _as_bunch(values, name, CONNECT_FOUR_DESCRIPTION)


def _load(
    dataset: str, subset: str, parts: dict[str, Part], shape: tuple[int, ...]
) -> tuple[NDArray[np.uint8], str]:
    """The samples of a part, and the name of its file."""
    if not isinstance(subset, str) or subset not in parts:
        raise ValueError(f"subset={subset!r}: expected {' or '.join(map(repr, parts))}.")
    name = f"{dataset}.{subset}.data"
    remote = Remote(name, (f"{ADDRESS}/{dataset}/{name}",), checked_inside=True)
    blob = fetch_blob(FOLDER, remote, name)
    values = read_binary(blob, parts[subset].n_samples, shape)
    if (found := hashlib.sha256(values.tobytes()).hexdigest()) != parts[subset].sha256:
        raise ValueError(
            f"{blob.label}: expected values as they are published, of SHA-256 "
            f"{parts[subset].sha256}, got others, of {found}; get the file again from "
            f"{remote.urls[0]}."
        )
    return values, name


def read_binary(blob: Blob, n_samples: int, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read samples of zeros and ones, separated by commas, one in each line.

    Along a third mode, if there is one, exactly one of them must be 1.
    """
    values = read_integers(blob, n_samples, int(np.prod(shape)), b",")
    if wrong := sorted({*np.unique(values).tolist()} - {0, 1}):
        raise ValueError(f"{blob.label}: expected values 0 and 1 only, got also {wrong[0]}.")
    samples = values.astype(np.uint8).reshape(n_samples, *shape)
    if len(shape) > 2 and (bad := np.argwhere(samples.sum(axis=-1) != 1)).size:
        sample, *place = bad[0].tolist()
        raise ValueError(
            f"{blob.label}: expected exactly one 1 of {shape[-1]} along the last mode, got "
            f"{samples[sample, *place].sum()} in sample {sample + 1} at {tuple(place)}."
        )
    return samples


def _as_bunch(values: NDArray[np.uint8], name: str, description: str) -> Any:
    from sklearn.utils import Bunch

    return Bunch(data=values, DESCR=description, source=f"The file {name} of the collection DEBD.")
