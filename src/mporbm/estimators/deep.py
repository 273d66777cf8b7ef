"""Deep estimators: machines in a stack that learn one after the other, and then together."""

import os
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import jax
import numpy as np
from numpy.typing import NDArray

from ..learning import Objective, Scheme
from ..machine import UNITS, Machine, Units
from ..tensor.check import check_integer, check_paired_shapes, check_sequence, check_shape
from ..training import Specification
from ..training.sources import Source
from . import inputs
from .boltzmann import BoltzmannEstimator
from .inference import InferenceMixin
from .likelihood import LikelihoodMixin


@dataclass(eq=False, repr=False, kw_only=True)
class DeepEstimator(InferenceMixin, LikelihoodMixin):
    """A stack of machines: every layer learns from what the one below it makes of the samples.

    A subclass says which estimator trains a layer, and what is made of the machines.
    """

    hidden_shapes: Any = field(default=None, kw_only=False)
    n_iter_fine_tuning: int = 50

    _is_deep: ClassVar[bool] = True
    LAYER: ClassVar[type[BoltzmannEstimator]]
    """The estimator that trains a layer."""

    @abstractmethod
    def stack_machines(self, stack: tuple[Machine, ...]) -> Any:
        """Make one model of the machines of all layers."""

    @abstractmethod
    def unstack_machine(self) -> tuple[Machine, ...]:
        """List the layers as machines, the lowest first."""

    @abstractmethod
    def fine_tuning(self) -> tuple[Scheme, Objective]:
        """Say how all layers learn together."""

    def adapt_layer(self, specification: Specification, position: int, n: int) -> Specification:
        """Change the training of one of n layers, if it differs from that of a machine alone."""
        return specification

    def layer_features(self, layer: BoltzmannEstimator, rows: Any) -> NDArray[Any]:
        """Compute what the layer above learns from."""
        features: NDArray[Any] = layer.transform(rows)
        return features

    # Fitting

    def fit(self, X: Any, y: Any = None, *, X_val: Any = None, **fit_params: Any) -> Self:
        """Learn the distribution of X, layer by layer and then all layers together.

        Parameters
        ----------
        X
            Samples ``(n, *visible_shape)``, or flattened (n, n_features): an array, which may be
            memory-mapped.
        y
            Ignored.
        X_val
            Samples to watch for overfitting and to stop early by, at every stage.
        sample_weight : array of shape (n,), optional
            The weight of each sample, as for `MPORBM`.
        """
        weight = inputs.take_weight(fit_params)
        self.check_parameters()
        if inputs.is_stream(X):
            raise ValueError(
                "X: expected an array, which may be memory-mapped, got a stream; each layer learns "
                "from what those below it make of all samples."
            )
        data = inputs.check_rows(self, X, reset=True)
        shapes = self.resolved_hidden_shapes()
        rows, held, stack = data, X_val, []
        self.history_: list[dict[str, Any]] = []
        for number, shape in enumerate(shapes):
            first, last = number == 0, number + 1 == len(shapes)
            layer = self._stage(
                f"layer {number + 1}",
                visible_units=self.visible_units if first else "bernoulli",
                visible_shape=rows.shape[1:],
                hidden_shape=shape,
                output="tensor",
                feature="probability",
                random_state=self.random_state if first else self._seed + number,
            )

            def specify(
                seed: int, source: Source, layer: BoltzmannEstimator = layer, number: int = number
            ) -> Specification:
                alone = layer._specify(layer._start(seed, source), source, seed)
                return self.adapt_layer(alone, number, len(shapes))

            self._learn(f"layer {number + 1}", layer, (rows, held, weight), specify)
            stack.append(layer.machine_)
            if first:
                self._seed, self.base_bias_ = layer._seed, layer.base_bias_
            if not last:
                rows = self.layer_features(layer, rows)
                held = None if held is None else self.layer_features(layer, held)
        machine = self.stack_machines(tuple(stack))
        if self.n_iter_fine_tuning:
            machine = self._fine_tune(machine, (data, X_val, weight))
        self.set_machine(machine)
        self._random = np.random.RandomState(self._seed)
        self.n_iter_ = len(self.history_)
        return self

    def _fine_tune(self, machine: Any, data: tuple[Any, Any, Any]) -> Any:
        """Let all layers learn together."""
        learner = self._stage(
            "fine-tuning",
            visible_shape=self.visible_shape_,
            n_iter=self.n_iter_fine_tuning,
            random_state=self._seed,
        )
        scheme, objective = self.fine_tuning()
        leaves = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(machine))

        def specify(seed: int, source: Source) -> Specification:
            together = learner._specify(machine, source, seed, scheme=scheme, objective=objective)
            identity = {**together.identity, "class": "fine-tuning", "start": zlib.crc32(leaves)}
            return together._replace(identity=identity)

        self._learn("fine-tuning", learner, data, specify)
        return learner.machine_

    def _stage(self, stage: str, **own: Any) -> BoltzmannEstimator:
        """Build the estimator of a stage, with the parameters that it shares with this one.

        Every stage has a checkpoint of its own. After a kill, finished ones are read from theirs.
        """
        if self.checkpoint is not None:
            own["checkpoint"] = f"{os.fspath(self.checkpoint)}.{stage.replace(' ', '-')}"
        return self.LAYER(**{**self._shared_parameters(self.LAYER), **own})

    def _learn(
        self, stage: str, learner: BoltzmannEstimator, data: tuple[Any, Any, Any], specify: Any
    ) -> None:
        """Run a stage, and note its history."""
        rows, held, weight = data
        learner._fit_specified(rows, held, weight, specify)
        self.history_ += [{**entry, "stage": stage} for entry in learner.history_]

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        check_integer("n_iter_fine_tuning", self.n_iter_fine_tuning, minimum=0)
        # What any layer would refuse, before the first one learns.
        self.LAYER(**self._shared_parameters(self.LAYER)).check_parameters()

    def resolved_hidden_shapes(self) -> list[tuple[int, ...]]:
        """Give one shape for every layer."""
        if self.hidden_shapes is None:
            return [self.visible_shape_] * 2
        given = self.hidden_shapes
        given = given.tolist() if isinstance(given, np.ndarray) else given
        expected = "shapes, one for each layer, such as [(10, 10), (8, 8)]"
        return [
            (check_integer(f"hidden_shapes[{k}]", shape),)
            if np.ndim(shape) == 0
            else check_shape(f"hidden_shapes[{k}]", shape)
            for k, shape in enumerate(check_sequence("hidden_shapes", given, expected))
        ]

    # What was learnt

    def _data_shape(self) -> tuple[int, ...]:
        """Give the shape of the samples that the model was made for."""
        return self.unstack_machine()[0].visible_shape

    @property
    def hidden_shape_(self) -> tuple[int, ...]:
        """The shape of the last layer."""
        return self.layers_[-1].hidden_shape

    def _units_in_file(self, arrays: dict[str, np.ndarray]) -> type[Units]:
        """Say which visible units a layer of a file has; above the first, they are binary."""
        return UNITS["gaussian" if "log_variance" in arrays else "bernoulli"]

    @property
    def layers_(self) -> tuple[Machine, ...]:
        """The layers as machines, the lowest first."""
        self._fitted_machine("layers_")
        return self.unstack_machine()


def layer_ranks(estimator: DeepEstimator) -> tuple[tuple[int, ...], ...]:
    """List, for every layer, the rank of each bond."""
    return tuple(machine.coupling.used_ranks or () for machine in estimator.layers_)


def paired_shapes(
    visible_shape: tuple[int, ...], hidden_shapes: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Refuse hidden layers that have not as many modes as the samples."""
    for k, shape in enumerate(hidden_shapes):
        check_paired_shapes("visible_shape", visible_shape, f"hidden_shapes[{k}]", shape)
    return hidden_shapes
