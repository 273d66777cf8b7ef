"""The four estimators: each says what its coupling is."""

import copy
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..learning import Alternating, Rates, Scheme, Simultaneous, TwoSite
from ..learning.gauge import padded
from ..learning.start import data_mpo
from ..learning.two_site import trimmed
from ..machine import Coupling, CPCoupling, DenseCoupling, KroneckerCoupling, Machine, MPOCoupling
from ..mps.machine import MPSMachine
from ..mps.scheme import MPSScheme
from ..mps.start import mps_start
from ..tensor import MPO, max_ranks
from ..tensor.check import check_choice, check_integer, check_paired_shapes, check_tolerance
from ..tensor.ranks import check_ranks, rank_caps
from ..training.sources import Source
from .base import BoltzmannMachine
from .trained import TrainedMachine

N_MEASURED_TRAINS = 128
"""The most samples in MPS form that the start and the automatic rate look at."""
N_HIDDEN = 16
"""Hidden units of a machine for such samples, where nothing is said."""


class RBM(TrainedMachine, BoltzmannMachine):
    """Restricted Boltzmann machine: every visible unit wired to every hidden unit.

    The parameters are those of `MPORBM` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shape` may be a number, or have any number of modes.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import RBM
    >>> X = np.random.default_rng(0).random((20, 4, 4)) < 0.3
    >>> RBM(hidden_shape=8, n_iter=2, random_state=0).fit(X).transform(X).shape
    (20, 8)
    """

    def _random_coupling(self, key: Array) -> Coupling:
        return DenseCoupling.random(key, self.visible_shape_, self._hidden_shape())


@dataclass(eq=False, repr=False, kw_only=True)
class Factorised(BoltzmannMachine):
    """A machine with several factors, and so with a choice of scheme and gauge."""

    scheme: str = "aop"
    gauge: str | None = "canonical"

    def _scheme(self) -> Scheme:
        return Alternating() if self.scheme == "aop" else Simultaneous()

    def _gauge(self) -> bool:
        return self.gauge is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("scheme", self.scheme, self._schemes())
        if not (self.gauge is None or self.gauge == "canonical"):
            raise ValueError(f"gauge={self.gauge!r}: expected 'canonical' or None.")

    def _schemes(self) -> tuple[str, ...]:
        return ("aop", "su")


class MvRBM(TrainedMachine, Factorised):
    """Matrix-variate RBM: a Kronecker product, one matrix for each mode (Qi et al. 2016).

    The parameters are those of `MPORBM` without `rank`, `boundary` and `rank_tolerance`;
    `scheme` is ``"aop"`` or ``"su"``.
    """

    def _random_coupling(self, key: Array) -> Coupling:
        return KroneckerCoupling.random(key, self.visible_shape_, self._hidden_shape())

    def _data_coupling(self, seed: int, rows: NDArray[Any]) -> Coupling:
        visible, hidden = check_paired_shapes(
            "visible_shape", self.visible_shape_, "hidden_shape", self._hidden_shape()
        )
        mpo = data_mpo(np.random.default_rng([seed, seed]), rows, hidden, (1,) * (len(visible) - 1))
        return KroneckerCoupling([core[0, :, :, 0] for core in mpo.cores])


@dataclass(eq=False, repr=False, kw_only=True)
class TvRBM(TrainedMachine, Factorised):
    """Tensor-variate RBM: a CP decomposition, with a vector as hidden layer (Nguyen et al. 2015).

    The parameters are those of `MPORBM` without `boundary` and `rank_tolerance`; `hidden_shape` is
    a number or has one mode, `scheme` is ``"aop"`` or ``"su"``, `rank` the number R of terms.
    """

    rank: int = 20

    def _random_coupling(self, key: Array) -> Coupling:
        hidden = self._hidden_shape()
        if self.hidden_shape is None:
            hidden = (math.prod(hidden),)
        return CPCoupling.random(key, self.visible_shape_, hidden, self.rank)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("rank", self.rank)


@dataclass(eq=False, repr=False, kw_only=True)
class MPOCoupled(Factorised):
    """A machine whose coupling is an MPO."""

    rank: Any = 20
    boundary: Any = "open"

    def _random_coupling(self, key: Array) -> Coupling:
        visible, hidden = self.visible_shape_, self._hidden_shape()
        ranks = self._starting_ranks(visible, hidden)
        return MPOCoupling.random(key, visible, hidden, ranks, boundary=self.boundary)

    def _data_coupling(self, seed: int, rows: NDArray[Any]) -> Coupling:
        if self.boundary == "periodic":
            return super()._data_coupling(seed, rows)
        visible, hidden = check_paired_shapes(
            "visible_shape", self.visible_shape_, "hidden_shape", self._hidden_shape()
        )
        ranks = self._starting_ranks(visible, hidden)
        return MPOCoupling(data_mpo(np.random.default_rng([seed, seed]), rows, hidden, ranks))

    def _ranks(self, visible: tuple[int, ...], hidden: tuple[int, ...]) -> tuple[int, ...]:
        """One rank for each bond; a single number stands for the largest one."""
        sizes = [i * j for i, j in zip(visible, hidden, strict=False)]
        if np.ndim(self.rank) > 0:
            return check_ranks(self.rank, sizes, self.boundary)
        cap = check_integer("rank", self.rank)
        return tuple(min(cap, largest) for largest in max_ranks(sizes, self.boundary))

    def _starting_ranks(self, visible: tuple[int, ...], hidden: tuple[int, ...]) -> tuple[int, ...]:
        """The ranks that training starts with."""
        return self._ranks(visible, hidden)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("boundary", self.boundary, ("open", "periodic"))
        if np.ndim(self.rank) == 0:
            check_integer("rank", self.rank)

    @property
    def cores_(self) -> list[NDArray[Any]]:
        """W^(1)..W^(d), each of shape (R_k, I_k, J_k, R_{k+1})."""
        return [np.asarray(core) for core in self._mpo("cores_").cores]

    @property
    def ranks_(self) -> tuple[int, ...]:
        """The rank of each bond, (R_2..R_d) if open and (R_1..R_d) if periodic."""
        return self._mpo("ranks_").ranks

    def _mpo(self, name: str) -> MPO:
        coupling: Coupling = self._fitted_machine(name).coupling
        return coupling.to_mpo().mpo


@dataclass(eq=False, repr=False, kw_only=True)
class MPORBM(TrainedMachine, MPOCoupled):
    """Matrix product operator RBM (Chen et al. 2018): the machine of the paper.

    Parameters
    ----------
    hidden_shape
        The shape (J_1..J_d) of the hidden layer, with as many modes as the samples have; by
        default a third of each visible mode.
    visible_shape
        The shape (I_1..I_d) of the samples, to be said if they come flattened.
    visible_units
        ``"bernoulli"`` for binary values and probabilities, ``"gaussian"`` (of variance 1) for
        standardised real ones.
    rank
        The largest rank of any bond, or one rank for every bond. What came out is `ranks_`.
    boundary
        ``"open"``, or ``"periodic"`` for a ring of cores.
    scheme
        Which cores an update moves: ``"aop"`` one after the other (CD-AOP, Algorithm 1), ``"su"``
        all at once (CD-SU), ``"two-site"`` two neighbours as one, so that ranks adapt. They then
        rise up to `rank`, and fall to what `rank_tolerance` leaves.
    gauge
        ``"canonical"`` makes steps independent of the gauge, so that a learning rate means the
        same for every rank; None is the paper's plain rule.
    rank_tolerance
        What the two-site scheme may drop of W after each epoch, relative to its norm.
    negative_phase
        Where model samples come from: ``"cd"`` contrastive divergence, ``"pcd"`` persistent chains
        (Tieleman 2008), ``"fpcd"`` those with fast weights (Tieleman & Hinton 2009), ``"pt"``
        parallel tempering.
    n_gibbs
        K, the Gibbs steps of each update.
    learning_rate
        The paper's alpha, for cores and biases, or ``"auto"``: found by the scale of the data and
        the number of updates (`mporbm.learning.automatic_rates`).
    schedule
        How the rate changes over the epochs: ``"constant"``, or ``"linear"`` or ``"cosine"`` down
        to 0.
    momentum
        The paper's gamma, the share of each step that is added to the next one.
    weight_decay
        How strongly weights are pulled to 0.
    sparsity_target
        The share of samples for which a hidden unit should be on; by default any share will do.
    sparsity_cost
        How strongly hidden units are held to `sparsity_target`.
    init
        How weights and biases begin: by the ``"data"``, or ``"random"`` as in Algorithm 1. By the
        data they begin with a visible bias at the base rates of the units and, unless periodic,
        with small weights that look where the samples vary (`mporbm.learning.start`); at random
        with no biases.
    batch_size
        The number of samples in a batch.
    n_iter
        Passes over the data (epochs).
    early_stopping
        Whether to stop when samples set aside get no better score, and to keep the best machine.
    validation_fraction
        The share of samples that early stopping sets aside.
    n_iter_no_change
        How many epochs early stopping waits for a better score.
    on_divergence
        When fields grow out of bounds: ``"stop"`` with the last good parameters and a warning, or
        ``"back-off"`` to a quarter of the rate and go on from there.
    warm_start
        Whether `fit` goes on from what was learnt before.
    checkpoint
        The file that an interrupted training goes on from. The state of the training is saved in
        it when a signal ends it, and after every `checkpoint_interval` epochs; a `fit` that finds
        its own checkpoint there goes on from it.
    checkpoint_interval
        The number of epochs between checkpoints.
    feature
        What `transform` gives: ``"probability"`` that a hidden unit is on, the ``"field"`` before
        the sigmoid (keeps distances that saturation loses), or a random ``"state"``.
    output
        ``"flat"`` features (n, prod(hidden_shape)), or ``"tensor"``: ``(n, *hidden_shape)``.
    verbose
        1 shows a progress bar.
    random_state
        A seed makes everything reproducible.

    Attributes
    ----------
    machine_
        The learnt `mporbm.machine.Machine`.
    cores_, visible_bias_, hidden_bias_
        Its parameters as arrays.
    ranks_
        The rank of every bond.
    n_parameters_
        The number of weights, biases excluded.
    history_
        For every epoch, what was watched: reconstruction error, score, norms, ranks, and with
        validation data the free-energy gap, which grows when the machine overfits.
    n_iter_
        The epochs that were run.
    base_bias_
        The visible bias that independent units would need to have the means of the data.
    coding_
        The coding that made the data binary, if `mporbm fit` did; kept in the model file for the
        other commands. Methods take data that are coded already.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPORBM
    >>> X = np.random.default_rng(0).random((20, 6, 6)) < 0.3
    >>> model = MPORBM(hidden_shape=(2, 2), rank=3, n_iter=2, random_state=0).fit(X)
    >>> model.transform(X).shape, model.ranks_, model.n_parameters_
    ((20, 4), (3,), 72)
    """

    rank_tolerance: float = 0.25

    # Samples in MPS form

    def check_mps_form(self) -> None:
        """Refuse parameters that samples in MPS form cannot have."""
        expected = {"visible_units": "gaussian", "negative_phase": "cd", "init": "data"}
        for name, value in expected.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: expected {value!r} for samples in MPS form."
                )
        if self.scheme == "two-site":
            raise ValueError("scheme='two-site': expected 'aop' or 'su' for samples in MPS form.")
        if self.boundary == "periodic":
            raise ValueError("boundary='periodic': expected 'open' for samples in MPS form.")

    def _first_machine(self, seed: int, rows: Any) -> Any:
        if not self.in_mps_form_:
            return super()._first_machine(seed, rows)
        if self._goes_on():
            return self.machine_
        visible, hidden = check_paired_shapes(
            "visible_shape", self.visible_shape_, "hidden_shape", self._hidden_shape()
        )
        ranks = self._starting_ranks(visible, hidden)
        mpo, bias = mps_start(np.random.default_rng([seed, seed]), rows, hidden, ranks)
        return MPSMachine(MPOCoupling(mpo), bias)

    def _measured(self, source: Source) -> Any:
        return source.head(N_MEASURED_TRAINS) if self.in_mps_form_ else super()._measured(source)

    def _hidden_shape(self) -> tuple[int, ...]:
        if not self.in_mps_form_:
            return super()._hidden_shape()
        shape = (N_HIDDEN,) if self.hidden_shape is None else super()._hidden_shape()
        # As everywhere, a layer with fewer modes gets trailing ones of size 1.
        return (*shape, *(1,) * (len(self.visible_shape_) - len(shape)))

    def _initial_rates(
        self, source: Source, scheme: Scheme, machine: Machine, *others: Any
    ) -> Rates:
        rates = super()._initial_rates(source, scheme, machine, *others)
        if not self.in_mps_form_ or self.learning_rate != "auto":
            return rates
        # Few directions share all of W: hidden units that are on together move a mean as one.
        largest = 0.25 / math.prod(machine.hidden_shape)
        return Rates(min(float(rates.coupling), largest), rates.bias)

    def _headline(self, machine: Any, batch_size: int) -> str:
        if not self.in_mps_form_:
            return super()._headline(machine, batch_size)
        return f"{type(self).__name__}: along a chain of {len(machine.visible_shape)} cores"

    def _starting_ranks(self, visible: tuple[int, ...], hidden: tuple[int, ...]) -> tuple[int, ...]:
        """The ranks that training starts with: two-site raises them from 1."""
        ranks = super()._starting_ranks(visible, hidden)
        return (1,) * len(ranks) if self.scheme == "two-site" else ranks

    def _schemes(self) -> tuple[str, ...]:
        return ("aop", "su", "two-site")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_tolerance("rank_tolerance", self.rank_tolerance)
        if self.scheme == "two-site" and self.negative_phase == "fpcd":
            raise ValueError(
                "negative_phase='fpcd': expected another one for scheme='two-site', whose splits "
                "leave nothing for fast cores to add to."
            )
        if self.scheme == "two-site" and self.boundary == "periodic":
            raise ValueError(
                "scheme='two-site': expected boundary='open', got 'periodic'; a ring has no "
                "canonical form to split bonds in."
            )

    def _scheme(self) -> Scheme:
        if self.in_mps_form_:
            return MPSScheme(alternating=self.scheme == "aop")
        if self.scheme == "two-site" and len(self.visible_shape_) > 1:
            return TwoSite()
        return super()._scheme()

    def _prepared(self, machine: Machine) -> Machine:
        if not isinstance(self._scheme(), TwoSite):
            return machine
        mpo = machine.coupling.to_mpo().mpo
        ranks = self._ranks(machine.visible_shape, machine.hidden_shape)
        room = [max(new, old) for new, old in zip(ranks, mpo.ranks, strict=True)]
        return _with_mpo(machine, padded(mpo, room))

    def _finished(self, machine: Machine) -> Machine:
        if not isinstance(self._scheme(), TwoSite):
            return machine
        mpo = machine.coupling.to_mpo().mpo
        return _with_mpo(machine, trimmed(mpo))

    @classmethod
    def from_rbm(
        cls,
        rbm: Any,
        *,
        rank: Any = None,
        tolerance: float = 0.0,
        visible_shape: Any = None,
        hidden_shape: Any = None,
        **parameters: Any,
    ) -> Self:
        """A trained dense machine with W as an MPO, by sequential SVD.

        Parameters
        ----------
        rbm
            A fitted `RBM`, or a `BernoulliRBM` of scikit-learn.
        rank
            The largest rank kept, one for all bonds or one per bond.
        tolerance
            Ranks fall as long as the relative error in W stays below it.
        visible_shape, hidden_shape
            The modes of both layers, where those of `rbm` are flat.
        parameters
            Other parameters of the new estimator; by default those of `rbm`.

        Returns
        -------
        MPORBM
            A fitted estimator whose ``truncation_error_`` bounds the relative error in W. It can
            go on training with `partial_fit`, or with `fit` and ``warm_start=True``.
        """
        check_is_fitted(rbm)
        if not hasattr(rbm, "machine_") and not hasattr(rbm, "intercept_visible_"):
            raise TypeError(
                f"rbm: expected a fitted RBM of mporbm or a BernoulliRBM of scikit-learn, got "
                f"{type(rbm).__name__}."
            )
        if hasattr(rbm, "components_"):
            weights = rbm.components_.T
            biases = rbm.intercept_visible_, rbm.intercept_hidden_
            shapes: tuple[Any, Any] = ((len(weights),), (len(weights.T),))
            units, common = None, {}
        else:
            machine: Machine = rbm.machine_
            weights = rbm.weight_matrix()
            biases = machine.visible_bias, machine.hidden_bias
            shapes = machine.visible_shape, machine.hidden_shape
            units, common = machine.visible_units, rbm.get_params(deep=False)
        visible, hidden = check_paired_shapes(
            "visible_shape",
            shapes[0] if visible_shape is None else visible_shape,
            "hidden_shape",
            shapes[1] if hidden_shape is None else hidden_shape,
        )
        for name, shape, size in zip(
            ("visible_shape", "hidden_shape"), (visible, hidden), weights.shape, strict=True
        ):
            if math.prod(shape) != size:
                raise ValueError(
                    f"{name}={shape}: expected a shape of {size} units, as many as rbm has, got "
                    f"{math.prod(shape)}."
                )
        caps = rank_caps(rank, len(visible), "open", name="rank")
        mpo, bound = MPO.from_matrix(weights, visible, hidden, max_rank=caps, tolerance=tolerance)
        names = cls().get_params(deep=False).keys()
        chosen = {name: value for name, value in common.items() if name in names}
        chosen |= {"visible_shape": visible, "hidden_shape": hidden}
        chosen |= {"rank": mpo.ranks, "boundary": "open"}
        estimator = cls(**{**chosen, **parameters})
        estimator._set_machine(
            Machine(
                MPOCoupling(mpo),
                np.asarray(biases[0]).reshape(visible),
                np.asarray(biases[1]).reshape(hidden),
                units,
            )
        )
        if hasattr(rbm, "base_bias_"):
            estimator.base_bias_ = rbm.base_bias_.reshape(visible)
        if hasattr(rbm, "coding_"):
            estimator.coding_ = rbm.coding_
        estimator._begin(bound / max(float(np.linalg.norm(weights)), np.finfo(float).tiny))
        return estimator

    def compress(self, *, rank: Any = None, tolerance: float = 0.0) -> Self:
        """A copy with W rounded to lower ranks.

        A ring is cut open first. The copy's ``truncation_error_`` bounds the relative error in W;
        it can go on training as after `from_rbm`.
        """
        check_is_fitted(self)
        mpo = self._mpo("ranks_").to_open()
        caps = rank_caps(rank, mpo.n_cores, "open", name="rank")
        rounded, bound = mpo.round(max_rank=caps, tolerance=tolerance)
        smaller = copy.copy(self)
        smaller.set_params(rank=rounded.ranks, boundary="open")
        smaller._set_machine(_with_mpo(self.machine_, rounded))
        smaller._begin(bound / max(float(mpo.norm()), np.finfo(float).tiny))
        return smaller

    def _begin(self, truncation_error: float) -> None:
        """Forget how the machine was trained, as one that was compressed must."""
        self.truncation_error_ = float(truncation_error)
        self.n_iter_, self.history_ = 0, []
        self._restart_random_numbers()


def _with_mpo(machine: Machine, mpo: MPO) -> Machine:
    return Machine(
        MPOCoupling(mpo),
        machine.visible_bias,
        machine.hidden_bias,
        machine.visible_units,
        machine.hidden_units,
    )


ESTIMATORS = (RBM, MvRBM, TvRBM, MPORBM)
