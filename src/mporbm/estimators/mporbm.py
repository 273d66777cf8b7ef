"""The estimator of the paper: MPORBM."""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import equinox as eqx
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..learning import NEGATIVE_PHASES, SCHEMES, Scheme
from ..learning.start import automatic_rank
from ..machine import Machine, MPOCoupling, Units
from ..tensor import MPO, max_ranks
from ..tensor.arrays import HostTensor
from ..tensor.check import check_integer, check_paired_shapes, check_tolerance
from ..tensor.ranks import Boundary, check_ranks, rank_caps
from .algorithms import proper
from .boltzmann import BoltzmannEstimator
from .inference import InferenceMixin
from .likelihood import LikelihoodMixin
from .model_file import ESTIMATORS

Rank = int | Sequence[int] | np.ndarray
"""One rank for all bonds, or one for each."""


@ESTIMATORS.register("MPORBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MPORBM(InferenceMixin, LikelihoodMixin, BoltzmannEstimator):
    """Matrix product operator RBM (Chen et al. 2018): the machine of the paper.

    Parameters
    ----------
    hidden_shape
        The shape (J_1..J_d) of the hidden layer, with as many modes as the samples have; by
        default that of the samples, smaller if these have more than about 1000 values.
    visible_shape
        The shape (I_1..I_d) of the samples, to be said if they come flattened.
    visible_units
        ``"bernoulli"`` for binary values and probabilities, ``"gaussian"`` for real ones,
        ``"categorical"`` for values that are one-hot along the last mode.
    hidden_units
        ``"bernoulli"``, on or off; ``"categorical"``, of those along the last mode exactly one is
        on; ``"rectified"``, real from 0 on, or ``"gaussian"``, any real number, both of variance 1
        in a normal distribution. ``"auto"`` is Gaussian for Gaussian
        visible units, and Bernoulli for others. Where both layers are Gaussian the machine is a
        factor model: variances of the data's units are learnt, and learning
        (`mporbm.learning.MaximumLikelihood`), likelihood, completion and samples are exact;
        `scheme`, `negative_phase`, rates, momentum and batches have no part in it, and an epoch
        is 20 quasi-Newton steps, 100 epochs by default. The feature ``"probability"`` of real
        units is their mean.
    standardize
        Whether data of Gaussian units are standardised, each unit by the mean and the standard
        deviation of what is learnt from (of a stream, of its first array). Methods take and give
        data as they are; `scaling_` knows the scale.
    rank
        The largest rank of any bond, or one rank for every bond; ``"auto"`` is the largest up to 20
        that makes no more weights than there are samples (20 for streams and `partial_fit`). What
        came out is `ranks_`.
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
        Where model samples come from: ``"pcd"`` persistent chains (Tieleman 2008), ``"cd"``
        contrastive divergence, ``"fpcd"`` chains with fast weights (Tieleman & Hinton 2009),
        ``"pt"`` parallel tempering.
    n_gibbs
        K, the Gibbs steps of each update.
    rule
        How a gradient becomes a step: ``"centred"`` is the gradient of centred variables divided by
        the length of its step (`mporbm.learning.centring`), with the mean of the last tenth of the
        training as machine, but for two-site; ``"plain"`` is the paper's.
    learning_rate
        The paper's alpha, for cores and biases, or ``"auto"``: found by the scale of the data and
        the number of updates (`mporbm.learning.automatic_rates`). With ``rule="centred"`` the
        length of a step, ``"auto"`` by the size of the hidden layer.
    schedule
        How the rate changes from batch to batch: ``"linear"`` or ``"cosine"`` down to 0, or
        ``"constant"``. Over a stream, whose length is not known, from epoch to epoch.
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
        Passes over the data (epochs); ``"auto"`` is 10, and more for fewer than 200 batches, so
        that there are 2000, up to 400.
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
        For every epoch, what was watched: reconstruction error, score (pseudo-log-likelihood),
        norms, ranks, with validation data the free-energy gap, which grows when the machine
        overfits, and after some epochs, if the training is long enough, the log-likelihood of up to
        1024 of the samples with the standard error and the effective sample size of log Z
        (`mporbm.training.watch`). Of samples with missing values the reconstruction error is that
        of observed values, score and free energy are those of filled-in samples, and the
        log-likelihood is that of complete samples alone, if there are enough.
    n_iter_
        The epochs that were run.
    diverged_
        Whether the training was stopped because it diverged.
    base_bias_
        The visible bias that independent units would need to have the means of the data.
    chains_
        States that the chains of the training have passed through, where `sample` starts; None
        after ``negative_phase="cd"``.
    scaling_
        The `mporbm.Standardize` of the data of Gaussian units. `history_`, biases and `chains_` are
        in standardised units.
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

    rank: Rank | Literal["auto"] = "auto"
    boundary: Boundary = "open"
    scheme: str = "aop"
    gauge: str | None = "canonical"
    rank_tolerance: float = 0.25

    coupling: ClassVar[str] = "mpo"

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        super().check_parameters()
        check_tolerance("rank_tolerance", self.rank_tolerance)
        if not SCHEMES[self.scheme].needs_bonds:
            return
        if NEGATIVE_PHASES[self.negative_phase].keeps_factors:
            raise ValueError(
                f"negative_phase={self.negative_phase!r}: expected another one for "
                f"scheme={self.scheme!r}, whose splits leave nothing for fast cores to add to."
            )
        if self.boundary == "periodic":
            raise ValueError(
                f"scheme={self.scheme!r}: expected boundary='open', got 'periodic'; a ring has no "
                f"canonical form to split bonds in."
            )

    def _largest_ranks(self) -> tuple[int, ...]:
        shape, rank = (self.visible_shape_, self._resolved_hidden_shape(), self.boundary), self.rank
        if isinstance(rank, str):
            n_samples = getattr(self, "_n_samples", None)
            rank = automatic_rank(n_samples, lambda rank: count_weights(rank, *shape))
        return resolve_ranks(rank, *shape)

    def coupling_options(self) -> Mapping[str, object]:
        """List what the coupling is built with; the two-site scheme raises ranks from 1."""
        ranks = self._largest_ranks()
        starting = (1,) * len(ranks) if self.scheme == "two-site" else ranks
        return {"rank": starting, "boundary": self.boundary}

    def _build_scheme(self) -> Scheme:
        options = {"max_ranks": self._largest_ranks(), "rank_tolerance": self.rank_tolerance}
        return SCHEMES.build(self.scheme, options)

    # What was learnt

    @property
    def cores_(self) -> list[HostTensor]:
        """W^(1)..W^(d), each of shape (R_k, I_k, J_k, R_{k+1})."""
        return [np.asarray(core) for core in self._mpo("cores_").cores]

    @property
    def ranks_(self) -> tuple[int, ...]:
        """The rank of each bond, (R_2..R_d) if open and (R_1..R_d) if periodic."""
        return self._mpo("ranks_").ranks

    def _mpo(self, name: str) -> MPO:
        return MPO(self._fitted_machine(name).coupling.factors)

    @classmethod
    def from_rbm(
        cls,
        rbm: BaseEstimator,
        *,
        rank: Rank | None = None,
        tolerance: float = 0.0,
        visible_shape: Sequence[int] | None = None,
        hidden_shape: Sequence[int] | None = None,
        **parameters: Any,
    ) -> Self:
        """Turn a trained dense machine into one with W as an MPO, by sequential SVD.

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
        if hasattr(rbm, "machine_"):
            machine: Machine = rbm.machine_
            weights = rbm.weight_matrix()
            biases = machine.visible_bias, machine.hidden_bias
            kinds: tuple[Units | None, ...] = machine.visible_units, machine.hidden_units
        elif hasattr(rbm, "intercept_visible_"):
            weights, kinds = rbm.components_.T, (None, None)
            biases = rbm.intercept_visible_, rbm.intercept_hidden_
        else:
            raise TypeError(
                f"rbm: expected a fitted RBM of mporbm or a BernoulliRBM of scikit-learn, got "
                f"{type(rbm).__name__}."
            )
        visible, hidden = check_paired_shapes(
            "visible_shape",
            biases[0].shape if visible_shape is None else visible_shape,
            "hidden_shape",
            biases[1].shape if hidden_shape is None else hidden_shape,
        )
        for name, shape, bias in zip(
            ("visible_shape", "hidden_shape"), (visible, hidden), biases, strict=True
        ):
            if math.prod(shape) != bias.size:
                raise ValueError(
                    f"{name}={shape}: expected a shape of {bias.size} units, as many as rbm has, "
                    f"got {math.prod(shape)}."
                )
        caps = rank_caps(rank, len(visible), "open", name="rank")
        mpo, bound = MPO.from_matrix(weights, visible, hidden, max_rank=caps, tolerance=tolerance)
        own = rbm._shared_parameters(cls) if hasattr(rbm, "machine_") else {}
        own |= {"visible_shape": visible, "hidden_shape": hidden}
        own |= {"rank": mpo.ranks, "boundary": "open"}
        estimator = cls(**{**own, **parameters})
        visible_bias, hidden_bias = np.reshape(biases[0], visible), np.reshape(biases[1], hidden)
        units = [
            None if kind is None else kind.reshape(bias.shape, shape)
            for kind, bias, shape in zip(kinds, biases, (visible, hidden), strict=True)
        ]
        found = Machine(MPOCoupling(mpo), visible_bias, hidden_bias, *units)
        estimator.set_machine(proper(found))
        if hasattr(rbm, "base_bias_"):
            estimator.base_bias_ = rbm.base_bias_.reshape(visible)
        if hasattr(rbm, "coding_"):
            estimator.coding_ = rbm.coding_
        if hasattr(rbm, "scaling_"):
            estimator.scaling_ = rbm.scaling_.reshaped(visible)
        estimator._begin(bound / max(float(np.linalg.norm(weights)), np.finfo(float).tiny))
        return estimator

    def compress(self, *, rank: Rank | None = None, tolerance: float = 0.0) -> Self:
        """Return a copy with W rounded to lower ranks.

        A ring is cut open first. The copy's ``truncation_error_`` bounds the relative error in W;
        it can go on training as after `from_rbm`.
        """
        check_is_fitted(self)
        mpo = self._mpo("ranks_").to_open()
        caps = rank_caps(rank, mpo.n_cores, "open", name="rank")
        rounded, bound = mpo.round(max_rank=caps, tolerance=tolerance)
        smaller = copy.copy(self)
        smaller.set_params(rank=rounded.ranks, boundary="open")
        coupling = MPOCoupling(rounded)
        found = eqx.tree_at(lambda m: m.coupling, self.machine_, coupling)
        smaller.set_machine(proper(found))
        smaller.chains_ = getattr(self, "chains_", None)
        smaller._begin(bound / max(float(mpo.norm()), np.finfo(float).tiny))
        return smaller

    def _begin(self, truncation_error: float) -> None:
        """Forget how the machine was trained, as one that was compressed must."""
        self.truncation_error_ = float(truncation_error)
        self.n_iter_, self.history_ = 0, []
        self._restart_random_numbers()


def count_weights(
    rank: Rank, visible_shape: tuple[int, ...], hidden_shape: tuple[int, ...], boundary: Boundary
) -> int:
    """Count the weights of an MPO with ranks as `resolve_ranks` gives them."""
    ranks = resolve_ranks(rank, visible_shape, hidden_shape, boundary)
    ends = (1, *ranks, 1) if boundary == "open" else (*ranks, ranks[0])
    # Shapes of different lengths are refused by the coupling.
    sizes = map(math.prod, zip(visible_shape, hidden_shape, strict=False))
    return sum(r * size * s for r, size, s in zip(ends, sizes, ends[1:], strict=False))


def resolve_ranks(
    rank: Rank, visible_shape: tuple[int, ...], hidden_shape: tuple[int, ...], boundary: Boundary
) -> tuple[int, ...]:
    """Give one rank for each bond; a single number stands for the largest one."""
    sizes = [i * j for i, j in zip(visible_shape, hidden_shape, strict=False)]
    if np.ndim(rank) > 0:
        return check_ranks(rank, sizes, boundary)
    cap = check_integer("rank", rank)
    return tuple(min(cap, largest) for largest in max_ranks(sizes, boundary))
