"""`mporbm fit`: train a machine."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from . import files
from .options import Data, Force, OutputModel, Report, shape_text
from .processes import Processes


def fit(
    data: Data,
    output_file: OutputModel,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A TOML file with any of the options below, under their names; options of the "
            "command line win.",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the training curves (.png, .svg or .pdf)."),
    ] = None,
    processes: Processes,
    force: Force = False,
    report: Report,
    **given: object,
) -> None:
    """Train a machine on DATA and write it to a file.

    A run that is interrupted goes on where it was when the same command is given again. Images of
    0..255 need --binarize or --bit-planes; the model file remembers the coding. NaN are missing
    values.
    """
    from ..training import checkpoint as checkpoints
    from .config import make_coding, make_estimator, read_options

    files.check_output(output_file, force, ".safetensors")
    files.check_figure(picture, force)
    options = {} if config is None else read_options(config)
    options |= {name: value for name, value in given.items() if value is not None}
    x_val = str(options["x_val"]) if "x_val" in options else None
    samples = files.read_array(data)
    validation = None if x_val is None else files.read_array(x_val)
    with processes.joined() as writes:
        report = Report(report.quiet or not writes, report.as_json and writes)
        estimator, coding = make_estimator(options, verbose=int(report.shown)), make_coding(options)
        own_checkpoint = output_file.with_name(f"{output_file.name}.checkpoint")
        checkpoint = Path(estimator.checkpoint or own_checkpoint)
        if checkpoint.absolute() == output_file.absolute():
            raise ValueError(f"checkpoint: expected another file than {output_file}, the model.")
        estimator.set_params(checkpoint=checkpoint)
        if coding is not None:
            with files.blamed(X=data):
                samples = coding.fit(samples).transform(samples)
            with files.blamed(X=x_val):
                validation = None if validation is None else coding.transform(validation)
        elif estimator.visible_units == "bernoulli":
            check_bytes(data, samples)
        resumed = checkpoints.exists(checkpoint)
        if resumed:
            report.note(f"going on from {checkpoint}")
        try:
            with files.blamed(X=data, X_val=x_val), files.writing(checkpoint):
                estimator.fit(samples, X_val=validation)
        except (KeyboardInterrupt, SystemExit):
            report.note(f"stopped; the same command goes on from {checkpoint}, which is kept")
            raise
        if not writes:
            return
        if coding is not None:
            estimator.coding_ = coding
        with files.writing(output_file):
            # Whether this command shows its progress is nothing to those who load the model.
            estimator.set_params(verbose=0).save(output_file)
        if "checkpoint" not in options:
            checkpoints.remove(own_checkpoint)
        if picture is not None:
            from .. import pictures

            files.write_figures(picture, pictures.training_curves(estimator))
        machine, kind = estimator.machine_, type(estimator).__name__
        facts = {
            "output": str(output_file),
            "class": kind,
            "visible_shape": machine.visible_shape,
            "hidden_shape": machine.hidden_shape,
            "n_parameters": estimator.n_parameters_,
            "n_iter": estimator.n_iter_,
            "diverged": estimator.diverged_,
            "resumed": resumed,
            "last": estimator.history_[-1] if estimator.history_ else None,
        }
        report.finish(
            facts,
            f"{output_file}: {kind} {shape_text(machine.visible_shape)} -> "
            f"{shape_text(machine.hidden_shape)}, {estimator.n_parameters_} weights, "
            f"{estimator.n_iter_} epochs{', then it diverged' if estimator.diverged_ else ''}",
        )


def check_bytes(path: str, samples: Any) -> None:
    """Refuse images of 0..255 before the estimator does, with what is to be done here."""
    from ..estimators.inputs import value_range
    from ..training.rows import StoredRows, is_zarr

    rows = StoredRows(samples) if is_zarr(samples) else samples
    if rows.dtype == np.uint8 and (largest := int(value_range(rows)[1])) > 1:
        raise ValueError(
            f"{path}: expected values from 0 to 1, got up to {largest}; pass --binarize "
            f"{largest // 2} or --bit-planes {largest.bit_length()}."
        )
