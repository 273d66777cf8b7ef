"""`mporbm sweep`: compare many settings."""

import multiprocessing
import os
import time
import uuid
from collections.abc import Callable
from multiprocessing import connection
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Annotated

import typer

from ..evaluation.processes import available_cores, share_cores, start_worker
from .options import Report

SECONDS_BETWEEN_LOOKS = 1.0
"""How often progress is shown, and signals are obeyed."""
SECONDS_TO_END = 5.0
"""How long processes have to end by themselves when they are told to."""


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
    *,
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
    report: Report,
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

    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out}: expected a folder, but it is a file.")
    asked = read_config(config)
    samples = asked.read_samples()
    from ..sweep import Search, rank
    from ..training.interrupts import Interrupts

    search = Search(asked.plan, samples, out, session or f"{os.getpid()}-{uuid.uuid4().hex}")
    if session is not None:
        with Interrupts() as interrupts:
            search.work(interrupts.obey)
        return
    from .sweep_report import complain, facts, sentence, table, write_results

    command = ["sweep", str(config), "--out", str(out), "--session", search.session, "--quiet"]
    n_jobs = n_jobs or len(available_cores())
    try:
        with Interrupts() as interrupts, report.busy("") as status:

            def look() -> None:
                interrupts.obey()
                if status is not None:
                    to_go = len(search.missing()) + search.n_to_choose()
                    status.update(f"{to_go} settings to go")

            search.bury()
            while (missing := search.missing()) or search.n_to_choose():
                look()
                search.enqueue(missing)
                n_processes = min(n_jobs, len(missing) + search.n_to_choose())
                if not search.has_work():
                    # Other commands do what is left.
                    time.sleep(SECONDS_BETWEEN_LOOKS)
                elif n_processes == 1:
                    search.work(look)
                else:
                    _work(command, n_processes, look)
                search.bury()
            look()
    except (KeyboardInterrupt, SystemExit):
        report.note(f"stopped; the same command goes on from what is done, which {out} keeps")
        raise
    ranking = rank(search.outcomes(), asked.plan.measure)
    write_results(out, asked, ranking)
    report.finish(facts(out, ranking), table(ranking), sentence(out, ranking))
    complain(out, asked, ranking)


def _work(command: list[str], n_jobs: int, look: Callable[[], None]) -> None:
    """Let processes work until nothing waits; meanwhile look what they have done."""
    # Processes are started anew: JAX has threads, with which a fork can hang.
    context = multiprocessing.get_context("spawn")
    shares: SimpleQueue[list[int]] = context.SimpleQueue()
    workers = [context.Process(target=_worker, args=(shares, command)) for _ in range(n_jobs)]
    try:
        for worker, share in zip(workers, share_cores(n_jobs), strict=True):
            shares.put(share)
            worker.start()
        while alive := [worker.sentinel for worker in workers if worker.is_alive()]:
            connection.wait(alive, SECONDS_BETWEEN_LOOKS)
            look()
    finally:
        started = [worker for worker in workers if worker.pid is not None]
        for worker in started:
            worker.terminate()
        deadline = time.monotonic() + SECONDS_TO_END
        for worker in started:
            worker.join(max(deadline - time.monotonic(), 0.0))
            worker.kill()
            worker.join()
    for worker in workers:
        # One that was killed has failed with its run; others have said why.
        if worker.exitcode is not None and worker.exitcode > 0:
            raise ChildProcessError(f"a process of the sweep has ended with {worker.exitcode}")


def _worker(shares: "SimpleQueue[list[int]]", command: list[str]) -> None:
    from . import main

    start_worker(shares)
    main(command)
