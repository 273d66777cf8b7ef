"""The ``.npy`` format, strictly: sizes are checked against the length of the file first.

NumPy's own reader takes the header for an expression of Python, which can be anything.
"""

import math
import re
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

SIGN = b"\x93NUMPY"
LENGTH_BYTES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
"""How many bytes say how long the header is, by version."""
MOST_HEADER_BYTES = 2**14
MOST_AXES, MOST_DIGITS = 64, 18
ENTRY = r"""['"](descr|fortran_order|shape)['"]\s*:\s*(['"][^'"]*['"]|True|False|\([\d\s,]*\))\s*"""
HEADER = re.compile(rf"\s*\{{\s*{ENTRY},\s*{ENTRY},\s*{ENTRY},?\s*\}}\s*")
TYPE = re.compile(r"[<>|=]?([biufcSU]\d{1,5}|[mM]8(\[[\w/]{1,20}\])?|V\d{1,5})")
"""The types that NumPy gives a name of a few letters."""


class Layout(NamedTuple):
    """Where in a file the entries of an array are, and what they are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    start: int

    def array(self, content: bytes) -> NDArray[Any]:
        """The array in the bytes of a whole file."""
        flat = np.frombuffer(content, self.dtype, math.prod(self.shape), self.start)
        return flat.reshape(self.shape, order=self.order)


def read_layout(head: bytes, n_bytes: int) -> Layout:
    """The layout of a file of so many bytes that begins so.

    Raises
    ------
    ValueError
        If it is none of this format, or too short for the array that it states.
    """
    if not head.startswith(SIGN):
        raise ValueError(f"the magic string at its beginning is not {SIGN!r}.")
    length = LENGTH_BYTES.get((*head[6:8],))
    if length is None:
        raise ValueError("its version is not 1.0, 2.0 or 3.0.")
    start = 8 + length + int.from_bytes(head[8 : 8 + length], "little")
    if start > min(n_bytes, MOST_HEADER_BYTES):
        raise ValueError(
            f"its header ends at byte {start}, of {n_bytes}; expected at most {MOST_HEADER_BYTES}."
        )
    dtype, order, shape = _entries(head[8 + length : start].decode("latin-1"))
    needed = start + dtype.itemsize * math.prod(shape)
    if needed > n_bytes:
        raise ValueError(f"it has {n_bytes} bytes, an array of shape {shape} needs {needed}.")
    return Layout(dtype, shape, order, start)


def _entries(header: str) -> tuple[np.dtype[Any], Literal["C", "F"], tuple[int, ...]]:
    """The type, the order and the shape that a header states."""
    found = HEADER.fullmatch(header)
    entries = dict(zip(found.groups()[::2], found.groups()[1::2], strict=True)) if found else {}
    kind, order, shape = (entries.get(name, "") for name in ("descr", "fortran_order", "shape"))
    if kind[1:-1] == "|O":
        raise ValueError("it has Python objects, which are not read.")
    sizes = shape.strip("()").replace(",", " ").split()
    if (
        not TYPE.fullmatch(kind[1:-1])
        or order not in ("True", "False")
        or not shape.startswith("(")
        or len(sizes) > MOST_AXES
        or max(map(len, sizes), default=0) > MOST_DIGITS
    ):
        raise ValueError("its header is no table of descr, fortran_order and shape.")
    try:
        dtype = np.dtype(kind[1:-1])
    except TypeError as error:
        raise ValueError(f"there is no type {kind}.") from error
    return dtype, "F" if order == "True" else "C", tuple(map(int, sizes))
