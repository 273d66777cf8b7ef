"""What the runs of a sweep learn from, and the validation samples that they are compared on."""

import math
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples and perhaps their labels, for training and for validation.

    Without `X_val` a share of X is set aside. The seed of a run alone chooses which samples, so
    that all settings are compared on the same ones, seed by seed.
    """

    X: Any
    X_val: Any = None
    y: Any = None
    y_val: Any = None
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
