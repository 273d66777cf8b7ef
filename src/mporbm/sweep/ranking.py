"""Which settings are the best, and which of them cannot be told apart."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..evaluation.statistics import CONFIDENCE, paired
from .run import Outcome

MEASURES = {"pseudo_log_likelihood": 1, "reconstruction_error": -1, "nearest_neighbour_error": -1}
"""What settings can be compared by; 1 where larger is better."""


class Ranked(NamedTuple):
    """A setting among others.

    Attributes
    ----------
    options
        What sets it apart from the others.
    outcomes
        Those of its runs, by seed.
    place
        1 for the best; None if a run of it failed or diverged, so that it cannot be compared.
    told_apart
        Whether it is worse than the best beyond doubt; None without a place.
    """

    options: Mapping[str, object]
    outcomes: Sequence[Outcome]
    place: int | None = None
    told_apart: bool | None = None

    def values(self, name: str) -> list[float]:
        """A measure, or another number of the outcomes, for each seed that has it."""
        found = [out.get("measures", {}).get(name, out.get(name)) for out in self.outcomes]
        return [value for value in found if isinstance(value, int | float)]

    def mean(self, name: str) -> float | None:
        """The mean over the seeds of a measure, or of another number of the outcomes."""
        values = self.values(name)
        return float(np.mean(values)) if values else None

    def std(self, name: str) -> float | None:
        """The standard deviation over the seeds, if there are several."""
        values = self.values(name)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def count(self, status: str) -> int:
        """How many runs are "done", "diverged", "failed", "pruned" or "not done"."""
        return sum(outcome["status"] == status for outcome in self.outcomes)


class Ranking(NamedTuple):
    """Settings in the order in which they were asked for, compared by a measure."""

    measure: str
    settings: Sequence[Ranked]

    @property
    def best(self) -> Ranked | None:
        """The setting with the best mean, if any setting can be compared."""
        return next((setting for setting in self.settings if setting.place == 1), None)

    @property
    def like_the_best(self) -> list[Ranked]:
        """The settings that cannot be told apart from the best, without it, better ones first."""
        return [s for s in self.in_order() if s.told_apart is False and s.place != 1]

    def in_order(self) -> list[Ranked]:
        """The best first, those without a place last."""
        return sorted(self.settings, key=lambda setting: setting.place or math.inf)


def rank(
    settings: Sequence[tuple[Mapping[str, object], Sequence[Outcome]]], measure: str
) -> Ranking:
    """Settings, each with its outcomes by seed, compared by the mean of a measure.

    Seed by seed, because samples and random numbers of a seed are the same for all settings. A
    setting is told apart from the best if its mean is worse by a one-sided t-test at 5 % divided
    by the number of settings that the best is compared with. However many settings there are, the
    truly best one is then among those that are not told apart with a probability of 95 % or more.
    A single seed tells nothing apart.
    """
    rows = [Ranked(options, outcomes) for options, outcomes in settings]
    values = {
        k: [MEASURES[measure] * value for value in row.values(measure)]
        for k, row in enumerate(rows)
        if row.count("done") == len(row.outcomes)
    }
    order = sorted(values, key=lambda k: -float(np.mean(values[k])))
    # Two-sided intervals have half of what is left on each side.
    confidence = 1.0 - 2.0 * (1.0 - CONFIDENCE) / max(len(order) - 1, 1)
    for place, k in enumerate(order, start=1):
        behind = paired(values[order[0]], values[k], confidence)
        told_apart = behind.n > 1 and behind.low > 0.0
        rows[k] = rows[k]._replace(place=place, told_apart=told_apart)
    return Ranking(measure, rows)
