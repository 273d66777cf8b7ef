"""Runs of experiments: each is done once, its outcome kept in a file, on all cores."""

import importlib
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mporbm.evaluation.run_cache import Outcome, outcome_path, read_outcome, write_outcome
from mporbm.training import DivergenceWarning
from mporbm.training.signals import Interrupts


@dataclass(frozen=True)
class Run:
    """One piece of an experiment, which a single process does.

    Its outcome is ``run(**configuration)`` of a module, which has a number ``REVISION``, too: to be
    raised when outcomes change, so that those that were kept are made again.

    Parameters
    ----------
    module
        The full name of the module.
    configuration
        The arguments, as JSON can hold them, the seed among them.
    cost
        About how long it takes, in any unit that all runs share: for the time left.
    """

    module: str
    configuration: Mapping[str, Any] = field(hash=False)
    cost: float = field(default=1.0, compare=False)

    def path(self, folder: Path) -> Path:
        """The file of its outcome: its name is a hash of what was asked."""
        asked = {**self.configuration, "revision": _module(self.module).REVISION}
        return outcome_path(folder, self.module.rpartition(".")[2], asked)

    def outcome(self, folder: Path) -> Outcome | None:
        """What was found before, if it was."""
        return read_outcome(self.path(folder))

    def perform(self, folder: Path) -> None:
        """Do it, and keep its outcome."""
        start = time.perf_counter()
        outcome = _module(self.module).run(**self.configuration)
        about = {"module": self.module, "configuration": dict(self.configuration)}
        write_outcome(self.path(folder), about, outcome, time.perf_counter() - start)


def perform_all(
    runs: Iterable[Run], folder: Path, *, n_jobs: int | None = None, shown: bool = True
) -> None:
    """Do all runs whose outcome is not there yet.

    Every process has a core of its own. A run that fails loses only itself: the others are
    finished. Whatever is killed, what was done is found when all is asked for again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = list({run.path(folder): run for run in runs}.values())
    missing = [run for run in wanted if run.outcome(folder) is None]
    # The longest first, so that no core waits for another in the end.
    missing.sort(key=lambda run: -run.cost)
    with progress_bar(shown) as progress:
        task = progress.add_task("", total=sum(run.cost for run in wanted))
        progress.advance(task, sum(run.cost for run in wanted) - sum(run.cost for run in missing))
        failures = []
        # An exception out of the blue could leave locks behind for which the pool waits in vain.
        with Interrupts() as interrupts:
            for run, error in _performed(missing, folder, n_jobs, interrupts):
                progress.advance(task, run.cost)
                progress.update(task, description=_described(run))
                if error is not None:
                    failures.append((run, error))
            interrupts.obey()
    if failures:
        run, error = failures[0]
        raise ChildProcessError(
            f"{len(failures)} of {len(wanted)} runs failed, the others are kept in {folder}; the "
            f"first is {_described(run)}: {type(error).__name__}: {error}"
        ) from error


def available_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _performed(
    missing: Sequence[Run], folder: Path, n_jobs: int | None, interrupts: Interrupts
) -> Iterable[tuple[Run, Exception | None]]:
    """Each run when it is done, with its error if it failed."""
    cores = available_cores()[:n_jobs]
    if not missing:
        return
    # Processes are started anew: JAX has threads, with which a fork can hang.
    context = multiprocessing.get_context("spawn")
    free = context.Queue()
    for core in cores:
        free.put(core)
    pool = ProcessPoolExecutor(
        min(len(cores), len(missing)), context, initializer=_start, initargs=(free,)
    )
    try:
        futures = {pool.submit(run.perform, folder): run for run in missing}
        while futures:
            done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
            interrupts.obey()
            for future in done:
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield futures.pop(future), error
    finally:
        # Asked to end, a process would go on with the next run; outcomes are written at once.
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


def _start(free: Any) -> None:
    """Give this process a core of its own."""
    # JAX and BLAS then start one thread each.
    core = free.get()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    # Outcomes tell of it where it matters.
    warnings.simplefilter("ignore", DivergenceWarning)
    # The process that waits decides what an interruption means, and is not outlived.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _described(run: Run) -> str:
    values = [str(value) for value in run.configuration.values() if isinstance(value, str | int)]
    return " ".join([run.module.rpartition(".")[2], *values])


def progress_bar(shown: bool) -> Progress:
    """How much is done, in which time, and what was done last; on the standard error."""
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
