"""Runs of experiments: each is done once, its outcome kept in a file, on all cores."""

import importlib
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mporbm.evaluation.processes import run_in_processes
from mporbm.evaluation.run_cache import Outcome, outcome_path, read_outcome, write_outcome
from mporbm.training import DivergenceWarning
from mporbm.training.interrupts import Interrupts


@dataclass(frozen=True)
class Run:
    """One piece of an experiment, which a single process does.

    The outcome is ``run(**configuration)`` of a module, which also has a number ``REVISION``, to be
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
        """Name the file of the outcome by a hash of what was asked."""
        asked = {**self.configuration, "revision": _module(self.module).REVISION}
        return outcome_path(folder, self.module.rpartition(".")[2], asked)

    def outcome(self, folder: Path) -> Outcome | None:
        """Read the outcome that was kept before, if there is one."""
        return read_outcome(self.path(folder))

    def perform(self, folder: Path) -> None:
        """Do the run, and keep its outcome."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            # Outcomes tell of it where it matters.
            warnings.simplefilter("ignore", DivergenceWarning)
            outcome = _module(self.module).run(**self.configuration)
        about = {"module": self.module, "configuration": dict(self.configuration)}
        write_outcome(self.path(folder), about, outcome, time.perf_counter() - start)


def perform_all(
    runs: Iterable[Run], folder: Path, *, n_jobs: int | None = None, shown: bool = True
) -> None:
    """Do all runs whose outcome is not there yet.

    Every process has cores of its own. A run that fails loses only itself: the others are
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
        with Interrupts() as interrupts:
            work = partial(Run.perform, folder=folder)
            for run, error in run_in_processes(missing, work, n_jobs=n_jobs, poll=interrupts.obey):
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


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _described(run: Run) -> str:
    values = [str(value) for value in run.configuration.values() if isinstance(value, str | int)]
    return " ".join([run.module.rpartition(".")[2], *values])


def progress_bar(shown: bool) -> Progress:
    """Make a bar on the standard error: how much is done, the time, and what was done last."""
    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
