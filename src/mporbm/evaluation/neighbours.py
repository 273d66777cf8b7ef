"""Nearest neighbours: 1-NN classification, as in all of the paper's experiments, and k of them."""

from typing import Literal

import numpy as np

Array = np.ndarray
Distance = Literal["euclidean", "cosine"]
BLOCK = 256
"""How many samples are compared with all others at once: their products stay in the cache."""
COLUMNS = 2**14
"""How many values of each sample are compared at once."""
DISTANCES: tuple[Distance, ...] = ("euclidean", "cosine")


def classify(
    train: Array, labels: Array, samples: Array, distance: Distance = "euclidean"
) -> Array:
    """Give each sample (n, ...) the label of the nearest training sample."""
    known, asked = _rows(train), _rows(samples)
    nearest = np.empty(len(asked), np.intp)
    for start in range(0, len(asked), BLOCK):
        part = slice(start, start + BLOCK)
        nearest[part] = np.argmax(_likeness(asked[part], known, distance), axis=1)
    return np.asarray(labels[nearest])


def nearest(
    train: Array, samples: Array, k: int = 1, left_out: Array | None = None
) -> tuple[Array, Array]:
    """Find the k nearest training samples of each sample, the nearest first.

    Blocks of samples meet blocks of training samples, so that memory is bounded. Of training
    samples that are equally near the first comes first; distances of whole numbers, such as the
    Hamming distance of binary samples, are exact.

    Parameters
    ----------
    left_out
        For each sample the number of a training sample that cannot be its neighbour: itself.

    Returns
    -------
    numbers, distances
        The numbers of the neighbours, and squared Euclidean distances from them, both (n, k).
    """
    known, asked = _rows(train), _rows(samples)
    numbers = np.zeros((len(asked), k), np.intp)
    scores = np.full((len(asked), k), -np.inf)
    for part in _slices(len(asked), BLOCK):
        for others in _slices(len(known), 4 * BLOCK):
            found = _likeness(asked[part], known[others], "euclidean")
            rows = np.arange(len(found))
            if left_out is not None:
                own = left_out[part] - others.start
                here = (own >= 0) & (own < found.shape[1])
                found[rows[here], own[here]] = -np.inf
            # The best ones so far come first.
            candidates = np.tile(np.arange(-k, found.shape[1]) + others.start, (len(rows), 1))
            candidates[:, :k] = numbers[part]
            found = np.hstack([scores[part], found])
            for rank in range(k):
                best = np.argmax(found, axis=1)
                numbers[part, rank] = candidates[rows, best]
                scores[part, rank] = found[rows, best]
                found[rows, best] = -np.inf
    squares = np.concatenate([_squares(asked[part]) for part in _slices(len(asked), BLOCK)])
    return numbers, np.maximum(squares[:, None] - 2.0 * scores, 0.0)


def error_rate(predicted: Array, labels: Array) -> float:
    """The share of wrong labels, in per cent."""
    return 100.0 * float(np.mean(predicted != labels))


def balanced_error_rate(predicted: Array, labels: Array) -> float:
    """The mean over the classes of the share of wrong labels of each, in per cent."""
    wrong = predicted != labels
    return 100.0 * float(np.mean([wrong[labels == label].mean() for label in np.unique(labels)]))


def leave_one_out_error_rate(train: Array, labels: Array, distance: Distance) -> float:
    """The error of classifying each training sample by the others, in per cent."""
    rows = _rows(train)
    scores = _likeness(rows, rows, distance)
    np.fill_diagonal(scores, -np.inf)
    return error_rate(labels[np.argmax(scores, axis=1)], labels)


def majority_label(labels: Array) -> np.generic:
    """The commonest label."""
    values, counts = np.unique(labels, return_counts=True)
    commonest: np.generic = values[np.argmax(counts)]
    return commonest


def _rows(samples: Array) -> Array:
    return np.asarray(samples).reshape(len(samples), -1)


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _squares(rows: Array) -> Array:
    values = rows.astype(np.float64)
    squares: Array = np.einsum("ij,ij->i", values, values)
    return squares


def _likeness(asked: Array, known: Array, distance: Distance) -> Array:
    """Compute what is largest for the nearest: ``a b - |a|^2 / 2``, or the cosine, but for ``|b|``.

    In double precision: in single, near neighbours far from zero would be taken for each other.
    Some columns at a time, so that there is never a copy of everything.
    """
    products, squares = np.zeros((len(asked), len(known))), np.zeros(len(known))
    for start in range(0, known.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        b, a = asked[:, part].astype(np.float64), known[:, part].astype(np.float64)
        products += b @ a.T
        squares += np.einsum("ij,ij->i", a, a)
    if distance == "cosine":
        return products / np.maximum(np.sqrt(squares), 1e-12)
    return products - 0.5 * squares
