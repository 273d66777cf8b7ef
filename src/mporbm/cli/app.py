"""The commands, and what becomes of their errors."""

import inspect
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

from . import fit, infer, model

app = typer.Typer(
    name="mporbm",
    help="Boltzmann machines for tensor data: train, use and look into RBM, MvRBM, TvRBM and "
    "MPORBM. Start with `mporbm fit images.npy -o model.safetensors`, then "
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
):
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(no_args_is_help=True, help=text)(command)


@app.callback()
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import mporbm

        print(mporbm.__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command.

    It ends with exit code 0, 1 for bad input, 2 for bad usage, 130 or 143 if interrupted.
    """
    warnings.showwarning = _warn
    try:
        app(args=arguments)
    except (ValueError, TypeError, OSError, MemoryError) as error:
        _complain(f"error: {_one_line(error)}")
        sys.exit(1)


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
    return " ".join(str(error).split()) or type(error).__name__
