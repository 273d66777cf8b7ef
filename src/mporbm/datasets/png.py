"""PNG images without anything but their pixels, and of no more pixels than they can hold."""

import struct
from collections.abc import Iterator

from .archives import MOST_RATIO

SIGN = b"\x89PNG\r\n\x1a\n"
KEPT = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
MOST_PIXELS = 2**26
"""The largest image, of 8192x8192 pixels."""


def pixels_only(content: bytes) -> bytes:
    """The same image without texts, profiles, animations and transparency.

    Raises
    ------
    ValueError
        If it is no PNG image, or too large: before any memory is taken for its pixels.
    """
    if not content.startswith(SIGN):
        raise ValueError("it does not begin as one")
    chunks = [chunk for chunk in _chunks(content) if chunk[4:8] in KEPT]
    if not chunks or len(chunks[0]) != 25 or chunks[0][4:8] != b"IHDR":
        raise ValueError("it does not begin with its size")
    width, height, bits = struct.unpack(">IIB", chunks[0][8:17])
    if not 0 < width * height <= MOST_PIXELS:
        raise ValueError(f"it is of {width}x{height} pixels, expected at most {MOST_PIXELS}")
    n_bytes = sum(len(chunk) for chunk in chunks)
    if width * height * bits // 8 > MOST_RATIO * n_bytes:
        raise ValueError(f"it is of {width}x{height} pixels, which its {n_bytes} bytes cannot hold")
    return b"".join([SIGN, *chunks])


def _chunks(content: bytes) -> Iterator[bytes]:
    """The parts of a file with their length, name and check sum; one that is cut off ends it."""
    start = len(SIGN)
    while start + 12 <= len(content):
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        yield content[start:end]
        start = end
