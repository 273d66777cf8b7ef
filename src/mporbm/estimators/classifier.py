"""Classifiers: machines with a label as one more visible unit of several states."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from ..learning import Objective, Rates
from ..learning.classification import Classification
from ..learning.rates import Schedule, label_rates, share_of_binary
from ..learning.start import with_unit_fields
from ..machine import Machine, Model, Units, labelled_machine
from ..machine.layered import layered, stack_of
from ..tensor import MPO
from ..tensor.arrays import AnyArray
from ..tensor.check import check_choice, check_integer, check_positive
from ..tensor.index import Order
from ..tensor.ranks import Boundary
from ..training import ArraySource, LabelledRows
from ..training.rows import unpacked
from ..training.sources import Source
from . import inputs, label_batches
from .base import RandomState
from .boltzmann import BoltzmannEstimator
from .inference import STEPS_ALONE, InferenceMixin
from .likelihood import LikelihoodMixin
from .model_file import ESTIMATORS
from .mporbm import resolve_ranks

LABEL_STD = 0.01
"""The standard deviation of the label weights that training starts with."""


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierBase(ClassifierMixin, InferenceMixin, LikelihoodMixin, BoltzmannEstimator):
    """A machine that learns from labels and tells them. `MPOClassRBM` documents it."""

    hidden_units: str = "bernoulli"
    objective: str = "hybrid"
    generative_weight: float = 0.01
    rule: Literal["plain", "centred"] = "plain"
    negative_phase: str = "cd"
    schedule: Schedule = "constant"
    momentum: float = 0.5
    n_iter: int | Literal["auto"] = 100

    _MOST_HIDDEN: ClassVar[int] = 500
    _TAKES_MISSING: ClassVar[bool] = False
    _FEATURES: ClassVar[Mapping[str, Callable[..., Array]]] = label_batches.FEATURES

    # Fitting

    @with_callbacks
    def fit(
        self,
        X: object,
        y: ArrayLike | None = None,
        *,
        X_val: object = None,
        y_val: ArrayLike | None = None,
        **fit_params: object,
    ) -> Self:
        """Learn to tell the labels y of X.

        Parameters
        ----------
        X
            Samples ``(n, *visible_shape)``, or flattened (n, n_features), of any real type, in
            memory or memory-mapped.
        y
            The label of each sample: numbers or strings.
        X_val, y_val
            Samples and labels to watch for overfitting and to stop early by; by default early
            stopping sets `validation_fraction` of X aside.
        sample_weight : array of shape (n,), optional
            The weight of each sample: the length of its steps. Outside of the signature as for
            `MPORBM.fit`.
        """
        self.check_parameters()
        weight = inputs.take_weight(fit_params)
        known = self.classes_ if self.warm_start and hasattr(self, "machine_") else None
        source, rows = self._labelled_source(X, y, weight, known, reset=True)
        source, validation = self._split(source, X_val)
        if X_val is not None:
            assert isinstance(validation, ArraySource)
            labels = self._codes("y_val", y_val, len(validation.rows))
            validation = ArraySource(LabelledRows(validation.rows, labels))
        elif y_val is not None:
            raise ValueError("X_val: expected the samples that y_val labels, got None.")
        return self._train(source, validation, self._specify_start, rows, y)

    def partial_fit(  # type: ignore[override]
        self,
        X: object,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: object = None,
    ) -> Self:
        """Learn from one pass over some more samples, in their order, as `MPORBM.partial_fit`.

        `classes` are all labels that will ever come; by default those of the first call.
        """
        self.check_parameters()
        first = not hasattr(self, "machine_")
        known = None if first else self.classes_
        if first and classes is not None:
            known = np.unique(inputs.check_labels("classes", classes))
        source, _ = self._labelled_source(X, y, sample_weight, known, reset=first)
        return self._train_once(source)

    def _labelled_source(
        self, X: object, y: ArrayLike | None, weight: object, known: np.ndarray | None, reset: bool
    ) -> tuple[Source, object]:
        """Join samples and labels; classes are the known ones, if any."""
        if inputs.is_stream(X):
            raise ValueError(
                "X: expected an array of samples, got a stream, which has no labels; call "
                "partial_fit on its parts."
            )
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                f"expected one label for each sample."
            )
        plain, rows = self._source(X, weight, n_iter=1, reset=reset)
        assert isinstance(plain, ArraySource)
        labels = inputs.check_labels("y", y)
        self.classes_ = np.unique(labels) if known is None else known
        labelled = LabelledRows(rows, self._codes("y", labels, len(rows)))
        return ArraySource(labelled, plain.weight), rows

    def _codes(self, name: str, y: ArrayLike | None, n_samples: int) -> NDArray[np.int32]:
        """Turn labels into positions in `classes_`."""
        labels = np.empty(0) if y is None else inputs.check_labels(name, y)
        if len(labels) != n_samples:
            given = None if y is None else len(labels)
            raise ValueError(
                f"{name}: expected {n_samples} labels, one for each sample, got {given}."
            )
        positions = {label: position for position, label in enumerate(self.classes_.tolist())}
        try:
            return np.array([positions[label] for label in labels.tolist()], np.int32)
        except KeyError as error:
            raise ValueError(
                f"{name}: expected labels among {[*positions]}, the classes of the first fit, got "
                f"{error}; fit anew, or pass all classes to the first partial_fit."
            ) from None

    def _measured(self, source: Source) -> np.ndarray:
        return np.asarray(unpacked(super()._measured(source).rows))

    # From parameters to a specification

    def _start(self, seed: int, source: Source) -> Machine:
        """Begin with small weights or, with `warm_start`, with those that are there."""
        machine: Machine = super()._start(seed, source)
        if self.warm_start and hasattr(self, "machine_"):
            return machine
        assert isinstance(source, ArraySource)
        n_classes = len(self.classes_)
        shape = (n_classes, *machine.hidden_shape)
        weights = LABEL_STD * np.random.default_rng([seed, 1]).normal(size=shape)
        bias = np.zeros(n_classes)
        if self.init == "data":
            machine = with_unit_fields(machine, self._measured(source))
            counts = np.bincount(source.rows.labels[source.used], minlength=n_classes)
            # Half a sample of each class keeps those that have none yet.
            bias = np.log((counts + 0.5) / (counts + 0.5).sum())
        return labelled_machine(machine, weights, bias)

    def _initial_rates(self, source: Source, machine: Model, n_updates: int | None) -> Rates:
        """Give the learning rates asked for, or automatic ones for the objective."""
        own = self.objective != "generative" and self.rule != "centred"
        if not own or self.learning_rate != "auto":
            return super()._initial_rates(source, machine, n_updates)
        rates = label_rates(self._measured(source), self._share_of_generative())
        return rates * share_of_binary(machine)

    def _build_objective(self, rates: Rates) -> Objective:
        """Say what is learnt."""
        share = self._share_of_generative()
        weight = None if share is None else jnp.asarray(share, float)
        return Classification(self.objective != "generative", weight, rates.bias / rates.coupling)

    def _share_of_generative(self) -> float | None:
        weights = {"generative": 1.0, "discriminative": None, "hybrid": self.generative_weight}
        return weights[self.objective]

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        super().check_parameters()
        # Squares of fields in log p(y | V) would grow without bound.
        check_choice("hidden_units", self.hidden_units, ("bernoulli", "rectified"))
        check_positive("generative_weight", self.generative_weight)

    # Labels

    def predict_log_proba(self, X: object) -> NDArray[np.float64]:
        """Compute ``log p(y | V)`` of each sample and class, exactly, (n, n_classes)."""
        logits = self._batched(label_batches.logits, self._rows(X))
        # Normalised in double precision whatever the machine's.
        return np.asarray(log_softmax(logits.astype(np.float64), axis=1))

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Compute ``p(y | V)`` of each sample and class, exactly, (n, n_classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: object) -> np.ndarray:
        """Tell the likeliest label of each sample."""
        codes = self.predict_log_proba(X).argmax(axis=1)
        labels: np.ndarray = self.classes_[codes]
        return labels

    # Samples and likelihood

    def sample(  # type: ignore[override]
        self,
        n_samples: int = 1,
        y: ArrayLike | None = None,
        n_gibbs: int | None = None,
        random_state: RandomState = None,
    ) -> NDArray[np.floating]:
        """Draw samples of the model as `MPORBM.sample` does, ``(n_samples, *visible_shape)``.

        `y` is a class to sample from, ``p(V | y)``, or one for each sample; by default they come
        from all classes, ``p(V)``.
        """
        if y is None:
            return super().sample(n_samples, n_gibbs, random_state)
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        codes = self._codes("y", np.full(n_samples, y) if np.ndim(y) == 0 else y, n_samples)
        states = np.zeros((n_samples, *self.machine_.visible_shape), np.float32)
        states[np.arange(n_samples), self.n_features_in_ + codes] = 1.0
        known = np.broadcast_to(np.arange(states.shape[1]) >= self.n_features_in_, states.shape)
        steps = STEPS_ALONE if n_gibbs is None else n_gibbs
        return self._draws(states, known, None, steps, self._key(random_state))

    def reconstruct(self, X: object) -> NDArray[np.floating]:
        """Pass each sample up and down once, with the label summed out."""
        return self._batched(label_batches.up_and_down, self._rows(X))

    def free_energy(self, X: object) -> NDArray[np.floating]:
        """Compute ``F(V) = -log sum_{y,H} exp(-E(V, y, H))`` of each sample."""
        return self._batched(label_batches.free_energy, self._rows(X))

    # What was learnt

    def _data_shape(self) -> tuple[int, ...]:
        """Give the shape of the samples without their label."""
        return layered(self.machine_).shapes[0]

    def weight_matrix(self, order: Order = "C") -> NDArray[np.floating]:
        """Form W as a matrix, visible by hidden units, without the weights of the label."""
        check_is_fitted(self)
        return np.asarray(layered(self.machine_).couplings[0].to_matrix(order))

    @property
    def hidden_shape_(self) -> tuple[int, ...]:
        """(J_1..J_d)."""
        return layered(self._fitted_machine("hidden_shape_")).shapes[1]

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        return layered(self._fitted_machine("n_classes_")).sizes[2]

    @property
    def visible_bias_(self) -> NDArray[np.floating]:
        """B, of shape visible_shape."""
        return np.asarray(stack_of(self._fitted_machine("visible_bias_"))[0].visible_bias)

    @property
    def hidden_bias_(self) -> NDArray[np.floating]:
        """C, of shape hidden_shape."""
        return np.asarray(stack_of(self._fitted_machine("hidden_bias_"))[0].hidden_bias)

    @property
    def label_weights_(self) -> NDArray[np.floating]:
        """U, of shape ``(n_classes, *hidden_shape)``."""
        arrays = self._machine_arrays(self._fitted_machine("label_weights_"))
        return np.asarray(arrays["label_weights"])

    @property
    def label_bias_(self) -> NDArray[np.floating]:
        """d, of shape (n_classes,)."""
        return np.asarray(stack_of(self._fitted_machine("label_bias_"))[1].hidden_bias)

    def _machine_arrays(self, machine: Machine) -> dict[str, AnyArray]:
        """List the parameters of a machine by the names that files have for them."""
        lowest, top = stack_of(machine)
        weights = np.moveaxis(np.asarray(top.coupling.factors[0]), -1, 0)
        own = super()._machine_arrays(lowest)
        return {**own, "label_weights": weights, "label_bias": top.hidden_bias}

    def _machine_from_arrays(
        self,
        arrays: dict[str, np.ndarray],
        visible_units: type[Units],
        visible_shape: list[int],
        hidden_shape: list[int],
    ) -> Machine:
        """Build a machine from what `_machine_arrays` listed."""
        machine = super()._machine_from_arrays(arrays, visible_units, visible_shape, hidden_shape)
        return labelled_machine(machine, arrays["label_weights"], arrays["label_bias"])


@ESTIMATORS.register("ClassRBM")
class ClassRBM(ClassifierBase):
    """Classification RBM (Larochelle & Bengio 2008): every visible unit wired to every hidden one.

    The parameters are those of `MPOClassRBM` without `rank`, `boundary`, `scheme` and `gauge`;
    `hidden_shape` may be a number, or have any number of modes.
    """

    coupling: ClassVar[str] = "dense"


@ESTIMATORS.register("MPOClassRBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MPOClassRBM(ClassifierBase):
    """Classification RBM (Larochelle & Bengio 2008) with a matrix product operator as coupling.

    ``-E(V, y, H) = <V, W(H)> + <V, B> + <C, H> + d_y + <U_y, H>`` with a label y, so that
    ``p(y | V) = softmax_y(d_y + sum softplus(W^T(V) + C + U_y))`` exactly.

    Parameters
    ----------
    hidden_shape
        (J_1..J_d), as many modes as the samples have; by default the visible shape, made smaller
        if that is more than 500 units.
    objective
        ``"discriminative"``: ``log p(y | V)``, by its exact gradient; ``"generative"``:
        ``log p(V, y)``, by model samples; ``"hybrid"``: the first plus `generative_weight` times
        the second.
    generative_weight
        Of the hybrid objective: the generative part keeps the machine from learning the samples
        by heart.
    feature
        What `transform` gives, with the label summed out by ``p(y | V)``: the ``"probability"``
        that a hidden unit is on, its mean ``"field"``, or a random ``"state"``.

    The other parameters are those of `MPORBM`, without `rank_tolerance`; `scheme` is ``"aop"`` or
    ``"su"``, `n_iter` by default 100. The score in `history_`, and that of early stopping, is the
    mean ``log p(y | V)``.

    Attributes
    ----------
    classes_
        The labels, sorted.
    machine_
        The learnt `mporbm.machine.Machine` between the layers [V, y] and H.
    cores_, visible_bias_, hidden_bias_, label_weights_, label_bias_
        Its parameters as arrays: W, B, C, U and d.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPOClassRBM
    >>> y = np.repeat(["left", "right"], 20)
    >>> bright = (np.arange(6) < 3) == (y == "left")[:, None, None]
    >>> X = np.random.default_rng(0).random((40, 6, 6)) < np.where(bright, 0.8, 0.2)
    >>> model = MPOClassRBM(hidden_shape=(2, 2), rank=3, n_iter=10, random_state=0).fit(X, y)
    >>> model.predict(X[[0, -1]]), model.score(X, y)
    (array(['left', 'right'], dtype='<U5'), 1.0)
    """

    rank: int | Sequence[int] | np.ndarray = 20
    boundary: Boundary = "open"
    scheme: str = "aop"
    gauge: str | None = "canonical"

    coupling: ClassVar[str] = "mpo"

    def coupling_options(self) -> dict[str, object]:
        """List what the coupling is built with besides both shapes."""
        hidden = self._resolved_hidden_shape()
        ranks = resolve_ranks(self.rank, self.visible_shape_, hidden, self.boundary)
        return {"rank": ranks, "boundary": self.boundary}

    @property
    def cores_(self) -> list[NDArray[np.floating]]:
        """W^(1)..W^(d), each of shape (R_k, I_k, J_k, R_{k+1})."""
        coupling = layered(self._fitted_machine("cores_")).couplings[0]
        return [np.asarray(core) for core in coupling.factors]

    @property
    def ranks_(self) -> tuple[int, ...]:
        """The rank of each bond, (R_2..R_d) if open and (R_1..R_d) if periodic."""
        return MPO(layered(self._fitted_machine("ranks_")).couplings[0].factors).ranks
