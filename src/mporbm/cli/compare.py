"""The command that compares samples of a model with data."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from ..evaluation.samples import Agreement, SampleMeasures, measure_samples
from . import files
from .coded_model import CodedModel
from .options import Data, Force, Model, Report, SampleSteps, Seed


def compare(
    model: Model,
    data: Data,
    *,
    samples: Annotated[
        str | None,
        typer.Option(
            "--samples",
            metavar="SAMPLES",
            help="Samples that `sample` wrote, or those of another model; any form that DATA has.",
            show_default="drawn now",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The class of each sample of DATA (.npy, or .npz:NAME), to compare the shares of "
            "classes.",
        ),
    ] = None,
    n_samples: Annotated[
        int, typer.Option("--n-samples", "-n", help="How many to draw, without --samples.")
    ] = 1000,
    n_gibbs: SampleSteps = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            metavar="FILE",
            help="Draw moments, classes, and samples above their nearest neighbours in DATA (.png, "
            ".svg or .pdf).",
        ),
    ] = None,
    seed: Seed = None,
    force: Force = False,
    report: Report,
) -> None:
    """Tell how near samples of the model are to data: by their neighbours, moments and classes.

    DATA should be others than the model has learnt from. Samples are compared in the coding of the
    model.
    """
    files.check_figure(picture, force)
    if samples is None and n_samples < 2:
        raise ValueError(f"n_samples={n_samples}: expected at least 2 to compare.")
    given = files.read_whole(data)
    classes = None if labels is None else files.read_labels(labels, len(given))
    read = None if samples is None else files.read_whole(samples)
    coded = CodedModel(model, report.shown)
    real = coded.comparable(data, given)
    if read is None:
        states = coded.estimator.sample(n_samples, n_gibbs, random_state=seed)
        read = coded.decode(states, coded.is_binary)
    source = samples or "n_samples"
    drawn = coded.comparable(source, read)
    with report.busy("neighbours"), files.blamed(data=data, samples=source):
        found = measure_samples(real, drawn, classes, seed or 0)
    if picture is not None:
        from .. import pictures

        files.write_figures(picture, pictures.sample_comparison(real, drawn, found))
    facts = {"n_data": len(real), "n_samples": len(drawn), **_facts(found)}
    report.finish(facts, _table(found), f"{len(drawn)} samples, {len(real)} of the data")


def _facts(found: SampleMeasures) -> dict[str, object]:
    """All numbers."""

    def plain(agreement: Agreement) -> dict[str, float]:
        numbers = agreement._asdict().items()
        return {name: value for name, value in numbers if name not in ("data", "samples")}

    facts: dict[str, object] = {
        "adversarial_accuracy": found.adversarial._asdict(),
        "means": plain(found.means),
        "covariances": plain(found.covariances),
    }
    if (classes := found.classes) is not None:
        names = ("distance", "expected_distance", "reference_distance")
        facts["classes"] = {name: getattr(classes, name) for name in names} | {
            "names": classes.classes.tolist(),
            "data_shares": classes.data_shares.tolist(),
            "sample_shares": classes.sample_shares.tolist(),
            "rarest": classes.rarest.item(),
            "missing": classes.missing.tolist(),
        }
    return facts


def _table(found: SampleMeasures) -> Table:
    """Lay out each measure beside what it would be for exact samples."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("measure", "samples", "exact samples"):
        table.add_column(name)
    near, error = found.adversarial, found.adversarial.standard_error
    for name, share in (("real", near.truth), ("synthetic", near.synthetic)):
        table.add_row(f"adversarial accuracy, {name}", f"{share:.3f}", f"0.500 ± {error:.3f}")
    for name, line in (("means", found.means), ("covariances", found.covariances)):
        reference = f"{line.reference_correlation:.3f}"
        table.add_row(f"{name}, correlation", f"{line.correlation:.3f}", reference)
        table.add_row(f"{name}, slope", f"{line.slope:.3f}", f"{line.reference_slope:.3f}")
    if (classes := found.classes) is not None:
        reference = f"data labelled alike {classes.reference_distance:.3f}"
        exact = f"{classes.expected_distance:.3f} ({reference})"
        table.add_row("classes, distance of shares", f"{classes.distance:.3f}", exact)
        rarest = int(np.argmin(classes.sample_shares))
        shares = (f"{share[rarest]:.1%}" for share in (classes.sample_shares, classes.data_shares))
        table.add_row(f"classes, share of the rarest ({classes.rarest})", *shares)
        table.add_row("classes, missing", ", ".join(map(str, classes.missing)) or "none", "none")
    return table
