"""Deep Boltzmann machines: DBM and MPODBM (Salakhutdinov & Hinton 2009)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
from jax import Array
from numpy.typing import NDArray

from ..learning import MeanFieldBound, Objective, Scheme, Simultaneous
from ..machine import Bernoulli, Copies, Machine, deep_boltzmann
from ..machine.layered import layered, stack_of
from ..sampling.deep import infer_layers, variational_free_energy
from ..training import Specification
from . import batches
from .boltzmann import BoltzmannEstimator
from .deep import DeepEstimator, layer_ranks, paired_shapes
from .machines import RBM
from .model_file import ESTIMATORS
from .mporbm import MPORBM


def _top_field(machine: Machine, visible: Array) -> Array:
    """Compute the field of each unit of the last layer."""
    odd = machine.hidden_field(infer_layers(machine, visible))
    even = machine.visible_field(machine.hidden_units.mean(odd))
    return layered(machine).layers(even, odd)[-1]


@batches.compiled
def top_field(machine: Machine, visible: Array, key: Any) -> Array:
    """Compute the field of each unit of the last layer."""
    return _top_field(machine, visible)


@batches.compiled
def top_probability(machine: Machine, visible: Array, key: Any) -> Array:
    """Compute the mean-field means of the last layer."""
    return Bernoulli().mean(_top_field(machine, visible))


@batches.compiled
def top_state(machine: Machine, visible: Array, key: Array) -> Array:
    """Draw states of the last layer."""
    return Bernoulli().sample(key, _top_field(machine, visible))


BOLTZMANN_FEATURES = {"probability": top_probability, "field": top_field, "state": top_state}


@batches.compiled
def mean_field_pass(machine: Machine, visible: Array, key: Any) -> Array:
    """Compute the mean of V given the other layers as inferred from it."""
    passed = machine.visible_mean(machine.hidden_mean(infer_layers(machine, visible)))
    return passed[:, : math.prod(visible.shape[1:])].reshape(visible.shape)


@batches.compiled
def mean_field_bound(machine: Machine, visible: Array, key: Any) -> Array:
    """Compute the bound on the log-probability, up to log Z."""
    return -variational_free_energy(machine, infer_layers(machine, visible))


@batches.compiled
def single_probability(machine: Machine, visible: Array, key: Any) -> Array:
    """Compute the probability that one copy of a hidden unit is on."""
    field = machine.hidden_field(machine.visible_units.of_values(visible))
    return Bernoulli().mean(field)


@ESTIMATORS.register("DBM")
@dataclass(eq=False, repr=False, kw_only=True)
class DBM(DeepEstimator):
    """Deep Boltzmann machine of dense layers: what `MPODBM` is compared with.

    The parameters are those of `MPODBM` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shapes` may be numbers, such as ``[100, 50]``.
    """

    negative_phase: str = "pcd"
    n_gibbs: int = 5
    schedule: Any = "linear"

    coupling: ClassVar[str] = "dense"
    LAYER: ClassVar[type[BoltzmannEstimator]] = RBM
    _FEATURES: ClassVar[dict[str, Any]] = BOLTZMANN_FEATURES

    def stack_machines(self, stack: tuple[Machine, ...]) -> Machine:
        """Make one machine between all even and all odd layers."""
        return deep_boltzmann(stack)

    def unstack_machine(self) -> tuple[Machine, ...]:
        """List every coupling with its biases as a machine, the lowest first."""
        return stack_of(self.machine_)

    def fine_tuning(self) -> tuple[Scheme, Objective]:
        """Learn together by mean-field inference for the data, and chains for the model."""
        return Simultaneous(), MeanFieldBound()

    def adapt_layer(self, specification: Specification, position: int, n: int) -> Specification:
        """Let copies of the layers that are there stand for those that are missing.

        See `mporbm.machine.layered.deep_boltzmann`. Copies make patterns grow as much faster,
        which the automatic rate does not know.
        """
        if n == 1:
            return specification
        n_visible, n_hidden = (2 if position < n - 1 else 1), (2 if position > 0 else 1)
        machine: Machine = eqx.tree_at(
            lambda m: (m.visible_units, m.hidden_units),
            specification.machine,
            (
                Copies(specification.machine.visible_units, n_visible),
                Copies(specification.machine.hidden_units, n_hidden),
            ),
            is_leaf=lambda node: isinstance(node, Bernoulli),
        )
        rates = specification.rates
        if self.learning_rate == "auto":
            share = 1.0 / (n_visible**2 * n_hidden)
            rates = eqx.tree_at(lambda r: r.coupling, rates, share * rates.coupling)
        return specification._replace(machine=machine, rates=rates)

    def layer_features(self, layer: BoltzmannEstimator, rows: Any) -> NDArray[Any]:
        """Compute the probability that one copy of each hidden unit is on."""
        features: NDArray[Any] = batches.in_batches(single_probability, layer.machine_, rows)
        return features

    def reconstruct(self, X: Any) -> NDArray[Any]:
        """Compute the mean of V given the mean-field means of the other layers."""
        return self._batched(mean_field_pass, self._rows(X))

    def score_samples(self, X: Any) -> NDArray[Any]:
        """Compute a lower bound on ``log p(V)`` of each sample.

        ``E_q[-E(V, X_1..X_L)] + entropy(q) - log Z`` with the mean-field distribution q of the
        other layers, and log Z of `log_partition`. With one layer it is ``log p(V)`` itself.
        """
        return self._less_log_partition(self._batched(mean_field_bound, self._rows(X)))

    def _named_machines(self) -> dict[str, Machine]:
        """List the machines that are kept in a file, by name."""
        return {f"layer.{k}.": machine for k, machine in enumerate(self.unstack_machine())}

    def _set_named_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        self.set_machine(deep_boltzmann([machines[f"layer.{k}."] for k in range(len(machines))]))


@ESTIMATORS.register("MPODBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MPODBM(DBM):
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

    rank: Any = 20
    boundary: Any = "open"
    scheme: str = "aop"
    gauge: str | None = "canonical"
    rank_tolerance: float = 0.25

    coupling: ClassVar[str] = "mpo"
    LAYER: ClassVar[type[BoltzmannEstimator]] = MPORBM

    def resolved_hidden_shapes(self) -> list[tuple[int, ...]]:
        """Give one shape for every layer, each with as many modes as the samples."""
        return paired_shapes(self.visible_shape_, super().resolved_hidden_shapes())

    @property
    def ranks_(self) -> tuple[tuple[int, ...], ...]:
        """The rank of each bond, for every layer."""
        return layer_ranks(self)
