"""What a sweep tries: settings, each a value of every option that varies, with several seeds."""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..estimators.boltzmann import BoltzmannEstimator
from ..estimators.coding import Coding
from .run import Run

Setting = dict[str, object]
SAMPLERS = ("grid", "tpe", "random")


class Range(NamedTuple):
    """All numbers from `low` to `high`, whole ones if both are; by orders of magnitude if `log`."""

    low: float
    high: float
    log: bool = False


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

    space: Mapping[str, list[object] | Range]
    seeds: tuple[int, ...]
    measure: str
    make: Callable[[Setting], tuple[BoltzmannEstimator, Coding | None]]
    common: Mapping[str, object]
    sampler: Literal["grid", "tpe", "random"] = "grid"
    n_settings: int = 0

    @property
    def grid(self) -> list[Setting]:
        """Every combination of the values; of a range those at both ends."""
        values = [[v.low, v.high] if isinstance(v, Range) else v for v in self.space.values()]
        return [dict(zip(self.space, c, strict=True)) for c in itertools.product(*values)]

    def runs(self, setting: Setting) -> list[Run]:
        """Make the runs of a setting, one for each seed; options that cannot be are refused."""
        estimator, coding = self.make(setting)
        return [Run({**self.common, **setting}, seed, estimator, coding) for seed in self.seeds]

    def encoded(self, setting: Setting) -> Setting:
        """Return a setting as Optuna has it: values of lists as JSON, since some are lists."""
        return {
            name: value if isinstance(self.space[name], Range) else json.dumps(value)
            for name, value in setting.items()
        }

    def decoded(self, parameters: Mapping[str, object]) -> Setting:
        """Return the setting that Optuna has as parameters, in the order of the space."""
        return {
            name: _decoded(parameters[name], values)
            for name, values in self.space.items()
            if name in parameters
        }


def _decoded(value: object, values: list[object] | Range) -> object:
    """Return a value of a list, or a number of a range: four digits are easier to read."""
    if isinstance(value, float) and isinstance(values, Range):
        return float(min(max(float(f"{value:.4g}"), values.low), values.high))
    return json.loads(value) if isinstance(value, str) else value
