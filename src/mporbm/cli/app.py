"""The commands, and what becomes of their errors."""

import inspect
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from ..extras import MissingExtraError
from . import compare, fit, infer, model, processes, sweep
from .files import one_line
from .options import flattened

COMMANDS = (
    *(fit.fit, infer.transform, infer.complete, infer.denoise, infer.sample, infer.score),
    *(compare.compare, model.inspect, model.compress, model.draw, sweep.sweep, processes.launch),
)


def make_app(arguments: Sequence[str] = ("fit",)) -> typer.Typer:
    """Make the application for some arguments.

    Options of `fit` are made from the estimators, which takes the time to load JAX: only if the
    arguments have that command, or where a shell asks how to complete them.
    """
    app = typer.Typer(
        name="mporbm",
        help="Boltzmann machines for tensor data: train, use and look into RBM, MvRBM, TvRBM and "
        "MPORBM. Start with `mporbm fit images.npy --binarize 127 -o model.safetensors`, then "
        "`mporbm inspect model.safetensors`.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_common)
    complete = "fit" in arguments or "_MPORBM_COMPLETE" in os.environ
    for command in COMMANDS:
        more = []
        if command is fit.fit and complete:
            from .fit_options import fit_options

            more = [option.as_parameter() for option in fit_options().values()]
        paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
        app.command(
            command.__name__,
            no_args_is_help=True,
            help="\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs),
            # What follows `launch` is for the command that it launches.
            context_settings={"allow_interspersed_args": command is not processes.launch},
        )(flattened(command, more))
    return app


def _print_version(asked: bool) -> bool:
    if asked:
        import mporbm

        print(mporbm.__version__)
        raise typer.Exit
    return asked


def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def run_command(arguments: Sequence[str]) -> int:
    """Run a command with its arguments; warnings and errors are one line each. Its exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            app = make_app(arguments)
            return int(app(args=arguments, prog_name="mporbm", standalone_mode=False) or 0)
        except (ValueError, TypeError, OSError, MissingExtraError) as error:
            _complain(f"error: {one_line(error)}")
            return 1
        except MemoryError as error:
            _complain(f"error: not enough memory. {error}".strip())
            return 1
        except OverflowError as error:
            _complain(f"error: expected a smaller number: {one_line(error)}.")
            return 1
        except Exception as error:
            # JAX has no class of its own for this.
            if isinstance(error, RuntimeError) and "out of memory" in str(error).lower():
                _complain(f"error: not enough memory: {one_line(error)}")
                return 1
            # Typer's own errors, whose class is not the same in all of its versions.
            if not hasattr(error, "format_message"):
                raise
            # Without arguments there was help instead of a message.
            if message := " ".join(error.format_message().split()).rstrip("."):
                command = getattr(getattr(error, "ctx", None), "command_path", "mporbm")
                _complain(f"error: {message}; see {command} --help.")
            return 2


def _warn(message: Warning | str, *where: object, **to: object) -> None:
    _complain(f"warning: {one_line(message)}")


def _complain(text: str) -> None:
    print(f"mporbm: {text}", file=sys.stderr)
