"""What every fitted estimator has: features, parameters, a file."""

import os
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..machine import Machine
from ..tensor.check import check_choice
from ..tensor.index import Order
from . import batches, inputs, model_file
from .seeds import generator_of, key_for


class Fitted(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """The methods of a fitted estimator, whatever its machine."""

    machine_: Machine
    visible_shape_: tuple[int, ...]
    in_mps_form_: bool
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
        features = self._batched(batches.FEATURES[self.feature], rows, key)
        return features.reshape(len(features), -1) if self.output == "flat" else features

    # Parameters

    def weight_matrix(self, order: Order = "C") -> NDArray[Any]:
        """W as a matrix, visible by hidden units.

        In C order ``X.reshape(n, -1) @ weight_matrix() + hidden_bias_.ravel()`` is the hidden
        field; ``order="F"`` is the paper's Eq. (1).
        """
        self._check_tensor_form("weight_matrix")
        return np.asarray(self.machine_.coupling.to_matrix(order))

    @property
    def visible_bias_(self) -> Any:
        """B, of shape visible_shape; an `MPS` if the machine is in MPS form."""
        bias: Any = self._fitted_machine("visible_bias_").visible_bias
        return bias if self.in_mps_form_ else np.asarray(bias)

    @property
    def hidden_bias_(self) -> NDArray[Any]:
        """C, of shape hidden_shape."""
        return np.asarray(self._fitted_machine("hidden_bias_").hidden_bias)

    @property
    def n_parameters_(self) -> int:
        """The number of weights, biases excluded, as the paper counts."""
        return self._fitted_machine("n_parameters_").coupling.n_parameters

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `mporbm.load` reads."""
        check_is_fitted(self)
        model_file.save(self, path)

    def _check_tensor_form(self, methods: str) -> None:
        """Refuse what needs the visible layer as a tensor."""
        check_is_fitted(self)
        if self.in_mps_form_:
            raise TypeError(
                f"{methods}: expected a machine that was trained with arrays, got one in MPS form, "
                f"whose visible layer is never formed; use transform, reconstruct, sample or "
                f"free_energy."
            )

    def _fitted_machine(self, name: str) -> Machine:
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
