"""The data sets of Table 4: layers of each machine (Tables 2 and 3), codings, random splits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets import load_mnist_5k
from mporbm.estimators import Binarize, BitPlanes

from . import datasets

Array = NDArray[Any]
Shape = tuple[int, ...]
MOST_PER_CLASS = 34
"""The paper: training samples of each class, "commonly less than 35"."""


@dataclass(frozen=True)
class Task:
    """A classification task.

    Parameters
    ----------
    title
        The name of the data set.
    load
        Gives the samples.
    visible_shape, hidden_shape
        The layers of the MPORBM, with the bits of a value in the last mode.
    matrix_shapes
        The layers of the MvRBM.
    n_bits
        How many bits a value has; 1 if samples are binary.
    codings
        How samples are given to machines: the paper's bits first.
    threshold
        Values above it are 1, if there is one.
    rank
        The MPO-rank.
    n_iter
        Epochs of the alternating scheme.
    rates
        Learning rates of the paper's rule: two powers of ten, of which the larger one is near the
        largest at which it does not diverge at once.
    train_share
        The share of each class for training, of which at most 34 samples are taken.
    n_splits
        How many random splits are made.
    paper
        The paper's errors in per cent by the name of the machine (Table 4).
    """

    title: str
    load: Callable[[], Any]
    visible_shape: Shape
    hidden_shape: Shape
    matrix_shapes: tuple[Shape, Shape]
    n_bits: int
    rank: int
    n_iter: int
    codings: tuple[str, ...] = ("bits", "values")
    rates: tuple[float, float] = (0.01, 0.001)
    threshold: int | None = None
    train_share: float = 0.5
    n_splits: int = 10
    paper: Mapping[str, float] = field(default_factory=dict)

    @property
    def value_shape(self) -> Shape:
        """The shape of samples without the mode of bits, or with the colours in its place."""
        *modes, last = self.visible_shape
        return (*modes, last // self.n_bits) if self.n_bits > 1 else self.visible_shape

    @property
    def n_dense_weights(self) -> int:
        """How many weights an RBM has."""
        return math.prod(self.visible_shape) * math.prod(self.hidden_shape)


TASKS: dict[str, Task] = {
    "alphadigits": Task(
        "Alphadigits",
        datasets.load_alphadigits,
        (20, 16),
        (10, 8),
        ((20, 16), (10, 8)),
        n_bits=1,
        codings=("bits",),
        rank=20,
        rates=(0.1, 0.01),
        n_iter=60,
        train_share=0.75,
        paper={"RBM": 28.10, "MvRBM": 31.20, "CD-SU": 28.10, "CD-AOP": 26.90},
    ),
    "drivface": Task(
        "DrivFace",
        datasets.load_drivface,
        (80, 80, 8),
        (10, 10, 5),
        ((80, 640), (10, 50)),
        n_bits=8,
        rank=10,
        n_iter=8,
        paper={"RBM": 24.20, "MvRBM": 15.48, "CD-SU": 9.68, "CD-AOP": 8.06},
    ),
    "arcene": Task(
        "Arcene",
        datasets.load_arcene,
        (100, 100, 10),
        (10, 10, 5),
        ((100, 1000), (10, 50)),
        n_bits=10,
        rank=10,
        n_iter=4,
        paper={"RBM": 45.00, "MvRBM": 34.00, "CD-SU": 32.00, "CD-AOP": 27.00},
    ),
    "coil100": Task(
        "COIL-100",
        datasets.load_coil100,
        (128, 128, 24),
        (10, 10, 5),
        ((128, 3072), (10, 50)),
        n_bits=8,
        codings=("bits", "gray", "values"),
        rank=10,
        rates=(0.001, 0.0001),
        n_iter=1,
        n_splits=3,
        paper={"MvRBM": 6.82, "CD-SU": 6.82, "CD-AOP": 0.00},
    ),
    "mnist": Task(
        "MNIST",
        load_mnist_5k,
        (28, 28),
        (10, 10),
        ((28, 28), (10, 10)),
        n_bits=1,
        codings=("bits",),
        rank=20,
        rates=(0.1, 0.01),
        n_iter=20,
        threshold=127,
        n_splits=3,
    ),
}


class Split(NamedTuple):
    """Positions of the training, validation and test samples."""

    train: Array
    validation: Array
    test: Array


def split(labels: Array, seed: int, train_share: float) -> Split:
    """A random split: of each class a share, but at most 34, for training; the rest in halves."""
    rng = np.random.default_rng(seed)
    parts: tuple[list[int], ...] = ([], [], [])
    for label in np.unique(labels):
        positions = rng.permutation(np.flatnonzero(labels == label)).tolist()
        n_train = min(MOST_PER_CLASS, int(train_share * len(positions)))
        middle = n_train + (len(positions) - n_train) // 2
        for part, chosen in zip(
            parts,
            (positions[:n_train], positions[n_train:middle], positions[middle:]),
            strict=True,
        ):
            part.extend(chosen)
    return Split(*(np.asarray(part) for part in parts))


@lru_cache(maxsize=1)
def samples(name: str) -> tuple[Array, Array]:
    """The values and the labels of a task."""
    bunch = TASKS[name].load()
    return bunch.data, bunch.target


def coded(task: Task, values: Array, coding: str, train: Array) -> Any:
    """The samples as a machine gets them.

    ``"bits"``: the paper's multi-bit coding. ``"gray"``: the same in Gray code, in which
    neighbouring values differ in one bit. ``"values"``: the values themselves, for Gaussian units,
    without the mean of the training samples and with their standard deviation as unit. The shape
    of samples is that of an MPORBM; others take them flattened.
    """
    if coding == "values":
        numbers = values.reshape(len(values), *task.value_shape).astype(np.float32)
        numbers -= numbers[train].mean(axis=0)
        return numbers / numbers[train].std()
    if task.threshold is not None:
        return Binarize(task.threshold).fit_transform(values)
    if task.n_bits == 1:
        return values.reshape(len(values), *task.visible_shape)
    planes = BitPlanes(task.n_bits, gray=coding == "gray", shape=task.visible_shape)
    return planes.fit_transform(values)
