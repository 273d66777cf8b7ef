"""Arrays that are stored in chunks, each a file: zarr."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


class StoredRows:
    """A read-only array in a zarr store, of which only chosen samples are read.

    Parameters
    ----------
    array
        A ``zarr.Array``, one sample along the first axis.
    sample_shape
        The shape of a sample; by default as it is stored.
    """

    def __init__(self, array: Any, sample_shape: tuple[int, ...] | None = None):
        self.array = array
        self.sample_shape = tuple(array.shape[1:]) if sample_shape is None else sample_shape

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        return (self.array.shape[0], *self.sample_shape)

    @property
    def ndim(self) -> int:
        """The number of modes, that of the samples included."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """As it is stored."""
        stored: np.dtype[Any] = np.dtype(self.array.dtype)
        return stored

    @property
    def nbytes(self) -> int:
        """The memory that all of it would take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def n_together(self) -> int:
        """The samples of a chunk, or of a shard of them: what is read at once."""
        return int((getattr(self.array, "shards", None) or self.array.chunks)[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: Any) -> NDArray[Any]:
        # scikit-learn says X[chosen, ...].
        chosen = chosen[0] if isinstance(chosen, tuple) else chosen
        if isinstance(chosen, slice):
            rows = np.asarray(self.array[chosen])
        else:
            # Each once and in order, as zarr is fastest.
            places, inverse = np.unique(np.asarray(chosen), return_inverse=True)
            rows = np.asarray(self.array.oindex[places])[inverse]
        return rows.reshape(len(rows), *self.sample_shape)

    def reshape(self, *shape: Any) -> "StoredRows":
        """The same samples with modes of other sizes; their number may be given as -1."""
        _, *modes = shape[0] if isinstance(shape[0], (tuple, list)) else shape
        n_entries = math.prod(self.sample_shape)
        known = math.prod(size for size in modes if size != -1)
        return StoredRows(
            self.array, tuple(n_entries // known if size == -1 else size for size in modes)
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("copy=False: expected None or True, as files have to be read.")
        return np.asarray(self[:], dtype)


def is_zarr(X: Any) -> bool:
    """Whether X is an array in a zarr store."""
    # Without importing zarr, which few need.
    return type(X).__module__.partition(".")[0] == "zarr" and hasattr(X, "chunks")
