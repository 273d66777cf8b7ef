"""The command line: `mporbm --help`."""

from .app import main

__all__ = ["main"]
