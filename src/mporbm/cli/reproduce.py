"""The command that repeats the paper's experiments."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .options import Json, Quiet
from .report import Report


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Which experiments, by their names in the paper: tables1-3, table4, figure7, "
            "table5, table6, figures8-9, table7; or beyond. All of them by default; quick ones "
            "but for beyond, which takes as long as all others.",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="Full: the paper's five data sets, sizes and ranks, with 10 random splits; takes "
            "hours, and 130 MB of data. Quick: some minutes, on 5000 MNIST images that come with "
            "a Python package (pip install 'mporbm\\[demo]').",
        ),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Another number of random splits.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The folder of results. What is there already is not done again: start the same "
            "command after an interruption, and it goes on.",
        ),
    ] = Path("reproduced"),
    n_jobs: Annotated[
        int | None,
        typer.Option(min=1, help="How many processes work at once; one for every core by default."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Repeat the experiments of the paper, and write a report.

    Classification by hidden features (table4), the error against the MPO-rank (figure7), image
    completion (table6, figures8-9) and denoising (table7), each beside the paper's numbers and
    what needs no machine; then deep machines and machines with labels (beyond). Writes
    DIR/report.html, which needs nothing else, DIR/results.json and DIR/figures.

    Data sets are looked for in the folder that the environment variable MPORBM_DATA names, then
    in a cache, and are else downloaded, but for DrivFace.
    """
    from reproduction import EXPERIMENTS
    from reproduction import report as page
    from reproduction import reproduce as perform

    report = Report(quiet, as_json)
    for name in names or []:
        if name not in EXPERIMENTS:
            raise ValueError(f"NAME={name!r}: expected one of {', '.join(EXPERIMENTS)}.")
    out.mkdir(parents=True, exist_ok=True)
    words = [*(names or []), "--full" if full else "--quick"]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    results = perform(
        names or [name for name in EXPERIMENTS if full or name != "beyond"],
        out,
        full=full,
        seeds=seeds,
        command=" ".join(["mporbm reproduce", *words]),
        n_jobs=n_jobs,
        shown=report.shown and sys.stderr.isatty(),
    )
    path = page.write(results, out)
    facts = {"report": str(path), "results": str(out / "results.json")}
    signs = {True: "confirmed", False: "not confirmed", None: "open"}
    texts = [f"{signs[verdict['holds']]}: {verdict['text']}" for verdict in results["summary"]]
    report.finish({**facts, "summary": results["summary"]}, *texts, f"Report: {path}")
