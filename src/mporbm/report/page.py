"""The page: results and pictures in, one HTML file out."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .document import read


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
    report = read(results, Path(folder))
    environment = Environment(
        loader=PackageLoader("mporbm.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.jinja").render(report=report)


def write(results: Mapping[str, Any], folder: Path) -> Path:
    """Write the page as ``report.html`` into the folder, whole or not at all; its path."""
    target = Path(folder) / "report.html"
    page = render(results, folder)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        temporary.write_text(page, encoding="utf-8", newline="\n")
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
