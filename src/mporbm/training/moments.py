"""Samples in place of others that have the same mean and covariance."""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, PyTree

from ..tensor.arrays import AnyArray, Samples
from .rows import unpacked
from .sources import ArraySource, Source

BATCH = 256
"""The samples that are summed up at once."""
N_HEAD = 1024
"""The samples of a stream that are kept to be watched, before it is read as a whole."""


class Substitutes(ArraySource):
    """Rows in place of the samples of another source, which stay those that are watched."""

    def __init__(self, rows: Samples, source: Source):
        super().__init__(rows, incomplete=bool(source.incomplete))
        self.source = source

    def head(self, n_rows: int) -> PyTree[AnyArray]:
        """Samples of the other source."""
        return self.source.head(n_rows)

    def fingerprint(self) -> dict[str, object]:
        """That of the other source."""
        return self.source.fingerprint()


def of_same_moments(source: Source) -> ArraySource:
    """Replace samples by two for each dimension, if these are fewer.

    They are ``mean +- sqrt(n e) u`` for each eigenvalue e and eigenvector u of the covariance: a
    likelihood that knows the samples by their moments alone, as that of Gaussian layers, is the
    same. Samples of which something is not known stay as they are; a stream of them is refused.
    """
    shape = source.head(N_HEAD).shape[1:]
    n_units = math.prod(shape)
    if isinstance(source, ArraySource) and len(source.used) <= 2 * n_units:
        return source
    total, mean, scatter = 0.0, np.zeros(n_units), np.zeros((n_units, n_units))
    for rows, weight in _batches(source):
        if np.isnan(rows).any():
            if isinstance(source, ArraySource):
                return source
            raise ValueError(
                "X: expected a stream of complete samples for Gaussian units in both layers, got "
                "NaN; pass an array, which may be memory-mapped."
            )
        # Chan, Golub & LeVeque (1979): sums of squares would lose what varies little.
        part = weight.sum()
        own = weight @ rows / part
        rest = rows - own
        gap = own - mean
        scatter += rest.T @ (weight[:, None] * rest)
        scatter += np.outer(gap, gap) * (part * total / (part + total))
        mean += gap * (part / (part + total))
        total += part
    values, vectors = np.linalg.eigh(scatter / total)
    spread = np.sqrt(n_units * np.maximum(values, 0.0))[:, None] * vectors.T
    rows = np.concatenate([mean + spread, mean - spread]).reshape(-1, *shape)
    return Substitutes(rows, source)


def _batches(source: Source) -> Iterator[tuple[Samples, Float[np.ndarray, " n"]]]:
    """Give flat samples with weights above 0, some at a time."""
    for block in source.blocks(None, BATCH):
        for chosen, weight in zip(block.chosen, block.weight, strict=True):
            rows = chosen if block.rows is None else block.rows[chosen]
            used = weight > 0.0
            flat = np.asarray(unpacked(rows), np.float64).reshape(len(weight), -1)
            if used.any():
                yield flat[used], np.asarray(weight[used], np.float64)
