"""What every estimator is: parameters that are checked, random numbers, features, a file."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..learning import NEGATIVE_PHASES, SCHEMES
from ..machine import COUPLINGS, UNITS, Coupling, Machine
from ..tensor.check import check_choice, check_integer, check_positive, check_real
from ..training.devices import broadcast_from_first
from . import batches, inputs, model_file
from .seeds import Purpose, generator_of, key_for

CHOICES: dict[str, Mapping[str, Any] | tuple[str | None, ...]] = {
    "visible_units": UNITS,
    "negative_phase": NEGATIVE_PHASES,
    "scheme": SCHEMES,
    "schedule": ("constant", "linear", "cosine"),
    "init": ("data", "random"),
    "on_divergence": ("stop", "back-off"),
    "feature": ("probability", "field", "state"),
    "output": ("flat", "tensor"),
    "boundary": ("open", "periodic"),
    "gauge": ("canonical", None),
    "objective": ("generative", "discriminative", "hybrid"),
}
"""Parameters that are one of a few words, of every estimator that has them."""


@dataclass(eq=False, repr=False, kw_only=True)
class EstimatorBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The parameters that all estimators share, which `MPORBM` documents, and a fitted machine.

    A dataclass: its fields are parameters of the constructor, which only stores them.
    """

    visible_shape: Any = None
    visible_units: str = "bernoulli"
    negative_phase: str = "cd"
    n_gibbs: int = 1
    learning_rate: Any = "auto"
    schedule: Any = "constant"
    momentum: float = 0.5
    weight_decay: float = 0.0
    sparsity_target: float | None = None
    sparsity_cost: float = 0.1
    init: str = "data"
    batch_size: int = 100
    n_iter: int = 50
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    on_divergence: Any = "stop"
    checkpoint: Any = None
    checkpoint_interval: int = 1
    feature: str = "probability"
    output: str = "flat"
    verbose: int = 0
    random_state: Any = None

    coupling: ClassVar[str]
    """The name of the coupling in `mporbm.machine.COUPLINGS`."""
    is_deep: ClassVar[bool] = False
    """Whether there are hidden layers that cannot be summed out."""
    FEATURES: ClassVar[Mapping[str, Any]] = batches.FEATURES
    """How each feature is computed."""

    # Parameters

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        names = {entry.name for entry in fields(self)}
        for name, choices in CHOICES.items():
            if name in names and not (None in choices and getattr(self, name) is None):
                check_choice(name, getattr(self, name), tuple(choices))
        if isinstance(self.learning_rate, str) and self.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={self.learning_rate!r}: expected 'auto' or a number above 0."
            )
        if self.learning_rate != "auto":
            check_positive("learning_rate", self.learning_rate)
        for name in ("n_gibbs", "batch_size", "n_iter_no_change", "checkpoint_interval"):
            check_integer(name, getattr(self, name))
        check_integer("n_iter", self.n_iter, minimum=0)
        _check_range("momentum", self.momentum, 1.0)
        _check_range("weight_decay", self.weight_decay)
        _check_range("sparsity_cost", self.sparsity_cost)
        if self.sparsity_target is not None:
            _check_range("sparsity_target", self.sparsity_target, 1.0)
        if not 0.0 < check_real("validation_fraction", self.validation_fraction) < 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: expected a number above 0 and "
                f"below 1."
            )
        for name in names & {"early_stopping", "warm_start"}:
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{name}={value!r}: expected True or False.")
        _check_checkpoint(self.checkpoint, getattr(self, "warm_start", False))

    def shared_parameters(self, kind: type["EstimatorBase"]) -> dict[str, Any]:
        """List the parameters that another kind of estimator has, too."""
        names = {entry.name for entry in fields(kind)} & {entry.name for entry in fields(self)}
        return {name: getattr(self, name) for name in names}

    # Features

    def transform(self, X: Any) -> Any:
        """Compute the features of each sample: what the hidden units make of it.

        Returns
        -------
        array of shape (n, prod(hidden_shape)), or (n, *hidden_shape) for ``output="tensor"``;
        or what `set_output` asks for
        """
        rows = self._rows(X)
        check_choice("feature", self.feature, tuple(self.FEATURES))
        check_choice("output", self.output, tuple(CHOICES["output"]))
        key = key_for(self._seed, Purpose.FEATURES)
        features = self._batched(self.FEATURES[self.feature], rows, key)
        return features.reshape(len(features), -1) if self.output == "flat" else features

    # What was learnt

    @property
    def n_parameters_(self) -> int:
        """The number of weights, biases excluded, as the paper counts."""
        coupling: Coupling = self._fitted_machine("n_parameters_").coupling
        return coupling.n_parameters

    @property
    def hidden_shape_(self) -> tuple[int, ...]:
        """(J_1..J_d), the shape of the hidden layer."""
        shape: tuple[int, ...] = self._fitted_machine("hidden_shape_").hidden_shape
        return shape

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `mporbm.load` reads."""
        check_is_fitted(self)
        model_file.save(self, path)

    def named_machines(self) -> dict[str, Machine]:
        """List the machines that are kept in a file, by name."""
        return {"": self.machine_}

    def set_named_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        self.set_machine(machines[""])

    def machine_arrays(self, machine: Machine) -> dict[str, Any]:
        """List the parameters of a machine by the names that files have for them."""
        return model_file.machine_arrays(machine)

    def machine_from_arrays(
        self, arrays: dict[str, Any], visible_shape: Any, hidden_shape: Any
    ) -> Machine:
        """Build a machine from what `machine_arrays` listed."""
        units = UNITS[self.visible_units]
        return model_file.machine_from_arrays(
            COUPLINGS[self.coupling], units, arrays, visible_shape, hidden_shape
        )

    def set_machine(self, machine: Any) -> None:
        """Become a fitted estimator around a machine."""
        self.machine_: Any = machine
        self.visible_shape_: tuple[int, ...] = self.data_shape()
        self.n_features_in_ = math.prod(self.visible_shape_)
        self._n_features_out = math.prod(self.hidden_shape_)

    def data_shape(self) -> tuple[int, ...]:
        """Give the shape of the samples that the machine was made for."""
        shape: tuple[int, ...] = self.machine_.visible_shape
        return shape

    def _fitted_machine(self, name: str) -> Any:
        if not hasattr(self, "machine_"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self.machine_

    # Data and random numbers

    def _rows(self, X: Any) -> Any:
        """Check samples against what was learnt."""
        check_is_fitted(self)
        rows = inputs.check_rows(self, X, reset=False)
        inputs.check_values(rows, self.visible_units)
        return rows

    def _batched(self, function: Any, rows: Any, *arguments: Any, **options: Any) -> NDArray[Any]:
        """Apply a compiled function that gives one array to all rows."""
        result: NDArray[Any] = batches.in_batches(
            function, self.machine_, rows, *arguments, **options
        )
        return result

    def _key(self, random_state: Any) -> Array:
        generator = self._random if random_state is None else generator_of(random_state)
        return jax.random.key(int(generator.randint(2**31)))

    def restart_random_numbers(self) -> int:
        """Take a seed from `random_state`, and the generator that later draws come from."""
        generator = generator_of(self.random_state)
        if generator is np.random.mtrand._rand or isinstance(
            self.random_state, np.random.RandomState
        ):
            generator = np.random.RandomState(generator.randint(2**31))
        self._random: np.random.RandomState = generator
        # Processes that train together need the same one.
        self._seed: int = broadcast_from_first(int(self._random.randint(2**31)))
        return self._seed

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _check_range(name: str, value: Any, limit: float = math.inf) -> None:
    number = check_real(name, value)
    if not 0.0 <= number < limit:
        raise ValueError(f"{name}={number}: expected a number in [0, {limit:g}).")


def _check_checkpoint(checkpoint: Any, warm_start: bool) -> None:
    """Refuse a checkpoint that cannot be written, or that would be mistaken for this training."""
    if checkpoint is None:
        return
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(
            f"checkpoint={checkpoint!r}: expected the path of a file or None, got "
            f"{type(checkpoint).__name__}."
        )
    folder = os.path.dirname(os.path.abspath(checkpoint))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"checkpoint={os.fspath(checkpoint)!r}: expected a file in an existing folder, but "
            f"there is no {folder}."
        )
    if warm_start:
        raise ValueError(
            "checkpoint: expected None with warm_start=True, which would find the checkpoint of "
            "the training before and do nothing."
        )
