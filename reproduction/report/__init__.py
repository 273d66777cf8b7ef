"""Results of experiments as one HTML page that needs nothing else: no script, no network."""

from .page import render, render_markdown, write

__all__ = ["render", "render_markdown", "write"]
