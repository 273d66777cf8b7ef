"""What methods reach in several splits of a task, and the table of it."""

import time
from collections.abc import Callable

import numpy as np

from mporbm.evaluation.statistics import interval

Measure = Callable[[], dict[str, float]]


class Scores(dict[str, dict[str, list[float]]]):
    """For each method its measures: a value for each split."""

    def __init__(self, only: str | None = None) -> None:
        self.skipped: dict[str, str] = {}
        self.only = only or ""

    def add(self, name: str, measure: Measure) -> None:
        """Keep what a method measures in a split, and its seconds, or why it cannot take part."""
        if name in self.skipped or self.only not in name:
            return
        started = time.perf_counter()
        try:
            found = measure()
        except ValueError as error:
            self.skipped[name] = " ".join(str(error).split())
            return
        seconds = time.perf_counter() - started
        for key, value in {**found, "seconds": seconds}.items():
            self.setdefault(name, {}).setdefault(key, []).append(float(value))


def table(task: str, scores: Scores) -> str:
    """Lay out the mean and the 95 % interval of every measure, in Markdown."""
    measures = list(dict.fromkeys(key for found in scores.values() for key in found))
    lines = [[task, *measures], ["---", *["---:"] * len(measures)]]
    for name, found in scores.items():
        lines.append([name, *(_cell(key, found.get(key)) for key in measures)])
    lines += [[name, f"skipped: {why}"] for name, why in scores.skipped.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(name: str, values: list[float] | None) -> str:
    if values is None:
        return ""
    if name == "seconds":
        return f"{np.mean(values):.1f}"
    found = interval(values)
    digits = 2 if abs(found.mean) > 5.0 else 3
    return f"{found.mean:.{digits}f} ± {found.high - found.mean:.{digits}f}"
