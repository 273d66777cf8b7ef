"""Bytes of a file as an array or an image; what is not of the format is refused by its name."""

import io
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..extras import extra
from .archives import MOST_RATIO, Blob

MOST_PIXELS = 2**26
"""The largest image, of 8192x8192 pixels."""


def read_idx(blob: Blob, n_axes: int) -> NDArray[np.uint8]:
    """Read an array of bytes in the IDX format of MNIST."""
    magic, start = 0x800 + n_axes, 4 * (n_axes + 1)
    header = np.frombuffer(blob.content[:start], ">u4") if len(blob.content) >= start else [0]
    if header[0] != magic:
        raise ValueError(
            f"{blob.label}: expected an IDX file of bytes with {n_axes} axes, which begins with "
            f"{magic:#010x}, got {blob.content[:4].hex() or 'an empty file'}."
        )
    shape = tuple(int(size) for size in header[1:])
    if len(blob.content) - start != math.prod(shape):
        raise ValueError(
            f"{blob.label}: expected {math.prod(shape)} bytes after its header, for an array of "
            f"shape {shape}, got {len(blob.content) - start}; it may be cut off."
        )
    return np.frombuffer(blob.content, np.uint8, offset=start).reshape(shape).copy()


def read_integers(blob: Blob, n_rows: int, n_columns: int) -> NDArray[np.int64]:
    """Read a table of integers in text, one row in each line; blank lines are left out."""
    table = np.empty((n_rows, n_columns), np.int64)
    number = 0
    for line in io.BytesIO(blob.content):
        # No more than are needed to see that there are too many.
        if not (words := line.split(None, n_columns)):
            continue
        if number == n_rows or len(words) != n_columns:
            got = f"{len(words)} in sample {number + 1}" if number < n_rows else "more lines"
            raise ValueError(
                f"{blob.label}: expected {n_columns} integers in each of {n_rows} lines, got "
                f"{got}; it may be cut off."
            )
        try:
            table[number] = np.array(words, np.int64)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{blob.label}: expected integers in text: {error}.") from error
        number += 1
    if number < n_rows:
        raise ValueError(
            f"{blob.label}: expected {n_rows} lines of {n_columns} integers, got {number}; it may "
            f"be cut off."
        )
    return table


def open_image(blob: Blob, kind: str, size: tuple[int, int] | None = None) -> Any:
    """Open a PNG or JPEG image with Pillow, of a size (width, height) if one is given.

    What the image states of its size is checked before memory is taken for its pixels.
    """
    with extra("cli", "images"):
        from PIL import Image

    wanted = f"a {kind} image" if size is None else f"a {kind} image of {size[0]}x{size[1]} pixels"
    try:
        with warnings.catch_warnings():
            # About parts that are not needed.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(blob.content), formats=[kind])
            n_pixels = image.width * image.height
            if size is not None and image.size != size:
                raise ValueError(f"it is of {image.width}x{image.height} pixels.")
            if n_pixels > MOST_PIXELS or n_pixels > 8 * MOST_RATIO * len(blob.content):
                raise ValueError(
                    f"it states {image.width}x{image.height} pixels, expected at most "
                    f"{MOST_PIXELS}, and no more than its {len(blob.content)} bytes can hold."
                )
            image.load()
            # Converting to RGB would warn of it.
            image.info.pop("transparency", None)
    # All that broken files were seen to raise in Pillow.
    except (Image.DecompressionBombError, LookupError, OSError, SyntaxError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{blob.label}: expected {wanted}: {reason}") from error
    return image
