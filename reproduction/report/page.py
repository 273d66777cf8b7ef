"""The page: results and pictures in, one HTML file out; and the same as Markdown."""

import re
import urllib.parse
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mporbm.atomic import write_text

from .document import read

MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")
"""What Markdown would take for more than a letter."""


def render(results: Mapping[str, Any], folder: Path) -> str:
    """The page as HTML.

    Parameters
    ----------
    results
        What ``results.json`` holds, in format 1.
    folder
        Where the paths of pictures begin.

    Raises
    ------
    ValueError
        If the results are malformed, or a picture is not one; the message names where.
    FileNotFoundError
        If a picture is missing.
    """
    return _filled("report.html.jinja", results, folder)


def render_markdown(results: Mapping[str, Any], folder: Path) -> str:
    """The same as Markdown, which refers to the pictures."""
    page = _filled("report.md.jinja", results, folder)
    return re.sub(r"\n{3,}", "\n\n", page).strip() + "\n"


def write(results: Mapping[str, Any], folder: Path) -> Path:
    """Write ``report.html`` and ``report.md`` into the folder, whole or not at all.

    Returns
    -------
    Path
        Of the HTML page.
    """
    target = Path(folder) / "report.html"
    pages = {target: render(results, folder)}
    pages[target.with_suffix(".md")] = render_markdown(results, folder)
    for path, page in pages.items():
        write_text(path, page)
    return target


def _filled(template: str, results: Mapping[str, Any], folder: Path) -> str:
    report = read(results, Path(folder))
    return _environment().get_template(template).render(report=report)


@cache
def _environment() -> Environment:
    """Make what fills in the templates of this folder; values in HTML are escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=lambda name: name is not None and name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["plain"] = lambda text: MARKDOWN.sub(r"\\\1", text)
    environment.filters["code"] = _code
    environment.filters["address"] = urllib.parse.quote
    return environment


def _code(text: str) -> str:
    """Text as code in Markdown, between more backticks than are in it."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    blank = " " if "`" in text else ""
    return f"{ticks}{blank}{' '.join(text.split())}{blank}{ticks}"
