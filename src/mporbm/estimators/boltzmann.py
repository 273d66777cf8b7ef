"""Fitting: from parameters and data to a specification, and from there to a trained machine."""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import equinox as eqx
import numpy as np
from numpy.typing import NDArray
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import check_is_fitted

from ..learning import (
    SCHEMES,
    LogLikelihood,
    Objective,
    Rates,
    Scheme,
    automatic_rates,
)
from ..learning.start import starting_machine
from ..machine import COUPLINGS, UNITS
from ..tensor.check import check_integer, check_shape
from ..tensor.index import Order
from ..training import ArraySource, Specification, StreamSource, Training, TrainingConfig
from ..training import checkpoint as checkpoints
from ..training.checkpoint import Progress
from ..training.sources import Source
from . import inputs
from .algorithm import build_algorithm, training_identity
from .base import EstimatorBase
from .progress import progress_bar
from .seeds import Purpose, key_for

MEASURED_ROWS, MEASURED_ENTRIES = 1024, 2**25
"""The most samples, and entries of them, that the start and the automatic rate look at."""


@dataclass(eq=False, repr=False, kw_only=True)
class BoltzmannEstimator(CallbackSupportMixin, EstimatorBase):
    """An estimator around one machine: `fit` makes a `Specification` and hands it to training.

    A subclass names its `coupling`, and adds the parameters that this has.
    """

    hidden_shape: Any = field(default=None, kw_only=False)
    warm_start: bool = False

    # Fitting

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, X_val: Any = None, **fit_params: Any) -> Self:
        """Learn the distribution of X.

        Parameters
        ----------
        X
            Samples ``(n, *visible_shape)``, or flattened (n, n_features), of any real type: an
            array, a memory-mapped array (``np.load(path, mmap_mode="r")``), a zarr array, or a
            stream: a function that makes an iterator over arrays of samples, once for every
            epoch. Files, stores and streams may be larger than memory.
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
        return self.fit_specified(X, X_val, take_weight(fit_params), self._specify_start, y)

    def fit_specified(
        self,
        X: Any,
        X_val: Any,
        weight: Any,
        specify: Callable[[int, Source], Specification],
        y: Any = None,
    ) -> Self:
        """Train as a function of the seed and the data specifies; else as `fit`."""
        self.check_parameters()
        source, rows = self._source(X, weight, n_iter=self.n_iter, reset=True)
        source, validation = self._split(source, X_val)
        return self._train(source, validation, specify, rows, y)

    def _specify_start(self, seed: int, source: Source) -> Specification:
        return self.specify(self.start(seed, source), source, seed)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one pass over some more samples, in their order.

        Velocity and chains go on from call to call. ``learning_rate="auto"`` is settled by the
        samples of the first call, or by `fit`. Schedule, early stopping and checkpoints are those
        of `fit` alone.
        """
        self.check_parameters()
        first = not hasattr(self, "machine_")
        source, _ = self._source(X, sample_weight, n_iter=1, reset=first)
        return self._train_once(source)

    def _train(
        self,
        source: Source,
        validation: Source | None,
        specify: Callable[[int, Source], Specification],
        rows: Any,
        y: Any,
    ) -> Self:
        """Train from the beginning or a checkpoint; callbacks are told the rows and y."""
        with checkpoints.owned(self.checkpoint):
            seed = self.restart_random_numbers()
            goes_on = bool(self.checkpoint) and checkpoints.exists(self.checkpoint)
            if self.random_state is None and goes_on:
                # Any seed will do, so also that of a training to go on with.
                seed = self._seed = checkpoints.saved_seed(self.checkpoint)
            self._run(Training(specify(seed, source), source, validation), rows, y)
        return self

    def _train_once(self, source: Source) -> Self:
        """Train for one epoch, from where the last call has left off."""
        if not hasattr(self, "machine_"):
            seed = self.restart_random_numbers()
            self.n_iter_: int = 0
            self.history_: list[dict[str, Any]] = []
            self.set_machine(self.start(seed, source))
        progress = Progress(
            epoch=self.n_iter_,
            rate_factor=getattr(self, "_rate_factor", 1.0),
            history=list(self.history_),
        )
        rates = getattr(self, "_rates", None) if self.learning_rate == "auto" else None
        specification = self.specify(
            self.machine_, source, self._seed, rates=rates, epoch=self.n_iter_
        )
        continued = getattr(self, "_state", None)
        training = Training(specification, source, continued=continued, progress=progress)
        try:
            training.run()
        finally:
            self._keep(training)
        return self

    def _run(self, training: Training, rows: Any, y: Any) -> None:
        """Run a training under scikit-learn's callbacks and a progress bar."""
        context = self._init_callback_context(max_subtasks=self.n_iter)
        context.call_on_fit_task_begin(estimator=self, X=rows, y=y)
        headline = self._headline(training)
        with progress_bar(type(self).__name__, self.n_iter, bool(self.verbose), headline) as show:

            def on_epoch(training: Training) -> bool:
                show(training.progress.history[-1])
                task = context.subcontext(task_name="epoch")
                task.call_on_fit_task_begin(estimator=self, X=rows, y=y)
                stop: bool = task.call_on_fit_task_end(
                    estimator=self,
                    X=rows,
                    y=y,
                    reconstruction_attributes=lambda: self._learnt(training),
                )
                return stop

            try:
                training.run(on_epoch)
            finally:
                self._keep(training)
        context.call_on_fit_task_end(
            estimator=self, X=rows, y=y, reconstruction_attributes=lambda: self._learnt(training)
        )

    # Data

    def _source(self, X: Any, weight: Any, *, n_iter: int, reset: bool) -> tuple[Source, Any]:
        """Check X and its weights; also give the rows themselves if X is an array."""
        if not inputs.is_stream(X):
            rows = inputs.check_rows(self, X, reset=reset)
            inputs.check_values(rows, self.visible_units, shared=True)
            return ArraySource(rows, inputs.check_weights(weight, len(rows))), rows
        if weight is not None:
            raise ValueError("sample_weight: expected None for a stream of samples.")
        seen = {"reset": reset}

        def check(piece: Any) -> NDArray[Any]:
            rows: NDArray[Any] = inputs.check_rows(self, piece, reset=seen["reset"])
            seen["reset"] = False
            inputs.check_values(rows, self.visible_units)
            return rows

        again = not isinstance(X, Iterator)
        source = StreamSource(inputs.restart(X, n_iter), check, restartable=again)
        if n_iter > 1 or reset:
            source.head(1)
        return source, None

    def _split(self, source: Source, X_val: Any) -> tuple[Source, Source | None]:
        """Take the samples that early stopping sets aside out of a source."""
        if X_val is not None:
            try:
                rows = inputs.check_rows(self, X_val, reset=False)
                inputs.check_values(rows, self.visible_units)
            except ValueError as error:
                raise ValueError(f"X_val: {error}") from error
            return source, ArraySource(rows)
        if not self.early_stopping:
            return source, None
        return source.split(self.validation_fraction)

    def _measured(self, source: Source) -> Any:
        """Some samples, as many as fit into memory."""
        n_rows = MEASURED_ENTRIES // math.prod(self.visible_shape_)
        return source.head(max(min(n_rows, MEASURED_ROWS), 16))

    # From parameters to a specification

    def start(self, seed: int, source: Source) -> Any:
        """Begin with small weights or, with `warm_start`, with those that are there."""
        # The samples come as they are: a coding that came with a model file is not theirs.
        self.__dict__.pop("coding_", None)
        if not (self.warm_start and hasattr(self, "machine_")):
            return self._new_machine(seed, self._measured(source))
        if self.data_shape() != self.visible_shape_:
            raise ValueError(
                f"X: expected samples of shape {self.data_shape()} to go on from what was learnt "
                f"(warm_start=True), got {self.visible_shape_}."
            )
        hidden = self.hidden_shape_
        if self.hidden_shape is not None and self.resolved_hidden_shape() != hidden:
            raise ValueError(
                f"hidden_shape={self.hidden_shape}: expected {hidden}, to go on from what was "
                f"learnt (warm_start=True)."
            )
        self._note_base_bias(self._measured(source))
        return self.machine_

    def _new_machine(self, seed: int, rows: Any) -> Any:
        """Build the machine that training starts with, from some samples."""
        self._note_base_bias(rows)
        return starting_machine(
            COUPLINGS[self.coupling],
            rows,
            self.resolved_hidden_shape(),
            UNITS[self.visible_units](),
            self.base_bias_ if self.init == "data" else None,
            seed=seed,
            key=key_for(seed, Purpose.WEIGHTS),
            options=self.coupling_options(),
        )

    def _note_base_bias(self, rows: Any) -> None:
        self.base_bias_ = UNITS[self.visible_units]().base_bias(rows)

    def resolved_hidden_shape(self) -> tuple[int, ...]:
        """Give the hidden shape asked for, or a third of each visible mode."""
        if self.hidden_shape is None:
            return tuple(-(-size // 3) for size in self.visible_shape_)
        if np.ndim(self.hidden_shape) == 0:
            return (check_integer("hidden_shape", self.hidden_shape),)
        return check_shape("hidden_shape", self.hidden_shape)

    def coupling_options(self) -> dict[str, Any]:
        """List what the coupling is built with besides both shapes."""
        return {}

    def scheme_options(self) -> dict[str, Any]:
        """List what the scheme is built with."""
        return {}

    def build_objective(self, rates: Rates) -> Objective:
        """Say what is learnt."""
        return LogLikelihood()

    def build_scheme(self) -> Scheme:
        """Build the scheme; with a single factor there is no choice."""
        return SCHEMES.build(getattr(self, "scheme", "su"), self.scheme_options())

    def initial_rates(self, source: Source, machine: Any, n_updates: int | None) -> Rates:
        """Give the learning rates asked for, or automatic ones."""
        if self.learning_rate != "auto":
            return Rates(self.learning_rate, self.learning_rate)
        return automatic_rates(self._measured(source), n_updates)

    def specify(
        self,
        machine: Any,
        source: Source,
        seed: int,
        *,
        scheme: Scheme | None = None,
        objective: Objective | None = None,
        rates: Rates | None = None,
        epoch: int | None = None,
    ) -> Specification:
        """Specify the training of a machine; `epoch` is the only one that `partial_fit` adds."""
        scheme, partial_fit = scheme or self.build_scheme(), epoch is not None
        batch_size = self.batch_size
        if isinstance(source, ArraySource) and not partial_fit:
            batch_size = min(batch_size, len(source.used))
        if rates is None:
            n_batches = None if partial_fit else source.n_batches(batch_size)
            n_updates = None
            if n_batches is not None:
                n_updates = self.n_iter * n_batches * len(scheme.groups(machine))
            rates = self.initial_rates(source, machine, n_updates)
        checkpoint = None if partial_fit or self.checkpoint is None else os.fspath(self.checkpoint)
        config = TrainingConfig(
            n_iter=self.n_iter if epoch is None else epoch + 1,
            batch_size=batch_size,
            schedule="constant" if partial_fit else self.schedule,
            n_iter_no_change=self.n_iter_no_change if self.early_stopping else None,
            on_divergence=self.on_divergence,
            checkpoint=checkpoint,
            checkpoint_interval=self.checkpoint_interval,
            shuffle=not partial_fit,
        )
        algorithm = build_algorithm(self, scheme, objective or self.build_objective(rates), rates)
        return Specification(machine, algorithm, rates, config, seed, training_identity(self))

    # What was learnt

    def _keep(self, training: Training) -> None:
        for name, value in self._learnt(training).items():
            setattr(self, name, value)

    def _learnt(self, training: Training) -> dict[str, Any]:
        """List the fitted attributes as a training leaves them."""
        machine = training.algorithm.scheme.finish(training.machine)
        return {
            "machine_": machine,
            "n_iter_": training.progress.epoch,
            "history_": list(training.progress.history),
            "_n_features_out": math.prod(machine.hidden_shape),
            "_state": eqx.tree_at(lambda s: s.machine, training.state, training.machine),
            "_rates": training.rates,
            "_rate_factor": training.progress.rate_factor,
        }

    def _headline(self, training: Training) -> str:
        """Say what stands above the progress bar."""
        way = training.machine.coupling.describe(training.config.batch_size)
        return f"{type(self).__name__}: {way}"

    def weight_matrix(self, order: Order = "C") -> NDArray[Any]:
        """Form W as a matrix, visible by hidden units.

        In C order ``X.reshape(n, -1) @ weight_matrix() + hidden_bias_.ravel()`` is the hidden
        field; ``order="F"`` is the paper's Eq. (1).
        """
        check_is_fitted(self)
        return np.asarray(self.machine_.coupling.to_matrix(order))

    @property
    def visible_bias_(self) -> NDArray[Any]:
        """B, of shape visible_shape."""
        return np.asarray(self._fitted_machine("visible_bias_").visible_bias)

    @property
    def hidden_bias_(self) -> NDArray[Any]:
        """C, of shape hidden_shape."""
        return np.asarray(self._fitted_machine("hidden_bias_").hidden_bias)

    def __getstate__(self) -> dict[str, Any]:
        # Pickles hold what was learnt, not what training would need to go on.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_state", "_rates")}


def take_weight(fit_params: dict[str, Any]) -> Any:
    """Take the sample weights out of the other keywords of `fit`, and refuse what is left."""
    weight = fit_params.pop("sample_weight", None)
    if fit_params:
        raise TypeError(
            f"fit: expected the keywords X_val and sample_weight, got "
            f"{', '.join(sorted(fit_params))}."
        )
    return weight
