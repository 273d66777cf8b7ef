"""One training of a sweep: the samples of its seed, and what it is worth on those held back."""

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from ..atomic import locked
from ..estimators.boltzmann import BoltzmannEstimator
from ..estimators.coding import Coding
from ..estimators.inference import InferenceMixin
from ..evaluation import neighbours
from ..evaluation.run_cache import outcome_path, read_outcome, write_outcome
from ..training import DivergenceWarning
from ..training.rows import PackedBits

REVISION = 2
"""To be raised when outcomes change, so that those that were kept are made again."""
BLOCK = 1024
"""How many samples are reconstructed at once."""
SECONDS_BETWEEN_LOOKS = 0.2
FAILURES = (
    *(ArithmeticError, LookupError, MemoryError, OSError, RuntimeError),
    *(TypeError, ValueError),
)
"""What settings, samples and computers cause; anything else is a mistake in here, to be seen."""


class Outcome(TypedDict, total=False):
    """What became of a run: its status, and what was found or the reason of a failure."""

    status: str
    measures: dict[str, float]
    n_iter: int
    n_parameters: int
    seconds: float
    reason: str


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples and perhaps their labels, for training and for validation.

    Without `X_val` a share of X is set aside. The seed of a run alone chooses which samples, so
    that all settings are compared on the same ones, seed by seed.
    """

    X: np.ndarray
    X_val: np.ndarray | None = None
    y: np.ndarray | None = None
    y_val: np.ndarray | None = None
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        if self.X_val is None and self._n_held() >= len(self.X):
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: expected to leave samples to "
                f"learn from, but there are {len(self.X)} in all."
            )

    def _n_held(self) -> int:
        """Return how many samples are set aside, at least one."""
        return math.ceil(self.validation_fraction * len(self.X))

    def split(self, seed: int) -> "Samples":
        """Return the samples of the runs with a seed, those for validation apart."""
        if self.X_val is not None:
            return self
        held = np.zeros(len(self.X), bool)
        held[np.random.default_rng(seed).permutation(len(held))[: self._n_held()]] = True
        y = (None, None) if self.y is None else (self.y[~held], self.y[held])
        return Samples(self.X[~held], self.X[held], *y)

    def fingerprint(self) -> str:
        """Return a hash of all samples and labels, and of the share that is set aside."""
        fraction = self.validation_fraction if self.X_val is None else None
        arrays = [None if a is None else np.ascontiguousarray(a) for a in (self.X, self.X_val)]
        return str(joblib.hash((*arrays, self.y, self.y_val, fraction)))


@dataclass(frozen=True)
class Run:
    """A training with the options of a setting and a seed.

    Parameters
    ----------
    options
        What was asked for, as JSON can hold it: it names the file of the outcome.
    seed
        The seed of the training, and of the choice of validation samples if none are given.
    estimator, coding
        What the options mean: an estimator, and how samples become binary, if they have to.
    """

    options: Mapping[str, object]
    seed: int
    estimator: BoltzmannEstimator = field(compare=False)
    coding: Coding | None = field(default=None, compare=False)

    def path(self, folder: Path, fingerprint: str) -> Path:
        """Return the file of the outcome with the samples of a fingerprint."""
        return outcome_path(folder, "run", {**self._about(fingerprint), "revision": REVISION})

    def _about(self, fingerprint: str) -> dict[str, object]:
        return {"options": dict(self.options), "seed": self.seed, "samples": fingerprint}

    def outcome(self, folder: Path, fingerprint: str) -> Outcome | None:
        """Return the outcome that is kept, if there is one."""
        return cast("Outcome | None", read_outcome(self.path(folder, fingerprint)))

    def perform(
        self,
        samples: Samples,
        folder: Path,
        fingerprint: str,
        look: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Return the outcome that is kept, or make and keep it; a failure is told, not kept.

        No two processes make the same one: who comes second waits for the first, and calls `look`
        now and then.
        """
        path = self.path(folder, fingerprint)
        while True:
            try:
                with locked(path):
                    if (found := self.outcome(folder, fingerprint)) is not None:
                        return found
                    start = time.perf_counter()
                    try:
                        with warnings.catch_warnings():
                            # Outcomes tell of it.
                            warnings.simplefilter("ignore", DivergenceWarning)
                            outcome = self.train(samples)
                    except FAILURES as error:
                        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
                        return {"status": "failed", "reason": reason}
                    seconds = time.perf_counter() - start
                    write_outcome(path, self._about(fingerprint), outcome, seconds)
            except BlockingIOError:
                look()
                time.sleep(SECONDS_BETWEEN_LOOKS)

    def train(self, samples: Samples) -> Outcome:
        """Train, and measure on validation samples."""
        parts = samples.split(self.seed)
        coding = FunctionTransformer() if self.coding is None else clone(self.coding)
        learnt, held = coding.fit(parts.X).transform(parts.X), coding.transform(parts.X_val)
        estimator = clone(self.estimator).set_params(random_state=self.seed)
        estimator.fit(learnt, X_val=held if estimator.early_stopping else None)
        measures = {"reconstruction_error": _reconstruction_error(estimator, held)}
        if estimator.visible_units == "bernoulli":
            scores = estimator.pseudo_log_likelihood(held)
            measures["pseudo_log_likelihood"] = float(np.mean(scores, dtype=np.float64))
        if parts.y is not None and parts.y_val is not None:
            features = estimator.transform(learnt), estimator.transform(held)
            predicted = neighbours.classify(features[0], parts.y, features[1])
            measures["nearest_neighbour_error"] = neighbours.error_rate(predicted, parts.y_val)
        finite = {name: value for name, value in measures.items() if np.isfinite(value)}
        diverged = estimator.diverged_ or len(finite) < len(measures)
        return {
            "status": "diverged" if diverged else "done",
            "measures": finite,
            "n_iter": int(estimator.n_iter_),
            "n_parameters": int(estimator.n_parameters_),
        }


def _reconstruction_error(estimator: InferenceMixin, rows: np.ndarray | PackedBits) -> float:
    """Return the mean square of ``V - E[V | E[H | V]]`` over units and samples."""
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        passed = np.asarray(estimator.reconstruct(part), np.float64).reshape(len(part), -1)
        square = (np.asarray(part, np.float64).reshape(len(part), -1) - passed) ** 2
        total += float(square.mean(axis=1).sum())
    return total / len(rows)
