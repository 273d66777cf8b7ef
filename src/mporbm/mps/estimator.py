"""The estimator for samples in matrix product state form: MPSRBM."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..estimators import batches
from ..estimators.base import RandomState, check_shapes, numbered
from ..estimators.boltzmann import BoltzmannEstimator
from ..estimators.inputs import check_weights
from ..estimators.model_file import ESTIMATORS
from ..estimators.mporbm import resolve_ranks
from ..learning import Objective, Rates, Scheme
from ..learning.rates import Schedule
from ..machine import Machine, Model, MPOCoupling, Units
from ..tensor import MPO, MPS, MPSBatch
from ..tensor.arrays import AnyArray
from ..tensor.check import check_choice, check_integer, check_paired_shapes, check_shape
from ..training import ArraySource, Training
from ..training.sources import Source
from .machine import MPSMachine, hidden_gibbs
from .scheme import MPSLikelihood, MPSScheme
from .start import mps_start

N_MEASURED_TRAINS = 128
"""The most samples that the start and the automatic rate look at."""
N_HIDDEN = 16
"""Hidden units where nothing is said."""
FIXED: dict[str, object] = {
    "visible_units": "gaussian",
    "hidden_units": "bernoulli",
    "negative_phase": "cd",
}
FIXED |= {"init": "data", "rule": "plain", "standardize": False}
"""Parameters that have no other choice where the visible layer is never formed."""


@ESTIMATORS.register("MPSRBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MPSRBM(BoltzmannEstimator):
    """MPORBM whose visible layer is in matrix product state form and never formed as a tensor.

    Samples are an `mporbm.tensor.MPSBatch`: tensors of 2^40 values cost as much as their trains.
    Visible units are Gaussian with variance 1, and enter contrastive divergence as means.

    The other parameters are those of `MPORBM`; `visible_units`, `hidden_units`, `negative_phase`,
    `init`, `rule` and `standardize` are fixed.

    Parameters
    ----------
    hidden_shape
        (J_1..J_d), a small full tensor; modes that are left out are of size 1, and nothing said
        stands for 16 units.
    rank
        A number, the largest rank of any bond, or one rank for every bond.
    scheme
        Which cores an update moves: ``"aop"`` one after the other, ``"su"`` all at once.
    gauge
        ``"canonical"`` makes steps independent of the gauge; None is the paper's plain rule.

    Attributes
    ----------
    machine_
        The learnt `mporbm.mps.machine.MPSMachine`.
    cores_, hidden_bias_
        Its parameters as arrays.
    visible_bias_
        B, an `mporbm.tensor.MPS`.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPSRBM
    >>> from mporbm.tensor import MPSBatch
    >>> X = MPSBatch.from_tensors(np.random.default_rng(0).normal(size=(20, 4, 4, 4)))
    >>> MPSRBM(4, rank=3, n_iter=2, random_state=0).fit(X).transform(X).shape
    (20, 4)
    """

    visible_units: str = "gaussian"
    hidden_units: str = "bernoulli"
    standardize: bool = False
    rule: Literal["plain", "centred"] = "plain"
    negative_phase: str = "cd"
    schedule: Schedule = "constant"
    momentum: float = 0.5
    n_iter: int | Literal["auto"] = 50
    rank: int | Sequence[int] | np.ndarray = 20
    scheme: str = "aop"
    gauge: str | None = "canonical"

    coupling: ClassVar[str] = "mpo"
    _TAKES_MISSING: ClassVar[bool] = False

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        super().check_parameters()
        check_choice("scheme", self.scheme, ("aop", "su"))
        for name, value in FIXED.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: expected {value!r} for samples in MPS form."
                )

    # Data

    def _source(
        self, X: object, weight: object, *, n_iter: int, reset: bool
    ) -> tuple[Source, MPSBatch]:
        reset = reset and not self._goes_on()
        trains = check_trains(X, self.visible_shape if reset else self.visible_shape_)
        if reset:
            self.visible_shape_ = trains.shape[1:]
            self.n_features_in_ = math.prod(self.visible_shape_)
        return ArraySource(trains, check_weights(weight, len(trains))), trains

    def _split(self, source: Source, X_val: object) -> tuple[Source, Source | None]:
        if X_val is not None:
            return source, ArraySource(check_trains(X_val, self.visible_shape_))
        return source.split(self.validation_fraction) if self.early_stopping else (source, None)

    def _measured(self, source: Source) -> MPSBatch:
        measured: MPSBatch = source.head(N_MEASURED_TRAINS)
        return measured

    def _checked(self, X: object, *, missing: bool) -> tuple[MPSBatch, bool]:
        check_is_fitted(self)
        return check_trains(X, self.visible_shape_), False

    # From parameters to a specification

    def _resolved_hidden_shape(self) -> tuple[int, ...]:
        """Give the hidden shape asked for, with trailing modes of size 1."""
        shape = (N_HIDDEN,) if self.hidden_shape is None else super()._resolved_hidden_shape()
        return (*shape, *(1,) * (len(self.visible_shape_) - len(shape)))

    def _new_machine(self, seed: int, rows: MPSBatch) -> MPSMachine:
        visible, hidden = check_paired_shapes(
            "visible_shape", self.visible_shape_, "hidden_shape", self._resolved_hidden_shape()
        )
        ranks = resolve_ranks(self.rank, visible, hidden, "open")
        mpo, bias = mps_start(np.random.default_rng([seed, seed]), rows, hidden, ranks)
        return MPSMachine(MPOCoupling(mpo), bias)

    def _note_base_bias(self, rows: MPSBatch) -> None:
        """Note nothing: a full tensor of biases is never formed."""

    def _build_scheme(self) -> Scheme:
        """Build the scheme along the train."""
        return MPSScheme(alternating=self.scheme == "aop")

    def _build_objective(self, rates: Rates) -> Objective:
        """Say what is learnt."""
        return MPSLikelihood()

    def _initial_rates(self, source: Source, machine: Model, n_updates: int | None) -> Rates:
        """Give the learning rates asked for, or automatic ones.

        Few directions share all of W: hidden units that are on together move a mean as one.
        """
        rates = super()._initial_rates(source, machine, n_updates)
        if self.learning_rate != "auto":
            return rates
        largest = 0.25 / math.prod(machine.hidden_shape)
        return Rates(min(float(rates.coupling), largest), rates.bias)

    def _headline(self, training: Training) -> str:
        n_cores = len(training.machine.visible_shape)
        return f"{type(self).__name__}: along a train of {n_cores} cores"

    # What was learnt

    def reconstruct(self, X: object) -> MPSBatch:
        """Pass each sample up and down once: ``E[V | E[H | V]]``."""
        passed: MPSBatch = batches.in_batches(batches.up_and_down, self.machine_, self._rows(X))
        return passed

    def free_energy(self, X: object) -> NDArray[np.floating]:
        """Compute ``F(V) = -log sum_H exp(-E(V, H))`` of each sample."""
        return self._batched(batches.free_energy, self._rows(X))

    def sample(
        self, n_samples: int = 1, n_gibbs: int = 1000, random_state: RandomState = None
    ) -> MPSBatch:
        """Draw hidden states by chains of `n_gibbs` steps, and give their means ``E[V | H]``.

        White noise on every visible unit is not in MPS form, and is left out.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
        means = _draw_means(self.machine_, self._key(random_state), n_samples, steps)
        on_host: MPSBatch = jax.tree.map(np.asarray, means)
        return on_host

    @property
    def cores_(self) -> list[NDArray[np.floating]]:
        """W^(1)..W^(d), each of shape (R_k, I_k, J_k, R_{k+1})."""
        return [np.asarray(core) for core in self._fitted_machine("cores_").coupling.factors]

    @property
    def ranks_(self) -> tuple[int, ...]:
        """The rank of each bond, (R_2..R_d)."""
        return MPO(self._fitted_machine("ranks_").coupling.factors).ranks

    @property
    def visible_bias_(self) -> MPS:  # type: ignore[override]
        """B, an MPS of shape visible_shape."""
        bias: MPS = self._fitted_machine("visible_bias_").visible_bias
        return bias

    # Files

    def _machine_arrays(self, machine: Machine) -> dict[str, AnyArray]:
        """List the parameters of a machine by name."""
        assert isinstance(machine, MPSMachine)
        arrays = {f"coupling.{k}": core for k, core in enumerate(machine.coupling.factors)}
        arrays |= {f"visible_bias.{k}": core for k, core in enumerate(machine.visible_bias.cores)}
        return {**arrays, "hidden_bias": machine.hidden_bias, **machine.visible_units.file_arrays()}

    def _machine_from_arrays(
        self,
        arrays: dict[str, np.ndarray],
        visible_units: type[Units],
        visible_shape: list[int],
        hidden_shape: list[int],
    ) -> MPSMachine:
        """Build a machine from what `_machine_arrays` listed."""
        machine = MPSMachine(
            MPOCoupling(MPO(numbered(arrays, "coupling"))),
            MPS(numbered(arrays, "visible_bias")),
            arrays["hidden_bias"],
            np.exp(arrays["log_variance"]),
        )
        check_shapes(machine, visible_shape, hidden_shape)
        return machine


def check_trains(X: object, expected: object) -> MPSBatch:
    """Refuse what is not a batch of finite trains, of the `expected` shape if there is one."""
    if not isinstance(X, MPSBatch):
        raise TypeError(
            f"X: expected an MPSBatch, got {type(X).__name__}; for full tensors use "
            f"mporbm.tensor.MPSBatch.from_tensors(X), or MPORBM."
        )
    if len(X) == 0:
        raise ValueError("X: expected at least one sample, got an MPSBatch of none.")
    if expected is not None and X.shape[1:] != (shape := check_shape("visible_shape", expected)):
        raise ValueError(f"X: expected samples of shape {shape}, got {X.shape[1:]}.")
    if not all(np.isfinite(core).all() for core in X.cores):
        raise ValueError("X: expected finite numbers in all cores, got NaN or inf.")
    return X


@eqx.filter_jit
def _draw_means(machine: MPSMachine, key: Array, n_samples: int, n_gibbs: Array) -> MPSBatch:
    """Draw hidden states, and give ``E[V | H]`` of each as an MPS."""
    return machine.visible_mean(hidden_gibbs(key, machine, n_samples, n_gibbs))
