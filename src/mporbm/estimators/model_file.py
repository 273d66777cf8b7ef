"""Models as files: one safetensors file with the arrays and, as JSON, everything else."""

import os
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

import mporbm

from ..machine import (
    Coupling,
    CPCoupling,
    DenseCoupling,
    Gaussian,
    KroneckerCoupling,
    LabelledMachine,
    Machine,
    MPOCoupling,
)
from ..mps.machine import MPSMachine
from ..tensor import MPO, MPS
from ..training import safetensors_io as storage
from ..training.safetensors_io import FileFormatError
from . import header as entries

KIND = "model"
MOST_MACHINES = 256
"""The most machines of a deep model; one of L layers has up to 2 L - 1."""


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
            name: None if name == "checkpoint" else entries.plain(value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "visible_shape": list(estimator.visible_shape_),
        "hidden_shape": list(estimator.machine_.hidden_shape),
        "n_iter": estimator.n_iter_,
        "seed": estimator._seed,
        "history": estimator.history_,
        "truncation_error": getattr(estimator, "truncation_error_", None),
        "coding": entries.of_coding(getattr(estimator, "coding_", None)),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if hasattr(estimator, "classes_"):
        header["classes"] = entries.of_classes(estimator.classes_)
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
    known = (*machines.ESTIMATORS, *classifier.CLASSIFIERS, *deep.ESTIMATORS)
    classes = {c.__name__: c for c in known}
    kind = header.get("class")
    if not isinstance(kind, str) or kind not in classes:
        raise FileFormatError(
            f"{name}: expected a model of class {', '.join(classes)}, got {kind!r:.200}."
        )
    try:
        parameters = {**entries.parameters(header["parameters"]), "checkpoint": None}
        estimator = classes[kind](**parameters)
        estimator._check_parameters()
        alone = {"": [header["visible_shape"], header["hidden_shape"]]}
        shapes = entries.table(header.get("machines", alone))
        if len(shapes) > MOST_MACHINES:
            raise ValueError(f"{len(shapes)} machines")
        estimator._set_machines(
            {name: _machine(kind, arrays, name, *shapes[name]) for name in shapes}
        )
        machine = estimator.machine_
        if isinstance(estimator, classifier.Classifier) != isinstance(machine, LabelledMachine):
            raise ValueError("labels of a machine without them, or none of one with them")
        if isinstance(machine, LabelledMachine):
            estimator.classes_ = entries.classes(header["classes"], machine.n_classes)
        if header["feature_names"] is not None:
            estimator.feature_names_in_ = entries.names(
                header["feature_names"], estimator.n_features_in_
            )
        if "base_bias" in arrays:
            estimator.base_bias_ = _finite(arrays["base_bias"]).reshape(estimator.visible_shape_)
        if header.get("coding") is not None:
            estimator.coding_ = entries.coding(header["coding"], estimator.n_features_in_)
        estimator.n_iter_ = entries.integer(header["n_iter"])
        estimator.history_ = entries.history(header["history"])
        if header["truncation_error"] is not None:
            estimator.truncation_error_ = entries.number(header["truncation_error"])
        estimator._restart_random_numbers()
        if "seed" in header:
            estimator._seed = entries.integer(header["seed"], below=2**32)
    # OverflowError is what numbers raise that are too large for their type.
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise FileFormatError(
            f"{name}: an incomplete or corrupted model file ({error!r:.200})."
        ) from error
    return estimator


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
    visible_shape: Any,
    hidden_shape: Any,
) -> Machine:
    """The machine of a name in a file of an estimator's kind."""
    own = {n.removeprefix(name): a for n, a in arrays.items() if n.startswith(name)}
    coupling = _coupling(kind, len(visible_shape), _numbered(own, "coupling"))
    variance = _exp(own["log_variance"]) if "log_variance" in own else None
    bias = _numbered(own, "visible_bias")
    if bias:
        if kind != "MPORBM" or not isinstance(coupling, MPOCoupling):
            raise ValueError(f"a visible layer in MPS form of {kind}")
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


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise ValueError("a base bias that is not finite")
    return array


def _exp(array: NDArray[Any]) -> NDArray[Any]:
    # What is too large is found infinite and refused, without a warning.
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(array))


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
