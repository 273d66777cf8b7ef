"""Kinds of rows: samples that stay packed, in a file or with labels until a batch is used."""

import math
import mmap
from abc import abstractmethod
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import DTypeLike

from ..tensor.arrays import AnyArray, DType

MOST_BITS = 32
"""The most bits of a value: JAX knows larger integers only in double precision."""

Index = int | np.integer | slice | Sequence[int] | AnyArray
Chosen = Index | tuple[Index | EllipsisType, ...]
"""An index of the first axis; scikit-learn says X[chosen, ...]."""


class SampleArray:
    """What read-only arrays of samples have in common with those of NumPy."""

    sample_shape: tuple[int, ...]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""

    @property
    def ndim(self) -> int:
        """The number of modes, that of the samples included."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def unpacked(self) -> AnyArray:
        """Read or unpack everything."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("copy=False: expected None or True, as samples have to be read.")
        return np.asarray(self.unpacked(), dtype)

    def _reshaped(self, shape: tuple[int | Sequence[int], ...]) -> tuple[int, ...]:
        """The shape of a sample for ``reshape(*shape)``, which has to leave their number alone."""
        first, *modes = np.ravel(shape).tolist()
        if self.ndim == len(self.sample_shape) or first not in (-1, len(self)):
            raise ValueError(
                f"shape={shape}: expected the first axis of {self.shape}, the samples, to stay."
            )
        # NumPy knows what to make of a size of -1.
        sample_shape: tuple[int, ...] = np.empty(self.sample_shape, bool).reshape(modes).shape
        return sample_shape


class PackedBits(eqx.Module, SampleArray):
    """A read-only array of bits that takes the memory of the integers they were.

    Samples are chosen along the first axis, which leaves them packed; `unpacked` gives the bits.
    A pytree whose only leaf are the codes, so that it goes through `jit`.

    Parameters
    ----------
    codes
        Unsigned integers, one sample along the first axis: a NumPy array, in memory or
        memory-mapped, one of JAX, or `StoredRows`.
    n_bits
        How many bits of a code are used, the highest of them first.
    shape
        The shape of a sample of bits; by default that of a sample of codes and a mode of `n_bits`.
    gray
        Whether the codes are in Gray code, ``b ^ (b >> 1)``. They are unpacked as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm.training import PackedBits
    >>> bits = PackedBits(np.array([[1, 6], [4, 0]], np.uint8), n_bits=3)
    >>> bits.shape, bits.nbytes
    ((2, 2, 3), 4)
    >>> bits[1:].unpacked().astype(int)
    array([[[1, 0, 0],
            [0, 0, 0]]])
    """

    codes: "AnyArray | StoredRows"
    n_bits: int = eqx.field(static=True)
    sample_shape: tuple[int, ...] = eqx.field(static=True)
    gray: bool = eqx.field(static=True)

    def __init__(
        self,
        codes: "AnyArray | StoredRows",
        n_bits: int,
        shape: tuple[int, ...] | None = None,
        gray: bool = False,
    ):
        if codes.dtype.kind != "u" or 8 * codes.dtype.itemsize > MOST_BITS:
            raise TypeError(
                f"codes: expected unsigned integers of at most {MOST_BITS} bits, got dtype "
                f"{codes.dtype}."
            )
        if not 1 <= n_bits <= MOST_BITS:
            raise ValueError(f"n_bits={n_bits}: expected an integer from 1 to {MOST_BITS}.")
        self.sample_shape = (*codes.shape[1:], n_bits) if shape is None else shape
        self.codes = codes.reshape(len(codes), math.prod(codes.shape[1:]))
        self.n_bits, self.gray = n_bits, gray
        n_expected = self.codes.shape[1] * n_bits
        if math.prod(self.sample_shape) != n_expected:
            raise ValueError(
                f"shape={self.sample_shape}: expected a shape of {n_expected} bits, got "
                f"{math.prod(self.sample_shape)}."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample of bits."""
        return (*self.codes.shape[:-1], *self.sample_shape)

    @property
    def dtype(self) -> np.dtype[np.bool_]:
        """Bool."""
        return np.dtype(bool)

    @property
    def nbytes(self) -> int:
        """The memory of the codes."""
        return int(self.codes.nbytes)

    @property
    def base(self) -> "AnyArray | StoredRows":
        """The codes: who looks for the file behind a view finds it behind them."""
        return self.codes

    def __getitem__(self, chosen: Chosen) -> "PackedBits":
        first, *others = chosen if isinstance(chosen, tuple) else (chosen,)
        if any(other is not Ellipsis for other in others):
            raise IndexError(
                "PackedBits: expected an index of the first axis, the samples; use unpacked() "
                "for single bits."
            )
        chosen_bits: PackedBits = jax.tree.map(lambda codes: codes[first], self)
        return chosen_bits

    def reshape(self, *shape: int | Sequence[int]) -> "PackedBits":
        """The same samples with modes of other sizes; their number may be given as -1."""
        return PackedBits(self.codes, self.n_bits, self._reshaped(shape), self.gray)

    def unpacked(self) -> AnyArray:
        """All bits as an array of bool, of NumPy or JAX as the codes are."""
        # What is stored is read.
        codes = self.codes[:]
        # Computed planes fuse with what follows; to read them as constants takes much longer.
        positions = codes.__array_namespace__().arange(self.n_bits, dtype=np.uint32)
        planes = (1 << (self.n_bits - 1 - positions)).astype(codes.dtype)
        bits: AnyArray = ((codes[..., None] & planes) != 0).reshape(self.shape)
        return bits


@runtime_checkable
class ZarrArray(Protocol):
    """What is used of a ``zarr.Array``."""

    shape: tuple[int, ...]
    dtype: DType
    chunks: tuple[int, ...]

    def __getitem__(self, chosen: slice) -> np.ndarray: ...

    def get_orthogonal_selection(self, chosen: np.ndarray) -> np.ndarray:
        """Read some samples."""


class StoredRows(SampleArray):
    """A read-only array in a zarr store, of which only chosen samples are read.

    Parameters
    ----------
    array
        A ``zarr.Array``, one sample along the first axis.
    sample_shape
        The shape of a sample; by default as it is stored.
    """

    def __init__(self, array: ZarrArray, sample_shape: tuple[int, ...] | None = None):
        self.array = array
        self.sample_shape = tuple(array.shape[1:]) if sample_shape is None else sample_shape
        self.dtype: DType = np.dtype(array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        return (self.array.shape[0], *self.sample_shape)

    @property
    def nbytes(self) -> int:
        """The memory that all of it would take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def n_together(self) -> int:
        """The samples of a chunk, or of a shard of them: what is read at once."""
        return int((getattr(self.array, "shards", None) or self.array.chunks)[0])

    def __getitem__(self, chosen: Chosen) -> np.ndarray:
        first = chosen[0] if isinstance(chosen, tuple) else chosen
        if isinstance(first, slice):
            rows = np.asarray(self.array[first])
        else:
            # Each once and in order, as zarr is fastest.
            places, inverse = np.unique(np.asarray(first), return_inverse=True)
            rows = np.asarray(self.array.get_orthogonal_selection(places))[inverse]
        return rows.reshape(len(rows), *self.sample_shape)

    def reshape(self, *shape: int | Sequence[int]) -> "StoredRows":
        """The same samples with modes of other sizes; their number may be given as -1."""
        return StoredRows(self.array, self._reshaped(shape))

    def unpacked(self) -> np.ndarray:
        """All samples in memory."""
        return self[:]


class CodedRows(SampleArray):
    """A read-only array of samples that are coded when they are looked at.

    Parameters
    ----------
    rows
        The samples as they are stored.
    code
        What makes numbers of a block of them.
    shape
        The shape of a coded sample; by default that of a stored one.
    """

    def __init__(
        self,
        rows: "Stored | PackedBits",
        code: Callable[[np.ndarray], np.ndarray],
        shape: tuple[int, ...] | None = None,
    ):
        self.base, self.code = rows, code
        self.sample_shape = tuple(rows.shape[1:]) if shape is None else shape
        self.dtype: DType = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        return (self.base.shape[0], *self.sample_shape)

    @property
    def nbytes(self) -> int:
        """The memory that all of it would take."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, chosen: Chosen) -> np.ndarray:
        return self.code(np.asarray(self.base[chosen]))

    def reshape(self, *shape: int | Sequence[int]) -> "CodedRows":
        """The same samples with modes of other sizes; their number may be given as -1."""
        sample_shape = self._reshaped(shape)
        return CodedRows(self, lambda block: block.reshape(-1, *sample_shape), sample_shape)

    def unpacked(self) -> np.ndarray:
        """All samples in memory."""
        return self[:]


Stored = AnyArray | StoredRows | CodedRows
"""Samples as they are stored, along the first axis."""


class LabelledRows(eqx.Module):
    """Samples as they are stored, each with the number of its class: rows of an `ArraySource`."""

    rows: PyTree[Stored]
    labels: AnyArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        shape: tuple[int, ...] = self.rows.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The type of the samples."""
        dtype: DType = np.dtype(self.rows.dtype)
        return dtype

    @property
    def nbytes(self) -> int:
        """The memory of samples and labels."""
        return int(self.rows.nbytes + self.labels.nbytes)

    @property
    def base(self) -> PyTree[Stored]:
        """The samples: who looks for the file behind a view finds it behind them."""
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Chosen) -> "LabelledRows":
        return LabelledRows(self.rows[chosen], self.labels[chosen])


def unpacked(rows: PyTree[Stored]) -> PyTree[AnyArray]:
    """Rows as arrays: the bits of those that are packed, on their own or within a pytree."""
    return jax.tree.map(
        lambda part: part.unpacked() if isinstance(part, PackedBits) else part,
        rows,
        is_leaf=lambda part: isinstance(part, PackedBits),
    )


def is_zarr(X: object) -> bool:
    """Whether X is an array in a zarr store."""
    # Without importing zarr, which few need.
    return type(X).__module__.partition(".")[0] == "zarr" and hasattr(X, "chunks")


def file_behind(array: object) -> np.memmap | mmap.mmap | StoredRows | None:
    """What reads rows from a file when they are looked at; None if they are in memory."""
    while array is not None and not isinstance(array, (np.memmap, mmap.mmap, StoredRows)):
        array = getattr(array, "base", None)
    return array


def release(array: object) -> None:
    """Let the pages of a read-only memory-mapped file go; they are read again when needed."""
    file = file_behind(array)
    if isinstance(file, np.memmap) and file.mode in ("r", "r+"):
        handle = getattr(file, "_mmap", None)
        if handle is not None and hasattr(mmap, "MADV_DONTNEED"):
            handle.madvise(mmap.MADV_DONTNEED)
