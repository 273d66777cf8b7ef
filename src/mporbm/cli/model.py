"""Commands that look into a model file, or make another one of it."""

import math
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import files
from .options import Force, Json, Model, OutputModel, Report, shape_text

N_DRAWN = 100
"""The most hidden units whose receptive fields `inspect` draws, the strongest of them."""
N_SHOWN = 6
"""Singular values that `inspect` prints of each bond."""
NOT_SHOWN = ("verbose", "checkpoint", "hidden_shape", "rank")
"""Parameters that `inspect` prints otherwise, or not at all."""
WATCHED = {
    "reconstruction_error": "reconstruction error {:.4f}",
    "score": "score {:.2f}",
    "validation_score": "validation {:.2f}",
    "log_likelihood": "log-likelihood {:.2f}",
    "validation_log_likelihood": "of validation samples {:.2f}",
    "log_partition_error": "log Z \N{PLUS-MINUS SIGN} {:.2f}",
}
"""What `inspect` prints of the last epoch."""


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

    report = Report(as_json=as_json)
    files.check_output(pictures, force, "")
    estimator = files.read_model(model, report.shown)
    machine, parameters = estimator.machine_, estimator.get_params(deep=False)
    n_hidden = math.prod(machine.hidden_shape)
    layers = getattr(estimator, "layers_", (machine,))
    n_dense = sum(math.prod(m.visible_shape) * math.prod(m.hidden_shape) for m in layers)
    shapes = [estimator.visible_shape_, *(m.hidden_shape for m in layers)]
    if pictures is not None:
        from .. import pictures as draw

        figures = {
            "receptive-fields": draw.receptive_fields(estimator, min(n_hidden, N_DRAWN)),
            "singular-values": draw.singular_values(estimator),
        }
        if estimator.history_:
            figures["training"] = draw.training_curves(estimator)
        files.write_figures(pictures, figures)
    ranks, coding = getattr(estimator, "ranks_", None), getattr(estimator, "coding_", None)
    plan = machine.coupling.plan(estimator.batch_size)
    spectra = {
        name: [float(v) for v in s] for name, s in singular_values_by_cut(machine.coupling).items()
    }
    facts: dict[str, object] = {
        "class": type(estimator).__name__,
        "visible_shape": estimator.visible_shape_,
        "hidden_shape": machine.hidden_shape,
        "visible_units": estimator.visible_units,
        "hidden_units": estimator._hidden_kind,
        "coding": None if coding is None else str(coding),
        "ranks": ranks,
        "n_parameters": estimator.n_parameters_,
        "n_parameters_dense": n_dense,
        "plan": {**plan._asdict(), "batch_size": estimator.batch_size},
        "parameters": {name: plain(value) for name, value in parameters.items()},
        "singular_values": spectra,
        "n_iter": estimator.n_iter_,
        "diverged": estimator.diverged_,
        "history": estimator.history_,
    }
    rows = {
        "machine": f"{facts['class']}, {facts['visible_units']} visible and "
        f"{facts['hidden_units']} hidden units",
        "shapes": " -> ".join(map(shape_text, shapes)),
    }
    if ranks is not None:
        rows["ranks"] = ", ".join(map(str, ranks)) or "none (one core)"
    rows["weights"] = f"{estimator.n_parameters_} (a dense machine has {n_dense})"
    rows["products"] = f"{plan} with {estimator.batch_size} samples"
    if coding is not None:
        rows["coding"] = f"{coding} of {shape_text(coding.sample_shape_)} {coding.dtype_}"
    if hasattr(estimator, "truncation_error_"):
        rows["truncation"] = _changed_by(estimator.truncation_error_)
    rows["epochs"] = f"{estimator.n_iter_}{', then it diverged' if estimator.diverged_ else ''}"
    if estimator.history_:
        last = estimator.history_[-1]
        texts = [text.format(last[name]) for name, text in WATCHED.items() if name in last]
        rows["last epoch"] = ", ".join(texts)
    defaults = type(estimator)().get_params(deep=False)
    changed = [n for n, v in parameters.items() if n not in NOT_SHOWN and v != defaults[n]]
    rows["parameters"] = ", ".join(f"{n}={parameters[n]}" for n in changed) or "defaults"
    for name, values in spectra.items():
        more = f"  … {len(values)} in all" if len(values) > N_SHOWN else ""
        rows[f"singular values, {name}"] = "  ".join(f"{v:.3g}" for v in values[:N_SHOWN]) + more
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold")
    for row in rows.items():
        table.add_row(*row)
    report.finish(facts, table)


def compress(
    model: Model,
    output_file: OutputModel,
    *,
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
    report: Report,
) -> None:
    """Write the model with lower ranks; a dense RBM becomes an MPORBM."""
    from ..estimators import MPORBM, RBM
    from .config import parse_rank, parse_shape

    files.check_output(output_file, force, ".safetensors")
    ranks = None if rank is None else parse_rank("rank", rank)
    if rank is None and tolerance == 0.0:
        raise ValueError("rank: expected --rank or --tolerance, to say how far to compress.")
    estimator = files.read_model(model, report.shown)
    kind = type(estimator).__name__
    if hidden_shape is not None and not isinstance(estimator, RBM):
        raise ValueError(f"hidden_shape: expected a dense RBM to give modes to, got {kind}.")
    if isinstance(estimator, RBM):
        hidden = None if hidden_shape is None else parse_shape("hidden_shape", hidden_shape)
        smaller = MPORBM.from_rbm(estimator, rank=ranks, tolerance=tolerance, hidden_shape=hidden)
    elif isinstance(estimator, MPORBM):
        smaller = estimator.compress(rank=ranks, tolerance=tolerance)
    else:
        raise ValueError(f"{model}: expected an RBM or an MPORBM to compress, got {kind}.")
    with files.writing(output_file):
        smaller.save(output_file)
    facts = {
        "output": str(output_file),
        "ranks": smaller.ranks_,
        "n_parameters_before": estimator.n_parameters_,
        "n_parameters": smaller.n_parameters_,
        "truncation_error": smaller.truncation_error_,
    }
    report.finish(
        facts,
        f"{output_file}: ranks {', '.join(map(str, smaller.ranks_))}; {estimator.n_parameters_} -> "
        f"{smaller.n_parameters_} weights; {_changed_by(smaller.truncation_error_)}",
    )


def _changed_by(share: float) -> str:
    return f"W changed by at most {100.0 * share:.2g} %"


def draw(
    model: Model,
    output_file: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The figure: .svg, .pdf or .png."),
    ],
    *,
    what: Annotated[
        Literal["coupling", "energy", "hidden_mean", "visible_mean", "gradient"],
        typer.Option(help="The quantity to draw as a tensor network."),
    ] = "coupling",
    core: Annotated[int, typer.Option(help="The core whose gradient to draw.")] = 0,
    force: Force = False,
    report: Report,
) -> None:
    """Draw the tensor network of a model in the paper's graphical language."""
    from ..diagram import draw as diagram

    files.check_figure(output_file, force)
    estimator = files.read_model(model, report.shown)
    files.write_figures(output_file, diagram(estimator.machine_, what, core=core))
    report.finish({"output": str(output_file), "what": what}, f"{output_file}: {what}")
