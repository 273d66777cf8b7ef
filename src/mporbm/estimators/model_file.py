"""Models as files: one safetensors file with the arrays and, as JSON, everything else."""

import math
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import mporbm

from ..learning import storage
from ..learning.storage import FileFormatError
from ..machine import (
    Coupling,
    CPCoupling,
    DenseCoupling,
    Gaussian,
    KroneckerCoupling,
    LabelledMachine,
    Machine,
    MPOCoupling,
    MPSMachine,
)
from ..tensor import MPO, MPS
from .coding import Binarize, BitPlanes, Coding

KIND = "model"
FITTED_CODING = {
    BitPlanes: ("sample_shape_", "n_features_in_", "shape_"),
    Binarize: ("sample_shape_", "n_features_in_", "threshold_", "low_", "high_"),
}
"""What a coding has learnt, but for the type of the data."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator."""
    machines: dict[str, Machine] = estimator._machines()
    arrays = {
        name + part: array
        for name, machine in machines.items()
        for part, array in _arrays(machine).items()
    }
    if hasattr(estimator, "base_bias_"):
        arrays["base_bias"] = estimator.base_bias_
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "class": type(estimator).__name__,
        "library_version": mporbm.__version__,
        "parameters": {
            # A model has nothing to say about where its users write files.
            name: None if name == "checkpoint" else plain(value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "visible_shape": list(estimator.visible_shape_),
        "hidden_shape": list(estimator.machine_.hidden_shape),
        "n_iter": estimator.n_iter_,
        "seed": estimator._seed,
        "history": estimator.history_,
        "truncation_error": getattr(estimator, "truncation_error_", None),
        "coding": _coding_header(getattr(estimator, "coding_", None)),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if hasattr(estimator, "classes_"):
        header["classes"] = _classes_header(estimator.classes_)
    if "" not in machines:
        shapes = {n: [list(m.visible_shape), list(m.hidden_shape)] for n, m in machines.items()}
        header["machines"] = shapes
    storage.write(path, KIND, {n: np.asarray(a) for n, a in arrays.items()}, header)


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted estimator from a file that its `save` wrote.

    Files hold arrays and JSON: to load one executes nothing of it.

    Examples
    --------
    >>> import mporbm
    >>> model = mporbm.load("digits.safetensors")  # doctest: +SKIP
    """
    from . import classifier, deep, machines

    arrays, header = storage.read(path, KIND)
    name = os.fspath(path)
    try:
        known = (*machines.ESTIMATORS, *classifier.CLASSIFIERS, *deep.ESTIMATORS)
        classes = {c.__name__: c for c in known}
        if header["class"] not in classes:
            raise FileFormatError(
                f"{name}: expected a model of class {', '.join(classes)}, got {header['class']!r}."
            )
        estimator = classes[header["class"]](**_parameters(header["parameters"]))
        alone = {"": [header["visible_shape"], header["hidden_shape"]]}
        shapes = header.get("machines", alone)
        estimator._set_machines(
            {name: _machine(header["class"], arrays, name, *shapes[name]) for name in shapes}
        )
        if isinstance(estimator, classifier.Classifier):
            estimator.classes_ = _classes(header["classes"], estimator.machine_.n_classes)
        if header["feature_names"] is not None:
            estimator.feature_names_in_ = np.asarray(header["feature_names"], dtype=object)
        if "base_bias" in arrays:
            estimator.base_bias_ = arrays["base_bias"].reshape(estimator.visible_shape_)
        if header.get("coding") is not None:
            estimator.coding_ = _coding(header["coding"], estimator.visible_shape_)
        estimator.n_iter_ = int(header["n_iter"])
        estimator.history_ = list(header["history"])
        if header["truncation_error"] is not None:
            estimator.truncation_error_ = float(header["truncation_error"])
        estimator._restart_random_numbers()
        estimator._seed = int(header.get("seed", estimator._seed))
    except FileFormatError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise FileFormatError(
            f"{name}: an incomplete or corrupted model file ({error!r})."
        ) from error
    return estimator


def plain(value: Any) -> Any:
    """A parameter as JSON has it; what JSON cannot hold (a random generator) becomes None."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return os.fspath(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else None


def _coding_header(coding: Any) -> dict[str, Any] | None:
    """A fitted coding as JSON has it."""
    if coding is None:
        return None
    return {
        "class": type(coding).__name__,
        "parameters": {n: plain(v) for n, v in coding.get_params(deep=False).items()},
        "dtype": str(coding.dtype_),
        "fitted": {n: plain(getattr(coding, n)) for n in FITTED_CODING[type(coding)]},
    }


def _coding(header: dict[str, Any], visible_shape: tuple[int, ...]) -> Coding:
    classes: dict[str, type[Coding]] = {c.__name__: c for c in FITTED_CODING}
    coding = classes[header["class"]](**_tuples(header["parameters"]))
    fitted = _tuples(header["fitted"])
    for name in FITTED_CODING[type(coding)]:
        setattr(coding, name, fitted[name])
    coding.dtype_ = np.dtype(header["dtype"])
    if coding.dtype_.kind not in "biuf":
        raise ValueError(f"a coding of dtype {coding.dtype_}")
    n_coded = math.prod(getattr(coding, "shape_", coding.sample_shape_))
    if n_coded != math.prod(visible_shape):
        raise ValueError(f"a coding with {n_coded} units")
    return coding


def _classes_header(classes: NDArray[Any]) -> dict[str, Any]:
    """Labels as JSON has them."""
    labels = [plain(label) for label in classes]
    if None in labels:
        raise TypeError(
            f"classes_: expected labels that a file can hold, numbers or strings, got "
            f"{classes.tolist()}; encode them first, for instance with "
            f"sklearn.preprocessing.LabelEncoder."
        )
    return {"labels": labels, "dtype": "object" if classes.dtype == object else classes.dtype.str}


def _classes(header: dict[str, Any], n_classes: int) -> NDArray[Any]:
    if len(header["labels"]) != n_classes:
        raise ValueError(f"{len(header['labels'])} labels for {n_classes} classes")
    return np.array(header["labels"], np.dtype(header["dtype"]))


def _tuples(saved: dict[str, Any]) -> dict[str, Any]:
    return {name: _tuple(value) for name, value in saved.items()}


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _parameters(saved: dict[str, Any]) -> dict[str, Any]:
    return {**_tuples(saved), "checkpoint": None}


def _arrays(machine: Machine) -> dict[str, Any]:
    """The parameters of a machine by name."""
    arrays = {f"coupling.{k}": a for k, a in enumerate(jax.tree.leaves(machine.coupling))}
    arrays["hidden_bias"] = machine.hidden_bias
    if isinstance(machine, MPSMachine):
        arrays |= {f"visible_bias.{k}": a for k, a in enumerate(machine.visible_bias.cores)}
    else:
        arrays["visible_bias"] = machine.visible_bias
    if isinstance(machine.visible_units, Gaussian):
        arrays["log_variance"] = machine.visible_units.log_variance
    if isinstance(machine, LabelledMachine):
        arrays |= {"label_weights": machine.label_weights, "label_bias": machine.label_bias}
    return arrays


def _machine(
    kind: str,
    arrays: dict[str, NDArray[Any]],
    name: str,
    visible_shape: list[int],
    hidden_shape: list[int],
) -> Machine:
    """The machine of a name in a file of an estimator's kind."""
    own = {n.removeprefix(name): a for n, a in arrays.items() if n.startswith(name)}
    coupling = _coupling(kind, len(visible_shape), _numbered(own, "coupling"))
    variance = jnp.exp(own["log_variance"]) if "log_variance" in own else None
    bias = _numbered(own, "visible_bias")
    if bias:
        assert isinstance(coupling, MPOCoupling)
        machine: Machine = MPSMachine(coupling, MPS(bias), own["hidden_bias"], variance)
    else:
        units = None if variance is None else Gaussian(variance)
        machine = Machine(coupling, own["visible_bias"], own["hidden_bias"], units)
    shapes = [list(machine.visible_shape), list(machine.hidden_shape)]
    if shapes != [visible_shape, hidden_shape]:
        raise ValueError(f"arrays of a machine of shapes {shapes}")
    if "label_weights" in own:
        return LabelledMachine(machine, own["label_weights"], own["label_bias"])
    return machine


def _numbered(arrays: dict[str, NDArray[Any]], name: str) -> list[NDArray[Any]]:
    """``name.0, name.1, ...``, as many as there are."""
    found: list[NDArray[Any]] = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def _coupling(kind: str, n_visible_modes: int, factors: list[NDArray[Any]]) -> Coupling:
    if kind in ("RBM", "ClassRBM", "DBN", "DBM"):
        return DenseCoupling(factors[0], n_visible_modes)
    if kind == "MvRBM":
        return KroneckerCoupling(factors)
    if kind == "TvRBM":
        return CPCoupling(factors[:-1], factors[-1])
    return MPOCoupling(MPO(factors))
