"""What every estimator is: parameters that are checked, random numbers, features, a file."""

import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..learning.rates import Schedule
from ..machine import COUPLINGS, HIDDEN_UNITS, Machine, Model, Units
from ..tensor import MPSBatch
from ..tensor.arrays import AnyArray
from ..tensor.check import check_choice
from ..training.devices import broadcast_from_first
from . import batches, incomplete, inputs
from .parameters import CHOICES, check_parameters
from .scaling import states_of

RandomState = int | np.integer | np.random.RandomState | None
"""What scikit-learn takes as `random_state`."""


class Purpose(IntEnum):
    """What the keys of a seed are for; training derives its own."""

    WEIGHTS = 0
    TRAINING = 1
    FEATURES = 2
    NOISE = 3
    LOG_PARTITION = 4


@dataclass(eq=False, repr=False, kw_only=True)
class EstimatorBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The parameters that all estimators share, which `MPORBM` documents, and a fitted machine.

    A dataclass: its fields are parameters of the constructor, which only stores them.
    """

    visible_shape: Sequence[int] | np.ndarray | None = None
    visible_units: str = "bernoulli"
    negative_phase: str = "pcd"
    n_gibbs: int = 1
    learning_rate: float | Literal["auto"] = "auto"
    schedule: Schedule = "linear"
    momentum: float = 0.0
    weight_decay: float = 0.0
    sparsity_target: float | None = None
    sparsity_cost: float = 0.1
    init: str = "data"
    batch_size: int = 100
    n_iter: int | Literal["auto"] = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    on_divergence: Literal["stop", "back-off"] = "stop"
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_interval: int = 1
    feature: str = "probability"
    output: str = "flat"
    verbose: int = 0
    random_state: RandomState = None

    coupling: ClassVar[str]
    """The name of the coupling in `mporbm.machine.COUPLINGS`."""
    _is_deep: ClassVar[bool] = False
    """Whether there are hidden layers that cannot be summed out."""
    _TAKES_MISSING: ClassVar[bool] = False
    """Whether samples may have missing values, which are NaN."""
    _FEATURES: ClassVar[Mapping[str, Callable[..., Array]]] = batches.FEATURES
    """How each feature is computed."""

    # Parameters

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        check_parameters(self)

    def _shared_parameters(self, kind: type["EstimatorBase"]) -> dict[str, Any]:
        """List the parameters that another kind of estimator has, too."""
        names = {entry.name for entry in fields(kind)} & {entry.name for entry in fields(self)}
        return {name: getattr(self, name) for name in names}

    def _size_checked(self, machine: Machine) -> Machine:
        """Return a machine; warn of a rank that makes more weights than a dense one has.

        A rank that was not asked for may do so, where layers are tiny.
        """
        rank: Any = getattr(self, "rank", None)
        is_default = np.ndim(rank) == 0 and rank == getattr(type(self), "rank", None)
        n_weights = machine.coupling.n_parameters
        n_dense = math.prod(machine.visible_shape) * math.prod(machine.hidden_shape)
        if n_weights > n_dense and not is_default:
            warnings.warn(
                f"rank={rank}: {n_weights} weights, more than the {n_dense} of a dense machine; "
                f"choose a lower rank, or RBM.",
                stacklevel=2,
            )
        return machine

    # Features

    def transform(self, X: ArrayLike | MPSBatch) -> Any:
        """Compute the features of each sample: what the hidden units make of it.

        Of a sample with missing values (NaN) it is what they make of it in the mean over these,
        ``E[p(H | V) | V_observed]``, along a chain of Gibbs steps that is the same at every call.

        Returns
        -------
        array of shape (n, prod(hidden_shape)), or (n, *hidden_shape) for ``output="tensor"``;
        or what `set_output` asks for
        """
        rows, missing = self._checked(X, missing=True)
        check_choice("feature", self.feature, tuple(self._FEATURES))
        check_choice("output", self.output, tuple(CHOICES["output"]))
        key = key_for(self._seed, Purpose.FEATURES)
        if missing:
            features = incomplete.features(self, rows, key)
        else:
            features = self._batched(self._FEATURES[self.feature], rows, key)
        return features.reshape(len(features), -1) if self.output == "flat" else features

    # What was learnt

    @property
    def _hidden_kind(self) -> str:
        """The kind of hidden units that ``hidden_units="auto"`` stands for, or the one given."""
        kind: str = getattr(self, "hidden_units", "bernoulli")
        if kind != "auto":
            return kind
        return "gaussian" if self.visible_units == "gaussian" else "bernoulli"

    @property
    def _is_gaussian(self) -> bool:
        """Whether both layers are Gaussian, so that everything has a closed form."""
        return self.visible_units == self._hidden_kind == "gaussian"

    @property
    def n_parameters_(self) -> int:
        """The number of weights, biases excluded, as the paper counts."""
        return int(self._fitted_machine("n_parameters_").coupling.n_parameters)

    @property
    def hidden_shape_(self) -> tuple[int, ...]:
        """(J_1..J_d), the shape of the hidden layer."""
        return tuple(self._fitted_machine("hidden_shape_").hidden_shape)

    def set_machine(self, machine: Model) -> None:
        """Become a fitted estimator around a machine, without momentum and chains of another."""
        for of_another in ("_continuation", "chains_"):
            self.__dict__.pop(of_another, None)
        self.machine_: Any = machine
        self.visible_shape_ = self._data_shape()
        self.n_features_in_ = math.prod(self.visible_shape_)
        self._n_features_out = math.prod(self.hidden_shape_)

    def _data_shape(self) -> tuple[int, ...]:
        """Give the shape of the samples that the machine was made for."""
        return tuple(self.machine_.visible_shape)

    def _fitted_machine(self, name: str) -> Any:
        if not hasattr(self, "machine_"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self.machine_

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `mporbm.load` reads."""
        from . import model_file

        check_is_fitted(self)
        model_file.save(self, path)

    def _named_machines(self) -> dict[str, Machine]:
        """List the machines that are kept in a file, by name."""
        return {"": self.machine_}

    def _set_named_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        self.set_machine(machines[""])

    def _machine_arrays(self, machine: Machine) -> Mapping[str, AnyArray]:
        """List the parameters of a machine by the names that files have for them."""
        arrays = {f"coupling.{k}": factor for k, factor in enumerate(machine.coupling.factors)}
        arrays |= {"visible_bias": machine.visible_bias, "hidden_bias": machine.hidden_bias}
        hidden = machine.hidden_units.file_arrays()
        arrays |= {f"hidden_units.{name}": array for name, array in hidden.items()}
        return arrays | machine.visible_units.file_arrays()

    def _machine_from_arrays(
        self,
        arrays: dict[str, np.ndarray],
        visible_units: type[Units],
        visible_shape: list[int],
        hidden_shape: list[int],
    ) -> Machine:
        """Build a machine of the shapes that a header says from what `_machine_arrays` listed."""
        factors = numbered(arrays, "coupling")
        hidden_units = HIDDEN_UNITS[self._hidden_kind]
        start = "hidden_units."
        hidden_arrays = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
        machine = Machine(
            COUPLINGS[self.coupling].from_factors(factors, len(visible_shape)),
            arrays["visible_bias"],
            arrays["hidden_bias"],
            visible_units.from_file_arrays(arrays),
            hidden_units.from_file_arrays(hidden_arrays),
        )
        check_shapes(machine, visible_shape, hidden_shape)
        return machine

    # Data and random numbers

    def _rows(self, X: object) -> inputs.Rows | MPSBatch:
        """Check samples, of which nothing may be missing, against what was learnt."""
        return self._checked(X, missing=False)[0]

    def _checked(self, X: object, *, missing: bool) -> tuple[inputs.Rows | MPSBatch, bool]:
        """Check samples against what was learnt, and say whether values of them are missing."""
        check_is_fitted(self)
        rows = inputs.check_rows(self, X, reset=False, missing=True)
        taken, hint = missing and self._TAKES_MISSING, incomplete.hint(self)
        found = inputs.check_values(rows, self.visible_units, missing=taken, hint=hint)
        return states_of(self, rows), found

    def _batched(
        self, function: Callable[..., object], *arguments: Any, title: str = "", **options: Any
    ) -> np.ndarray:
        """Apply a compiled function that gives one array to all rows (`batches.in_batches`)."""
        options["title"] = title if self.verbose else ""
        result: np.ndarray = batches.in_batches(function, self.machine_, *arguments, **options)
        return result

    def _key(self, random_state: RandomState) -> Array:
        generator = self._random if random_state is None else generator_of(random_state)
        return jax.random.key(int(generator.randint(2**31)))

    def _restart_random_numbers(self) -> int:
        """Take a seed from `random_state`, and the generator that later draws come from."""
        generator = generator_of(self.random_state)
        if not isinstance(self.random_state, (int, np.integer)):
            generator = np.random.RandomState(generator.randint(2**31))
        self._random = generator
        # Processes that train together need the same one.
        self._seed: int = broadcast_from_first(int(self._random.randint(2**31)))
        return self._seed

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = self._TAKES_MISSING
        return tags


def plain(value: object) -> Any:
    """A value as JSON has it; what JSON cannot hold (a random generator) becomes None."""

    def converted(item: object) -> object:
        if isinstance(item, (np.generic, np.ndarray)):
            return item.tolist()
        return os.fspath(item) if isinstance(item, os.PathLike) else None

    return json.loads(json.dumps(value, default=converted))


def generator_of(random_state: RandomState) -> np.random.RandomState:
    """Return the generator behind a random state of scikit-learn."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r}: expected None, an integer from 0 to 2^32 - 1 or a "
            f"numpy.random.RandomState."
        ) from error
    return generator


def key_for(seed: int, purpose: Purpose) -> Array:
    """Derive the key of a seed for one purpose."""
    return jax.random.split(jax.random.key(seed), len(Purpose))[purpose]


def chain_rows(machine: Model, visible: AnyArray | None) -> np.ndarray | None:
    """Keep the states of chains, binary ones in a byte for each unit."""
    if visible is None:
        return None
    is_binary = machine.undirected.visible_units.is_binary
    return np.asarray(visible).astype(np.uint8 if is_binary else machine.coupling.dtype)


def numbered(arrays: Mapping[str, np.ndarray], name: str) -> list[np.ndarray]:
    """Collect ``name.0, name.1, ...``, as many as there are."""
    found: list[np.ndarray] = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def check_shapes(machine: Machine, visible_shape: list[int], hidden_shape: list[int]) -> None:
    """Refuse arrays that make a machine of other shapes than the header says."""
    shapes = [list(machine.visible_shape), list(machine.hidden_shape)]
    if shapes != [visible_shape, hidden_shape]:
        raise ValueError(f"arrays of a machine of shapes {shapes}")
