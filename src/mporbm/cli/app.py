"""The commands, and what becomes of their errors."""

import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

from . import fit, infer, model, processes, sweep

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
for command in (
    fit.fit,
    infer.transform,
    infer.complete,
    infer.denoise,
    infer.sample,
    infer.score,
    model.inspect,
    model.compress,
    model.draw,
    sweep.sweep,
):
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(no_args_is_help=True, help=text)(command)
app.command(
    no_args_is_help=True,
    help=" ".join((processes.launch.__doc__ or "").split()),
    # What follows the name of a command is for it.
    context_settings={"allow_interspersed_args": False},
)(processes.launch)


def _print_version(wanted: bool) -> None:
    if wanted:
        import mporbm

        print(mporbm.__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command.

    It ends with exit code 0, 1 for bad input, 2 for bad usage, 130 or 143 if interrupted.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    try:
        return int(app(args=arguments, prog_name="mporbm", standalone_mode=False) or 0)
    except (ValueError, TypeError, OSError, MemoryError, OverflowError) as error:
        _complain(f"error: {_one_line(error)}")
        return 1
    except RuntimeError as error:
        # JAX has no class of its own for this.
        if "out of memory" not in str(error).lower():
            raise
        _complain(f"error: not enough memory: {_one_line(error)}")
        return 1
    except Exception as error:
        # Typer's own errors, whose class is not the same in all of its versions.
        if not hasattr(error, "format_message"):
            raise
        # Without arguments there was help instead of a message.
        if message := " ".join(error.format_message().split()).rstrip("."):
            _complain(f"error: {message}; see {_command(error)} --help.")
        return 2


def _command(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return "mporbm" if context is None else str(context.command_path)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _complain(f"warning: {_one_line(message)}")


def _complain(text: str) -> None:
    print(f"mporbm: {text}", file=sys.stderr)


def _one_line(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}".strip()
    if isinstance(error, OverflowError):
        return f"expected a smaller number: {error}."
    return " ".join(str(error).split()) or type(error).__name__
