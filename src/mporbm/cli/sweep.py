"""`mporbm sweep`: compare many settings."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from . import files
from .fit import check_bytes
from .grid import Grid, read_grid
from .options import Json, Quiet
from .report import Report


def sweep(
    config: Annotated[
        Path,
        typer.Argument(
            metavar="CONFIG.toml",
            help="Options of mporbm fit, under their names; data, the samples; and a table "
            "\\[sweep] of options with lists of values. Paths begin at the folder of this file.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The folder of results. What is there already is not done again: start the same "
            "command after an interruption, or with more values or seeds, and it goes on.",
        ),
    ],
    n_jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many processes work at once, each on its share of the cores; one for every "
            "core by default.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Let the workers of this Dask scheduler do the runs "
            "(pip install 'mporbm\\[dask]').",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train with every combination of some options, with several seeds each, and compare.

    Settings are compared on validation samples: x_val, or a share of the samples
    (validation_fraction) that each seed chooses anew. By the pseudo-log-likelihood, for Gaussian
    units the reconstruction error, or, where there are labels (y), by the error of nearest
    neighbours among the features; measure names another one. Writes FOLDER/results.csv,
    FOLDER/runs.csv, FOLDER/sweep.png, and FOLDER/best.toml for mporbm fit --config.
    """
    report = Report(quiet, as_json)
    if dask is not None and n_jobs is not None:
        raise ValueError(f"n_jobs={n_jobs}: expected none with dask, whose workers are as many.")
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out}: expected a folder, but it is a file.")
    grid = read_grid(config)
    trials, samples = _trials(grid, _read(grid))
    out.mkdir(parents=True, exist_ok=True)
    from ..training.file_lock import locked

    with locked(out):
        _sweep(report, grid, trials, samples, out, n_jobs, dask)


def _read(grid: Grid) -> dict[str, Any]:
    """The arrays that a sweep is about; files that are missing are missed before JAX is loaded."""
    arrays: dict[str, Any] = {"X": files.read_whole(grid.data), "X_val": None}
    arrays |= {"y": None, "y_val": None}
    if grid.x_val is not None:
        arrays["X_val"] = files.read_whole(grid.x_val)
        if arrays["X_val"].shape[1:] != arrays["X"].shape[1:]:
            raise ValueError(
                f"{grid.x_val}: expected samples of shape {arrays['X'].shape[1:]}, as {grid.data} "
                f"has, got {arrays['X_val'].shape[1:]}."
            )
    if grid.y is not None:
        arrays["y"] = files.read_labels(grid.y, len(arrays["X"]))
    if grid.y_val is not None:
        arrays["y_val"] = files.read_labels(grid.y_val, len(arrays["X_val"]))
    return arrays


def _trials(grid: Grid, arrays: dict[str, Any]) -> tuple[list[Any], Any]:
    """The runs, one for each seed of each setting, and the samples."""
    from ..sweep import Samples, Trial

    made = [grid.made(setting) for setting in grid.settings]
    if any(coding is None and e.visible_units == "bernoulli" for e, coding in made):
        check_bytes(grid.data, arrays["X"])
    trials = [
        Trial(grid.options(setting), seed, estimator, coding)
        for setting, (estimator, coding) in zip(grid.settings, made, strict=True)
        for seed in grid.seeds
    ]
    return trials, Samples(**arrays, validation_fraction=made[0][0].validation_fraction)


def _sweep(
    report: Report,
    grid: Grid,
    trials: list[Any],
    samples: Any,
    out: Path,
    n_jobs: int | None,
    dask: str | None,
) -> None:
    """Do what is missing, write what was found, and say so."""
    from ..sweep import perform_all, rank
    from . import ranking as shown

    try:
        with _ended_by_signals():
            outcomes = perform_all(
                trials,
                samples,
                out / "runs",
                n_jobs=n_jobs,
                dask=dask,
                shown=report.shown and sys.stderr.isatty(),
            )
    except (KeyboardInterrupt, SystemExit):
        report.note(f"stopped; the same command goes on from what is done, which {out} keeps")
        raise
    parts = zip(*[iter(outcomes)] * len(grid.seeds), strict=True)
    ranking = rank(list(zip(grid.settings, parts, strict=True)), grid.measure)
    shown.write(out, grid, ranking)
    report.finish(shown.facts(out, ranking), shown.table(ranking), shown.sentence(out, ranking))
    shown.complain(out, grid, ranking)


@contextmanager
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
