"""Models as files: one safetensors file with the arrays and, as JSON, everything else.

Whatever stands in the JSON may be of any type and size: a wrong one is refused, and nothing takes
memory by what it says.
"""

import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

import mporbm

from ..machine import UNITS, Machine
from ..registry import Registry
from ..tensor.arrays import DType
from ..tensor.check import check_integer, check_real, check_shape
from ..training import FileFormatError, safetensors_io
from .alphabet import Alphabet
from .base import EstimatorBase, generator_of, plain
from .coding import Binarize, BitPlanes, Coding
from .scaling import Standardize

KIND = "model"
MOST_MACHINES = 256
"""The most machines of a deep model; one of L layers has up to 2 L - 1."""
MOST_MODES = 64
"""The most axes of an array in NumPy."""
FITTED_CODING = (
    *("sample_shape_", "n_features_in_", "shape_"),
    *("threshold_", "low_", "high_"),
    *("alphabet_", "is_text_"),
)
"""What codings learn and files keep."""
REAL_TYPE = re.compile(r"bool|u?int\d{1,2}|float\d{1,3}|[<>|=][biuf]\d{1,2}")
LABEL_TYPE = re.compile(rf"object|{REAL_TYPE.pattern}|[<>|=]U\d{{1,4}}")
"""Types that NumPy has names for; it would take others, of any size."""
BEFORE = {"hidden_units": "bernoulli", "standardize": False}
"""What parameters were before files had them."""
SYMBOL_TYPE = re.compile(r"u?int\d{1,2}|[<>|=][iu]\d|[<>|=]U\d{1,2}")
ESTIMATORS: Registry[EstimatorBase] = Registry()
"""The classes that files can hold, by name."""


def save(estimator: EstimatorBase, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator."""
    machines = estimator._named_machines()
    arrays = {
        name + part: array
        for name, machine in machines.items()
        for part, array in estimator._machine_arrays(machine).items()
    }
    fitted = vars(estimator)
    if "base_bias_" in fitted:
        arrays["base_bias"] = fitted["base_bias_"]
    if "scaling_" in fitted:
        scaling = fitted["scaling_"]
        arrays |= {"scaling.mean": scaling.mean_, "scaling.scale": scaling.scale_}
    if fitted.get("chains_") is not None:
        arrays["chains"] = fitted["chains_"]
    # A model has nothing to say about where its users write files.
    parameters = {**estimator.get_params(deep=False), "checkpoint": None}
    header = {
        "class": type(estimator).__name__,
        "library_version": mporbm.__version__,
        "parameters": plain(parameters),
        "visible_shape": list(estimator.visible_shape_),
        "hidden_shape": list(estimator.hidden_shape_),
        "n_iter": estimator.n_iter_,
        "diverged": bool(fitted.get("diverged_", False)),
        "seed": estimator._seed,
        "history": estimator.history_,
        "truncation_error": fitted.get("truncation_error_"),
        "coding": _saved_coding(fitted.get("coding_")),
        "feature_names": plain(fitted.get("feature_names_in_")),
    }
    if "classes_" in fitted:
        header["classes"] = _saved_classes(fitted["classes_"])
    if "" not in machines:
        shapes = {n: [list(m.visible_shape), list(m.hidden_shape)] for n, m in machines.items()}
        header["machines"] = shapes
    safetensors_io.write(path, KIND, {n: np.asarray(a) for n, a in arrays.items()}, header)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file that its `save` wrote.

    Files hold arrays and JSON: to load one executes nothing of it.

    Examples
    --------
    >>> import mporbm
    >>> model = mporbm.load("digits.safetensors")  # doctest: +SKIP
    """
    arrays, header = safetensors_io.read(path, KIND)
    name = os.fspath(path)
    try:
        estimator = _estimator(name, arrays, header)
        _set_machines(estimator, arrays, header)
        estimator.__dict__.update(_fitted(estimator, arrays, header))
        estimator._restart_random_numbers()
        if "seed" in header:
            estimator._seed = check_integer("seed", header["seed"], minimum=0)
            generator_of(estimator._seed)
    except FileFormatError:
        raise
    # OverflowError is what numbers raise that are too large for their type.
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise FileFormatError(
            f"{name}: an incomplete or corrupted model file ({error!r:.200})."
        ) from error
    return estimator


def _estimator(
    name: str, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> EstimatorBase:
    """Build the estimator that a header describes, not fitted yet."""
    kind, parameters = header.get("class"), _parameters(header["parameters"])
    if kind == "MPORBM" and "visible_bias.0" in arrays:
        # Before it was an estimator of its own, MPORBM had such machines.
        kind = "MPSRBM"
        known = mporbm.MPSRBM().get_params(deep=False).keys()
        parameters = {key: value for key, value in parameters.items() if key in known}
    if kind in mporbm.ESTIMATOR_MODULES:
        estimator_class = getattr(mporbm, kind)
    elif isinstance(kind, str) and kind in ESTIMATORS:
        estimator_class = ESTIMATORS[kind]
    else:
        kinds = ", ".join({**mporbm.ESTIMATOR_MODULES, **ESTIMATORS})
        raise FileFormatError(f"{name}: expected a model of class {kinds}, got {kind!r:.200}.")
    known = estimator_class._get_param_names()
    older = {name: value for name, value in BEFORE.items() if name in known}
    estimator: EstimatorBase = estimator_class(**{**older, **parameters, "checkpoint": None})
    estimator.check_parameters()
    return estimator


def _set_machines(
    estimator: EstimatorBase, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> None:
    """Give an estimator the machines of a file, and refuse arrays that would be left over."""
    alone = {"": [header["visible_shape"], header["hidden_shape"]]}
    shapes = _table(header.get("machines", alone))
    if len(shapes) > MOST_MACHINES:
        raise ValueError(f"{len(shapes)} machines")
    machines, known = {}, {"base_bias", "chains", "scaling.mean", "scaling.scale"}
    for name, (visible_shape, hidden_shape) in shapes.items():
        own = {n.removeprefix(name): a for n, a in arrays.items() if n.startswith(name)}
        # Above the data, the layers of a stack are binary.
        is_lowest = len(shapes) == 1 or name.endswith(".0.")
        units = UNITS[estimator.visible_units if is_lowest else "bernoulli"]
        machines[name] = estimator._machine_from_arrays(own, units, visible_shape, hidden_shape)
        known |= {name + part for part in estimator._machine_arrays(machines[name])}
    if unknown := sorted(arrays.keys() - known):
        kind = type(estimator).__name__
        raise ValueError(f"arrays that {kind} does not have: {', '.join(unknown)}")
    estimator._set_named_machines(machines)


def _fitted(
    estimator: EstimatorBase, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]
) -> dict[str, object]:
    """List what was learnt besides the machine."""
    fitted: dict[str, object] = {
        "n_iter_": check_integer("n_iter", header["n_iter"], minimum=0),
        "diverged_": bool(header.get("diverged", False)),
        "history_": _history(header["history"]),
    }
    if hasattr(estimator, "n_classes_"):
        fitted["classes_"] = _classes(header["classes"], estimator.n_classes_)
    if (names := header["feature_names"]) is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("feature names that are no list of text")
        if len(names) != estimator.n_features_in_:
            raise ValueError(f"{len(names)} names of {estimator.n_features_in_} features")
        fitted["feature_names_in_"] = np.asarray(names, dtype=object)
    if "base_bias" in arrays:
        if not np.isfinite(arrays["base_bias"]).all():
            raise ValueError("a base bias that is not finite")
        fitted["base_bias_"] = arrays["base_bias"].reshape(estimator.visible_shape_)
    if "scaling.mean" in arrays:
        fitted["scaling_"] = _scaling(arrays, estimator.visible_shape_)
    if "chains" in arrays:
        fitted["chains_"] = _chains(estimator.machine_.undirected, arrays["chains"])
    if header.get("coding") is not None:
        # A layer in MPS form may have more units than memory.
        if estimator.n_features_in_ > sum(array.size for array in arrays.values()):
            raise ValueError("a coding for a layer that is no array")
        fitted["coding_"] = _coding(header["coding"], estimator.n_features_in_)
    if header["truncation_error"] is not None:
        fitted["truncation_error_"] = _finite("truncation_error", header["truncation_error"])
    return fitted


def _chains(machine: Machine, chains: np.ndarray) -> np.ndarray:
    """Refuse states that are not of the visible layer of a machine."""
    shape = tuple(machine.visible_shape)
    if len(chains) == 0 or chains.shape[1:] != shape:
        raise ValueError(f"chains of shape {chains.shape} for a layer of {shape}")
    units, dtype = machine.visible_units, machine.coupling.dtype
    if units.is_binary:
        is_state = np.isin(chains, (0, 1))
    else:
        # What is too large for the machine's precision is found infinite.
        with np.errstate(over="ignore"):
            chains = chains.astype(dtype)
        is_state = np.isfinite(chains)
    if not is_state.all():
        raise ValueError("chains in states that units cannot have")
    return chains


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("a value in place of a table")
    return value


def _finite(name: str, value: object) -> float:
    if not math.isfinite(number := check_real(name, value)):
        raise ValueError(f"{name}: {number}")
    return number


def _dtype(known: re.Pattern[str], value: object) -> DType:
    if not isinstance(value, str) or not known.fullmatch(value):
        raise ValueError(f"{value!r:.50} in place of a type")
    return np.dtype(value)


def _parameters(value: object) -> dict[str, Any]:
    """Parameters of an estimator, lists as tuples."""

    def as_tuple(item: object) -> object:
        return tuple(map(as_tuple, item)) if isinstance(item, list) else item

    return {name: as_tuple(item) for name, item in _table(value).items()}


def _history(value: object) -> list[object]:
    """What was watched in each epoch: numbers, ranks, and words."""
    if not isinstance(value, list):
        raise TypeError("a history that is no list")
    for item in (item for entry in value for item in _table(entry).values()):
        parts = item if isinstance(item, list) else [item]
        if not all(isinstance(part, (int, float, str, type(None))) for part in parts):
            raise TypeError("a history of other things than numbers and words")
    return value


def _saved_classes(classes: np.ndarray) -> dict[str, object]:
    labels = plain(classes)
    if None in labels:
        raise TypeError(
            f"classes_: expected labels that a file can hold, numbers or strings, got "
            f"{classes.tolist()}; encode them first, for instance with "
            f"sklearn.preprocessing.LabelEncoder."
        )
    return {"labels": labels, "dtype": "object" if classes.dtype == object else classes.dtype.str}


def _classes(saved: object, n_classes: int) -> np.ndarray:
    table = _table(saved)
    labels, kind = table["labels"], _dtype(LABEL_TYPE, table["dtype"])
    if not isinstance(labels, list) or any(isinstance(item, (list, dict)) for item in labels):
        raise TypeError("labels that are no list of numbers or text")
    if len(labels) != n_classes:
        raise ValueError(f"{len(labels)} labels for {n_classes} classes")
    return np.array(labels, kind)


def _saved_coding(coding: Coding | None) -> dict[str, object] | None:
    if coding is None:
        return None
    return {
        "class": type(coding).__name__,
        "parameters": plain(coding.get_params(deep=False)),
        "dtype": str(coding.dtype_),
        "fitted": plain({name: v for name, v in vars(coding).items() if name in FITTED_CODING}),
    }


def _coding(saved: object, n_units: int) -> Coding:
    """Build a coding; one of numbers by a sample of zeros, of the shape and type it had."""
    kinds: dict[str, type[Coding]] = {"BitPlanes": BitPlanes, "Binarize": Binarize}
    table = _table(saved)
    parameters, fitted = _parameters(table["parameters"]), _table(table["fitted"])
    if len(fitted["sample_shape_"]) > MOST_MODES:
        raise ValueError("a coding of more modes than arrays have")
    shape = check_shape("sample_shape_", fitted["sample_shape_"])
    if table["class"] == "Alphabet":
        dtype = _dtype(SYMBOL_TYPE, table["dtype"])
        coding: Coding = Alphabet.from_header(parameters, fitted, dtype)
        n_values = len(fitted["alphabet_"])
    else:
        coding = kinds[table["class"]](**parameters)
        n_values = check_integer("n_bits", getattr(coding, "n_bits", 1))
    n_coded = math.prod(shape) * n_values
    if n_coded != n_units or fitted["n_features_in_"] != math.prod(shape):
        raise ValueError(f"a coding with {n_coded} units")
    if isinstance(coding, Alphabet):
        return coding
    coding.fit(np.zeros((1, *shape), _dtype(REAL_TYPE, table["dtype"])))
    if isinstance(coding, BitPlanes) and list(coding.shape_) != fitted["shape_"]:
        raise ValueError(f"a coding of shape {coding.shape_}")
    if isinstance(coding, Binarize):
        for name in ("threshold_", "low_", "high_"):
            setattr(coding, name, _finite(name, fitted[name]))
    return coding


def _scaling(arrays: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> Standardize:
    """Build the standardisation of Gaussian units."""
    mean, scale = (np.asarray(arrays[f"scaling.{name}"], np.float64) for name in ("mean", "scale"))
    if mean.shape != shape or scale.shape != shape:
        raise ValueError("a scaling of another shape than the samples")
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0.0).all()):
        raise ValueError("a scaling that is not finite, or not above 0")
    scaling = Standardize()
    scaling.set_scale(mean, scale)
    return scaling
