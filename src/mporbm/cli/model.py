"""Commands that look into a model file, or make another one of it."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from . import files
from .options import Force, Json, Model, OutputModel, Quiet
from .report import Report, shape_text

N_DRAWN = 100
"""The most hidden units whose receptive fields `inspect` draws, the strongest of them."""
N_SHOWN = 6
"""Singular values that `inspect` prints of each bond."""


def inspect(
    model: Model,
    pictures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Draw receptive fields, training curves and singular values into a new folder.",
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show what a model is: shapes, ranks, parameters, singular values, training."""
    from rich.table import Table

    from ..estimators.base import plain
    from ..machine.singular_values import singular_values_by_cut

    report = Report(False, as_json)
    if pictures is not None:
        files.check_output(pictures, force, "")
    estimator = files.read_model(model, report.shown)
    if pictures is not None:
        _draw_pictures(pictures, estimator)
    machine = estimator.machine_
    n_dense = int(np.prod(machine.visible_shape)) * int(np.prod(machine.hidden_shape))
    ranks = getattr(estimator, "ranks_", None)
    coding = getattr(estimator, "coding_", None)
    plan = machine.coupling.plan(estimator.batch_size)
    values = {
        name: [float(v) for v in s] for name, s in singular_values_by_cut(machine.coupling).items()
    }
    facts: dict[str, Any] = {
        "class": type(estimator).__name__,
        "visible_shape": machine.visible_shape,
        "hidden_shape": machine.hidden_shape,
        "visible_units": estimator.visible_units,
        "coding": None if coding is None else str(coding),
        "ranks": ranks,
        "n_parameters": estimator.n_parameters_,
        "n_parameters_dense": n_dense,
        "plan": {**asdict(plan), "batch_size": estimator.batch_size},
        "parameters": {k: plain(v) for k, v in estimator.get_params(deep=False).items()},
        "singular_values": values,
        "n_iter": estimator.n_iter_,
        "history": estimator.history_,
    }
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    rows = {
        "machine": f"{facts['class']}, {facts['visible_units']} visible units",
        "shapes": f"{shape_text(machine.visible_shape)} -> {shape_text(machine.hidden_shape)}",
        "ranks": None if ranks is None else ", ".join(map(str, ranks)) or "none (one core)",
        "weights": f"{estimator.n_parameters_} (a dense machine has {n_dense})",
        "products": f"{plan} with {estimator.batch_size} samples",
        "coding": _coding_text(coding),
        "truncation": _percent(getattr(estimator, "truncation_error_", None)),
        "epochs": str(estimator.n_iter_),
        "last epoch": _last(estimator.history_),
        "parameters": ", ".join(f"{k}={v}" for k, v in _changed(estimator).items()) or "defaults",
    }
    for name, text in rows.items():
        if text is not None:
            table.add_row(name, text)
    for name, spectrum in values.items():
        shown = "  ".join(f"{v:.3g}" for v in spectrum[:N_SHOWN])
        more = f"  … {len(spectrum)} in all" if len(spectrum) > N_SHOWN else ""
        table.add_row(f"singular values, {name}", shown + more)
    report.finish(facts, table)


def compress(
    model: Model,
    output_file: OutputModel,
    rank: Annotated[
        str | None, typer.Option(help="The largest rank kept, or one for each bond, such as 5,5.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Ranks fall as long as W changes by less, relative to its norm.")
    ] = 0.0,
    hidden_shape: Annotated[
        str | None,
        typer.Option(help="The modes of the hidden layer of a dense RBM, such as 10,10."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the model with lower ranks; a dense RBM becomes an MPORBM."""
    from ..estimators import MPORBM, RBM
    from .config import parse_rank, parse_shape

    report = Report(quiet, as_json)
    files.check_output(output_file, force, ".safetensors")
    ranks = None if rank is None else parse_rank("rank", rank)
    if rank is None and tolerance == 0.0:
        raise ValueError("rank: expected --rank or --tolerance, to say how far to compress.")
    estimator = files.read_model(model, report.shown)
    if hidden_shape is not None and not isinstance(estimator, RBM):
        raise ValueError(
            f"hidden_shape: expected a dense RBM to give modes to, got {type(estimator).__name__}."
        )
    if isinstance(estimator, RBM):
        hidden = None if hidden_shape is None else parse_shape("hidden_shape", hidden_shape)
        smaller = MPORBM.from_rbm(estimator, rank=ranks, tolerance=tolerance, hidden_shape=hidden)
    elif isinstance(estimator, MPORBM):
        smaller = estimator.compress(rank=ranks, tolerance=tolerance)
    else:
        raise ValueError(
            f"{model}: expected an RBM or an MPORBM to compress, got {type(estimator).__name__}."
        )
    files.write_model(output_file, smaller)
    before, after = estimator.n_parameters_, smaller.n_parameters_
    facts = {
        "output": str(output_file),
        "ranks": smaller.ranks_,
        "n_parameters_before": before,
        "n_parameters": after,
        "truncation_error": smaller.truncation_error_,
    }
    report.finish(
        facts,
        f"{output_file}: ranks {', '.join(map(str, smaller.ranks_))}; {before} -> {after} weights; "
        f"W changed by at most {100.0 * smaller.truncation_error_:.2g} %",
    )


def draw(
    model: Model,
    output_file: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The figure: .svg, .pdf or .png."),
    ],
    what: Annotated[
        Literal["coupling", "energy", "hidden_mean", "visible_mean", "gradient"],
        typer.Option(help="The quantity to draw as a tensor network."),
    ] = "coupling",
    core: Annotated[int, typer.Option(help="The core whose gradient to draw.")] = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw the tensor network of a model in the paper's graphical language."""
    from ..diagram import draw as diagram

    report = Report(quiet, as_json)
    files.check_figure(output_file, force)
    estimator = files.read_model(model, report.shown)
    files.write_figure(output_file, diagram(estimator.machine_, what, core=core))
    report.finish({"output": str(output_file), "what": what}, f"{output_file}: {what}")


def _draw_pictures(folder: Path, estimator: Any) -> None:
    from .. import pictures

    n_hidden = math.prod(estimator.machine_.hidden_shape)
    figures = {
        "receptive-fields": pictures.receptive_fields(estimator, min(n_hidden, N_DRAWN)),
        "singular-values": pictures.singular_values(estimator),
    }
    if estimator.history_:
        figures["training"] = pictures.training_curves(estimator)
    files.write_figures(folder, figures)


def _changed(estimator: Any) -> dict[str, Any]:
    """The parameters that are not the defaults."""
    defaults = type(estimator)().get_params(deep=False)
    hidden = {"verbose", "checkpoint", "hidden_shape", "rank"}
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in hidden and value != defaults[name]
    }


def _last(history: list[dict[str, Any]]) -> str | None:
    if not history:
        return None
    last = history[-1]
    text = f"reconstruction error {last['reconstruction_error']:.4f}, score {last['score']:.2f}"
    if "validation_score" in last:
        text += f", validation {last['validation_score']:.2f}"
    return text


def _coding_text(coding: Any) -> str | None:
    if coding is None:
        return None
    return f"{coding} of {shape_text(coding.sample_shape_)} {coding.dtype_}"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"W changed by at most {100.0 * share:.2g} %"
