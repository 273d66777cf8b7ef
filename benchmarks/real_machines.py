"""The machines that `real.py` compares with what people use, for each task."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from mporbm import MPORBM

Rows = NDArray[Any]
CANDIDATES: dict[str, tuple[dict[str, Any], ...]] = {
    "serology": tuple({"hidden_shape": (6, 11), "rank": rank} for rank in (3, 4, 6, 8)),
    "kinetic": ({"hidden_shape": (3, 3, 4), "rank": 8, "n_iter": 20},),
    "pines": ({"hidden_shape": (2, 2, 16), "rank": 20, "n_iter": 20},),
    "photographs": ({"hidden_shape": (8, 8, 3), "rank": 30, "n_iter": 50},),
}
"""What is chosen from for each task; Indian Pines has as many hidden units as PCA has features."""


class Chosen(BaseEstimator):  # type: ignore[misc] # scikit-learn has no type hints
    """The candidate that gives a fifth of the training samples the largest probability."""

    def __init__(self, estimator: Any, candidates: tuple[dict[str, Any], ...]) -> None:
        self.estimator = estimator
        self.candidates = candidates

    def fit(self, X: Rows) -> Self:
        """Choose, and learn from all samples."""
        order = np.random.default_rng(0).permutation(len(X))
        apart, rest = X[order[: len(X) // 5]], X[order[len(X) // 5 :]]

        def held_out(candidate: dict[str, Any]) -> float:
            return float(self._made(candidate).fit(rest).score_samples(apart).mean())

        several = len(self.candidates) > 1
        best = max(self.candidates, key=held_out) if several else self.candidates[0]
        self.machine_ = self._made(best).fit(X)
        return self

    def _made(self, candidate: dict[str, Any]) -> Any:
        return clone(self.estimator).set_params(**candidate)

    def complete(self, X: Rows, **options: Any) -> Any:
        """Fill in NaN."""
        return self.machine_.complete(X, **options)

    def denoise(self, X: Rows, noise: float, **options: Any) -> Rows:
        """Clean samples of noise of a standard deviation."""
        return np.asarray(self.machine_.denoise(X, noise, **options))

    def transform(self, X: Rows) -> Rows:
        """Compute features."""
        return np.asarray(self.machine_.transform(X))

    def score_samples(self, X: Rows) -> Rows:
        """Compute the log-density of samples, in nats."""
        return np.asarray(self.machine_.score_samples(X))


def machines(task: str) -> dict[str, Chosen]:
    """Make the machines for a task, with estimators that have not learnt."""
    machine = MPORBM(visible_units="gaussian", feature="field", random_state=0)
    return {"MPORBM, Gaussian hidden units": Chosen(machine, CANDIDATES[task])}
