"""Deep estimators: machines in a stack that learn one after the other, and then together."""

import os
import zlib
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, Self

import jax
import numpy as np
from jax import Array

from ..learning import DrawnStates, Objective, Scheme
from ..learning.start import mirrored
from ..machine import Machine, Model
from ..tensor.check import check_integer, check_paired_shapes, check_sequence, check_shape
from ..tensor.ranks import Boundary
from ..training import Specification
from ..training.sources import Source
from . import batches, incomplete, inputs
from .boltzmann import BoltzmannEstimator
from .inference import InferenceMixin
from .likelihood import LikelihoodMixin
from .machines import RBM
from .mporbm import MPORBM, Rank


@batches.compiled
def single_probability(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute the probability that a hidden unit is on, or one copy of it if there are several."""
    field = machine.hidden_field(machine.visible_units.of_values(visible))
    return machine.hidden_units.single.mean(field)


@dataclass(eq=False, repr=False, kw_only=True)
class DeepEstimator(InferenceMixin, LikelihoodMixin):
    """A stack of machines: every layer learns from what the one below it makes of the samples.

    A subclass says what is made of the machines, and how all of them learn together.
    """

    hidden_shapes: object = field(default=None, kw_only=False)
    n_iter_fine_tuning: int = 50
    rule: Literal["plain", "centred"] = "centred"
    n_iter: int | Literal["auto"] = 50

    _is_deep: ClassVar[bool] = True
    coupling: ClassVar[str] = "dense"
    _LAYER: ClassVar[type[BoltzmannEstimator]] = RBM
    """The estimator that trains a layer."""
    _FINE_TUNING: ClassVar[tuple[type[Scheme], type[Objective]]]
    """How all layers learn together."""

    @abstractmethod
    def _stack_machines(self, stack: tuple[Machine, ...]) -> Model:
        """Make one model of the machines of all layers."""

    @property
    @abstractmethod
    def layers_(self) -> tuple[Machine, ...]:
        """The layers as machines, the lowest first."""

    # Fitting

    def fit(
        self, X: object, y: object = None, *, X_val: object = None, **fit_params: object
    ) -> Self:
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
        data = inputs.check_rows(self, X, reset=True, missing=True)
        rows, held, stack = data, X_val, list[Machine]()
        self.history_: list[dict[str, object]] = []
        self.diverged_ = False
        shapes = self._resolved_hidden_shapes()
        for number, shape in enumerate(shapes):
            first = number == 0
            layer = self._train_stage(
                f"layer {number + 1}",
                (rows, held, weight),
                partial(self._specify_layer, tuple(stack), len(shapes)),
                visible_units=self.visible_units if first else "bernoulli",
                visible_shape=rows.shape[1:],
                hidden_shape=shape,
                random_state=self.random_state if first else self._seed + number,
            )
            stack.append(layer.machine_)
            if first:
                self._seed, self.base_bias_ = layer._seed, layer.base_bias_
            if number + 1 < len(shapes):
                rows = layer._batched(single_probability, layer._rows(rows))
                if held is not None:
                    held = layer._batched(single_probability, layer._rows(held))
        machine = self._stack_machines(tuple(stack))
        # Where only the last layer is undirected, its chains are those of the model.
        chains = layer.chains_ if machine.undirected is layer.machine_ else None
        if self.n_iter_fine_tuning:
            learner = self._train_stage(
                "fine-tuning",
                (data, X_val, weight),
                partial(self._specify_fine_tuning, machine),
                visible_shape=self.visible_shape_,
                n_iter=self.n_iter_fine_tuning,
                random_state=self._seed,
            )
            machine, chains = learner.machine_, learner.chains_
        self.set_machine(machine)
        self.chains_ = chains
        self._random = np.random.RandomState(self._seed)
        self.n_iter_ = len(self.history_)
        return self

    def _specify_layer(
        self,
        below: tuple[Machine, ...],
        n_layers: int,
        layer: BoltzmannEstimator,
        seed: int,
        source: Source,
    ) -> Specification:
        """Specify the training of the layer above some others: that of a machine alone."""
        if source.incomplete:
            incomplete.refuse(self)
        start = layer._start(seed, source)
        if not below:
            return layer._specify(start, source, seed)
        if self.init == "data":
            start = mirrored(below[-1], start)
        return layer._specify(start, source, seed, objective=DrawnStates())

    def _specify_fine_tuning(
        self, machine: Model, learner: BoltzmannEstimator, seed: int, source: Source
    ) -> Specification:
        """Let all layers learn together."""
        scheme, objective = self._FINE_TUNING
        together = learner._specify(machine, source, seed, scheme=scheme(), objective=objective())
        leaves = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(machine))
        identity = {**together.identity, "class": "fine-tuning", "start": zlib.crc32(leaves)}
        return together._replace(identity=identity, base_bias=self.base_bias_)

    def _train_stage(
        self,
        stage: str,
        data: tuple[object, object, object],
        specify: Callable[[BoltzmannEstimator, int, Source], Specification],
        **own: object,
    ) -> BoltzmannEstimator:
        """Train the estimator of a stage, with the parameters that it shares with this one.

        Every stage has a checkpoint of its own. After a kill, finished ones are read from theirs.
        """
        if self.checkpoint is not None:
            own["checkpoint"] = f"{os.fspath(self.checkpoint)}.{stage.replace(' ', '-')}"
        learner = self._learner(**own)
        learner._fit_specified(*data, partial(specify, learner))
        self.diverged_ |= learner.diverged_
        self.history_ += [{**entry, "stage": stage} for entry in learner.history_]
        return learner

    def _learner(self, **own: object) -> BoltzmannEstimator:
        """Build the estimator of a layer, with the parameters that it shares with this one."""
        layer = self._LAYER(hidden_units="bernoulli", standardize=False)
        learner: BoltzmannEstimator = layer.set_params(
            **{**self._shared_parameters(self._LAYER), **own}
        )
        return learner

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        check_integer("n_iter_fine_tuning", self.n_iter_fine_tuning, minimum=0)
        # What any layer would refuse, before the first one learns.
        self._learner().check_parameters()

    def _resolved_hidden_shapes(self) -> list[tuple[int, ...]]:
        if self.hidden_shapes is None:
            return [self.visible_shape_] * 2
        given = self.hidden_shapes
        given = given.tolist() if isinstance(given, np.ndarray) else given
        expected = "shapes, one for each layer, such as [(10, 10), (8, 8)]"
        return [
            (check_integer(f"hidden_shapes[{k}]", shape),)
            if np.asarray(shape).ndim == 0
            else check_shape(f"hidden_shapes[{k}]", shape)
            for k, shape in enumerate(check_sequence("hidden_shapes", given, expected))
        ]

    # What was learnt

    def _data_shape(self) -> tuple[int, ...]:
        """Give the shape of the samples that the model was made for."""
        return self.layers_[0].visible_shape

    @property
    def hidden_shape_(self) -> tuple[int, ...]:
        """The shape of the last layer."""
        return self.layers_[-1].hidden_shape


@dataclass(eq=False, repr=False, kw_only=True)
class MPOLayers(DeepEstimator):
    """The parameters of layers that are coupled by matrix product operators."""

    rank: Rank | Literal["auto"] = 20
    boundary: Boundary = "open"
    scheme: str = "aop"
    gauge: str | None = "canonical"
    rank_tolerance: float = 0.25

    coupling: ClassVar[str] = "mpo"
    _LAYER: ClassVar[type[BoltzmannEstimator]] = MPORBM

    def _resolved_hidden_shapes(self) -> list[tuple[int, ...]]:
        shapes = super()._resolved_hidden_shapes()
        for k, shape in enumerate(shapes):
            check_paired_shapes("visible_shape", self.visible_shape_, f"hidden_shapes[{k}]", shape)
        return shapes

    @property
    def ranks_(self) -> tuple[tuple[int, ...], ...]:
        """The rank of each bond, for every layer."""
        return tuple(machine.coupling.used_ranks or () for machine in self.layers_)
