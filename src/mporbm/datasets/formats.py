"""Bytes of a file as an array or an image; what is not of the format is refused by its name."""

import io
import math
import warnings
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..extras import extra
from .archives import MOST_BYTES, Blob
from .png import pixels_only


def read_idx(blob: Blob, n_axes: int) -> NDArray[np.uint8]:
    """An array of bytes in the IDX format of MNIST."""
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
    """A table of integers in text, with as many numbers in each line; blank lines are left out."""
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
    """A Pillow image of a format, PNG or JPEG, and of a size (width, height), with its pixels."""
    with extra("cli", "images"):
        from PIL import Image
    wanted = f"a {kind} image" if size is None else f"a {kind} image of {size[0]}x{size[1]} pixels"
    try:
        content = pixels_only(blob.content) if kind == "PNG" else blob.content
        with warnings.catch_warnings():
            # About parts that are not needed.
            warnings.simplefilter("ignore", UserWarning)
            image = Image.open(io.BytesIO(content), formats=[kind])
            # Before it takes the memory of its pixels.
            if size is not None and image.size != size:
                raise ValueError(f"it is of {image.width}x{image.height} pixels.")
            image.load()
    except (
        Image.DecompressionBombError,
        Image.DecompressionBombWarning,
        OSError,
        ValueError,
        SyntaxError,
    ) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{blob.label}: expected {wanted}: {reason}") from error
    return image
