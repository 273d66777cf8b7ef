"""Who fills in and cleans images: Gibbs steps of a dense machine on many samples."""

from typing import Any

import numpy as np
from contest import Run

SHAPE = (28, 28)


def _images(n_images: int) -> Any:
    return np.random.default_rng(0).random((n_images, *SHAPE)) < 0.15


def _ours(n_hidden: int) -> Any:
    from mporbm import RBM

    return RBM(n_hidden, n_iter=1, random_state=0).fit(_images(1000))


def complete(n_images: int, n_hidden: int, n_gibbs: int) -> Run:
    """The posterior mean of the left half given the right one."""
    model, images = _ours(n_hidden), _images(n_images)
    mask = np.broadcast_to(np.arange(28) >= 14, SHAPE)
    return lambda: model.complete(images, mask, n_gibbs=n_gibbs, random_state=0)


def denoise(n_images: int, n_hidden: int, n_gibbs: int) -> Run:
    """The posterior mean given images with a tenth of salt and pepper."""
    model, images = _ours(n_hidden), _images(n_images)
    return lambda: model.denoise(images, salt_and_pepper=0.1, n_gibbs=n_gibbs, random_state=0)


def scikit_learn(n_images: int, n_hidden: int, n_gibbs: int) -> Run:
    """As many Gibbs steps, with the known half of the pixels put back after each.

    It gives the last state, not an average, and knows of no noise: less than is asked for.
    """
    from sklearn.neural_network import BernoulliRBM

    images = _images(n_images).reshape(n_images, -1).astype(np.float32)
    model = BernoulliRBM(n_hidden, n_iter=1, random_state=0).fit(images[:1000])
    known = np.broadcast_to(np.arange(28) >= 14, SHAPE).reshape(-1)

    def run() -> None:
        state = images
        for _ in range(n_gibbs):
            state = np.where(known, images, model.gibbs(state)).astype(np.float32)

    return run
