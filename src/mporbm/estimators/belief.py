"""Deep belief networks: DBN and MPODBN (Hinton, Osindero & Teh 2006)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..learning import Objective, PassOfMeans, Scheme, WakeSleep
from ..machine import DeepBelief, Machine
from ..sampling import LogPartition
from ..sampling.deep import belief_bound, belief_sample
from ..tensor.arrays import HostTensor
from . import batches
from .base import Purpose, key_for
from .deep import DeepEstimator, MPOLayers
from .model_file import ESTIMATORS

N_BOUND_SAMPLES = 100
"""The passes up that the bound of a deep belief network is averaged over."""


@batches.compiled
def dreams(machine: DeepBelief, visible: Array, key: Array, n_gibbs: Array) -> Array:
    """Draw as many samples as there are rows."""
    return belief_sample(key, machine, len(visible), n_gibbs)


@batches.compiled
def continued_dreams(machine: DeepBelief, highest: Array, key: Array, n_gibbs: Array) -> Array:
    """Draw a sample from each state of the layer below the last, where chains start."""
    return belief_sample(key, machine, len(highest), n_gibbs, highest)


@batches.compiled
def bound(machine: DeepBelief, visible: Array, key: Array) -> Array:
    """Estimate the bound on the log-probability, up to log Z."""
    return belief_bound(key, machine, visible, N_BOUND_SAMPLES)


@ESTIMATORS.register("DBN")
@dataclass(eq=False, repr=False, kw_only=True)
class DBN(DeepEstimator):
    """Deep belief network of dense layers: what `MPODBN` is compared with.

    The parameters are those of `MPODBN` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shapes` may be numbers, such as ``[100, 50]``.
    """

    _FINE_TUNING: ClassVar[tuple[type[Scheme], type[Objective]]] = (WakeSleep, PassOfMeans)
    _CONTINUED: ClassVar[Callable[..., Array]] = staticmethod(continued_dreams)

    def _stack_machines(self, stack: tuple[Machine, ...]) -> DeepBelief:
        return DeepBelief.of_stack(stack)

    @property
    def layers_(self) -> tuple[Machine, ...]:
        """The machines that generate, the lowest first."""
        network: DeepBelief = self._fitted_machine("layers_")
        return network.stack

    def _sample_anew(self, key: Array, n_samples: int, n_gibbs: int) -> HostTensor:
        """Draw samples by chains of the machine on top that start as independent units."""
        rows = np.broadcast_to(np.float32(0.0), (n_samples, *self.visible_shape_))
        return self._batched(dreams, rows, key, jnp.asarray(n_gibbs), chains=True, title="sample")

    def score_samples(self, X: object, log_z: LogPartition | None = None) -> NDArray[np.floating]:
        """Estimate a lower bound on ``log p(V)`` of each sample.

        ``E_q[log p(V, X_1..X_{L-1}) - log q(X_1..X_{L-1} | V)]`` with the recognition distribution
        q, as the mean over 100 passes up, the same at every call; log Z of the machine on top is
        that of `log_partition`. With one layer it is ``log p(V)`` itself.
        """
        bounds = self._batched(bound, self._rows(X), key_for(self._seed, Purpose.NOISE))
        return self._less_log_partition(bounds, log_z)

    def _known_base_bias(self) -> HostTensor | None:
        """Give the base bias of the data if the machine on top is the only one."""
        return None if self.machine_.generation else super()._known_base_bias()

    def _named_machines(self) -> dict[str, Machine]:
        """List the machines that are kept in a file, by name."""
        sides = {"recognition": self.machine_.recognition, "generation": self.machine_.generation}
        below = {f"{s}.{k}.": m for s, side in sides.items() for k, m in enumerate(side)}
        return {**below, "top.": self.machine_.top}

    def _set_named_machines(self, machines: dict[str, Machine]) -> None:
        """Become a fitted estimator around the machines of a file."""
        up, down = (
            tuple(machines[f"{side}.{k}."] for k in range(len(machines) // 2))
            for side in ("recognition", "generation")
        )
        self.set_machine(DeepBelief(up, down, machines["top."]))


@ESTIMATORS.register("MPODBN")
@dataclass(eq=False, repr=False, kw_only=True)
class MPODBN(DBN, MPOLayers):
    """Deep belief network with layers coupled by matrix product operators (Hinton et al. 2006).

    ``p(X_0..X_L) = p(X_0 | X_1) ... p(X_{L-2} | X_{L-1}) p(X_{L-1}, X_L)``: an `MPORBM` on top of
    directed layers. Every layer is an `MPORBM` that learns hidden states of the one below, drawn
    anew for every batch, and starts as that one upside down if shapes allow; tensors go in and
    tensors come out. Fine-tuning is the up-down algorithm, after which the couplings that infer
    (`machine_.recognition`) are others than those that generate.

    Features are those of the last layer after a pass of means. `sample` runs chains of the machine
    on top, from where learning has led them (`chains_`), and then draws downwards. `complete` and
    `denoise` repeat passes of random states up to the last layer and down again, with known values
    clamped, and average what the last step gives: approximately the posterior mean, as layers below
    the top are inferred by recognition, which only approximates their posterior. `score_samples` is
    a lower bound.

    The other parameters are those of `MPORBM` without `warm_start`, at every stage.

    Parameters
    ----------
    hidden_shapes
        The shape of every hidden layer, such as ``[(10, 10), (8, 8)]``, with as many modes as the
        samples have; by default two layers of the shape of the samples.
    n_iter_fine_tuning
        Epochs in which all layers learn together, after `n_iter` epochs of each alone.
    rank, boundary, scheme, gauge, rank_tolerance
        Of every layer, as for `MPORBM`, by default of rank 20. Fine-tuning moves all cores at once.
    rule, negative_phase, schedule, momentum
        As for `MPORBM`, at every stage; by default centred steps without momentum, persistent
        chains, and a rate that falls to 0.
    checkpoint
        Every stage has a file of its own, with ``.layer-1``, ``.layer-2``, ..., ``.fine-tuning``
        added to this name. A `fit` that finds them goes on where it was.

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
    chains_
        States that the chains of the training have passed through, of the layer that the machine on
        top has as its visible one, where `sample` starts and log Z is annealed back from.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPODBN
    >>> X = np.random.default_rng(0).random((20, 6, 6)) < 0.3
    >>> model = MPODBN([(3, 3), (2, 2)], rank=3, n_iter=2, random_state=0).fit(X)
    >>> model.transform(X).shape, model.sample(5).shape
    ((20, 4), (5, 6, 6))
    """
