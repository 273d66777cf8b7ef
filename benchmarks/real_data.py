"""Real-valued tensor data that come with TensorLy and scikit-image, of the bench extra."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[Any]
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket", "stereo_motorcycle")
"""Colour photographs that scikit-image brings along: no other is loaded, and nothing is fetched."""
N_PATCHES = 4000
"""How many patches of each photograph there are."""
PATCH = 16
"""The side of a patch of a photograph."""
REACH = 2
"""How far a patch of Indian Pines goes from its middle: it is 5x5."""
BLOCK = 12
"""The side of the blocks of pixels that are in one fold."""


class UnavailableError(Exception):
    """Data that are not installed."""


def load_serology() -> Rows:
    """Load COVID-19 serology: (438 samples, 6 antigens, 11 receptors)."""
    return _tensor("load_covid19_serology")


def load_kinetic() -> Rows:
    """Load fluorescence (64 measurements, 12 emission and 10 excitation wavelengths, 60 times)."""
    return _tensor("load_kinetic")


def _tensor(name: str) -> Rows:
    try:
        from tensorly import datasets
    except ModuleNotFoundError as error:
        raise UnavailableError(f"{error.name} is not installed") from None
    return np.asarray(getattr(datasets, name)().tensor, np.float64)


class Pixels(NamedTuple):
    """Labelled pixels of Indian Pines."""

    patches: NDArray[np.float32]
    """What is around them, (n, 5, 5, 200); beyond the border the image is mirrored."""
    classes: NDArray[np.int64]
    places: NDArray[np.int64]
    """Row and column of each, (n, 2)."""


def load_pines() -> Pixels:
    """Load the patches around all labelled pixels of Indian Pines."""
    image = _tensor("load_indian_pines").astype(np.float32)
    from tensorly import datasets

    labels = np.asarray(datasets.load_indian_pines().ticks[0])
    places = np.argwhere(labels > 0)
    padded = np.pad(image, ((REACH, REACH), (REACH, REACH), (0, 0)), mode="reflect")
    around = np.arange(2 * REACH + 1)
    rows, columns = (places[:, [k]] + around for k in (0, 1))
    patches = padded[rows[:, :, None], columns[:, None, :]]
    return Pixels(patches, labels[tuple(places.T)].astype(np.int64), places)


def pixel_folds(
    pixels: Pixels, n_splits: int, disjoint: bool
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Split pixels into training and test.

    Disjoint ones learn from all blocks but those of a fold, without patches that overlap its own.
    Random ones learn from a fold of single pixels and test all others, whose patches overlap.
    """
    rng = np.random.default_rng(0)
    if disjoint:
        numbers = pixels.places // BLOCK
        blocks, owners = np.unique(numbers, axis=0, return_inverse=True)
        fold = rng.permutation(np.arange(len(blocks)) % n_splits)[owners]
    else:
        fold = rng.permutation(np.arange(len(pixels.places)) % n_splits)
    found = []
    for number in range(n_splits):
        test = np.flatnonzero(fold == number)
        train = np.flatnonzero(fold != number)
        if disjoint:
            seen = np.zeros(pixels.places.max(axis=0) + 1 + 4 * REACH, bool)
            for row, column in pixels.places[test]:
                seen[row : row + 4 * REACH + 1, column : column + 4 * REACH + 1] = True
            # A patch of training is left out if its middle is within 4 pixels of a middle of test.
            train = train[~seen[tuple((pixels.places[train] + 2 * REACH).T)]]
        found.append((train, test) if disjoint else (test, train))
    return found


class Photographs(NamedTuple):
    """Patches (n, 16, 16, 3), from 0 to 1, of photographs to learn from, choose by, and test."""

    train: Rows
    held_out: Rows
    test: Rows


def load_photographs(n_splits: int) -> list[Photographs]:
    """Load random patches; each photograph is the test once, and the next one is chosen by."""
    patches = _patches()
    n = len(patches)
    return [
        Photographs(
            np.concatenate([patches[m] for m in range(n) if m not in (k, (k + 1) % n)]),
            patches[(k + 1) % n],
            patches[k],
        )
        for k in range(min(n_splits, n))
    ]


def _patches() -> list[Rows]:
    try:
        from skimage import data
    except ModuleNotFoundError as error:
        raise UnavailableError(f"{error.name} is not installed") from None
    rng, found = np.random.default_rng(0), []
    for name in PHOTOGRAPHS:
        try:
            image = getattr(data, name)()
        except (OSError, ModuleNotFoundError) as error:
            raise UnavailableError(f"{name} is not there: {error}") from None
        image = np.asarray(image[0] if isinstance(image, tuple) else image)
        corners = [rng.integers(side - PATCH + 1, size=N_PATCHES) for side in image.shape[:2]]
        around = np.arange(PATCH)
        rows, columns = (corner[:, None] + around for corner in corners)
        found.append(image[rows[:, :, None], columns[:, None, :]] / 255.0)
    return found
