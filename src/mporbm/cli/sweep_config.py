"""The configuration of a sweep: options of `mporbm fit`, some of them with several values."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..sweep import Plan, Range, Samples
from ..sweep.plan import SAMPLERS
from . import files
from .config import check_option, make_coding, make_estimator, read_toml
from .fit import check_bytes
from .fit_options import RANK, FitOption, fit_options

FILES = ("data", "x_val", "y", "y_val")
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
    places = {name: _place(path, name, _popped(table, name)) for name in FILES}
    if places["data"] is None:
        raise ValueError(f'{path}: data: expected the samples, as in data = "images.npy".')
    seeds = _seeds(path, table.pop("seeds", list(SEEDS)))
    measure = table.pop("measure", None)
    sampler, n_settings = table.pop("sampler", None), _popped(table, "n_settings")
    space = _space(path, table.pop("sweep", None), known)
    common = {}
    for key, value in table.items():
        name = _option(path, key, value, known)
        if name in space:
            raise ValueError(f"{path}: {key}: expected one value, or several in [sweep], not both.")
        common[name] = value
    labelled = _check_labels(path, places["x_val"], places["y"], places["y_val"])
    if not labelled and (changed := [name for name in CODED if name in space]):
        raise ValueError(
            f"{path}: {changed[0]}: expected one value for all runs: the likelihood of other units "
            f"cannot be compared; pass labels (y) to compare the features instead."
        )

    def make(setting: Mapping[str, Any]) -> tuple[Any, Any]:
        options = {**common, **setting}
        estimator, coding = make_estimator(options, verbose=0), make_coding(options)
        estimator.check_parameters()
        return estimator, coding

    units = space.get("visible_units")
    gaussian = common.get("visible_units") == "gaussian" or "gaussian" in (units or [])
    sampler = _sampler(path, sampler, n_settings, space)
    plan = Plan(
        space=space,
        seeds=seeds,
        measure=_measure(path, measure, labelled, gaussian),
        make=make,
        common=common,
        sampler=sampler,
        n_settings=0 if sampler == "grid" else _count(path, n_settings),
    )
    return SweepConfig(**places, plan=plan)  # type: ignore[arg-type]


def _popped(table: dict[str, Any], name: str) -> Any:
    """Take out what a file says under a name, which may be written either way."""
    return table.pop(name, table.pop(name.replace("_", "-"), None))


def _place(path: Path, name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"{path}: {name}={value!r}: expected a string.")
    return str(path.parent / value)


def _seeds(path: Path, seeds: Any) -> tuple[int, ...]:
    numbers = seeds if isinstance(seeds, list) else []
    whole = all(type(seed) is int and 0 <= seed < 2**32 for seed in numbers)
    if not numbers or not whole or len({*numbers}) < len(numbers):
        raise ValueError(
            f"{path}: seeds={seeds!r}: expected a list of different integers from 0 to 2^32 - 1, "
            f"such as [0, 1, 2]."
        )
    return tuple(numbers)


def _space(path: Path, table: Any, known: Mapping[str, FitOption]) -> dict[str, Any]:
    """Return the values or the range of each option that varies."""
    if not isinstance(table, dict) or not table:
        raise ValueError(
            f"{path}: sweep={table!r}: expected a table [sweep] of options with lists of values, "
            f"such as rank = [2, 5, 10]."
        )
    space: dict[str, Any] = {}
    for key, values in table.items():
        name = key.replace("-", "_")
        if isinstance(values, dict):
            space[name] = _range(path, key, values, known)
        elif not isinstance(values, list) or not values:
            raise ValueError(
                f"{path}: sweep.{key}={values!r}: expected a list of values, or a range of numbers "
                f"such as {{low = 0.001, high = 0.1, log = true}}."
            )
        else:
            for value in values:
                _option(path, key, value, known)
            space[name] = values
        if isinstance(values, list) and any(v in values[:k] for k, v in enumerate(values)):
            raise ValueError(
                f"{path}: sweep.{key}={values!r}: expected values that differ; shapes are lists in "
                f"the list, such as [[10, 10], [5, 5]]."
            )
        if name in SAME_FOR_ALL:
            raise ValueError(
                f"{path}: sweep.{key}: expected it outside of [sweep], as settings are compared on "
                f"the same samples."
            )
    return space


def _range(path: Path, key: str, table: dict[str, Any], known: Mapping[str, FitOption]) -> Range:
    low, high, log = table.get("low"), table.get("high"), table.get("log", False)
    for value in (low, high):
        _option(path, key, value, known)
    whole = known[key.replace("-", "_")].kind in (int, RANK)
    numbers = (int,) if whole else (int, float)
    if (
        not table.keys() <= RANGE_KEYS
        or not all(type(value) in numbers for value in (low, high))
        or not isinstance(log, bool)
        or not low < high  # type: ignore[operator]
        or (log and low <= 0)  # type: ignore[operator]
    ):
        raise ValueError(
            f"{path}: sweep.{key}={table!r}: expected numbers low < high, and perhaps log = true "
            f"for numbers above 0."
        )
    return Range(low, high, log) if whole else Range(float(low), float(high), log)  # type: ignore[arg-type]


def _option(path: Path, key: str, value: Any, known: Mapping[str, FitOption]) -> str:
    """Return the name of an option of `fit` that a sweep has, too."""
    if (name := key.replace("-", "_")) in NOT_HERE:
        raise ValueError(f"{path}: {key}: expected {NOT_HERE[name]}.")
    return check_option(path, key, value, known)


def _sampler(path: Path, sampler: Any, n_settings: Any, space: dict[str, Any]) -> Any:
    """Return how settings are chosen: a grid, unless ranges or a number of settings are given."""
    ranges = [name for name, values in space.items() if isinstance(values, Range)]
    if sampler is None:
        return "tpe" if ranges or n_settings is not None else "grid"
    if sampler not in SAMPLERS:
        raise ValueError(f"{path}: sampler={sampler!r}: expected one of {', '.join(SAMPLERS)}.")
    if sampler == "grid" and (ranges or n_settings is not None):
        other = f"a list of values for {ranges[0]}" if ranges else "no n_settings"
        raise ValueError(f"{path}: sampler='grid': expected {other}, or sampler = \"tpe\".")
    return sampler


def _count(path: Path, n_settings: Any) -> int:
    if n_settings is None:
        return N_SETTINGS
    if type(n_settings) is not int or n_settings < 1:
        raise ValueError(f"{path}: n_settings={n_settings!r}: expected an integer of at least 1.")
    return n_settings


def _check_labels(path: Path, x_val: str | None, y: str | None, y_val: str | None) -> bool:
    """Whether there are labels: of all samples, or of none."""
    if y is None and y_val is not None:
        raise ValueError(f"{path}: y_val: expected the labels of the training samples (y), too.")
    if y is not None and (x_val is None) != (y_val is None):
        name, other = ("y_val", "x_val") if y_val is None else ("x_val", "y_val")
        raise ValueError(f"{path}: {other}: expected {name}, too, where there are labels.")
    return y is not None


def _measure(path: Path, measure: Any, labelled: bool, gaussian: bool) -> str:
    """Return what settings are compared by: what was asked for, or what says most."""
    possible = ["nearest_neighbour_error"] * labelled + ["pseudo_log_likelihood"] * (not gaussian)
    possible.append("reconstruction_error")
    if measure is None:
        return possible[0]
    if measure not in possible:
        raise ValueError(
            f"{path}: measure={measure!r}: expected {' or '.join(possible)}"
            f"{'' if labelled else '; nearest neighbours need labels (y)'}."
        )
    return str(measure)
