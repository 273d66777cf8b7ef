"""The command line: `mporbm --help`."""

import sys
from collections.abc import Sequence

from ..extras import MissingExtraError, extra

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, and end the process.

    The exit code is 0, 1 for bad input, 2 for bad usage, 130 or 143 if interrupted.
    """
    try:
        with extra("cli", "mporbm"):
            from .app import run_command
    except MissingExtraError as error:
        sys.exit(f"mporbm: error: {error}")
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))
