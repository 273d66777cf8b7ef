"""Bytes of a file as an array or an image; what is not of the format is refused by its name."""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .archives import Blob


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


def read_mat(blob: Blob, *names: str) -> dict[str, Any]:
    """Variables of a MATLAB file."""
    from scipy.io import loadmat

    try:
        variables: dict[str, Any] = loadmat(io.BytesIO(blob.content), variable_names=list(names))
    # Broken files make the reader fail in many ways.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{blob.label}: expected a MATLAB 5 file: {reason}") from error
    if absent := [name for name in names if name not in variables]:
        raise ValueError(f"{blob.label}: expected variables {names}, but it lacks {absent}.")
    return variables


def read_integers(blob: Blob, n_columns: int) -> NDArray[np.int64]:
    """A table of integers in text, with as many numbers in each line."""
    lines = blob.content.splitlines()
    try:
        rows = [np.array(line.split(), np.int64) for line in lines if line.strip()]
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{blob.label}: expected integers in text: {error}.") from error
    for number, row in enumerate(rows, 1):
        if len(row) != n_columns:
            raise ValueError(
                f"{blob.label}: expected {n_columns} integers in each line, got {len(row)} in "
                f"sample {number}; it may be cut off."
            )
    return np.array(rows, np.int64).reshape(-1, n_columns)


def open_image(blob: Blob, kind: str, size: tuple[int, int]) -> Any:
    """A Pillow image of a format such as PNG and of a size (width, height), with its pixels."""
    from PIL import Image, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(blob.content), formats=[kind])
        # Before it takes the memory of its pixels.
        if image.size != size:
            raise ValueError(f"it is of {image.width}x{image.height} pixels.")
        image.load()
    except (
        UnidentifiedImageError,
        Image.DecompressionBombError,
        OSError,
        ValueError,
        SyntaxError,
    ) as error:
        reason = " ".join(str(error).split())
        raise ValueError(
            f"{blob.label}: expected a {kind} image of {size[0]}x{size[1]} pixels: {reason}"
        ) from error
    return image
