"""The training loop: the only place that knows of epochs, files, progress and signals."""

import math
import os
import time
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree
from threadpoolctl import threadpool_limits

from ..learning import Algorithm, LearningState, Rates
from ..learning.averaging import Average
from ..learning.monitor import weight_norm
from ..learning.rates import Schedule, schedule_factor
from ..machine import Model
from ..tensor.arrays import AnyArray, HostTensor
from . import checkpoint
from .block import BlockInfo, Pace, run_block
from .devices import Team, broadcast_from_first, common_range, compiled
from .interrupts import Interrupts
from .reservoir import Reservoir
from .sources import ArraySource, Source
from .watch import DivergenceError, Watch

MAX_BACK_OFFS = 10


class DivergenceWarning(UserWarning):
    """A machine went out of bounds, or worse than independent units; the last good one was kept."""


class TrainingConfig(eqx.Module):
    """How long to train, and what to do on the way."""

    n_iter: int
    batch_size: int
    schedule: Schedule
    n_iter_no_change: int | None
    """Stop after so many epochs without a better validation score; None trains to the end."""
    on_divergence: Literal["stop", "back-off"]
    checkpoint: str | None
    checkpoint_interval: int
    shuffle: bool = True


class Specification(NamedTuple):
    """A training but for its data: what starts, how it learns, how fast, how long."""

    machine: Model
    algorithm: Algorithm
    rates: Rates
    config: TrainingConfig
    seed: int
    identity: dict[str, object]
    """What a checkpoint must have been made with to go on from it."""
    base_bias: HostTensor | None = None
    """The bias of independent units at the base rates, to watch the likelihood by."""


class Training:
    """One run of training, from its first epoch or from a checkpoint."""

    def __init__(
        self,
        specification: Specification,
        source: Source,
        validation: Source | None = None,
        *,
        continued: tuple[LearningState, Average | None] | None = None,
        progress: checkpoint.Progress | None = None,
    ):
        machine, algorithm, rates, config, seed, identity, base_bias = specification
        self.algorithm, self.rates, self.seed = algorithm, rates, seed
        self.source, self.validation, self.config = source, validation, config
        self.key = _own_key(jax.random.key(seed))
        self.state = _init(algorithm, self.key, machine, config.batch_size)
        averages = algorithm.rule.centred and algorithm.scheme.can_average
        self.average = Average.begin(self.state.machine) if averages else None
        if continued is not None and _alike(continued, (self.state, self.average)):
            self.state, self.average = continued
        self.progress = progress or checkpoint.Progress()
        self._n_before = self.progress.epoch
        self.best_machine: Model | None = None
        self.diverged = False
        # A stream has no shares; who has not asked for several processes trains on one device.
        shared = isinstance(source, ArraySource) or jax.process_count() > 1
        self._team = Team.of(config.batch_size) if shared else None
        n_visible = math.prod(machine.visible_shape)
        self._block = compiled(run_block, n_visible * math.prod(machine.hidden_shape))
        chains = self._chains(self.state)
        self.reservoir = None if chains is None else Reservoir.begin(machine, chains)
        self._watch = Watch(algorithm, machine, source, validation, config.batch_size, base_bias)
        self.identity = {
            **identity,
            "data": source.fingerprint(),
            "validation": None if validation is None else validation.fingerprint(),
            "seed": seed,
        }
        if config.checkpoint is not None and checkpoint.exists(config.checkpoint):
            self._resume(config.checkpoint)

    @property
    def machine(self) -> Model:
        """The machine as it is now, or its average; with early stopping, the best one so far."""
        if self.best_machine is not None:
            return self.best_machine
        return self.state.machine if self.average is None else self.average.machine

    @property
    def reached(self) -> tuple[LearningState, Average | None]:
        """What another training needs to go on from `machine`, as its `continued`."""
        state, average, best = self.state, self.average, self.best_machine
        if best is not None:
            state = eqx.tree_at(lambda s: s.machine, state, best)
            average = None if average is None else average.restart(best)
        return state, average

    def run(self, on_epoch: Callable[["Training"], bool] | None = None) -> None:
        """Train until the last epoch, an early stop, a divergence or a signal.

        `on_epoch` is called after every epoch and ends the training by returning True.
        """
        # LAPACK's threads spin between its short calls and take the cores from XLA's.
        with Interrupts() as interrupts, threadpool_limits(1, user_api="blas"):
            while self.progress.epoch < self.config.n_iter and not self.progress.stopped:
                if not self._epoch(interrupts):
                    break
                progress, patience = self.progress, self.config.n_iter_no_change
                if patience is not None and self.validation is not None:
                    progress.stopped = progress.epoch - progress.best_epoch >= patience
                ended = progress.stopped or progress.epoch == self.config.n_iter
                if ended or progress.epoch % self.config.checkpoint_interval == 0:
                    self._save()
                if broadcast_from_first(on_epoch is not None and on_epoch(self)):
                    break
                if self._interrupted(interrupts):
                    break
            if interrupts.signal is not None:
                self._save()
                interrupts.obey()

    def _epoch(self, interrupts: Interrupts) -> bool:
        """One epoch, again with smaller rates if it diverges; whether to go on."""
        while True:
            started = time.perf_counter()
            begin = self.state, self.average, self.reservoir, self.progress.copy()
            fault = "fields grew out of bounds"
            if self._run_blocks(interrupts):
                fault = self._record(time.perf_counter() - started)
            if not broadcast_from_first(bool(fault)):
                return True
            self.state, self.average, self.reservoir, self.progress = begin
            rate = float(self.rates.coupling) * self.progress.rate_factor
            epoch, tried = self.progress.epoch + 1, self.progress.n_back_offs == MAX_BACK_OFFS
            if tried or self.config.on_divergence == "stop" or not self.source.restartable:
                after = f" after {MAX_BACK_OFFS} back-offs" if tried else ""
                advice = f"Try learning_rate={rate / 4.0:.2g}, or on_divergence='back-off'."
                warnings.warn(
                    f"learning_rate={rate:.3g}: {fault} in epoch {epoch}{after}; "
                    f"the parameters before it were kept and training stopped. "
                    f"{'Check the scale of the data.' if tried else advice}",
                    DivergenceWarning,
                    stacklevel=2,
                )
                self.diverged = True
                return False
            self.progress.n_back_offs += 1
            self.progress.rate_factor /= 4.0
            # The larger rate is still in the velocity.
            still = jax.tree.map(jnp.zeros_like, self.state.velocity)
            self.state = eqx.tree_at(lambda s: s.velocity, self.state, still)

    def _run_blocks(self, interrupts: Interrupts) -> bool:
        """The blocks of an epoch from where it stands; whether all were healthy."""
        progress, batch_size, team = self.progress, self.config.batch_size, self._team
        epoch_key = jax.random.fold_in(self.key, np.uint32(progress.epoch + 1))
        rng = np.random.default_rng([self.seed, progress.epoch]) if self.config.shuffle else None
        state, average = self.state, self.average
        common, share = (self.algorithm, epoch_key, self._pace()), None
        if team is not None:
            state = team.spread(self.algorithm.negative_phase, state)
            common, average = team.everywhere((common, average))
            share = team.share(batch_size)
        algorithm, epoch_key, pace = common
        pending: BlockInfo | None = None
        for block in self.source.blocks(rng, batch_size, progress.n_blocks, share):
            # While a block is computed the next one is read; its verdict is asked for after that.
            if pending is not None and not self._account(pending):
                return False
            if self._interrupted(interrupts):
                self._take(state, average)
                self._save()
                interrupts.obey()
            first = np.int32(progress.n_blocks * len(block.weight))
            if team is None:
                placed, first = jax.device_put((tuple(block), first))
            else:
                placed, first = (None, *team.batches(tuple(block[1:]))), team.everywhere(first)
            state, average, pending = self._block(
                algorithm, state, average, placed, epoch_key, first, pace, team
            )
            progress.n_blocks += 1
            self._keep_chains(state, len(block.weight))
        self._take(state, average)
        return pending is None or self._account(pending)

    def _take(self, state: LearningState, average: Average | None) -> None:
        """Note where blocks have led to; between epochs every process has everything."""
        if self._team is not None:
            state, average = self._team.gathered((state, average))
        self.state, self.average = state, average

    @property
    def chains(self) -> AnyArray | None:
        """Where samples can start: states of the chains at several moments of the training."""
        kept = None if self.reservoir is None else self.reservoir.kept
        return self._chains(self.state) if kept is None or len(kept) == 0 else kept

    def _chains(self, state: LearningState) -> Array | None:
        return self.algorithm.negative_phase.visible_states(state.chains)

    def _keep_chains(self, state: LearningState, n_batches: int) -> None:
        """Keep the states of the chains after a block of so many batches, if it is time to."""
        total = self.source.n_batches(self.config.batch_size)
        chains = self._chains(state)
        if self.reservoir is None or chains is None or total is None:
            return
        done = self.progress.n_blocks * n_batches / total
        shares = [
            (self.progress.epoch + min(part, 1.0)) / self.config.n_iter
            for part in (done - n_batches / total, done)
        ]
        if self.reservoir.is_due(*shares):
            whole = chains if self._team is None else self._team.gathered(chains)
            self.reservoir = self.reservoir.add(whole)

    def _pace(self) -> Pace:
        """Say how fast an epoch learns: rates change from batch to batch, if it has a length."""
        n_batches, factor = self.source.n_batches(self.config.batch_size), self._rate_factor()
        change = 0.0 if n_batches is None else (self._rate_factor(1) - factor) / n_batches
        rates = [float(self.rates.coupling), float(self.rates.bias)]
        return Pace(
            Rates(*(rate * factor for rate in rates)),
            Rates(*(rate * change for rate in rates)),
            self._watch.field_limit,
        )

    def _interrupted(self, interrupts: Interrupts) -> bool:
        """Whether any process has received a signal, which all then obey."""
        number = int(common_range(0, interrupts.signal or 0)[1])
        if number:
            interrupts.signal = number
        return bool(number)

    def _rate_factor(self, n_later: int = 0) -> float:
        """What back-offs and the schedule make of the rates when an epoch begins."""
        share = (self.progress.epoch + n_later) / max(self.config.n_iter, 1)
        return self.progress.rate_factor * schedule_factor(self.config.schedule, share)

    def _account(self, info: BlockInfo) -> bool:
        self.progress.gradient_norm += float(info.gradient_norm)
        self.progress.n_batches += int(info.n_batches)
        return bool(info.healthy)

    def _record(self, seconds: float) -> str:
        """End an epoch: truncate, watch, remember the best; say what is wrong, if anything."""
        progress = self.progress
        norm = float(weight_norm(self.state.machine.coupling))
        if not np.isfinite(norm):
            return "weights grew out of bounds"
        before = self.state
        done = (progress.epoch + 1) / self.config.n_iter
        self.state = self.algorithm.scheme.end_epoch(self.algorithm, before, done)
        if self.state is not before:
            norm = float(weight_norm(self.state.machine.coupling))
            if self.average is not None:
                self.average = self.average.restart(self.state.machine)
        machine = self.state.machine if self.average is None else self.average.machine
        key = jax.random.fold_in(self.key, np.uint32(2**31 + progress.epoch))
        n_steps = self._watch.n_steps(
            progress.n_batches,
            progress.epoch + 1 - self._n_before,
            self.config.n_iter - self._n_before,
        )
        try:
            seen = self._watch.look(key, self.state, machine, n_steps)
        except DivergenceError as fault:
            return str(fault)
        entry: checkpoint.Entry = {
            "epoch": progress.epoch + 1,
            "learning_rate": float(self.rates.coupling) * self._rate_factor(),
            **seen,
            "gradient_norm": progress.gradient_norm / max(progress.n_batches, 1),
            "weight_norm": norm,
            "seconds": seconds,
        }
        if (ranks := machine.coupling.used_ranks) is not None:
            entry["ranks"] = list(ranks)
        progress.end_epoch(entry)
        # By one and the same measure: the likelihood, if it is known after every epoch.
        names = ["validation_log_likelihood", "validation_score"]
        score = next((seen.get(name) for name in names if name in progress.history[0]), None)
        if self.config.n_iter_no_change is None or not isinstance(score, float):
            return ""
        # Estimates differ by roundings, but no process may stop alone.
        score = broadcast_from_first(score)
        if score > progress.best_score:
            progress.best_score, progress.best_epoch = score, progress.epoch
            self.best_machine = machine
        return ""

    def _save(self) -> None:
        if self.config.checkpoint is not None and jax.process_index() == 0:
            checkpoint.save(
                self.config.checkpoint,
                {
                    "state": self.state,
                    "average": self.average,
                    "best": self.best_machine,
                    "reservoir": self.reservoir,
                },
                self.progress,
                self.identity,
                [float(self.rates.coupling), float(self.rates.bias)],
            )

    def _resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint, which every process reads."""
        machine = self.state.machine
        template = {"state": self.state, "average": self.average, "best": machine}
        template["reservoir"] = self.reservoir
        trees, self.progress, rates = checkpoint.load(path, template, self.identity)
        self.state, self.average, self.best_machine = (
            trees[name] for name in ("state", "average", "best")
        )
        self.reservoir = trees["reservoir"]
        self.rates = Rates(*rates)
        first = broadcast_from_first(self.progress.epoch)
        if first != self.progress.epoch:
            raise ValueError(
                f"checkpoint={os.fspath(path)!r}: expected the same file in all processes, got one "
                f"of epoch {self.progress.epoch} and one of {first}; put it into a folder that all "
                f"of them share."
            )


@jax.jit
def _own_key(key: Array) -> Array:
    """The key of training among those of a seed; compiled, for its parts would be one by one."""
    return jax.random.split(key, 3)[1]


@eqx.filter_jit
def _init(algorithm: Algorithm, key: Array, machine: Model, n_chains: int) -> LearningState:
    return algorithm.init(jax.random.fold_in(key, 0), machine, n_chains)


def _alike(one: PyTree, other: PyTree) -> bool:
    """Whether two pytrees have the same structure, shapes and types."""
    shapes = [jax.tree.map(lambda x: (x.shape, str(x.dtype)), tree) for tree in (one, other)]
    return bool(shapes[0] == shapes[1])
