"""Classifiers: machines with labels as one more group of visible units."""

import math
from dataclasses import dataclass
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.callback import with_callbacks
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..learning import (
    LabelledCD,
    LabelledPCD,
    LabelledRows,
    LabelledRule,
    Labelling,
    NegativePhase,
    Rates,
    Rule,
    Scheme,
)
from ..learning.rates import label_rates
from ..learning.start import with_unit_fields
from ..machine import Coupling, DenseCoupling, LabelledMachine, Machine
from ..tensor.check import check_choice, check_integer, check_positive
from ..training import ArraySource
from ..training.packed_bits import unpacked
from ..training.sources import Source
from . import batches, inputs
from .base import BoltzmannMachine
from .compilation import keep_compiled
from .machines import MPOCoupled
from .progress import sample_bar

LABEL_STD = 0.01
"""The standard deviation of the label weights that training starts with."""
MOST_HIDDEN = 500
"""About the most hidden units that there are if not asked for."""


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, BoltzmannMachine):
    """A machine with labels: learning from them, and telling them. `MPOClassRBM` documents it."""

    objective: str = "hybrid"
    generative_weight: float = 0.01
    n_iter: int = 100

    # Fitting

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, **fit_params: Any
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
        self._check_parameters()
        keep_compiled()
        weight = self._take_weight(fit_params)
        known = self.classes_ if self.warm_start and hasattr(self, "machine_") else None
        source, rows = self._labelled_source(X, y, weight, known, reset=True)
        source, validation = self._split(source, X_val)
        if X_val is not None:
            assert isinstance(validation, ArraySource)
            labels = self._codes("y_val", y_val, len(validation.rows))
            validation = ArraySource(LabelledRows(validation.rows, labels))
        elif y_val is not None:
            raise ValueError("X_val: expected the samples that y_val labels, got None.")
        return self._fit(source, validation, rows, y)

    def partial_fit(  # type: ignore[override]
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one pass over some more samples, in their order, as `MPORBM.partial_fit`.

        `classes` are all labels that will ever come; by default those of the first call.
        """
        self._check_parameters()
        keep_compiled()
        first = not hasattr(self, "machine_")
        known = None if first else self.classes_
        if first and classes is not None:
            known = np.unique(_labels("classes", classes))
        source, _ = self._labelled_source(X, y, sample_weight, known, reset=first)
        return self._partial_fit(source)

    def _labelled_source(
        self, X: Any, y: Any, weight: Any, known: Any, reset: bool
    ) -> tuple[Source, Any]:
        """Samples with their labels, and the samples as rows; classes are the known ones if any."""
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
        labels = _labels("y", y)
        self.classes_ = np.unique(labels) if known is None else known
        labelled = LabelledRows(rows, self._codes("y", labels, len(rows)))
        return ArraySource(labelled, plain.weight), rows

    def _codes(self, name: str, y: Any, n_samples: int) -> NDArray[np.int32]:
        """Labels as positions in `classes_`."""
        labels = None if y is None else _labels(name, y)
        n_labels = None if labels is None else len(labels)
        if labels is None or n_labels != n_samples:
            raise ValueError(
                f"{name}: expected {n_samples} labels, one for each sample, got {n_labels}."
            )
        known = set(self.classes_.tolist())
        unknown = next((label for label in labels.tolist() if label not in known), None)
        if unknown is not None:
            raise ValueError(
                f"{name}: expected labels among {self.classes_.tolist()}, the classes of the first "
                f"fit, got {unknown!r}; fit anew, or pass all classes to the first partial_fit."
            )
        return np.searchsorted(self.classes_, labels).astype(np.int32)

    def _starting_machine(self, seed: int, source: Source) -> Machine:
        machine = super()._starting_machine(seed, source)
        if isinstance(machine, LabelledMachine):
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
        return LabelledMachine(machine, weights, bias)

    def _initial_rates(self, source: Source, *arguments: Any) -> Rates:
        if self.objective == "generative" or self.learning_rate != "auto":
            return super()._initial_rates(source, *arguments)
        return label_rates(self._measured(source), self._generative_weight())

    def _hidden_shape(self) -> tuple[int, ...]:
        """The hidden shape asked for, or as many units as are visible, up to some hundred."""
        if self.hidden_shape is not None:
            return super()._hidden_shape()
        visible = self.visible_shape_
        share = min((MOST_HIDDEN / math.prod(visible)) ** (1.0 / len(visible)), 1.0)
        return tuple(math.ceil(share * size) for size in visible)

    def _measured(self, source: Source) -> Any:
        return unpacked(super()._measured(source).rows)

    def _rule(self, negative_phase: NegativePhase, **options: Any) -> Rule:
        return LabelledRule(
            negative_phase,
            discriminative=self.objective != "generative",
            generative_weight=self._generative_weight(),
            **options,
        )

    def _generative_weight(self) -> float | None:
        weights = {"generative": 1.0, "discriminative": None, "hybrid": self.generative_weight}
        return weights[self.objective]

    def _phase(self, rates: Rates) -> NegativePhase:
        return (LabelledCD if self.negative_phase == "cd" else LabelledPCD)(self.n_gibbs)

    def _negative_phases(self) -> tuple[str, ...]:
        return ("cd", "pcd")

    def _scheme(self) -> Scheme:
        return Labelling(super()._scheme())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("objective", self.objective, ("generative", "discriminative", "hybrid"))
        check_positive("generative_weight", self.generative_weight)

    # Labels

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """``log p(y | V)`` of each sample and class, exactly, (n, n_classes)."""
        logits = self._batched(batches.label_logits, self._rows(X))
        # Normalised in double precision whatever the machine's.
        log_probability: NDArray[np.float64] = log_softmax(logits.astype(np.float64), axis=1)
        return log_probability

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """``p(y | V)`` of each sample and class, exactly, (n, n_classes)."""
        probability: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probability

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest label of each sample."""
        codes = self.predict_log_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    # Samples

    def sample(
        self, n_samples: int = 1, y: Any = None, n_gibbs: int = 1000, random_state: Any = None
    ) -> NDArray[Any]:
        """Samples of the model, ``(n_samples, *visible_shape)``: chains of `n_gibbs` steps each.

        Parameters
        ----------
        n_samples
            How many.
        y
            A class to sample from, ``p(V | y)``, or one for each sample; by default from all,
            ``p(V)``.
        n_gibbs, random_state
            As for `MPORBM.sample`.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
        given = np.zeros(n_samples, np.int32)
        if y is not None:
            given = self._codes("y", np.full(n_samples, y) if np.ndim(y) == 0 else y, n_samples)
        key = self._key(random_state)
        with sample_bar("sample", n_samples, bool(self.verbose)) as show:
            return self._batched(
                batches.class_draw, given, key, y is not None, steps, chains=True, show=show
            )

    # Parameters

    @property
    def label_weights_(self) -> NDArray[Any]:
        """U, of shape ``(n_classes, *hidden_shape)``."""
        return np.asarray(self._labelled_machine("label_weights_").label_weights)

    @property
    def label_bias_(self) -> NDArray[Any]:
        """d, of shape (n_classes,)."""
        return np.asarray(self._labelled_machine("label_bias_").label_bias)

    @property
    def n_parameters_(self) -> int:
        """The number of weights, those of the labels included, biases excluded."""
        machine = self._labelled_machine("n_parameters_")
        return machine.coupling.n_parameters + machine.label_weights.size

    def _labelled_machine(self, name: str) -> LabelledMachine:
        machine = self._fitted_machine(name)
        assert isinstance(machine, LabelledMachine)
        return machine


class ClassRBM(Classifier):
    """Classification RBM (Larochelle & Bengio 2008): every visible unit wired to every hidden one.

    The parameters are those of `MPOClassRBM` without `rank`, `boundary`, `scheme` and `gauge`;
    `hidden_shape` may be a number, or have any number of modes.
    """

    def _random_coupling(self, key: Array) -> Coupling:
        return DenseCoupling.random(key, self.visible_shape_, self._hidden_shape())


@dataclass(eq=False, repr=False, kw_only=True)
class MPOClassRBM(Classifier, MPOCoupled):
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
    negative_phase
        Where model samples come from: ``"cd"`` or ``"pcd"``.
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
        The learnt `mporbm.machine.LabelledMachine`.
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


def _labels(name: str, y: Any) -> NDArray[Any]:
    """Labels as scikit-learn takes them: one-dimensional, finite, not continuous."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name=name)
    check_classification_targets(labels)
    return labels


CLASSIFIERS = (ClassRBM, MPOClassRBM)
