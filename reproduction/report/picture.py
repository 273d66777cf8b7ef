"""Pictures as ``data:`` addresses, so that a page holds them itself."""

import base64
from pathlib import Path

from .validated import Validated

TYPES = {".svg": ("image/svg+xml", b"<svg"), ".png": ("image/png", b"\x89PNG\r\n\x1a\n")}
"""Media type and what a file of it must hold, by suffix."""


def data_address(place: Validated, folder: Path) -> str:
    """The picture of a path relative to the folder."""
    name = place.filled()
    path, root = (folder / name).resolve(), folder.resolve()
    if not path.is_relative_to(root):
        raise place.error(f"a path inside {folder}", repr(name))
    if path.suffix.lower() not in TYPES:
        raise place.error("a picture that ends with .svg or .png", repr(name))
    if not path.is_file():
        raise FileNotFoundError(f"{place.name}: expected a picture, no such file: {folder / name}")
    media_type, sign = TYPES[path.suffix.lower()]
    content = path.read_bytes()
    if sign not in content:
        raise place.error(f"a picture of type {media_type}", f"another kind of file: {name!r}")
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
