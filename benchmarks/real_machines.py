"""The machines that `real.py` compares with what people use, for each task."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from mporbm import MPORBM
from mporbm.evaluation.baselines import unit_moments

Rows = NDArray[Any]


class Standardized(BaseEstimator):  # type: ignore[misc] # scikit-learn has no type hints
    """A machine that sees samples in standard deviations of the training samples, and answers back.

    Each unit by its own mean and deviation, or, for samples whose units have one scale, all of
    them by the deviation of all.
    """

    def __init__(self, estimator: Any, by_unit: bool = True) -> None:
        self.estimator = estimator
        self.by_unit = by_unit

    def fit(self, X: Rows) -> Self:
        """Learn from samples."""
        self.mean_, scale = unit_moments(X)
        self.scale_ = scale if self.by_unit else np.sqrt(np.mean(scale**2))
        self.machine_ = clone(self.estimator).fit(self._inwards(X))
        return self

    def complete(self, X: Rows, **options: Any) -> tuple[Rows, Rows]:
        """Fill in NaN; also give the standard deviation of every cell."""
        mean, deviation = self.machine_.complete(self._inwards(X), **options)
        return mean * self.scale_ + self.mean_, deviation * self.scale_

    def denoise(self, X: Rows, noise: float, **options: Any) -> Rows:
        """Clean samples of noise of a standard deviation in the units of the data."""
        answer = self.machine_.denoise(self._inwards(X), noise / self.scale_, **options)
        return np.asarray(answer * self.scale_ + self.mean_)

    def transform(self, X: Rows) -> Rows:
        """Compute features."""
        return np.asarray(self.machine_.transform(self._inwards(X)))

    def score_samples(self, X: Rows) -> Rows:
        """Compute the log-density of samples in the units of the data, in nats."""
        volume = np.log(np.broadcast_to(self.scale_, X.shape[1:])).sum()
        return np.asarray(self.machine_.score_samples(self._inwards(X)) - volume)

    def _inwards(self, X: Rows) -> Rows:
        return np.asarray((X - self.mean_) / self.scale_)


HIDDEN_SHAPES = {
    "serology": (4, 6),
    "kinetic": (3, 3, 4),
    "pines": (2, 2, 16),
    "photographs": (8, 8, 3),
}
"""The hidden layer for each task; that of Indian Pines has 64 units, as many as the features."""


def machines(task: str) -> dict[str, Standardized]:
    """Make the machines for a task, with estimators that have not learnt."""
    common: dict[str, Any] = {"visible_units": "gaussian", "feature": "field", "random_state": 0}
    kinds = {
        "MPORBM, binary hidden units": MPORBM(HIDDEN_SHAPES[task], **common),
        "MPORBM, Gaussian hidden units": MPORBM(
            HIDDEN_SHAPES[task], hidden_units="gaussian", **common
        ),
    }
    by_unit = task != "photographs"
    return {name: Standardized(kind, by_unit) for name, kind in kinds.items()}
