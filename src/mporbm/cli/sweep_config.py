"""The configuration of a sweep: options of `mporbm fit`, some of them with several values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from ..sweep import Plan, Range, Samples
from ..sweep.plan import SAMPLERS
from . import files
from .config import check_option, make_coding, make_estimator, read_toml
from .fit import check_bytes
from .fit_options import RANK, FitOption, fit_options

SEEDS = (0, 1, 2)
N_SETTINGS = 20
"""How many settings are sampled unless the configuration says otherwise."""
NOT_HERE = {
    "seed": "seeds, a list",
    "checkpoint": "no such option, as the outcome of every run is kept anyway",
    "checkpoint_interval": "no such option, as the outcome of every run is kept anyway",
}
"""Options of `fit` that a sweep does not have, and what it has instead."""
SAME_FOR_ALL = ("x_val", "validation_fraction")
CODED = ("binarize", "bit_planes", "gray", "visible_units")
"""Options that change what the visible units are, and so every measure of how likely they are."""
RANGE_KEYS = {"low", "high", "log"}


@dataclass(frozen=True)
class SweepConfig:
    """A configuration: where samples and labels are, and what is tried with them."""

    data: str
    x_val: str | None
    y: str | None
    y_val: str | None
    plan: Plan

    def read_samples(self) -> Samples:
        """Read samples and labels, and refuse them if they do not fit together."""
        x, x_val, y, y_val = files.read_whole(self.data), None, None, None
        if self.x_val is not None:
            x_val = files.read_whole(self.x_val)
            if x_val.shape[1:] != x.shape[1:]:
                raise ValueError(
                    f"{self.x_val}: expected samples of shape {x.shape[1:]}, as {self.data} has, "
                    f"got {x_val.shape[1:]}."
                )
        if self.y is not None:
            y = files.read_labels(self.y, len(x))
        if x_val is not None and self.y_val is not None:
            y_val = files.read_labels(self.y_val, len(x_val))
        made = [self.plan.make(setting) for setting in self.plan.grid]
        if any(coding is None and e.visible_units == "bernoulli" for e, coding in made):
            check_bytes(self.data, x)
        return Samples(x, x_val, y, y_val, made[0][0].validation_fraction)


def read_config(path: Path) -> SweepConfig:
    """Read the configuration file of a sweep; its paths begin where it is."""
    table, known = read_toml(path), fit_options()
    take = partial(_take, path, table)
    names = ("data", "x_val", "y", "y_val")
    given = [take(name, lambda value: isinstance(value, str), "a string") for name in names]
    data, x_val, y, y_val = (None if f is None else str(path.parent / f) for f in given)
    if data is None:
        raise ValueError(f'{path}: data: expected the samples, as in data = "images.npy".')
    seeds = take(
        "seeds", _are_seeds, "a list of different integers from 0 to 2^32 - 1, such as [0, 1, 2]"
    )
    sampler = take("sampler", SAMPLERS.__contains__, f"one of {', '.join(SAMPLERS)}")
    n_settings = take("n_settings", lambda n: type(n) is int and n > 0, "an integer of at least 1")
    space = _space(path, table.pop("sweep", None), known)
    ranges = [name for name, values in space.items() if isinstance(values, Range)]
    if sampler == "grid" and (ranges or n_settings is not None):
        other = f"a list of values for {ranges[0]}" if ranges else "no n_settings"
        raise ValueError(f"{path}: sampler='grid': expected {other}, or sampler = \"tpe\".")
    sampler = sampler or ("tpe" if ranges or n_settings is not None else "grid")
    if y is None and y_val is not None:
        raise ValueError(f"{path}: y_val: expected the labels of the training samples (y), too.")
    if y is not None and (x_val is None) != (y_val is None):
        name, other = ("y_val", "x_val") if y_val is None else ("x_val", "y_val")
        raise ValueError(f"{path}: {other}: expected {name}, too, where there are labels.")
    if y is None and (changed := [name for name in CODED if name in space]):
        raise ValueError(
            f"{path}: {changed[0]}: expected one value for all runs: the likelihood of other units "
            f"cannot be compared; pass labels (y) to compare the features instead."
        )
    units = space.get("visible_units", [table.get("visible_units", table.get("visible-units"))])
    # What says most first.
    measures = ["nearest_neighbour_error"] * (y is not None)
    measures += ["pseudo_log_likelihood"] * ("gaussian" not in units) + ["reconstruction_error"]
    hint = "" if y is not None else "; nearest neighbours need labels (y)"
    measure = take("measure", measures.__contains__, f"{' or '.join(measures)}{hint}")
    common = {}
    for key, value in table.items():
        name = _option(path, key, value, known)
        if name in space:
            raise ValueError(f"{path}: {key}: expected one value, or several in [sweep], not both.")
        common[name] = value

    def make(setting: Mapping[str, object]) -> tuple[Any, Any]:
        options = {**common, **setting}
        estimator, coding = make_estimator(options, verbose=0), make_coding(options)
        estimator.check_parameters()
        return estimator, coding

    plan = Plan(
        space=space,
        seeds=tuple(seeds or SEEDS),
        measure=measure or measures[0],
        make=make,
        common=common,
        sampler=cast(Literal["grid", "tpe", "random"], sampler),
        n_settings=0 if sampler == "grid" else n_settings or N_SETTINGS,
    )
    return SweepConfig(data, x_val, y, y_val, plan)


def _take(
    path: Path,
    table: dict[str, object],
    name: str,
    is_valid: Callable[[object], bool],
    expected: str,
) -> Any:
    """Take out what a file says under a name, which may be written either way."""
    value = table.pop(name, table.pop(name.replace("_", "-"), None))
    if value is not None and not is_valid(value):
        raise ValueError(f"{path}: {name}={value!r}: expected {expected}.")
    return value


def _are_seeds(value: object) -> bool:
    numbers = value if isinstance(value, list) else []
    whole = all(type(seed) is int and 0 <= seed < 2**32 for seed in numbers)
    return whole and 0 < len({*numbers}) == len(numbers)


def _space(
    path: Path, table: object, known: Mapping[str, FitOption]
) -> dict[str, list[object] | Range]:
    """Return the values or the range of each option that varies."""
    if not isinstance(table, dict) or not table:
        raise ValueError(
            f"{path}: sweep={table!r}: expected a table [sweep] of options with lists of values, "
            f"such as rank = [2, 5, 10]."
        )
    space: dict[str, list[object] | Range] = {}
    for key, values in table.items():
        name, label = key.replace("-", "_"), f"{path}: sweep.{key}"
        if name in SAME_FOR_ALL:
            raise ValueError(
                f"{label}: expected it outside of [sweep], as settings are compared on the same "
                f"samples."
            )
        if isinstance(values, dict):
            for value in (values.get("low"), values.get("high")):
                _option(path, key, value, known)
            space[name] = _range(label, values, is_whole=known[name].kind in (int, RANK))
            continue
        if not isinstance(values, list) or not values:
            raise ValueError(
                f"{label}={values!r}: expected a list of values, or a range of numbers such as "
                f"{{low = 0.001, high = 0.1, log = true}}."
            )
        for value in values:
            _option(path, key, value, known)
        if any(value in values[:k] for k, value in enumerate(values)):
            raise ValueError(
                f"{label}={values!r}: expected values that differ; shapes are lists in the list, "
                f"such as [[10, 10], [5, 5]]."
            )
        space[name] = values
    return space


def _range(label: str, table: dict[str, Any], is_whole: bool) -> Range:
    low, high, log = (table.get(key, False) for key in ("low", "high", "log"))
    numbers = (int,) if is_whole else (int, float)
    are_numbers = type(low) in numbers and type(high) in numbers and isinstance(log, bool)
    if not (are_numbers and table.keys() <= RANGE_KEYS and low < high and not (log and low <= 0)):
        raise ValueError(
            f"{label}={table!r}: expected numbers low < high, and perhaps log = true for numbers "
            f"above 0."
        )
    return Range(low, high, log) if is_whole else Range(float(low), float(high), log)


def _option(path: Path, key: str, value: object, known: Mapping[str, FitOption]) -> str:
    """Return the name of an option of `fit` that a sweep has, too."""
    if (name := key.replace("-", "_")) in NOT_HERE:
        raise ValueError(f"{path}: {key}: expected {NOT_HERE[name]}.")
    return check_option(path, key, value, known)
