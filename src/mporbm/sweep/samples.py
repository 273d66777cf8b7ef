"""What the runs of a sweep learn from, and the validation samples that they are compared on."""

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ARRAYS = ("X", "X_val", "y", "y_val")
BLOCK = 1024
"""How many samples are read at once."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples and perhaps their labels, for training and for validation.

    Without `X_val` a share of X is set aside: which samples, is up to the seed of a run alone, so
    that all settings of a seed are compared on the same ones.
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
        """How many samples are set aside, at least one."""
        return math.ceil(self.validation_fraction * len(self.X))

    def split(self, seed: int) -> "Samples":
        """The samples of the runs with a seed, those for validation apart."""
        if self.X_val is not None:
            return self
        held = np.zeros(len(self.X), bool)
        held[np.random.default_rng(seed).permutation(len(held))[: self._n_held()]] = True
        return Samples(
            self.X[~held],
            self.X[held],
            None if self.y is None else self.y[~held],
            None if self.y is None else self.y[held],
        )

    def in_memory(self) -> "Samples":
        """The same, without references to files."""
        copies: dict[str, Any] = {}
        for name in ARRAYS:
            array = getattr(self, name)
            copies[name] = None if array is None else np.asarray(array)
        return replace(self, **copies)

    def fingerprint(self) -> str:
        """A hash of all that is here."""
        digest = hashlib.sha256()
        for name in ARRAYS:
            array = getattr(self, name)
            if array is None:
                digest.update(b"none")
                continue
            digest.update(f"{array.shape} {array.dtype.str}".encode())
            for start in range(0, len(array), BLOCK):
                digest.update(np.ascontiguousarray(array[start : start + BLOCK]).data)
        if self.X_val is None:
            digest.update(f"{self.validation_fraction!r}".encode())
        return digest.hexdigest()
