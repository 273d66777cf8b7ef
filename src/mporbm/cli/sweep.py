"""`mporbm sweep`: compare many settings."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Json, Quiet
from .processes import available_cores, end_processes, end_with_parent, pin_to_cores
from .report import Report

SECONDS_BETWEEN_LOOKS = 2.0
"""How often progress is shown."""


def sweep(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG.toml",
            help="Options of mporbm fit, under their names; data, the samples; and a table "
            "\\[sweep] of options with lists of values, or ranges of numbers. Paths begin at the "
            "folder of this file.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder of results. What is there already is not done again: start the same "
            "command after an interruption, or with more values or seeds, and it goes on. Start "
            "it several times, also on other computers that share the folder, and they share the "
            "work.",
        ),
    ],
    n_jobs: Annotated[
        int | None,
        typer.Option(
            "--n-jobs",
            "--jobs",
            min=1,
            help="How many processes work at once, each on its share of the cores; one for every "
            "core by default.",
        ),
    ] = None,
    session: Annotated[str | None, typer.Option(hidden=True)] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    r"""Train with many settings of some options, with several seeds each, and compare.

    Tries every combination of the values of a table \[sweep]; or, where it has ranges such as
    learning_rate = {low = 0.001, high = 0.1, log = true}, n_settings of them (20 by default),
    chosen by Optuna (sampler = "tpe" or "random"), which gives up those that begin poorly.

    Settings are compared on validation samples: x_val, or a share of the samples
    (validation_fraction) that each seed chooses anew. By the pseudo-log-likelihood, for Gaussian
    units the reconstruction error, or, where there are labels (y), by the error of nearest
    neighbours among the features; measure names another one. Writes FOLDER/results.csv,
    FOLDER/runs.csv, FOLDER/sweep.png, and FOLDER/best.toml for mporbm fit --config.
    """
    from .sweep_config import read_config

    if session is not None:
        end_with_parent(int(session.partition("-")[0]))
    report = Report(quiet, as_json)
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out}: expected a folder, but it is a file.")
    asked = read_config(config)
    samples = asked.read_samples()
    from ..sweep import Search, rank
    from .sweep_report import complain, facts, sentence, table, write_results

    search = Search(asked.plan, samples, out, session or f"{os.getpid()}-{uuid.uuid4().hex}")
    if session is not None:
        search.work()
        return
    command = [str(config), "--out", str(out), "--session", search.session, "--quiet"]
    n_jobs = n_jobs or len(available_cores())
    try:
        with _ended_by_signals(), report.busy("") as status:
            search.bury()
            while (missing := search.missing()) or search.n_to_choose():
                search.enqueue(missing)
                _work(search, command, min(n_jobs, len(missing) + search.n_to_choose()), status)
                search.bury()
    except (KeyboardInterrupt, SystemExit):
        report.note(f"stopped; the same command goes on from what is done, which {out} keeps")
        raise
    ranking = rank(search.outcomes(), asked.plan.measure)
    write_results(out, asked, ranking)
    report.finish(facts(out, ranking), table(ranking), sentence(out, ranking))
    complain(out, asked, ranking)


def _work(search: Any, command: list[str], n_jobs: int, status: Any) -> None:
    """Let `n_jobs` processes work until nothing waits; a single one is this one."""
    if n_jobs == 1:
        search.work()
        return
    workers: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        stack.callback(end_processes, workers)
        for number in range(n_jobs):
            workers.append(subprocess.Popen([sys.executable, "-m", "mporbm", "sweep", *command]))
            pin_to_cores(workers[-1].pid, number, n_jobs)
        looked = 0.0
        while any(worker.poll() is None for worker in workers):
            if status is not None and time.monotonic() - looked > SECONDS_BETWEEN_LOOKS:
                status.update(f"{len(search.missing()) + search.n_to_choose()} settings to go")
                looked = time.monotonic()
            time.sleep(0.1)
    for worker in workers:
        # One that was killed has failed with its run; others have said why.
        if worker.returncode > 0:
            raise ChildProcessError(f"a process of the sweep has ended with {worker.returncode}")


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within this context SIGTERM ends as SIGINT does: by an exception."""

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
