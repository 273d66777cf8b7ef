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
    machine: Machine = estimator.machine_
    arrays = {f"coupling.{k}": a for k, a in enumerate(jax.tree.leaves(machine.coupling))}
    arrays["hidden_bias"] = machine.hidden_bias
    if isinstance(machine, MPSMachine):
        arrays |= {f"visible_bias.{k}": a for k, a in enumerate(machine.visible_bias.cores)}
    else:
        arrays["visible_bias"] = machine.visible_bias
    if isinstance(machine.visible_units, Gaussian):
        arrays["log_variance"] = machine.visible_units.log_variance
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
        "visible_shape": list(machine.visible_shape),
        "hidden_shape": list(machine.hidden_shape),
        "n_iter": estimator.n_iter_,
        "seed": estimator._seed,
        "history": estimator.history_,
        "truncation_error": getattr(estimator, "truncation_error_", None),
        "coding": _coding_header(getattr(estimator, "coding_", None)),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if isinstance(machine, LabelledMachine):
        arrays |= {"label_weights": machine.label_weights, "label_bias": machine.label_bias}
        header["classes"] = _classes_header(estimator.classes_)
    storage.write(path, KIND, {n: np.asarray(a) for n, a in arrays.items()}, header)


def load(path: str | os.PathLike[str]) -> Any:
    """A fitted estimator from a file that its `save` wrote.

    Files hold arrays and JSON: to load one executes nothing of it.

    Examples
    --------
    >>> import mporbm
    >>> model = mporbm.load("digits.safetensors")  # doctest: +SKIP
    """
    from . import classifier, machines

    arrays, header = storage.read(path, KIND)
    name = os.fspath(path)
    try:
        classes = {c.__name__: c for c in (*machines.ESTIMATORS, *classifier.CLASSIFIERS)}
        if header["class"] not in classes:
            raise FileFormatError(
                f"{name}: expected a model of class {', '.join(classes)}, got {header['class']!r}."
            )
        estimator = classes[header["class"]](**_parameters(header["parameters"]))
        machine = _machine(header, arrays)
        if isinstance(estimator, classifier.Classifier):
            machine = LabelledMachine(machine, arrays["label_weights"], arrays["label_bias"])
            estimator.classes_ = _classes(header["classes"], machine.n_classes)
        estimator._set_machine(machine)
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
    return {n: tuple(v) if isinstance(v, list) else v for n, v in saved.items()}


def _parameters(saved: dict[str, Any]) -> dict[str, Any]:
    return {**_tuples(saved), "checkpoint": None}


def _machine(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Machine:
    coupling = _coupling(header, _numbered(arrays, "coupling"))
    variance = jnp.exp(arrays["log_variance"]) if "log_variance" in arrays else None
    bias = _numbered(arrays, "visible_bias")
    if bias:
        assert isinstance(coupling, MPOCoupling)
        machine: Machine = MPSMachine(coupling, MPS(bias), arrays["hidden_bias"], variance)
    else:
        units = None if variance is None else Gaussian(variance)
        machine = Machine(coupling, arrays["visible_bias"], arrays["hidden_bias"], units)
    shapes = [list(machine.visible_shape), list(machine.hidden_shape)]
    if shapes != [header["visible_shape"], header["hidden_shape"]]:
        raise ValueError(f"arrays of a machine of shapes {shapes}")
    return machine


def _numbered(arrays: dict[str, NDArray[Any]], name: str) -> list[NDArray[Any]]:
    """``name.0, name.1, ...``, as many as there are."""
    found: list[NDArray[Any]] = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def _coupling(header: dict[str, Any], factors: list[NDArray[Any]]) -> Coupling:
    if header["class"] in ("RBM", "ClassRBM"):
        return DenseCoupling(factors[0], len(header["visible_shape"]))
    if header["class"] == "MvRBM":
        return KroneckerCoupling(factors)
    if header["class"] == "TvRBM":
        return CPCoupling(factors[:-1], factors[-1])
    return MPOCoupling(MPO(factors))
