"""1-nearest-neighbour classification, as in all of the paper's experiments (K-NN with K = 1)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Distance = Literal["euclidean", "cosine"]
BLOCK = 256
"""How many samples are compared with all others at once: their products stay in the cache."""
DISTANCES: tuple[Distance, ...] = ("euclidean", "cosine")


def classify(
    train: Array, labels: Array, samples: Array, distance: Distance = "euclidean"
) -> Array:
    """The label of the nearest training sample for each sample; samples are any arrays (n, ...)."""
    known, asked = _rows(train, distance), _rows(samples, distance)
    lengths = _half_squares(known, distance)
    nearest = np.empty(len(asked), np.intp)
    for start in range(0, len(asked), BLOCK):
        part = slice(start, start + BLOCK)
        nearest[part] = np.argmax(asked[part] @ known.T - lengths, axis=1)
    return np.asarray(labels[nearest])


def error_rate(predicted: Array, labels: Array) -> float:
    """The share of wrong labels, in per cent."""
    return 100.0 * float(np.mean(predicted != labels))


def balanced_error_rate(predicted: Array, labels: Array) -> float:
    """The mean over the classes of the share of wrong labels of each, in per cent."""
    wrong = predicted != labels
    return 100.0 * float(np.mean([wrong[labels == label].mean() for label in np.unique(labels)]))


def leave_one_out_error_rate(train: Array, labels: Array, distance: Distance) -> float:
    """The error of classifying each training sample by the others, in per cent."""
    rows = _rows(train, distance)
    scores = rows @ rows.T - _half_squares(rows, distance)
    np.fill_diagonal(scores, -np.inf)
    return error_rate(labels[np.argmax(scores, axis=1)], labels)


def majority_label(labels: Array) -> Any:
    """The commonest label."""
    values, counts = np.unique(labels, return_counts=True)
    return values[np.argmax(counts)]


def _rows(samples: Array, distance: Distance) -> Array:
    # In single precision, near neighbours far from zero would be taken for each other.
    rows: Array = np.asarray(samples, np.float64).reshape(len(samples), -1)
    if distance == "cosine":
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows


def _half_squares(known: Array, distance: Distance) -> Any:
    """What products lack: ``-|a - b|^2 / 2 = a b - |a|^2 / 2``, but for ``|b|^2``, which is given.

    A cosine lacks nothing.
    """
    return 0.0 if distance == "cosine" else 0.5 * np.einsum("ij,ij->i", known, known)
