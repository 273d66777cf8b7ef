"""Fitting: from parameters and data to a specification, and from there to a trained machine."""

import math
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from ..learning import SCHEMES, LearningState, Objective, Rates, Scheme, automatic_rates
from ..learning.averaging import Average
from ..learning.incomplete import with_base_rates
from ..learning.rates import automatic_epochs, centred_rates, share_of_binary
from ..learning.start import starting_machine
from ..machine import COUPLINGS, HIDDEN_UNITS, UNITS, Machine, Model
from ..machine.gaussian import is_gaussian
from ..tensor import MPSBatch
from ..tensor.arrays import AnyArray, HostTensor
from ..tensor.check import check_integer, check_shape
from ..tensor.index import Order
from ..training import ArraySource, Specification, Training, TrainingConfig
from ..training import checkpoint as checkpoints
from ..training.moments import of_same_moments
from ..training.sources import Source
from . import incomplete, inputs
from .algorithms import QUASI_NEWTON_EPOCHS, build_algorithm, precise_training
from .base import EstimatorBase, Purpose, chain_rows, key_for
from .identity import identity_of
from .progress import epoch_text, progress_bar

MEASURED_ROWS, MEASURED_ENTRIES = 1024, 2**25
"""The most samples, and entries of them, that the start and the automatic rate look at."""
Data = ArrayLike | MPSBatch | inputs.Stream
"""Samples in memory or in files, or a stream of them."""
Specify = Callable[[int, Source], Specification]
"""From a seed and the data to a training."""


class Continuation(NamedTuple):
    """What `partial_fit` goes on from; `rate_factor` is what back-offs made of the rates."""

    reached: tuple[LearningState, Average | None]
    rates: Rates
    rate_factor: float
    rule: str


@dataclass(eq=False, repr=False, kw_only=True)
class BoltzmannEstimator(CallbackSupportMixin, EstimatorBase):
    """An estimator around one machine: `fit` makes a `Specification` and hands it to training.

    A subclass names its `coupling`, and adds the parameters that this has.
    """

    hidden_shape: Any = field(default=None, kw_only=False)
    hidden_units: str = "auto"
    standardize: bool = True
    rule: Literal["plain", "centred"] = "centred"
    warm_start: bool = False

    _MOST_HIDDEN: ClassVar[int] = 1000
    """About the most hidden units that there are if not asked for."""
    _TAKES_MISSING: ClassVar[bool] = True

    # Fitting

    @with_callbacks
    def fit(
        self, X: Data, y: object = None, *, X_val: Data | None = None, **fit_params: object
    ) -> Self:
        """Learn the distribution of X.

        Parameters
        ----------
        X
            Samples ``(n, *visible_shape)``, or flattened (n, n_features), of any real type: an
            array, a memory-mapped array (``np.load(path, mmap_mode="r")``), a zarr array, or a
            stream: a function that makes an iterator over arrays of samples, once for every
            epoch. Files, stores and streams may be larger than memory. NaN, or what a masked array
            masks, are missing values: the machine draws them anew for every update
            (`mporbm.learning.incomplete`).
        y
            Ignored.
        X_val
            Samples to watch for overfitting and to stop early by; by default early stopping sets
            `validation_fraction` of X aside.
        sample_weight : array of shape (n,), optional
            The weight of each sample: the length of its steps. It stands outside of the signature
            because scikit-learn then demands that weights equal repetitions exactly, which no
            random training can promise.
        """
        return self._fit_specified(X, X_val, inputs.take_weight(fit_params), self._specify_start, y)

    def partial_fit(
        self, X: Data, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one pass over some more samples, in their order.

        Velocity and chains go on from call to call. ``learning_rate="auto"`` is settled by the
        samples of the first call, or by `fit`. Schedule, early stopping and checkpoints are those
        of `fit` alone.
        """
        self.check_parameters()
        if self._is_gaussian:
            raise ValueError(
                "partial_fit: expected hidden_units='bernoulli' for Gaussian visible units; where "
                "both are Gaussian all samples are learnt at once: call fit, which takes streams."
            )
        first = not hasattr(self, "machine_")
        source, _ = self._source(X, sample_weight, n_iter=1, reset=first)
        return self._train_once(source)

    def _fit_specified(
        self, X: object, X_val: object, weight: object, specify: Specify, y: object = None
    ) -> Self:
        """Do as `fit`, but let ``specify(seed, source)`` say what is trained."""
        self.check_parameters()
        n_iter = automatic_epochs(None) if self.n_iter == "auto" else self.n_iter
        source, rows = self._source(X, weight, n_iter=n_iter, reset=True)
        source, validation = self._split(source, X_val)
        return self._train(source, validation, specify, rows, y)

    def _train(
        self, source: Source, validation: Source | None, specify: Specify, rows: object, y: object
    ) -> Self:
        """Train from the beginning or a checkpoint; callbacks are told the rows and y."""
        with precise_training(self), checkpoints.owned(self.checkpoint):
            self._n_samples = source.n_batches(1)
            if self._is_gaussian:
                source = of_same_moments(source)
            seed = self._restart_random_numbers()
            path = self.checkpoint if self.random_state is None else None
            if path and checkpoints.exists(path):
                # Any seed will do, so also that of a training to go on with.
                seed = self._seed = checkpoints.saved_seed(path)
            self._run(Training(specify(seed, source), source, validation), X=rows, y=y)
        return self

    def _run(self, training: Training, **data: object) -> None:
        """Run a training under scikit-learn's callbacks and a progress bar."""
        data["estimator"] = self
        learnt = partial(self._learnt, training)
        n_iter = training.config.n_iter
        context = self._init_callback_context(max_subtasks=n_iter)
        context.call_on_fit_task_begin(**data)
        bar: AbstractContextManager[Callable[[int, str], None] | None] = nullcontext()
        if self.verbose and jax.process_index() == 0:
            headline = self._headline(training)
            bar = progress_bar(type(self).__name__, n_iter, "epochs", headline)
        with bar as show:

            def on_epoch(training: Training) -> bool:
                if show is not None:
                    entry = training.progress.history[-1]
                    show(cast("int", entry["epoch"]), epoch_text(entry))
                task = context.subcontext(task_name="epoch")
                task.call_on_fit_task_begin(**data)
                return bool(task.call_on_fit_task_end(**data, reconstruction_attributes=learnt))

            try:
                training.run(on_epoch)
            finally:
                self.__dict__.update(learnt())
        context.call_on_fit_task_end(**data, reconstruction_attributes=learnt)

    def _train_once(self, source: Source) -> Self:
        """Train for one epoch, from where the last call has left off."""
        if not hasattr(self, "machine_"):
            seed = self._restart_random_numbers()
            self.n_iter_: int = 0
            self.history_: list[dict[str, Any]] = []
            self.set_machine(self._start(seed, source))
        reached, rates, factor, rule = getattr(self, "_continuation", (None, None, 1.0, None))
        settled, epoch = self.learning_rate == "auto" and rule == self.rule, self.n_iter_
        rates = rates if settled else None
        specification = self._specify(self.machine_, source, self._seed, rates=rates, epoch=epoch)
        progress = checkpoints.Progress(epoch, rate_factor=factor, history=list(self.history_))
        training = Training(specification, source, continued=reached, progress=progress)
        try:
            training.run()
        finally:
            self.__dict__.update(self._learnt(training))
        return self

    # Data

    def _goes_on(self) -> bool:
        """Whether `fit` goes on from what was learnt, which other shapes could not."""
        if not (self.warm_start and hasattr(self, "machine_")):
            return False
        hidden = None if self.hidden_shape is None else self._resolved_hidden_shape()
        for name, asked in (("visible_shape", self.visible_shape), ("hidden_shape", hidden)):
            learnt = getattr(self, f"{name}_")
            if asked is not None and check_shape(name, asked) != learnt:
                raise ValueError(
                    f"{name}={asked}: expected {learnt}, to go on from what was learnt "
                    f"(warm_start=True)."
                )
        return True

    def _source(
        self, X: object, weight: object, *, n_iter: int, reset: bool
    ) -> tuple[Source, PyTree]:
        """Check X and its weights; also give the rows themselves if X is an array."""
        return incomplete.read_source(self, X, weight, n_iter=n_iter, reset=reset)

    def _split(self, source: Source, X_val: object) -> tuple[Source, Source | None]:
        """Take the samples that early stopping sets aside out of a source."""
        if X_val is None:
            return source.split(self.validation_fraction) if self.early_stopping else (source, None)
        try:
            validation = incomplete.read_array(self, X_val, reset=False)
        except ValueError as error:
            raise ValueError(f"X_val: {error}") from error
        if validation.incomplete:
            source.incomplete = True
        return source, validation

    def _measured(self, source: Source) -> PyTree[AnyArray]:
        """Some samples, as many as fit into memory."""
        n_rows = MEASURED_ENTRIES // math.prod(self.visible_shape_)
        rows = source.head(max(min(n_rows, MEASURED_ROWS), 16))
        return with_base_rates(UNITS[self.visible_units](), rows) if source.incomplete else rows

    # From parameters to a specification

    def _specify_start(self, seed: int, source: Source) -> Specification:
        return self._specify(self._start(seed, source), source, seed)

    def _start(self, seed: int, source: Source) -> Machine:
        """Begin with small weights or, with `warm_start`, with those that are there."""
        # The samples come as they are: a coding that came with a model file is not theirs.
        self.__dict__.pop("coding_", None)
        rows = self._measured(source)
        if not self._goes_on():
            return self._size_checked(self._new_machine(seed, rows))
        self._note_base_bias(rows)
        return cast("Machine", self.machine_)

    def _new_machine(self, seed: int, rows: PyTree[AnyArray]) -> Machine:
        """Build the machine that training starts with, from some samples."""
        self._note_base_bias(rows)
        return starting_machine(
            COUPLINGS[self.coupling],
            rows,
            self._resolved_hidden_shape(),
            (UNITS[self.visible_units](), HIDDEN_UNITS[self._hidden_kind]()),
            self.base_bias_ if self.init == "data" else None,
            seed=seed,
            key=key_for(seed, Purpose.WEIGHTS),
            options=self.coupling_options(),
        )

    def _note_base_bias(self, rows: PyTree[AnyArray]) -> None:
        self.base_bias_ = UNITS[self.visible_units]().base_bias(rows)

    def _resolved_hidden_shape(self) -> tuple[int, ...]:
        """Give the hidden shape asked for, or that of the visible layer, smaller if it is large."""
        if self.hidden_shape is None:
            visible = self.visible_shape_
            share = min((self._MOST_HIDDEN / math.prod(visible)) ** (1.0 / len(visible)), 1.0)
            return tuple(math.ceil(share * size) for size in visible)
        if np.ndim(self.hidden_shape) == 0:
            return (check_integer("hidden_shape", self.hidden_shape),)
        return check_shape("hidden_shape", self.hidden_shape)

    def coupling_options(self) -> Mapping[str, object]:
        """List what the coupling is built with besides both shapes."""
        return {}

    def _build_objective(self, rates: Rates) -> Objective:
        """Say what is learnt."""
        return Objective()

    def _build_scheme(self) -> Scheme:
        """Build the scheme; with a single factor there is no choice."""
        return SCHEMES[getattr(self, "scheme", "su")]()

    def _initial_rates(self, source: Source, machine: Model, n_updates: int | None) -> Rates:
        """Give the learning rates asked for, or automatic ones."""
        if self.learning_rate != "auto":
            return Rates(self.learning_rate, self.learning_rate)
        if self.rule == "centred":
            return centred_rates(machine, n_updates)
        return automatic_rates(self._measured(source), n_updates) * share_of_binary(machine)

    def _specify(
        self,
        machine: Model,
        source: Source,
        seed: int,
        *,
        scheme: Scheme | None = None,
        objective: Objective | None = None,
        rates: Rates | None = None,
        epoch: int | None = None,
    ) -> Specification:
        """Specify the training of a machine; `partial_fit` gives the `epoch` it goes on from."""
        scheme, is_partial = scheme or self._build_scheme(), epoch is not None
        batch_size = self.batch_size
        if isinstance(source, ArraySource) and not is_partial:
            whole = len(source.used)
            batch_size = whole if is_gaussian(machine) else min(batch_size, whole)
        n_batches = source.n_batches(batch_size)
        n_iter = automatic_epochs(n_batches) if self.n_iter == "auto" else self.n_iter
        if self.n_iter == "auto" and is_gaussian(machine):
            n_iter = QUASI_NEWTON_EPOCHS
        if rates is None:
            n_updates = None if is_partial else n_batches
            if n_updates is not None:
                n_updates *= n_iter * len(scheme.groups(machine))
            rates = self._initial_rates(source, machine, n_updates)
        objective = objective or incomplete.objective_for(source, self._build_objective(rates))
        algorithm = build_algorithm(
            self, machine, scheme, rates, objective, self.rule == "centred", not source.incomplete
        )
        config = TrainingConfig(
            n_iter=n_iter if epoch is None else epoch + 1,
            batch_size=batch_size,
            schedule="constant" if is_partial else self.schedule,
            n_iter_no_change=self.n_iter_no_change if self.early_stopping else None,
            on_divergence=self.on_divergence,
            checkpoint=None if is_partial or not self.checkpoint else os.fspath(self.checkpoint),
            checkpoint_interval=self.checkpoint_interval,
            shuffle=not is_partial,
        )
        base = getattr(self, "base_bias_", None)
        if base is not None and base.shape != tuple(machine.visible_shape):
            base = None
        return Specification(machine, algorithm, rates, config, seed, identity_of(self), base)

    # What was learnt

    def _learnt(self, training: Training) -> dict[str, object]:
        """List the fitted attributes as a training leaves them."""
        machine = training.algorithm.scheme.finish(training.machine)
        factor = training.progress.rate_factor
        return {
            "machine_": machine,
            "chains_": chain_rows(machine, training.chains),
            "n_iter_": training.progress.epoch,
            "diverged_": training.diverged,
            "history_": list(training.progress.history),
            "_n_features_out": math.prod(machine.hidden_shape),
            "_continuation": Continuation(training.reached, training.rates, factor, self.rule),
        }

    def _headline(self, training: Training) -> str:
        """Say what stands above the progress bar."""
        way = training.machine.coupling.describe(training.config.batch_size)
        return f"{type(self).__name__}: {way}"

    def weight_matrix(self, order: Order = "C") -> HostTensor:
        """Form W as a matrix, visible by hidden units.

        In C order ``X.reshape(n, -1) @ weight_matrix() + hidden_bias_.ravel()`` is the hidden
        field; ``order="F"`` is the paper's Eq. (1).
        """
        check_is_fitted(self)
        return np.asarray(self.machine_.coupling.to_matrix(order))

    @property
    def visible_bias_(self) -> HostTensor:
        """B, of shape visible_shape."""
        return np.asarray(self._fitted_machine("visible_bias_").visible_bias)

    @property
    def hidden_bias_(self) -> HostTensor:
        """C, of shape hidden_shape."""
        return np.asarray(self._fitted_machine("hidden_bias_").hidden_bias)

    def __getstate__(self) -> dict[str, object]:
        # Pickles hold what was learnt, not what training would need to go on.
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_continuation"}
