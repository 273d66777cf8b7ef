"""MATLAB 5 files: numbers, text, cells and structs, of no more memory than their bytes are worth.

SciPy's reader takes memory by the sizes that a file states, calls itself for every nested cell, and
ends the process where a file has other parts than it expects.
"""

import itertools
import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES = 128
MOST_DEPTH = 8
"""How deep cells and structs may be nested; those of the data sets are at 2."""
MOST_CELLS = 2**20
"""The most cells and fields of structs; the data sets have some thousands."""
MOST_MODES = 32
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, TEXT = 1, 2, 4
NUMBERS = range(6, 16)
"""Classes of arrays."""
NUMBER_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
NUMBER_TYPES |= {12: "i8", 13: "u8"}
TEXT_TYPES = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16", 18: "utf-32"}
"""Types of data elements, as NumPy and Python call them."""


class Element(NamedTuple):
    """A type and the bytes of it."""

    kind: int
    content: memoryview


def read_variables(content: bytes, names: tuple[str, ...], most_bytes: int) -> dict[str, Any]:
    """The variables of these names, as `scipy.io.loadmat` gives them.

    Raises
    ------
    ValueError
        If it is no MATLAB 5 file, states sizes that it has not, is nested too deeply, or has more
        than `most_bytes` unpacked.
    """
    orders = {b"\0\1IM": "<", b"\1\0MI": ">"}
    order = orders.get(content[124:HEADER_BYTES])
    if order is None:
        raise ValueError("it does not begin as one")
    reader = Reader(order)
    found: dict[str, Any] = {}
    for matrix in reader.matrices(memoryview(content)[HEADER_BYTES:], most_bytes):
        if (name := reader.name(matrix)) in names:
            found[name] = reader.array(matrix, MOST_DEPTH)
    return found


class Reader:
    """Reads numbers in one byte order, and counts cells."""

    def __init__(self, order: str):
        self.order = order
        self.n_cells = 0

    def matrices(self, content: memoryview, most_bytes: int) -> Iterator[memoryview]:
        """The variables of a file, unpacked."""
        left = most_bytes
        while content:
            kind, matrix = self._first(content)
            content = content[8 + len(matrix) :]
            if kind == COMPRESSED:
                unpacked = zlib.decompressobj().decompress(matrix, left + 1)
                left -= len(unpacked)
                if left < 0:
                    raise ValueError(f"it has more than {most_bytes} bytes unpacked")
                kind, matrix = self._first(memoryview(unpacked))
            if kind != MATRIX:
                raise ValueError(f"it has a variable of type {kind}")
            yield matrix

    def name(self, matrix: memoryview) -> str:
        """The name of a variable."""
        _, _, name = itertools.islice(self._elements(matrix), 3)
        return name.content.tobytes().decode("latin-1")

    def array(self, matrix: memoryview, depth: int) -> NDArray[Any]:
        """The content of a variable, a cell or a field."""
        if not matrix:
            return np.empty((0, 0))
        if depth == 0:
            raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep")
        parts = self._elements(matrix)
        flags, sizes, _ = itertools.islice(parts, 3)
        kind, shape = self._unpacked("I", flags, 6)[0] & 0xFF, self._unpacked("i", sizes, 5)
        if not 2 <= len(shape) <= MOST_MODES or min(shape) < 0 or math.prod(shape) > len(matrix):
            raise ValueError(f"it has an array of sizes {shape[:4]} in {len(matrix)} bytes")
        if kind == CELL:
            return self._cells(parts, shape, depth)
        if kind == STRUCT:
            return self._struct(parts, shape, depth)
        if kind == TEXT:
            return self._text(parts, shape)
        if kind in NUMBERS:
            return self._numbers(parts, shape)
        raise ValueError(f"it has an array of class {kind}")

    def _numbers(self, parts: Iterator[Element], shape: tuple[int, ...]) -> NDArray[Any]:
        (part,) = parts
        if part.kind not in NUMBER_TYPES:
            raise ValueError(f"it has numbers of type {part.kind}")
        numbers: NDArray[Any] = np.frombuffer(part.content, self.order + NUMBER_TYPES[part.kind])
        return numbers.reshape(shape, order="F")

    def _text(self, parts: Iterator[Element], shape: tuple[int, ...]) -> NDArray[Any]:
        """Text along the last mode."""
        (part,) = parts
        if part.kind not in TEXT_TYPES:
            raise ValueError(f"it has text of type {part.kind}")
        code = TEXT_TYPES[part.kind]
        code += {"<": "-le", ">": "-be"}[self.order] * code.endswith(("16", "32"))
        letters = np.array(list(part.content.tobytes().decode(code)), "U1")
        lines = letters.reshape(shape, order="F").reshape(-1, max(shape[-1], 1))
        return np.array(["".join(line) for line in lines], "U").reshape(shape[:-1])

    def _cells(self, parts: Iterator[Element], shape: tuple[int, ...], depth: int) -> NDArray[Any]:
        cells = np.empty(math.prod(shape), object)
        self._fill(cells, parts, depth)
        return cells.reshape(shape, order="F")

    def _struct(self, parts: Iterator[Element], shape: tuple[int, ...], depth: int) -> NDArray[Any]:
        width, names = itertools.islice(parts, 2)
        (n_bytes,) = self._unpacked("i", width, 5)
        if n_bytes <= 0 or len(names.content) % n_bytes:
            raise ValueError("it has a struct of other fields than it states")
        starts = range(0, len(names.content), n_bytes)
        fields = [names.content[k : k + n_bytes].tobytes().partition(b"\0")[0] for k in starts]
        values = np.empty(math.prod(shape) * len(fields), object)
        self._fill(values, parts, depth)
        result = np.empty(math.prod(shape), [(name.decode("latin-1"), object) for name in fields])
        for k, name in enumerate(result.dtype.names or ()):
            result[name] = values[k :: len(fields)]
        return result.reshape(shape, order="F")

    def _fill(self, values: NDArray[Any], parts: Iterator[Element], depth: int) -> None:
        self.n_cells += len(values)
        if self.n_cells > MOST_CELLS:
            raise ValueError(f"it has more than {MOST_CELLS} cells and fields")
        for k, part in zip(range(len(values)), parts, strict=True):
            if part.kind != MATRIX:
                raise ValueError(f"it has a cell of type {part.kind}")
            values[k] = self.array(part.content, depth - 1)

    def _unpacked(self, form: str, element: Element, kind: int) -> tuple[int, ...]:
        """An element of integers."""
        n_numbers, rest = divmod(len(element.content), 4)
        if element.kind != kind or rest or not n_numbers:
            raise ValueError("it has an array without its class and sizes")
        return struct.unpack(f"{self.order}{n_numbers}{form}", element.content)

    def _first(self, content: memoryview) -> Element:
        """The first element of some bytes, with a tag of 8 bytes."""
        if len(content) < 8:
            raise ValueError("it is cut off")
        kind, n_bytes = struct.unpack(f"{self.order}II", content[:8])
        if n_bytes > len(content) - 8:
            raise ValueError(f"it states {n_bytes} bytes where there are {len(content) - 8}")
        return Element(kind, content[8 : 8 + n_bytes])

    def _elements(self, content: memoryview) -> Iterator[Element]:
        """The parts of a matrix, which begin at every eighth byte; small ones are in their tag."""
        while content:
            if len(content) < 8:
                raise ValueError("it is cut off")
            (tag,) = struct.unpack(f"{self.order}I", content[:4])
            if n_bytes := tag >> 16:
                if n_bytes > 4:
                    raise ValueError(f"it states {n_bytes} bytes where there are 4")
                yield Element(tag & 0xFFFF, content[4 : 4 + n_bytes])
                content = content[8:]
            else:
                element = self._first(content)
                yield element
                content = content[8 + -(-len(element.content) // 8) * 8 :]
