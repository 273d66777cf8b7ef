"""Models as files: one safetensors file with the arrays and, as JSON, everything else."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mporbm

from ..machine import Coupling, Machine, Units
from ..registry import Registry
from ..training import FileFormatError, safetensors_io
from . import header as entries

KIND = "model"
MOST_MACHINES = 256
"""The most machines of a deep model; one of L layers has up to 2 L - 1."""
ESTIMATORS: Registry[Any] = Registry()
"""The classes that files can hold, by name."""


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator."""
    machines: dict[str, Machine] = estimator.named_machines()
    arrays = {
        name + part: array
        for name, machine in machines.items()
        for part, array in estimator.machine_arrays(machine).items()
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
        "hidden_shape": list(estimator.hidden_shape_),
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
        alone = {"": [header["visible_shape"], header["hidden_shape"]]}
        shapes = entries.table(header.get("machines", alone))
        if len(shapes) > MOST_MACHINES:
            raise ValueError(f"{len(shapes)} machines")
        machines = {}
        for machine, (visible_shape, hidden_shape) in shapes.items():
            own = {n.removeprefix(machine): a for n, a in arrays.items() if n.startswith(machine)}
            machines[machine] = estimator.machine_from_arrays(own, visible_shape, hidden_shape)
        _check_names(estimator, arrays, machines)
        estimator.set_named_machines(machines)
        if hasattr(estimator, "n_classes_"):
            estimator.classes_ = entries.classes(header["classes"], estimator.n_classes_)
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
        estimator.restart_random_numbers()
        if "seed" in header:
            estimator._seed = entries.integer(header["seed"], below=2**32)
    except FileFormatError:
        raise
    # OverflowError is what numbers raise that are too large for their type.
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise FileFormatError(
            f"{name}: an incomplete or corrupted model file ({error!r:.200})."
        ) from error
    return estimator


def _estimator(name: str, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Any:
    """Build the estimator that a header describes, not fitted yet."""
    kind = header.get("class")
    parameters = entries.parameters(header["parameters"])
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
        known = ", ".join({**mporbm.ESTIMATOR_MODULES, **ESTIMATORS})
        raise FileFormatError(f"{name}: expected a model of class {known}, got {kind!r:.200}.")
    estimator = estimator_class(**{**parameters, "checkpoint": None})
    estimator.check_parameters()
    return estimator


def _check_names(
    estimator: Any, arrays: dict[str, NDArray[Any]], machines: dict[str, Machine]
) -> None:
    """Refuse arrays that would be left over."""
    known = {
        name + part
        for name, machine in machines.items()
        for part in estimator.machine_arrays(machine)
    }
    if unknown := sorted(arrays.keys() - known - {"base_bias"}):
        kind = type(estimator).__name__
        raise ValueError(f"arrays that {kind} does not have: {', '.join(unknown)}")


def machine_arrays(machine: Machine) -> dict[str, Any]:
    """List the parameters of a machine by name."""
    arrays = {f"coupling.{k}": factor for k, factor in enumerate(machine.coupling.factors)}
    arrays |= {"visible_bias": machine.visible_bias, "hidden_bias": machine.hidden_bias}
    return arrays | machine.visible_units.file_arrays()


def machine_from_arrays(
    coupling: type[Coupling],
    units: type[Units],
    arrays: dict[str, NDArray[Any]],
    visible_shape: Any,
    hidden_shape: Any,
) -> Machine:
    """Build a machine from what `machine_arrays` listed, of the shapes that the header says."""
    machine = Machine(
        coupling.from_factors(numbered(arrays, "coupling"), len(visible_shape)),
        arrays["visible_bias"],
        arrays["hidden_bias"],
        units.from_file_arrays(arrays),
    )
    check_shapes(machine, visible_shape, hidden_shape)
    return machine


def check_shapes(machine: Any, visible_shape: Any, hidden_shape: Any) -> None:
    """Refuse arrays that make a machine of other shapes than the header says."""
    shapes = [list(machine.visible_shape), list(machine.hidden_shape)]
    if shapes != [visible_shape, hidden_shape]:
        raise ValueError(f"arrays of a machine of shapes {shapes}")


def numbered(arrays: dict[str, NDArray[Any]], name: str) -> list[NDArray[Any]]:
    """Collect ``name.0, name.1, ...``, as many as there are."""
    found: list[NDArray[Any]] = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise ValueError("a base bias that is not finite")
    return array
