"""One training of a sweep, and what it is worth on validation samples."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from ..atomic import locked
from ..evaluation import neighbours
from ..evaluation.run_cache import Outcome, outcome_path, read_outcome, write_outcome
from ..training import DivergenceWarning
from .samples import Samples

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

    options: Mapping[str, Any]
    seed: int
    estimator: Any = field(compare=False)
    coding: Any = field(default=None, compare=False)

    def path(self, folder: Path, fingerprint: str) -> Path:
        """Return the file of the outcome with the samples of a fingerprint."""
        return outcome_path(folder, "run", {**self._about(fingerprint), "revision": REVISION})

    def _about(self, fingerprint: str) -> dict[str, Any]:
        return {"options": dict(self.options), "seed": self.seed, "samples": fingerprint}

    def perform(self, samples: Samples, folder: Path, fingerprint: str) -> Outcome:
        """Return the outcome that is kept, or make and keep it; a failure is told, not kept.

        No two processes make the same one: who comes second waits for the first.
        """
        path = self.path(folder, fingerprint)
        while True:
            try:
                with locked(path):
                    if (found := read_outcome(path)) is not None:
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
                time.sleep(SECONDS_BETWEEN_LOOKS)

    def train(self, samples: Samples) -> Outcome:
        """Train, and measure on validation samples."""
        parts = samples.split(self.seed)
        learnt, held = parts.X, parts.X_val
        if self.coding is not None:
            coding = clone(self.coding).fit(learnt)
            learnt, held = coding.transform(learnt), coding.transform(held)
        estimator = clone(self.estimator).set_params(random_state=self.seed)
        estimator.fit(learnt, X_val=held if estimator.early_stopping else None)
        measures = {"reconstruction_error": _reconstruction_error(estimator, held)}
        if estimator.visible_units == "bernoulli":
            scores = estimator.pseudo_log_likelihood(held)
            measures["pseudo_log_likelihood"] = float(np.mean(scores, dtype=np.float64))
        if parts.y is not None:
            features = estimator.transform(learnt), estimator.transform(held)
            predicted = neighbours.classify(features[0], parts.y, features[1])
            measures["nearest_neighbour_error"] = neighbours.error_rate(predicted, parts.y_val)
        finite = {name: value for name, value in measures.items() if np.isfinite(value)}
        diverged = _diverged(estimator) or len(finite) < len(measures)
        return {
            "status": "diverged" if diverged else "done",
            "measures": finite,
            "n_iter": int(estimator.n_iter_),
            "n_parameters": int(estimator.n_parameters_),
        }


def _reconstruction_error(estimator: Any, rows: Any) -> float:
    """Return the mean square of ``V - E[V | E[H | V]]`` over units and samples."""
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        passed = np.asarray(estimator.reconstruct(part), np.float64).reshape(len(part), -1)
        square = (np.asarray(part, np.float64).reshape(len(part), -1) - passed) ** 2
        total += float(square.mean(axis=1).sum())
    return total / len(rows)


def _diverged(estimator: Any) -> bool:
    """Whether a training has ended before its time, but not because it got no better."""
    if estimator.n_iter_ == estimator.n_iter:
        return False
    if not estimator.early_stopping or not estimator.history_:
        return True
    scores = [entry["validation_score"] for entry in estimator.history_]
    return bool(len(scores) - 1 - int(np.argmax(scores)) < estimator.n_iter_no_change)
