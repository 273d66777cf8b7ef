"""What every fitted estimator has: features, parameters, a file."""

import os
from abc import abstractmethod
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..machine import Coupling, Machine
from ..tensor.check import check_choice
from ..training.devices import agreed
from . import batches, inputs, model_file
from .seeds import generator_of, key_for


class Fitted(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The methods of a fitted estimator, whatever its machine."""

    machine_: Any
    visible_shape_: tuple[int, ...]
    in_mps_form_: bool = False
    random_state: Any
    feature: str
    output: str
    verbose: int
    visible_units: str
    _seed: int
    _random: np.random.RandomState

    # Features

    def transform(self, X: Any) -> Any:
        """The features of each sample: what the hidden units make of it, as `feature` says.

        Returns
        -------
        array of shape (n, prod(hidden_shape)), or (n, *hidden_shape) for ``output="tensor"``;
        or what `set_output` asks for
        """
        rows = self._rows(X)
        check_choice("feature", self.feature, ("probability", "field", "state"))
        check_choice("output", self.output, ("flat", "tensor"))
        key = key_for(self._seed, 2)
        features = self._batched(self._features()[self.feature], rows, key)
        return features.reshape(len(features), -1) if self.output == "flat" else features

    def _features(self) -> dict[str, Any]:
        """How each feature is computed."""
        return batches.FEATURES

    # Parameters

    @property
    def n_parameters_(self) -> int:
        """The number of weights, biases excluded, as the paper counts."""
        coupling: Coupling = self._fitted_machine("n_parameters_").coupling
        return coupling.n_parameters

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `mporbm.load` reads."""
        check_is_fitted(self)
        model_file.save(self, path)

    def _machines(self) -> dict[str, Machine]:
        """All machines that are kept in a file, by name."""
        return {"": self.machine_}

    def _set_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        self._set_machine(machines[""])

    @abstractmethod
    def _set_machine(self, machine: Any) -> None:
        """Become a fitted estimator around a machine."""

    def _check_tensor_form(self, methods: str) -> None:
        """Refuse what needs the visible layer as a tensor."""
        check_is_fitted(self)
        if self.in_mps_form_:
            raise TypeError(
                f"{methods}: expected a machine that was trained with arrays, got one in MPS form, "
                f"whose visible layer is never formed; use transform, reconstruct, sample or "
                f"free_energy."
            )

    def _fitted_machine(self, name: str) -> Any:
        if not hasattr(self, "machine_"):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        return self.machine_

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        rows = inputs.check_rows(self, X, reset=False)
        inputs.check_values(rows, self.visible_units)
        return rows

    def _batched(self, function: Any, rows: Any, *arguments: Any, **options: Any) -> NDArray[Any]:
        """A compiled function of all rows that gives one array."""
        result: NDArray[Any] = batches.in_batches(
            function, self.machine_, rows, *arguments, **options
        )
        return result

    def _key(self, random_state: Any) -> Array:
        generator = self._random if random_state is None else generator_of(random_state)
        return jax.random.key(int(generator.randint(2**31)))

    def _restart_random_numbers(self) -> int:
        """A seed from `random_state`, and the generator that later draws come from."""
        generator = generator_of(self.random_state)
        if generator is np.random.mtrand._rand or isinstance(
            self.random_state, np.random.RandomState
        ):
            generator = np.random.RandomState(generator.randint(2**31))
        self._random = generator
        # Processes that train together need the same one.
        self._seed = agreed(int(self._random.randint(2**31)))
        return self._seed

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
