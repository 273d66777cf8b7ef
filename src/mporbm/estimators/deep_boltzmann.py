"""Deep Boltzmann machines: DBM and MPODBM (Salakhutdinov & Hinton 2009)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..learning import MeanFieldBound, Objective, Scheme, Simultaneous
from ..machine import Bernoulli, Copies, Machine, deep_boltzmann
from ..machine.layered import layered, stack_of
from ..sampling import LogPartition
from ..sampling.deep import infer_layers, variational_free_energy
from ..training import Specification
from ..training.sources import Source
from . import batches
from .boltzmann import BoltzmannEstimator
from .deep import DeepEstimator, MPOLayers
from .model_file import ESTIMATORS


def _top_feature(of_field: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    """Compile a feature: a function of a key and the field of each unit of the last layer."""

    def feature(machine: Machine, visible: Array, key: Array) -> Array:
        odd = machine.hidden_field(infer_layers(machine, visible))
        even = machine.visible_field(machine.hidden_units.mean(odd))
        return of_field(key, layered(machine).layers(even, odd)[-1])

    return batches.compiled(feature)


TOP_FEATURES = {
    "probability": _top_feature(lambda key, field: Bernoulli().mean(field)),
    "field": _top_feature(lambda key, field: field),
    "state": _top_feature(lambda key, field: Bernoulli().sample(key, field)),
}
"""How each feature is computed from the mean-field means of the other layers."""


@batches.compiled
def mean_field_pass(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute the mean of V given the other layers as inferred from it."""
    passed = machine.visible_mean(machine.hidden_mean(infer_layers(machine, visible)))
    return passed[:, : math.prod(visible.shape[1:])].reshape(visible.shape)


@batches.compiled
def mean_field_bound(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute the bound on the log-probability, up to log Z."""
    return -variational_free_energy(machine, infer_layers(machine, visible))


@ESTIMATORS.register("DBM")
@dataclass(eq=False, repr=False, kw_only=True)
class DBM(DeepEstimator):
    """Deep Boltzmann machine of dense layers: what `MPODBM` is compared with.

    The parameters are those of `MPODBM` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shapes` may be numbers, such as ``[100, 50]``.
    """

    n_gibbs: int = 5

    _FEATURES: ClassVar[Mapping[str, Callable[..., Array]]] = TOP_FEATURES
    _FINE_TUNING: ClassVar[tuple[type[Scheme], type[Objective]]] = (Simultaneous, MeanFieldBound)

    def _stack_machines(self, stack: tuple[Machine, ...]) -> Machine:
        return deep_boltzmann(stack)

    @property
    def layers_(self) -> tuple[Machine, ...]:
        """Every coupling with its biases as a machine, the lowest first."""
        return stack_of(self._fitted_machine("layers_"))

    def _specify_layer(
        self,
        below: tuple[Machine, ...],
        n_layers: int,
        layer: BoltzmannEstimator,
        seed: int,
        source: Source,
    ) -> Specification:
        """Let copies of the layers that are there stand for those that are missing.

        See `mporbm.machine.layered.deep_boltzmann`. Copies lengthen what a step does to fields, and
        make patterns grow as much faster, which the automatic rates do not know.
        """
        alone = super()._specify_layer(below, n_layers, layer, seed, source)
        if n_layers == 1:
            return alone
        n_visible, n_hidden = (2 if len(below) < n_layers - 1 else 1), (2 if below else 1)
        machine = alone.machine
        assert isinstance(machine, Machine)
        units = Copies(machine.visible_units, n_visible), Copies(machine.hidden_units, n_hidden)
        machine = eqx.tree_at(
            lambda m: (m.visible_units, m.hidden_units),
            machine,
            units,
            is_leaf=lambda node: isinstance(node, Bernoulli),
        )
        rates = alone.rates
        if self.learning_rate == "auto":
            share = 1.0 / (n_visible * n_hidden)
            if self.rule == "centred":
                rates = rates * share
            else:
                share /= n_visible
                rates = eqx.tree_at(lambda r: r.coupling, rates, share * rates.coupling)
        return alone._replace(machine=machine, rates=rates)

    def reconstruct(self, X: object) -> NDArray[np.floating]:
        """Compute the mean of V given the mean-field means of the other layers."""
        return self._batched(mean_field_pass, self._rows(X))

    def score_samples(self, X: object, log_z: LogPartition | None = None) -> NDArray[np.floating]:
        """Compute a lower bound on ``log p(V)`` of each sample.

        ``E_q[-E(V, X_1..X_L)] + entropy(q) - log Z`` with the mean-field distribution q of the
        other layers, and log Z of `log_partition`. With one layer it is ``log p(V)`` itself.
        """
        bounds = self._batched(mean_field_bound, self._rows(X))
        return self._less_log_partition(bounds, log_z)

    def _named_machines(self) -> dict[str, Machine]:
        """List the machines that are kept in a file, by name."""
        return {f"layer.{k}.": machine for k, machine in enumerate(self.layers_)}

    def _set_named_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        self.set_machine(deep_boltzmann([machines[f"layer.{k}."] for k in range(len(machines))]))


@ESTIMATORS.register("MPODBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MPODBM(DBM, MPOLayers):
    """Deep Boltzmann machine with layers coupled by matrix product operators.

    ``-E(X_0..X_L) = sum_k <X_{k-1}, W_k(X_k)> + sum_k <B_k, X_k>`` (Salakhutdinov & Hinton 2009).
    Layers are pre-trained one after the other, with copies that stand for the layers that are
    missing (`mporbm.machine.layered.deep_boltzmann`). Then all learn together, with mean-field
    inference for the data and persistent chains for the model.

    Features are the mean-field means of the last layer. `sample`, `complete` and `denoise` are
    Gibbs sampling of even and odd layers in turns, from the exact conditionals. `score_samples` is
    a lower bound.

    The other parameters, and the attributes besides these, are those of `MPODBN`.

    Parameters
    ----------
    n_gibbs
        As for `MPORBM`, at every stage; by default five steps.

    Attributes
    ----------
    machine_
        The learnt `mporbm.machine.Machine`, between all even and all odd layers.
    layers_
        Every coupling with its biases as a machine, the lowest first.
    history_
        As for `MPODBN`, but the score of layers that are trained alone is minus the reconstruction
        error, and that of all together the pseudo-log-likelihood.
    chains_
        States of all even layers, flat, the data first, that the chains have passed through while
        all layers learnt together.

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
