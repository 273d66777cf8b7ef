"""What the estimators share: scikit-learn's interface around machines and training."""

import math
import os
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import equinox as eqx
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks

from ..learning import (
    ContrastiveDivergence,
    FastPersistentCD,
    LearningState,
    NegativePhase,
    ParallelTempering,
    PersistentCD,
    Rates,
    Rule,
    Scheme,
    Simultaneous,
    automatic_rates,
)
from ..learning.start import base_rate_bias
from ..machine import Coupling, Gaussian, Machine
from ..mps.machine import MPSMachine
from ..tensor.check import check_choice, check_integer, check_positive, check_real, check_shape
from ..tensor.index import Order
from ..training import ArraySource, Settings, StreamSource, Training
from ..training import checkpoint as checkpoints
from ..training.checkpoint import Progress
from ..training.sources import Source
from . import inputs
from .compilation import keep_compiled
from .fitted import Fitted
from .header import plain
from .progress import progress_bar
from .seeds import key_for

MEASURED_ROWS, MEASURED_ENTRIES = 1024, 2**25
"""The most samples, and entries of them, that the start and the automatic rate look at."""


@dataclass(eq=False, repr=False, kw_only=True)
class Options:
    """The parameters that all estimators share; `MPORBM` documents them.

    As a dataclass: its fields are parameters of the constructor, which only stores them.
    """

    visible_shape: Any = None
    visible_units: str = "bernoulli"
    negative_phase: str = "cd"
    n_gibbs: int = 1
    learning_rate: Any = "auto"
    schedule: Any = "constant"
    momentum: float = 0.5
    weight_decay: float = 0.0
    sparsity_target: float | None = None
    sparsity_cost: float = 0.1
    init: str = "data"
    batch_size: int = 100
    n_iter: int = 50
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    on_divergence: Any = "stop"
    checkpoint: Any = None
    checkpoint_interval: int = 1
    feature: str = "probability"
    output: str = "flat"
    verbose: int = 0
    random_state: Any = None


@dataclass(eq=False, repr=False, kw_only=True)
class BoltzmannMachine(CallbackSupportMixin, Fitted, Options, BaseEstimator):
    """The estimator around a machine: parameters and fitting; a subclass says which coupling."""

    hidden_shape: Any = field(default=None, kw_only=False)
    warm_start: bool = False

    # What a subclass says

    @abstractmethod
    def _random_coupling(self, key: Array) -> Coupling:
        """A coupling of small random weights between the layers' shapes."""

    def _data_coupling(self, seed: int, rows: NDArray[Any]) -> Coupling:
        """A coupling of small weights that looks where the samples vary, if there is a way."""
        return self._random_coupling(key_for(seed, 0))

    def _scheme(self) -> Scheme:
        """Which factors one update moves; with one factor there is no choice."""
        return Simultaneous()

    def _rule(self, negative_phase: NegativePhase, **options: Any) -> Rule:
        """How gradients become increments."""
        return Rule(negative_phase, **options)

    def _negative_phases(self) -> tuple[str, ...]:
        """Those to choose from."""
        return ("cd", "pcd", "fpcd", "pt")

    def _gauge(self) -> bool:
        """Whether gradients are those of the natural gauge."""
        return False

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
        self._check_parameters()
        keep_compiled()
        weight = self._take_weight(fit_params)
        source, rows = self._source(X, weight, n_iter=self.n_iter, reset=True)
        source, validation = self._split(source, X_val)
        return self._fit(source, validation, rows, y)

    def _fit(self, source: Source, validation: Source | None, rows: Any, y: Any) -> Self:
        """Train; callbacks are told the rows and y."""
        with checkpoints.owned(self.checkpoint):
            return self._train(source, validation, rows, y)

    def _train(self, source: Source, validation: Source | None, rows: Any, y: Any) -> Self:
        seed = self._restart_random_numbers()
        if self.random_state is None and self.checkpoint and checkpoints.exists(self.checkpoint):
            # Any seed will do, so also that of a training to go on with.
            seed = self._seed = checkpoints.saved_seed(self.checkpoint)
        machine = self._starting_machine(seed, source)
        training = self._training(machine, source, validation, seed)

        context = self._init_callback_context(max_subtasks=self.n_iter)
        context.call_on_fit_task_begin(estimator=self, X=rows, y=y)
        headline = self._headline(machine, training.settings.batch_size)
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
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one pass over some more samples, in their order.

        Velocity and chains go on from call to call. ``learning_rate="auto"`` is settled by the
        samples of the first call, or by `fit`. Schedule, early stopping and checkpoints are those
        of `fit` alone.
        """
        self._check_parameters()
        keep_compiled()
        first = not hasattr(self, "machine_")
        source, _ = self._source(X, sample_weight, n_iter=1, reset=first)
        return self._partial_fit(source)

    def _partial_fit(self, source: Source) -> Self:
        if not hasattr(self, "machine_"):
            seed = self._restart_random_numbers()
            self.n_iter_ = 0
            self.history_: list[dict[str, Any]] = []
            self._set_machine(self._starting_machine(seed, source))
        training = self._training(
            self.machine_,
            source,
            None,
            self._seed,
            continued=getattr(self, "_state", None),
            rates=getattr(self, "_rates", None) if self.learning_rate == "auto" else None,
            progress=Progress(
                epoch=self.n_iter_,
                history=list(self.history_),
                rate_factor=getattr(self, "_rate_factor", 1.0),
            ),
        )
        try:
            training.run()
        finally:
            self._keep(training)
        return self

    def _source(self, X: Any, weight: Any, n_iter: int, reset: bool) -> tuple[Source, Any]:
        """The samples of X, and they themselves as rows if X is an array."""
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
        """The source without the samples that early stopping sets aside, and those."""
        if X_val is not None:
            try:
                rows = inputs.check_rows(self, X_val, reset=False)
                inputs.check_values(rows, self.visible_units)
            except ValueError as error:
                raise ValueError(f"X_val: {error}") from error
            return source, ArraySource(rows)
        if not self.early_stopping:
            return source, None
        if not isinstance(source, ArraySource):
            raise ValueError(
                "X_val: expected samples to stop early by, got None; a stream cannot be split."
            )
        n_samples = len(source.rows)
        n_held = math.ceil(self.validation_fraction * n_samples)
        if n_held >= n_samples:
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: expected to leave samples to "
                f"learn from, but X has {n_samples}; pass X_val or early_stopping=False."
            )
        held = np.zeros(n_samples, bool)
        held[np.linspace(0, n_samples - 1, n_held).astype(int)] = True
        learnt, watched = np.flatnonzero(~held), np.flatnonzero(held)
        return (
            ArraySource(source.rows, source.weight, learnt),
            ArraySource(source.rows, source.weight, watched),
        )

    def _starting_machine(self, seed: int, source: Source) -> Any:
        """Small random weights, or with `warm_start` those that are there."""
        if self._goes_on():
            if self.machine_.visible_shape != self.visible_shape_:
                raise ValueError(
                    f"X: expected samples of shape {self.machine_.visible_shape} to go on from "
                    f"what was learnt (warm_start=True), got {self.visible_shape_}."
                )
            if self.hidden_shape is not None and self._hidden_shape() != self.machine_.hidden_shape:
                raise ValueError(
                    f"hidden_shape={self.hidden_shape}: expected {self.machine_.hidden_shape}, to "
                    f"go on from what was learnt (warm_start=True)."
                )
        # The samples come as they are: a coding that came with a model file is not theirs.
        self.__dict__.pop("coding_", None)
        return self._first_machine(seed, self._measured(source))

    def _first_machine(self, seed: int, rows: Any) -> Any:
        """What training starts with, and the base rates of some samples."""
        binary = self.visible_units == "bernoulli"
        self.base_bias_ = base_rate_bias(rows) if binary else rows.mean(axis=0, dtype=np.float64)
        if self._goes_on():
            return self.machine_
        units = None if binary else Gaussian()
        if self.init == "random":
            return Machine(self._random_coupling(key_for(seed, 0)), visible_units=units)
        coupling = self._data_coupling(seed, rows)
        return Machine(coupling, self.base_bias_, visible_units=units)

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "machine_")

    def _training(
        self,
        machine: Any,
        source: Source,
        validation: Source | None,
        seed: int,
        *,
        continued: LearningState | None = None,
        rates: Rates | None = None,
        progress: Progress | None = None,
    ) -> Training:
        scheme, partial_fit = self._scheme(), progress is not None
        batch_size = self.batch_size
        if isinstance(source, ArraySource) and not partial_fit:
            batch_size = min(batch_size, len(source.used))
        if rates is None:
            rates = self._initial_rates(source, scheme, machine, batch_size, partial_fit)
        rule = self._rule(
            self._phase(rates),
            gauge=self._gauge(),
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            sparsity_target=0.0 if self.sparsity_target is None else self.sparsity_target,
            sparsity_cost=0.0 if self.sparsity_target is None else self.sparsity_cost,
        )
        settings = Settings(
            n_iter=progress.epoch + 1 if progress is not None else self.n_iter,
            batch_size=batch_size,
            schedule="constant" if partial_fit else self.schedule,
            tolerance=getattr(self, "rank_tolerance", 0.0),
            n_iter_no_change=self.n_iter_no_change if self.early_stopping else None,
            on_divergence=self.on_divergence,
            checkpoint=None
            if self.checkpoint is None or partial_fit
            else os.fspath(self.checkpoint),
            checkpoint_interval=self.checkpoint_interval,
            shuffle=not partial_fit,
        )
        return Training(
            scheme,
            rule,
            self._prepared(machine),
            source,
            validation,
            rates,
            seed,
            settings,
            identity=self._identity(),
            continued=continued,
            progress=progress,
        )

    def _initial_rates(
        self,
        source: Source,
        scheme: Scheme,
        machine: Any,
        batch_size: int,
        partial_fit: bool,
    ) -> Rates:
        if self.learning_rate != "auto":
            return Rates(self.learning_rate, self.learning_rate)
        n_updates = None
        n_batches = source.n_batches(batch_size)
        if n_batches is not None and not partial_fit:
            n_updates = self.n_iter * n_batches * scheme.n_updates(machine)
        return automatic_rates(self._measured(source), n_updates)

    def check_mps_form(self) -> None:
        """Refuse samples in MPS form, unless the machine can take them as it is set up."""
        raise TypeError(
            f"X: expected an array for {type(self).__name__}, got an MPSBatch, which only MPORBM "
            f"takes; its full tensors are X.to_tensors()."
        )

    def _measured(self, source: Source) -> Any:
        """Some samples, as many as fit into memory."""
        n_rows = MEASURED_ENTRIES // math.prod(self.visible_shape_)
        return source.head(max(min(n_rows, MEASURED_ROWS), 16))

    def _phase(self, rates: Rates) -> NegativePhase:
        if self.negative_phase == "fpcd":
            return FastPersistentCD(
                self.n_gibbs, rates.coupling, self._gauge(), bias_rate=rates.bias
            )
        phases = {"cd": ContrastiveDivergence, "pcd": PersistentCD, "pt": ParallelTempering}
        return phases[self.negative_phase](self.n_gibbs)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must have been made with to go on from it."""
        silent = {"n_iter", "verbose", "checkpoint", "checkpoint_interval", "feature", "output"}
        silent |= {"random_state", "warm_start"}
        parameters = {
            name: plain(value)
            for name, value in self.get_params(deep=False).items()
            if name not in silent
        }
        # Where rates, or what is dropped, depend on the number of epochs, it is another training.
        changing = self.schedule != "constant" or self.learning_rate == "auto"
        if changing or getattr(self, "scheme", None) == "two-site":
            parameters["n_iter"] = self.n_iter
        return {"class": type(self).__name__, **parameters}

    def _keep(self, training: Training) -> None:
        for name, value in self._learnt(training).items():
            setattr(self, name, value)

    def _learnt(self, training: Training) -> dict[str, Any]:
        """The fitted attributes as a training leaves them."""
        machine = self._finished(training.machine)
        return {
            "machine_": machine,
            "n_iter_": training.progress.epoch,
            "history_": list(training.progress.history),
            "_n_features_out": math.prod(machine.hidden_shape),
            "_state": eqx.tree_at(lambda s: s.machine, training.state, training.machine),
            "_rates": training.rates,
            "_rate_factor": training.progress.rate_factor,
        }

    def _headline(self, machine: Any, batch_size: int) -> str:
        """What stands above the progress bar."""
        return f"{type(self).__name__}: {machine.coupling.plan(batch_size)}"

    def _prepared(self, machine: Any) -> Any:
        """The machine as training needs it."""
        return machine

    def _finished(self, machine: Any) -> Any:
        """The machine as users see it."""
        return machine

    def _set_machine(self, machine: Any) -> None:
        """Become a fitted estimator around a machine."""
        self.machine_ = machine
        self.in_mps_form_ = isinstance(machine, MPSMachine)
        self.visible_shape_ = machine.visible_shape
        self.n_features_in_ = math.prod(machine.visible_shape)
        self._n_features_out = math.prod(machine.hidden_shape)

    # What was learnt

    def weight_matrix(self, order: Order = "C") -> NDArray[Any]:
        """W as a matrix, visible by hidden units.

        In C order ``X.reshape(n, -1) @ weight_matrix() + hidden_bias_.ravel()`` is the hidden
        field; ``order="F"`` is the paper's Eq. (1).
        """
        self._check_tensor_form("weight_matrix")
        return np.asarray(self.machine_.coupling.to_matrix(order))

    @property
    def visible_bias_(self) -> Any:
        """B, of shape visible_shape; an `MPS` if the machine is in MPS form."""
        bias: Any = self._fitted_machine("visible_bias_").visible_bias
        return bias if self.in_mps_form_ else np.asarray(bias)

    @property
    def hidden_bias_(self) -> NDArray[Any]:
        """C, of shape hidden_shape."""
        return np.asarray(self._fitted_machine("hidden_bias_").hidden_bias)

    # scikit-learn

    def __getstate__(self) -> dict[str, Any]:
        # Pickles hold what was learnt, not what training would need to go on.
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_state", "_rates")}

    def _check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        check_choice("visible_units", self.visible_units, ("bernoulli", "gaussian"))
        check_choice("negative_phase", self.negative_phase, self._negative_phases())
        check_choice("schedule", self.schedule, ("constant", "linear", "cosine"))
        check_choice("init", self.init, ("data", "random"))
        check_choice("on_divergence", self.on_divergence, ("stop", "back-off"))
        check_choice("feature", self.feature, ("probability", "field", "state"))
        check_choice("output", self.output, ("flat", "tensor"))
        if isinstance(self.learning_rate, str) and self.learning_rate != "auto":
            raise ValueError(
                f"learning_rate={self.learning_rate!r}: expected 'auto' or a number above 0."
            )
        if self.learning_rate != "auto":
            check_positive("learning_rate", self.learning_rate)
        for name in ("n_gibbs", "batch_size", "n_iter_no_change", "checkpoint_interval"):
            check_integer(name, getattr(self, name))
        check_integer("n_iter", self.n_iter, minimum=0)
        for name, largest in (("momentum", 1.0), ("weight_decay", math.inf)):
            _check_range(name, getattr(self, name), 0.0, largest)
        _check_range("sparsity_cost", self.sparsity_cost, 0.0, math.inf)
        if self.sparsity_target is not None:
            _check_range("sparsity_target", self.sparsity_target, 0.0, 1.0)
        if not 0.0 < check_real("validation_fraction", self.validation_fraction) < 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction}: expected a number above 0 and "
                f"below 1."
            )
        for name in ("early_stopping", "warm_start"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise TypeError(f"{name}={value!r}: expected True or False.")
        if not isinstance(self.checkpoint, (str, os.PathLike, type(None))):
            raise TypeError(
                f"checkpoint={self.checkpoint!r}: expected the path of a file or None, got "
                f"{type(self.checkpoint).__name__}."
            )
        if self.checkpoint is not None:
            folder = os.path.dirname(os.path.abspath(self.checkpoint))
            if not os.path.isdir(folder):
                raise FileNotFoundError(
                    f"checkpoint={os.fspath(self.checkpoint)!r}: expected a file in an existing "
                    f"folder, but there is no {folder}."
                )
            if self.warm_start:
                raise ValueError(
                    "checkpoint: expected None with warm_start=True, which would find the "
                    "checkpoint of the training before and do nothing."
                )

    def _hidden_shape(self) -> tuple[int, ...]:
        """The hidden shape asked for, or a third of each visible mode, as many modes."""
        if self.hidden_shape is None:
            return tuple(-(-size // 3) for size in self.visible_shape_)
        if np.ndim(self.hidden_shape) == 0:
            return (check_integer("hidden_shape", self.hidden_shape),)
        return check_shape("hidden_shape", self.hidden_shape)

    @staticmethod
    def _take_weight(fit_params: dict[str, Any]) -> Any:
        weight = fit_params.pop("sample_weight", None)
        if fit_params:
            raise TypeError(
                f"fit: expected the keywords X_val and sample_weight, got "
                f"{', '.join(sorted(fit_params))}."
            )
        return weight


def _check_range(name: str, value: Any, smallest: float, limit: float) -> None:
    number = check_real(name, value)
    if not smallest <= number < limit:
        raise ValueError(f"{name}={number}: expected a number in [{smallest:g}, {limit:g}).")
