"""What a model file says in JSON: parameters, codings and labels, written plain and read warily.

Whatever stands there may be of any type and size: a wrong one is a `TypeError` or `ValueError`, and
nothing takes memory by what it says.
"""

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..training.rows import MOST_BITS
from .coding import Binarize, BitPlanes, Coding

MOST_MODES = 64
"""The most modes of samples, as NumPy has it."""
MOST_UNITS = 2**48
"""More values than any sample has that is not in MPS form."""
REAL_TYPE = re.compile(r"bool|u?int\d{1,2}|float\d{1,3}|[<>|=][biuf]\d{1,2}")
LABEL_TYPE = re.compile(rf"object|{REAL_TYPE.pattern}|[<>|=]U\d{{1,4}}")
"""Types that NumPy has names for; it would take others, of any size."""
FITTED_CODING = {
    BitPlanes: ("sample_shape_", "n_features_in_", "shape_"),
    Binarize: ("sample_shape_", "n_features_in_", "threshold_", "low_", "high_"),
}
"""What a coding has learnt, but for the type of the data."""


# Written


def plain(value: Any) -> Any:
    """A parameter as JSON has it; what JSON cannot hold (a random generator) becomes None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return os.fspath(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


def of_coding(coding: Any) -> dict[str, Any] | None:
    """A fitted coding as JSON has it."""
    if coding is None:
        return None
    return {
        "class": type(coding).__name__,
        "parameters": {n: plain(v) for n, v in coding.get_params(deep=False).items()},
        "dtype": str(coding.dtype_),
        "fitted": {n: plain(getattr(coding, n)) for n in FITTED_CODING[type(coding)]},
    }


def of_classes(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON has them."""
    labels = [plain(label) for label in classes]
    if None in labels:
        raise TypeError(
            f"classes_: expected labels that a file can hold, numbers or strings, got "
            f"{classes.tolist()}; encode them first, for instance with "
            f"sklearn.preprocessing.LabelEncoder."
        )
    return {"labels": labels, "dtype": "object" if classes.dtype == object else classes.dtype.str}


# Read


def table(value: Any) -> dict[str, Any]:
    """Names and values."""
    if not isinstance(value, dict):
        raise TypeError("a value in place of a table")
    return value


def integer(value: Any, least: int = 0, below: int = 2**63) -> int:
    """An integer from `least` on, written as one."""
    if type(value) is not int or not least <= value < below:
        raise ValueError(f"{value!r:.50} in place of an integer")
    return value


def number(value: Any) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r:.50} in place of a number")
    return float(value)


def parameters(value: Any) -> dict[str, Any]:
    """Parameters of an estimator, lists as tuples."""
    return {name: _tuple(item) for name, item in table(value).items()}


def history(value: Any) -> list[dict[str, Any]]:
    """What was watched in each epoch: numbers, ranks, and words."""
    if not isinstance(value, list):
        raise TypeError("a history that is no list")
    for entry in value:
        for item in table(entry).values():
            for part in item if isinstance(item, list) else [item]:
                if not isinstance(part, (int, float, str, type(None))):
                    raise TypeError("a history of other things than numbers and words")
    return value


def names(value: Any, n_names: int) -> NDArray[Any]:
    """Names of features."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError("feature names that are no list of text")
    if len(value) != n_names:
        raise ValueError(f"{len(value)} names of {n_names} features")
    return np.asarray(value, dtype=object)


def classes(value: Any, n_classes: int) -> NDArray[Any]:
    """Labels."""
    labels, kind = table(value)["labels"], _dtype(LABEL_TYPE, value["dtype"])
    if not isinstance(labels, list) or any(isinstance(item, (list, dict)) for item in labels):
        raise TypeError("labels that are no list of numbers or text")
    if len(labels) != n_classes:
        raise ValueError(f"{len(labels)} labels for {n_classes} classes")
    return np.array(labels, kind)


def coding(value: Any, n_units: int) -> Coding:
    """A fitted coding whose samples have so many units."""
    kinds: dict[str, type[Coding]] = {c.__name__: c for c in FITTED_CODING}
    coding = kinds[table(value)["class"]](**parameters(value["parameters"]))
    fitted = parameters(value["fitted"])
    coding.sample_shape_ = _shape(fitted["sample_shape_"])
    coding.n_features_in_ = math.prod(coding.sample_shape_)
    n_coded = coding.n_features_in_
    if isinstance(coding, BitPlanes):
        integer(coding.n_bits, least=1, below=MOST_BITS + 1)
        coding.shape_ = _shape(fitted["shape_"])
        n_coded = math.prod(coding.shape_)
        if n_coded != coding.n_bits * coding.n_features_in_:
            raise ValueError(f"a coding of {coding.n_features_in_} values as {n_coded} bits")
    elif isinstance(coding, Binarize):
        for name in ("threshold_", "low_", "high_"):
            setattr(coding, name, number(fitted[name]))
    if fitted["n_features_in_"] != coding.n_features_in_ or n_coded != n_units:
        raise ValueError(f"a coding with {n_coded} units")
    coding.dtype_ = _dtype(REAL_TYPE, value["dtype"])
    return coding


def _dtype(known: re.Pattern[str], value: Any) -> np.dtype[Any]:
    if not isinstance(value, str) or not known.fullmatch(value):
        raise ValueError(f"{value!r:.50} in place of a type")
    return np.dtype(value)


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not 0 < len(value) <= MOST_MODES:
        raise TypeError("a shape that is none")
    return tuple(integer(size, least=1, below=MOST_UNITS) for size in value)


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
