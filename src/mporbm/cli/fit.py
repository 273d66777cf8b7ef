"""`mporbm fit`: train a machine."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from . import files
from .options import Data, Force, Json, OutputModel, Quiet
from .processes import joined_processes
from .report import Report, shape_text

PROCESSES = "Several processes"


def fit(
    data: Data,
    output_file: OutputModel,
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
    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Train together with other processes of the same command, which share every "
            "batch. Under SLURM, Open MPI and Kubernetes they find each other; else see below, or "
            "mporbm launch.",
            rich_help_panel=PROCESSES,
        ),
    ] = False,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where process 0 listens.", rich_help_panel=PROCESSES
        ),
    ] = None,
    num_processes: Annotated[
        int | None,
        typer.Option(min=1, help="How many processes there are.", rich_help_panel=PROCESSES),
    ] = None,
    process_id: Annotated[
        int | None,
        typer.Option(min=0, help="Which of them this one is, from 0.", rich_help_panel=PROCESSES),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
    **given: Any,
) -> None:
    """Train a machine on DATA and write it to a file.

    A run that is interrupted goes on where it was when the same command is given again. Images of
    0..255 need --binarize or --bit-planes; the model file remembers the coding.
    """
    from .config import read_options

    files.check_output(output_file, force, ".safetensors")
    files.check_figure(picture, force)
    options = {} if config is None else read_options(config)
    options |= {name: value for name, value in given.items() if value is not None}
    samples = files.read_array(data)
    validation = files.read_array(options["x_val"]) if "x_val" in options else None
    with joined_processes(distributed, coordinator, num_processes, process_id) as writes:
        report = Report(quiet or not writes, as_json and writes)
        estimator, resumed = _train(report, data, samples, validation, options, output_file)
        if writes:
            _write(report, estimator, resumed, output_file, picture, "checkpoint" not in options)


def fit_command(complete: bool) -> Callable[..., None]:
    """Return the command `fit`: `complete` with the options of the estimators, which loads JAX."""
    fixed = [p for p in inspect.signature(fit).parameters.values() if p.name != "given"]
    generated = []
    if complete:
        from .fit_options import fit_options

        generated = [option.as_parameter() for option in fit_options().values()]

    @functools.wraps(fit)
    def command(**values: Any) -> None:
        fit(**values)

    parameters = [*fixed[:2], *generated, *fixed[2:]]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _train(
    report: Report,
    data: str,
    samples: Any,
    validation: Any,
    options: dict[str, Any],
    output_file: Path,
) -> tuple[Any, bool]:
    """Train an estimator; also tell whether it went on from a checkpoint."""
    from ..training import checkpoint as checkpoints
    from .config import make_coding, make_estimator

    x_val = options.get("x_val")
    estimator, coding = make_estimator(options, verbose=int(report.shown)), make_coding(options)
    checkpoint = Path(estimator.checkpoint or _own_checkpoint(output_file))
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
    if coding is not None:
        estimator.coding_ = coding
    return estimator, resumed


def _own_checkpoint(output_file: Path) -> Path:
    """Return the checkpoint of a run that names none."""
    return output_file.with_name(f"{output_file.name}.checkpoint")


def _write(
    report: Report,
    estimator: Any,
    resumed: bool,
    output_file: Path,
    picture: Path | None,
    finished: bool,
) -> None:
    """Write the model and the picture, remove a checkpoint that is `finished`, and say so."""
    from ..training import checkpoint as checkpoints

    files.write_model(output_file, estimator)
    if finished:
        checkpoints.remove(_own_checkpoint(output_file))
    if picture is not None:
        from .. import pictures

        files.write_figure(picture, pictures.training_curves(estimator))
    machine = estimator.machine_
    facts = {
        "output": str(output_file),
        "class": type(estimator).__name__,
        "visible_shape": machine.visible_shape,
        "hidden_shape": machine.hidden_shape,
        "n_parameters": estimator.n_parameters_,
        "n_iter": estimator.n_iter_,
        "resumed": resumed,
        "last": estimator.history_[-1] if estimator.history_ else None,
    }
    report.finish(
        facts,
        f"{output_file}: {type(estimator).__name__} {shape_text(machine.visible_shape)} -> "
        f"{shape_text(machine.hidden_shape)}, {estimator.n_parameters_} weights, "
        f"{estimator.n_iter_} epochs",
    )


def check_bytes(path: str, samples: Any) -> None:
    """Refuse images of 0..255 before the estimator does, with what is to be done here."""
    from ..estimators.inputs import value_range

    if samples.dtype == np.uint8 and (largest := int(value_range(samples)[1])) > 1:
        raise ValueError(
            f"{path}: expected values from 0 to 1, got up to {largest}; pass --binarize "
            f"{largest // 2} or --bit-planes {largest.bit_length()}."
        )
