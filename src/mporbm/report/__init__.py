"""Results of experiments as one HTML page that needs nothing else: no script, no network."""

from .page import render, write

__all__ = ["render", "write"]
