"""The configuration of a sweep: the options of `mporbm fit`, some of them with several values."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .fit import check_option, make_coding, make_estimator, read_toml

FILES = ("data", "x_val", "y", "y_val")
SEEDS = (0, 1, 2)
NOT_HERE = {
    "seed": "seeds, a list",
    "checkpoint": "no such option, as the outcome of every run is kept anyway",
    "checkpoint_interval": "no such option, as the outcome of every run is kept anyway",
}
"""Options of `fit` that a sweep does not have, and what it has instead."""
SAME_FOR_ALL = ("x_val", "validation_fraction")
CODED = ("binarize", "bit_planes", "gray", "visible_units")
"""Options that change what the visible units are, and so every measure of how likely they are."""


@dataclass(frozen=True)
class Grid:
    """What a sweep is about.

    Attributes
    ----------
    data, x_val, y, y_val
        Where the samples are, those for validation, and their labels.
    seeds
        The seeds of each setting.
    common, swept
        Options with one value for all settings, and with several, every combination of which is
        a setting.
    measure
        What settings are compared by.
    """

    data: str
    x_val: str | None
    y: str | None
    y_val: str | None
    seeds: tuple[int, ...]
    common: dict[str, Any]
    swept: dict[str, list[Any]]
    measure: str

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Every combination of the swept options."""
        return [
            dict(zip(self.swept, values, strict=True))
            for values in itertools.product(*self.swept.values())
        ]

    def options(self, setting: dict[str, Any]) -> dict[str, Any]:
        """All options of a setting, as `fit` knows them."""
        return {**self.common, **setting}

    def made(self, setting: dict[str, Any]) -> tuple[Any, Any]:
        """The estimator and the coding of a setting; options that nothing can have are refused."""
        options = self.options(setting)
        estimator, coding = make_estimator(options, verbose=0), make_coding(options)
        estimator._check_parameters()
        return estimator, coding


def read_grid(path: Path) -> Grid:
    """The configuration file of a sweep; its paths begin where it is."""
    table = read_toml(path)
    places = {name: _place(path, name, _popped(table, name)) for name in FILES}
    data = places.pop("data")
    if data is None:
        raise ValueError(f'{path}: data: expected the samples, as in data = "images.npy".')
    seeds = _seeds(path, table.pop("seeds", list(SEEDS)))
    measure = table.pop("measure", None)
    swept = _swept(path, table.pop("sweep", None))
    common = {}
    for key, value in table.items():
        name = _option(path, key, value)
        if name in swept:
            raise ValueError(f"{path}: {key}: expected one value, or several in [sweep], not both.")
        common[name] = value
    labelled = _check_labels(path, **places)
    if not labelled and (changed := [name for name in CODED if name in swept]):
        raise ValueError(
            f"{path}: {changed[0]}: expected one value for all runs: the likelihood of other units "
            f"cannot be compared; pass labels (y) to compare the features instead."
        )
    gaussian = "gaussian" in (common.get("visible_units"), *swept.get("visible_units", []))
    measure = _measure(path, measure, labelled, gaussian)
    return Grid(data, **places, seeds=seeds, common=common, swept=swept, measure=measure)


def _popped(table: dict[str, Any], name: str) -> Any:
    """What a file says under a name, which may be written either way."""
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


def _swept(path: Path, table: Any) -> dict[str, list[Any]]:
    if not isinstance(table, dict) or not table:
        raise ValueError(
            f"{path}: sweep={table!r}: expected a table [sweep] of options with lists of values, "
            f"such as rank = [2, 5, 10]."
        )
    swept = {}
    for key, values in table.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"{path}: sweep.{key}={values!r}: expected a list of values.")
        names = [_option(path, key, value) for value in values]
        if any(value in values[:number] for number, value in enumerate(values)):
            raise ValueError(
                f"{path}: sweep.{key}={values!r}: expected values that differ; shapes are lists in "
                f"the list, such as [[10, 10], [5, 5]]."
            )
        if names[0] in SAME_FOR_ALL:
            raise ValueError(
                f"{path}: sweep.{key}: expected it outside of [sweep], as settings are compared on "
                f"the same samples."
            )
        swept[names[0]] = values
    return swept


def _option(path: Path, key: str, value: Any) -> str:
    """The name of an option of `fit` that a sweep has, too."""
    name = key.replace("-", "_")
    if name in NOT_HERE:
        raise ValueError(f"{path}: {key}: expected {NOT_HERE[name]}.")
    return check_option(path, key, value)


def _check_labels(path: Path, x_val: str | None, y: str | None, y_val: str | None) -> bool:
    """Whether there are labels: of all samples, or of none."""
    if y is None and y_val is not None:
        raise ValueError(f"{path}: y_val: expected the labels of the training samples (y), too.")
    if y is not None and (x_val is None) != (y_val is None):
        name, other = ("y_val", "x_val") if y_val is None else ("x_val", "y_val")
        raise ValueError(f"{path}: {other}: expected {name}, too, where there are labels.")
    return y is not None


def _measure(path: Path, measure: Any, labelled: bool, gaussian: bool) -> str:
    """What settings are compared by: what was asked for, or what says most."""
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
