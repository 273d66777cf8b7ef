"""Deep estimators: stacks of machines as deep belief networks and deep Boltzmann machines."""

import math
import os
import zlib
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..learning import MeanField, Rates, Scheme, WakeSleep
from ..machine import Bernoulli, Copies, DeepBelief, Machine, deep_boltzmann
from ..machine.layered import layered, stack_of
from ..sampling.deep import belief_bound, belief_sample, infer_layers, variational_free_energy
from ..tensor.check import check_integer, check_paired_shapes, check_sequence, check_shape
from ..training.sources import Source
from . import batches, inputs
from .base import BoltzmannMachine, Options
from .compilation import keep_compiled
from .machines import MPORBM, RBM, Factorised
from .progress import sample_bar
from .seeds import key_for
from .trained import Trained

N_BOUND_SAMPLES = 100
"""The passes up that the bound of a deep belief network is averaged over."""


@dataclass(eq=False, repr=False, kw_only=True)
class Deep(Trained, Options, BaseEstimator):
    """A stack of machines that learn one after the other and then, if asked, together.

    A subclass says what the layers are and what is made of them.
    """

    hidden_shapes: Any = field(default=None, kw_only=False)
    n_iter_fine_tuning: int = 50

    # What a subclass says

    @abstractmethod
    def _layer(self, number: int, n_layers: int) -> BoltzmannMachine:
        """The estimator of a layer, counted from 0."""

    @abstractmethod
    def _stacked(self, stack: tuple[Machine, ...]) -> Any:
        """What is made of the machines of all layers."""

    @abstractmethod
    def _fine_tuning(self) -> Scheme:
        """How all layers learn together."""

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
        weight = BoltzmannMachine._take_weight(fit_params)
        self._check_parameters()
        if inputs.is_stream(X):
            raise ValueError(
                "X: expected an array, which may be memory-mapped, got a stream; each layer learns "
                "from what those below it make of all samples."
            )
        keep_compiled()
        data = inputs.check_rows(self, X, reset=True)
        shapes = self._hidden_shapes()
        rows, held, stack = data, X_val, []
        self.history_: list[dict[str, Any]] = []
        for number, shape in enumerate(shapes):
            layer = self._layer(number, len(shapes))
            first = number == 0
            self._run(
                layer,
                f"layer {number + 1}",
                (rows, held, weight),
                visible_units=self.visible_units if first else "bernoulli",
                visible_shape=rows.shape[1:],
                hidden_shape=shape,
                output="tensor",
                feature="probability",
                random_state=self.random_state if first else self._seed + number,
            )
            stack.append(layer.machine_)
            if first:
                self._seed, self.base_bias_ = layer._seed, layer.base_bias_
            if number + 1 < len(shapes):
                rows = layer.transform(rows)
                held = None if held is None else layer.transform(held)
        machine = self._stacked(tuple(stack))
        if self.n_iter_fine_tuning:
            together = Together()
            together.start, together.way = machine, self._fine_tuning()
            self._run(
                together,
                "fine-tuning",
                (data, X_val, weight),
                visible_shape=self.visible_shape_,
                n_iter=self.n_iter_fine_tuning,
                random_state=self._seed,
            )
            machine = together.machine_
        self._set_machine(machine)
        self._random = np.random.RandomState(self._seed)
        self.n_iter_ = len(self.history_)
        return self

    def _run(
        self, learner: BoltzmannMachine, stage: str, data: tuple[Any, Any, Any], **own: Any
    ) -> None:
        """One stage of the training, with the parameters that it shares with this estimator.

        Every stage has a checkpoint of its own. After a kill, finished ones are read from theirs.
        """
        if self.checkpoint is not None:
            own["checkpoint"] = f"{os.fspath(self.checkpoint)}.{stage.replace(' ', '-')}"
        rows, held, weight = data
        self._shared_with(learner).set_params(**own)
        learner.fit(rows, X_val=held, sample_weight=weight)
        self.history_ += [{**entry, "stage": stage} for entry in learner.history_]

    def _check_parameters(self) -> None:
        check_integer("n_iter_fine_tuning", self.n_iter_fine_tuning, minimum=0)
        # What any layer would refuse, before the first one learns.
        self._shared_with(self._layer(0, 1))._check_parameters()

    def _shared_with(self, learner: BoltzmannMachine) -> BoltzmannMachine:
        """An estimator that has the parameters of this one, as far as both have them."""
        names = {entry.name for entry in fields(learner)} & {entry.name for entry in fields(self)}
        learner.set_params(**{name: getattr(self, name) for name in names})
        return learner

    def _hidden_shapes(self) -> list[tuple[int, ...]]:
        """One shape for every layer."""
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

    def _set_machine(self, machine: Any) -> None:
        self.machine_ = machine
        stack = self._stack()
        self.visible_shape_ = stack[0].visible_shape
        self.n_features_in_ = math.prod(self.visible_shape_)
        self._n_features_out = math.prod(stack[-1].hidden_shape)

    @abstractmethod
    def _stack(self) -> tuple[Machine, ...]:
        """The layers as machines, the lowest first."""

    @property
    def layers_(self) -> tuple[Machine, ...]:
        """The layers as machines, the lowest first."""
        self._fitted_machine("layers_")
        return self._stack()


class Together(Factorised):
    """All layers of a stack at once."""

    start: Any
    way: Scheme

    def _starting_machine(self, seed: int, source: Source) -> Any:
        return self.start

    def _scheme(self) -> Scheme:
        return self.way

    def _headline(self, machine: Any, batch_size: int) -> str:
        return "all layers together"

    def _identity(self) -> dict[str, Any]:
        leaves = b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(self.start))
        return {**super()._identity(), "start": zlib.crc32(leaves)}


@dataclass(eq=False, repr=False, kw_only=True)
class Tensors(Deep):
    """Layers that are coupled by matrix product operators."""

    rank: Any = 20
    boundary: Any = "open"
    scheme: str = "aop"
    gauge: str | None = "canonical"
    rank_tolerance: float = 0.25

    def _hidden_shapes(self) -> list[tuple[int, ...]]:
        shapes = super()._hidden_shapes()
        for k, shape in enumerate(shapes):
            check_paired_shapes("visible_shape", self.visible_shape_, f"hidden_shapes[{k}]", shape)
        return shapes

    @property
    def ranks_(self) -> tuple[tuple[int, ...], ...]:
        """For every layer the rank of each bond."""
        return tuple(machine.coupling.to_mpo().mpo.ranks for machine in self.layers_)


# Deep belief networks


class Belief(Deep):
    """What is made of a stack: a deep belief network."""

    def _stacked(self, stack: tuple[Machine, ...]) -> DeepBelief:
        return DeepBelief.of_stack(stack)

    def _fine_tuning(self) -> Scheme:
        return WakeSleep()

    def _stack(self) -> tuple[Machine, ...]:
        return (*self.machine_.generation, self.machine_.top)

    def sample(
        self, n_samples: int = 1, n_gibbs: int = 1000, random_state: Any = None
    ) -> NDArray[Any]:
        """Samples of the model, ``(n_samples, *visible_shape)``.

        Chains of `n_gibbs` steps of the machine on top, then a pass down of random states.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
        rows = np.broadcast_to(np.float32(0.0), (n_samples, *self.visible_shape_))
        key = self._key(random_state)
        with sample_bar("sample", n_samples, bool(self.verbose)) as show:
            return self._batched(dreams, rows, key, steps, chains=True, show=show)

    def score_samples(self, X: Any) -> NDArray[Any]:
        """A lower bound on ``log p(V)`` of each sample.

        ``E_q[log p(V, X_1..X_{L-1}) - log q(X_1..X_{L-1} | V)]`` with the recognition distribution
        q, as the mean over 100 passes up, the same at every call; log Z of the machine on top is
        that of `log_partition`. With one layer it is ``log p(V)`` itself.
        """
        bounds = self._batched(bound, self._rows(X), key_for(self._seed, 3))
        return self._less_log_partition(bounds)

    def _undirected(self) -> tuple[Machine, Any]:
        base = getattr(self, "base_bias_", None)
        return self.machine_.top, None if self.machine_.generation else base

    def _machines(self) -> dict[str, Machine]:
        sides = {"recognition": self.machine_.recognition, "generation": self.machine_.generation}
        below = {f"{s}.{k}.": m for s, side in sides.items() for k, m in enumerate(side)}
        return {**below, "top.": self.machine_.top}

    def _set_machines(self, machines: dict[str, Machine]) -> None:
        up, down = (
            tuple(machines[f"{side}.{k}."] for k in range(len(machines) // 2))
            for side in ("recognition", "generation")
        )
        self._set_machine(DeepBelief(up, down, machines["top."]))


@batches.compiled
def dreams(machine: DeepBelief, visible: Array, key: Array, n_gibbs: Array) -> Array:
    """As many samples as there are rows."""
    return belief_sample(key, machine, len(visible), n_gibbs)


@batches.compiled
def bound(machine: DeepBelief, visible: Array, key: Array) -> Array:
    """The bound on the log-probability, up to log Z."""
    return belief_bound(key, machine, visible, N_BOUND_SAMPLES)


@dataclass(eq=False, repr=False, kw_only=True)
class DBN(Belief):
    """Deep belief network of dense layers: what `MPODBN` is compared with.

    The parameters are those of `MPODBN` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shapes` may be numbers, such as ``[100, 50]``.
    """

    def _layer(self, number: int, n_layers: int) -> RBM:
        return RBM()


@dataclass(eq=False, repr=False, kw_only=True)
class MPODBN(Belief, Tensors):
    """Deep belief network with layers coupled by matrix product operators (Hinton et al. 2006).

    ``p(X_0..X_L) = p(X_0 | X_1) ... p(X_{L-2} | X_{L-1}) p(X_{L-1}, X_L)``: an `MPORBM` on top of
    directed layers. Every layer is an `MPORBM` that learns the hidden probabilities of the one
    below; tensors go in and tensors come out. Fine-tuning is the up-down algorithm, after which
    the couplings that infer (`machine_.recognition`) are others than those that generate.

    Features are those of the last layer after a pass of means. `sample` runs chains of the machine
    on top and then draws downwards. `complete` and `denoise` repeat passes of random states up to
    the last layer and down again, with known values clamped, and average what the last step gives:
    approximately the posterior mean, as layers below the top are inferred by recognition, which
    only approximates their posterior. `score_samples` is a lower bound.

    Parameters
    ----------
    hidden_shapes
        The shape of every hidden layer, such as ``[(10, 10), (8, 8)]``, with as many modes as the
        samples have; by default two layers of the shape of the samples.
    n_iter_fine_tuning
        Epochs in which all layers learn together, after `n_iter` epochs of each alone.
    rank, boundary, scheme, gauge, rank_tolerance
        Of every layer, as for `MPORBM`. Fine-tuning moves all cores at once.
    checkpoint
        Every stage has a file of its own, with ``.layer-1``, ``.layer-2``, ..., ``.fine-tuning``
        added to this name. A `fit` that finds them goes on where it was.
    visible_shape, visible_units, negative_phase, n_gibbs, learning_rate, schedule, momentum, \
    weight_decay, sparsity_target, sparsity_cost, init, batch_size, n_iter, early_stopping, \
    validation_fraction, n_iter_no_change, on_divergence, checkpoint_interval, feature, output, \
    verbose, random_state
        As for `MPORBM`, at every stage.

    Attributes
    ----------
    machine_
        The learnt `mporbm.machine.DeepBelief`.
    layers_
        Its layers as machines, the lowest first: what generates.
    ranks_
        For every layer the rank of each bond.
    n_parameters_
        The number of weights that generate, biases excluded.
    history_
        What `MPORBM` watches in every epoch, with its ``"stage"``. The score of fine-tuning is
        minus the reconstruction error.
    n_iter_
        The epochs of all stages.
    base_bias_
        The visible bias that independent units would need to have the means of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPODBN
    >>> X = np.random.default_rng(0).random((20, 6, 6)) < 0.3
    >>> model = MPODBN([(3, 3), (2, 2)], rank=3, n_iter=2, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(5).shape
    ((20, 4), (5, 6, 6))
    """

    def _layer(self, number: int, n_layers: int) -> MPORBM:
        return MPORBM()


# Deep Boltzmann machines


class Doubled(BoltzmannMachine):
    """A layer of a deep Boltzmann machine while it learns alone.

    What the layers that are missing would add is made up for by copies of those that are there
    (`mporbm.machine.layered.deep_boltzmann`).
    """

    copies: tuple[int, int]
    """Of the visible and of the hidden layer."""

    def _starting_machine(self, seed: int, source: Source) -> Machine:
        machine = super()._starting_machine(seed, source)
        return Machine(
            machine.coupling,
            machine.visible_bias,
            machine.hidden_bias,
            Copies(machine.visible_units, self.copies[0]),
            Copies(machine.hidden_units, self.copies[1]),
        )

    def _initial_rates(self, *arguments: Any) -> Rates:
        rates = super()._initial_rates(*arguments)
        # Copies make patterns grow as much faster, which the automatic rate does not know.
        n_visible, n_hidden = self.copies
        share = 1.0 / (n_visible**2 * n_hidden) if self.learning_rate == "auto" else 1.0
        return Rates(share * rates.coupling, rates.bias)

    def _features(self) -> dict[str, Any]:
        return {"probability": single_probability}


@batches.compiled
def single_probability(machine: Machine, visible: Array, key: Any) -> Array:
    """The probability that one copy of a hidden unit is on."""
    field = machine.hidden_field(machine.visible_units.of_values(visible))
    return Bernoulli().mean(field)


class DoubledRBM(Doubled, RBM):
    """A dense layer."""


class DoubledMPORBM(Doubled, MPORBM):
    """A layer of matrix product operators."""


@dataclass(eq=False, repr=False, kw_only=True)
class Boltzmann(Deep):
    """What is made of a stack: a deep Boltzmann machine."""

    negative_phase: str = "pcd"
    n_gibbs: int = 5
    schedule: Any = "linear"

    def _stacked(self, stack: tuple[Machine, ...]) -> Machine:
        return deep_boltzmann(stack)

    def _fine_tuning(self) -> Scheme:
        return MeanField()

    def _stack(self) -> tuple[Machine, ...]:
        return stack_of(self.machine_)

    def score_samples(self, X: Any) -> NDArray[Any]:
        """A lower bound on ``log p(V)`` of each sample.

        ``E_q[-E(V, X_1..X_L)] + entropy(q) - log Z`` with the mean-field distribution q of the
        other layers, and log Z of `log_partition`. With one layer it is ``log p(V)`` itself.
        """
        return self._less_log_partition(self._batched(mean_field_bound, self._rows(X)))

    def _undirected(self) -> tuple[Machine, Any]:
        base = getattr(self, "base_bias_", None)
        if base is not None:
            own = self.machine_.visible_bias[base.size :]
            base = np.concatenate([np.asarray(base).reshape(-1), own])
        return self.machine_, base

    def _features(self) -> dict[str, Any]:
        return BOLTZMANN_FEATURES

    def reconstruct(self, X: Any) -> NDArray[Any]:
        """The mean of V given the mean-field means of the other layers."""
        return self._batched(mean_field_pass, self._rows(X))

    # Evidence is about all even layers, of which nothing but the lowest is seen.

    def _infer(self, rows: Any, observed: Any, *arguments: Any) -> Any:
        answer = super()._infer(self._widened(rows), self._widened(observed), *arguments)
        return jax.tree.map(self._narrowed, answer)

    def _draws(self, rows: Any, observed: Any, *arguments: Any, **options: Any) -> NDArray[Any]:
        wide = self._widened(rows), self._widened(observed)
        return self._narrowed(super()._draws(*wide, *arguments, **options))

    def _estimate_noise(self, rows: Any, observed: Any) -> float:
        return super()._estimate_noise(self._widened(rows), self._widened(observed))

    def _widened(self, data: NDArray[Any]) -> NDArray[Any]:
        n_others = self.machine_.visible_shape[0] - self.n_features_in_
        return np.pad(data.reshape(len(data), -1), ((0, 0), (0, n_others)))

    def _narrowed(self, even: NDArray[Any]) -> NDArray[Any]:
        return even[:, : self.n_features_in_].reshape(len(even), *self.visible_shape_)

    def _machines(self) -> dict[str, Machine]:
        return {f"layer.{k}.": machine for k, machine in enumerate(self._stack())}

    def _set_machines(self, machines: dict[str, Machine]) -> None:
        self._set_machine(deep_boltzmann([machines[f"layer.{k}."] for k in range(len(machines))]))


def _top_field(machine: Machine, visible: Array) -> Array:
    """What the units of the last layer feel."""
    odd = machine.hidden_field(infer_layers(machine, visible))
    even = machine.visible_field(machine.hidden_units.mean(odd))
    return layered(machine).layers(even, odd)[-1]


@batches.compiled
def top_field(machine: Machine, visible: Array, key: Any) -> Array:
    """What the units of the last layer feel."""
    return _top_field(machine, visible)


@batches.compiled
def top_probability(machine: Machine, visible: Array, key: Any) -> Array:
    """The mean-field means of the last layer."""
    return Bernoulli().mean(_top_field(machine, visible))


@batches.compiled
def top_state(machine: Machine, visible: Array, key: Array) -> Array:
    """Random states of the last layer."""
    return Bernoulli().sample(key, _top_field(machine, visible))


BOLTZMANN_FEATURES = {"probability": top_probability, "field": top_field, "state": top_state}


@batches.compiled
def mean_field_pass(machine: Machine, visible: Array, key: Any) -> Array:
    """The mean of V given the other layers as inferred from it."""
    passed = machine.visible_mean(machine.hidden_mean(infer_layers(machine, visible)))
    return passed[:, : math.prod(visible.shape[1:])].reshape(visible.shape)


@batches.compiled
def mean_field_bound(machine: Machine, visible: Array, key: Any) -> Array:
    """The bound on the log-probability, up to log Z."""
    return -variational_free_energy(machine, infer_layers(machine, visible))


@dataclass(eq=False, repr=False, kw_only=True)
class DBM(Boltzmann):
    """Deep Boltzmann machine of dense layers: what `MPODBM` is compared with.

    The parameters are those of `MPODBM` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shapes` may be numbers, such as ``[100, 50]``.
    """

    def _layer(self, number: int, n_layers: int) -> RBM:
        return _doubled(DoubledRBM(), number, n_layers) if n_layers > 1 else RBM()


@dataclass(eq=False, repr=False, kw_only=True)
class MPODBM(Boltzmann, Tensors):
    """Deep Boltzmann machine with layers coupled by matrix product operators.

    ``-E(X_0..X_L) = sum_k <X_{k-1}, W_k(X_k)> + sum_k <B_k, X_k>`` (Salakhutdinov & Hinton 2009).
    Layers are pre-trained one after the other, with copies that stand for the layers that are
    missing (`mporbm.machine.layered.deep_boltzmann`). Then all learn together, with mean-field
    inference for the data and persistent chains for the model.

    Features are the mean-field means of the last layer. `sample`, `complete` and `denoise` are
    Gibbs sampling of even and odd layers in turns, from the exact conditionals. `score_samples` is
    a lower bound.

    Parameters
    ----------
    hidden_shapes
        The shape of every hidden layer, such as ``[(10, 10), (8, 8)]``, with as many modes as the
        samples have; by default two layers of the shape of the samples.
    n_iter_fine_tuning
        Epochs in which all layers learn together, after `n_iter` epochs of each alone.
    negative_phase, n_gibbs, schedule
        As for `MPORBM`, at every stage. Chains that begin at the data know little of a model of
        several layers, and the noise of persistent ones must fade: by default five steps of these,
        and a rate that falls to 0.
    rank, boundary, scheme, gauge, rank_tolerance
        Of every layer, as for `MPORBM`. Fine-tuning moves all cores at once.
    checkpoint
        Every stage has a file of its own, with ``.layer-1``, ``.layer-2``, ..., ``.fine-tuning``
        added to this name. A `fit` that finds them goes on where it was.
    visible_shape, visible_units, learning_rate, momentum, weight_decay, \
    sparsity_target, sparsity_cost, init, batch_size, n_iter, early_stopping, \
    validation_fraction, n_iter_no_change, on_divergence, checkpoint_interval, feature, output, \
    verbose, random_state
        As for `MPORBM`, at every stage.

    Attributes
    ----------
    machine_
        The learnt `mporbm.machine.Machine`, between all even and all odd layers.
    layers_
        Every coupling with its biases as a machine, the lowest first.
    ranks_
        For every layer the rank of each bond.
    n_parameters_
        The number of weights, biases excluded.
    history_
        What `MPORBM` watches in every epoch, with its ``"stage"``.
    n_iter_
        The epochs of all stages.
    base_bias_
        The visible bias that independent units would need to have the means of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPODBM
    >>> X = np.random.default_rng(0).random((20, 6, 6)) < 0.3
    >>> model = MPODBM([(3, 3), (2, 2)], rank=3, n_iter=2, n_iter_fine_tuning=2, random_state=0)
    >>> upper_half = np.indices((6, 6))[0] < 3
    >>> model.fit(X).transform(X).shape, model.complete(X, upper_half).shape
    ((20, 4), (20, 6, 6))
    """

    def _layer(self, number: int, n_layers: int) -> MPORBM:
        return _doubled(DoubledMPORBM(), number, n_layers) if n_layers > 1 else MPORBM()


def _doubled(layer: Any, number: int, n_layers: int) -> Any:
    """A layer with two copies of what drives a layer in the middle."""
    layer.copies = (2 if number < n_layers - 1 else 1), (2 if number > 0 else 1)
    return layer


ESTIMATORS = (MPODBN, MPODBM, DBN, DBM)
