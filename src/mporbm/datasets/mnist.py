"""MNIST: handwritten digits."""

from typing import Any

from .archives import read_gzip
from .bunch import as_bunch, check_word
from .fetch import Remote, fetch
from .formats import read_idx

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
    check_word("subset", subset, tuple(PREFIXES))
    remotes = [_remote(f"{PREFIXES[subset]}-{kind}") for kind in ("images-idx3", "labels-idx1")]
    blobs = [read_gzip(fetch("mnist", remote)) for remote in remotes]
    images, labels = read_idx(blobs[0], n_axes=3), read_idx(blobs[1], n_axes=1)
    expected = (N_SAMPLES[subset], 28, 28)
    if images.shape != expected or len(labels) != len(images) or labels.max() > 9:
        raise ValueError(
            f"{blobs[0].label}: expected images of shape {expected} and as many labels from 0 to "
            f"9 in {remotes[1].name}, got {images.shape} and {len(labels)} labels."
        )
    return as_bunch(
        images,
        labels,
        [str(digit) for digit in range(10)],
        description=DESCRIPTION,
        source=f"The files {remotes[0].name} and {remotes[1].name} as published.",
        return_X_y=return_X_y,
    )


def _remote(stem: str) -> Remote:
    name = f"{stem}-ubyte.gz"
    return Remote(name, tuple(url + name for url in MIRRORS), SHA256[stem])
