"""What a sweep tries: settings, each a value of every option that varies, with several seeds."""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .run import Run

Setting = dict[str, Any]
SAMPLERS = ("grid", "tpe", "random")


class Range(NamedTuple):
    """All numbers from `low` to `high`, whole ones if both are; by orders of magnitude if `log`."""

    low: float
    high: float
    log: bool = False

    def suggest(self, trial: Any, name: str) -> float:
        """Let an Optuna trial choose a number."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return int(trial.suggest_int(name, self.low, self.high, log=self.log))
        return float(trial.suggest_float(name, self.low, self.high, log=self.log))


@dataclass(frozen=True)
class Plan:
    """What a sweep tries, and what it compares by.

    Attributes
    ----------
    space
        For each option that varies, a list of values or, unless the sampler is "grid", a `Range`.
    seeds
        The seeds that every setting is tried with.
    measure
        What settings are compared by.
    make
        A function of a setting that makes its estimator and its coding.
    common
        Options that all settings share.
    sampler
        How settings are chosen: "grid" for every combination, "random", or "tpe", by what the
        settings before were worth (Optuna's tree-structured Parzen estimator).
    n_settings
        How many settings are sampled.
    """

    space: Mapping[str, list[Any] | Range]
    seeds: tuple[int, ...]
    measure: str
    make: Callable[[Setting], tuple[Any, Any]]
    common: Mapping[str, Any]
    sampler: Literal["grid", "tpe", "random"] = "grid"
    n_settings: int = 0

    @property
    def prune(self) -> bool:
        """Whether a setting is given up whose first seeds are worse than the median of others."""
        return self.sampler != "grid"

    @property
    def grid(self) -> list[Setting]:
        """Every combination of the values; of a range those at both ends."""
        values = [[v.low, v.high] if isinstance(v, Range) else v for v in self.space.values()]
        return [dict(zip(self.space, c, strict=True)) for c in itertools.product(*values)]

    def runs(self, setting: Setting) -> list[Run]:
        """Make the runs of a setting, one for each seed; options that cannot be are refused."""
        estimator, coding = self.make(setting)
        return [Run({**self.common, **setting}, seed, estimator, coding) for seed in self.seeds]

    def suggest(self, trial: Any) -> Setting:
        """Let an Optuna trial choose a setting."""
        return self.decoded(
            {
                name: values.suggest(trial, name)
                if isinstance(values, Range)
                else trial.suggest_categorical(name, [json.dumps(value) for value in values])
                for name, values in self.space.items()
            }
        )

    def encoded(self, setting: Setting) -> Setting:
        """Return a setting as Optuna has it: values of lists as JSON, since some are lists."""
        return {name: v if self._is_range(name) else json.dumps(v) for name, v in setting.items()}

    def decoded(self, parameters: Mapping[str, Any]) -> Setting:
        """Return the setting that Optuna has as parameters, in the order of the space."""
        return {
            name: _rounded(parameters[name])
            if self._is_range(name)
            else json.loads(parameters[name])
            for name in self.space
            if name in parameters
        }

    def _is_range(self, name: str) -> bool:
        return isinstance(self.space[name], Range)


def _rounded(number: float) -> float:
    """Return a number with four digits, which say as much and are easier to read."""
    return number if isinstance(number, int) else float(f"{number:.4g}")
