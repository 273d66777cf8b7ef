"""Means over random splits, with 95 % confidence intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean and its confidence interval (Student's t; the mean alone for one value)."""

    mean: float
    low: float
    high: float
    n: int


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The mean of the values of several splits, and its interval.

    Splits of one data set share samples, so the interval tells how the mean depends on the choice
    of the split, not on the choice of the data set.
    """
    array = np.asarray(values, np.float64)
    mean, n = float(array.mean()), len(array)
    if n < 2:
        return Interval(mean, mean, mean, n)
    error = float(array.std(ddof=1) / np.sqrt(n) * t.ppf(0.5 + confidence / 2, n - 1))
    return Interval(mean, mean - error, mean + error, n)


def paired(
    first: Sequence[float], second: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """The interval of ``first - second``, split by split."""
    return interval([a - b for a, b in zip(first, second, strict=True)], confidence)


def cell(values: Sequence[float] | None) -> dict[str, float] | None:
    """A cell of a table: the interval of some values, a single one, or nothing."""
    if not values:
        return None
    return {"value": values[0]} if len(values) == 1 else interval(values)._asdict()
