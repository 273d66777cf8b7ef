"""The ``.npy`` format by NumPy's reader, but with sizes checked before memory is taken for them.

By itself, NumPy's reader takes 2 GiB for a file of 100 bytes whose header claims to be so long, and
inside of archives it takes the memory of any array that a header states, however short the file.
"""

import io
import math
import tokenize
import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

MOST_HEADER_BYTES, MOST_AXES = 2**14, 64
HEADER_READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
"""By version; version 3.0 is for tables with named columns."""


class Layout(NamedTuple):
    """Where in a file the entries of an array are, and what they are."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    start: int

    def array(self, content: bytes) -> NDArray[Any]:
        """Return the array in the bytes of a whole file."""
        flat = np.frombuffer(content, self.dtype, math.prod(self.shape), self.start)
        return flat.reshape(self.shape, order=self.order)


def read_layout(head: bytes, n_bytes: int) -> Layout:
    """Parse the header of an `n_bytes`-long ``.npy`` file that begins with `head`.

    Raises
    ------
    ValueError
        If it is not of this format, or too short for the array that it states.
    """
    file = io.BytesIO(head[:MOST_HEADER_BYTES])
    version = npy_format.read_magic(file)
    if version not in HEADER_READERS:
        raise ValueError(f"its version is {version}, expected 1.0 or 2.0.")
    try:
        with warnings.catch_warnings():
            # Files of Python 2 are as good as others.
            warnings.simplefilter("ignore")
            shape, is_fortran, dtype = HEADER_READERS[version](file)
    # NumPy takes the header for an expression of Python, which can be anything.
    except (
        *(ValueError, TypeError, SyntaxError, tokenize.TokenError),
        *(MemoryError, RecursionError, OverflowError),
    ) as error:
        raise ValueError("its header is no table of descr, fortran_order and shape.") from error
    if dtype.hasobject:
        raise ValueError("it has Python objects, which are not read.")
    if len(shape) > MOST_AXES or not all(0 <= size < 2**63 for size in shape):
        raise ValueError("its header states an invalid shape.")
    if file.tell() + dtype.itemsize * math.prod(shape) > n_bytes:
        raise ValueError(f"it has {n_bytes} bytes, an array of shape {shape} needs more.")
    return Layout(dtype, shape, "F" if is_fortran else "C", file.tell())
