"""Training data: arrays in memory, memory-mapped files and streams, cut into blocks of batches.

A block is what one compiled call works through. Small data are one block that stays on the device;
of larger data only a block or two is in memory at a time. Rows keep their type (bool, uint8,
float), and bits stay packed, until a batch is used.
"""

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn

import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike, NDArray

from ..tensor.arrays import AnyArray
from .rows import PackedBits, Stored, StoredRows, file_behind, release, unpacked

BLOCK_BATCHES = 64
"""The most batches of a block: signals are heard, and chains kept, between blocks."""
BLOCK_BYTES = 2**24
"""The most data of one block that comes from a file or a stream."""
RESIDENT_BYTES = 2**28
"""The most data that is kept on the device as a whole."""
PADDING = -1
"""The number of a row that stands for none."""

Piece = ArrayLike | PackedBits
"""What a stream gives."""


class Block(NamedTuple):
    """Rows, and for each batch which rows it takes with which weights (0 for padding).

    Weights are 1 in the mean over all rows that have any. A process that reads only its share of
    each batch has no rows to choose from: `chosen` are they themselves.
    """

    rows: PyTree[AnyArray] | None
    chosen: PyTree[AnyArray]
    weight: NDArray[np.float32]


class ArraySource:
    """An array, in memory, in a file or a store, with a weight for each row; or some of its rows.

    Or rows of several arrays: a pytree that knows its `shape`, `dtype`, `nbytes` and length, and
    gives rows by an index, such as packed bits. Values that are NaN, if it is `incomplete`, are
    missing.
    """

    restartable = True
    """Whether an epoch can be read again."""

    def __init__(
        self,
        rows: PyTree[Stored],
        weight: NDArray[np.floating] | None = None,
        used: NDArray[np.intp] | None = None,
        incomplete: bool = False,
    ):
        self.rows, self.incomplete = rows, incomplete
        self.weight = np.ones(len(rows), np.float32) if weight is None else weight
        self.used = np.arange(len(rows)) if used is None else used
        weights = self.weight[self.used]
        self._mean_weight = weights[weights > 0.0].mean() if weights.any() else 1.0
        self.resident = file_behind(rows) is None and rows.nbytes <= RESIDENT_BYTES
        self._on_device: PyTree[jax.Array] | None = None

    def n_batches(self, batch_size: int) -> int:
        """The batches of an epoch, the last one perhaps padded."""
        return -(-len(self.used) // batch_size)

    def blocks(
        self,
        rng: np.random.Generator | None,
        batch_size: int,
        skip: int = 0,
        share: slice | None = None,
    ) -> Iterator[Block]:
        """The blocks of an epoch but the first `skip`, in a new order for every generator.

        With a `share` only those places of every batch are read.
        """
        n_batches = self.n_batches(batch_size)
        most = BLOCK_BATCHES
        if not self.resident:
            row_bytes = max(self.rows.nbytes // len(self.rows), 1)
            most = min(most, max(BLOCK_BYTES // (row_bytes * batch_size), 1))
        per_block = -(-n_batches // -(-n_batches // most))
        size, shape = per_block * batch_size, (per_block, batch_size)
        order = self._order(rng, size, batch_size)
        for start in range(skip * size, len(order), size):
            chosen = np.full(size, PADDING)
            chosen[: len(order) - start] = order[start : start + size]
            known = chosen != PADDING
            weight = np.where(known, self.weight[chosen] / self._mean_weight, 0.0)
            weight = weight.astype(np.float32).reshape(shape)
            if share is not None:
                own = chosen.reshape(shape)[:, share]
                stored = self._gathered(own.reshape(-1))
                rows = jax.tree.map(lambda a, n=own.shape: a.reshape(*n, *a.shape[1:]), stored)
                yield Block(None, rows, weight[:, share])
            elif self.resident:
                if self._on_device is None:
                    self._on_device = jax.device_put(self.rows)
                index = np.where(known, chosen, 0).astype(np.int32).reshape(shape)
                yield Block(self._on_device, index, weight)
            else:
                index = np.arange(size, dtype=np.int32).reshape(shape)
                yield Block(self._gathered(chosen), index, weight)

    def _order(
        self, rng: np.random.Generator | None, size: int, batch_size: int
    ) -> NDArray[np.intp]:
        """The rows of an epoch in the order of their use, in blocks of a size.

        Of rows that are stored in chunks a block takes whole chunks, one after the other in random
        order. A batch has one row of each run of them, at the same place: whoever reads some places
        of all batches reads some runs.
        """
        if rng is None:
            return self.used
        stored = file_behind(self.rows)
        if not isinstance(stored, StoredRows):
            return rng.permutation(self.used)
        chunk = self.used // stored.n_together
        rank = rng.permutation(chunk.max(initial=0) + 1)
        order = np.full(self.n_batches(batch_size) * batch_size, PADDING)
        order[: len(self.used)] = self.used[np.argsort(rank[chunk], kind="stable")]
        for start in range(0, len(order), size):
            runs = order[start : start + size].reshape(batch_size, -1)
            order[start : start + size] = rng.permuted(runs, axis=1).T.reshape(-1)
        return order

    def split(self, fraction: float) -> tuple["ArraySource", "ArraySource"]:
        """Set rows at even distances aside for validation."""
        n_samples = len(self.used)
        n_held = math.ceil(fraction * n_samples)
        if n_held >= n_samples:
            raise ValueError(
                f"validation_fraction={fraction}: expected to leave samples to learn from, but X "
                f"has {n_samples}; pass X_val or early_stopping=False."
            )
        held = np.zeros(n_samples, bool)
        held[np.linspace(0, n_samples - 1, n_held).astype(int)] = True
        learnt, watched = self.used[~held], self.used[held]
        return (
            ArraySource(self.rows, self.weight, learnt, self.incomplete),
            ArraySource(self.rows, self.weight, watched, self.incomplete),
        )

    def head(self, n_rows: int) -> PyTree[AnyArray]:
        """Up to `n_rows` rows at even distances, to watch and to measure scales with."""
        n_chosen = min(n_rows, len(self.used))
        chosen = self.used[np.arange(n_chosen) * len(self.used) // n_chosen]
        return unpacked(self._gathered(chosen))

    def _gathered(self, chosen: NDArray[np.intp]) -> PyTree[AnyArray]:
        """Some rows in memory as they are stored; zeros for padding."""
        return jax.tree.map(lambda stored: gather(stored, chosen), self.rows)

    def fingerprint(self) -> dict[str, object]:
        """Shape, type and a check sum of some rows and of all weights."""
        return {
            "shape": [len(self.used), *self.rows.shape[1:]],
            "dtype": str(self.rows.dtype),
            "checksum": _checksum(self.head(64)),
            "weights": zlib.crc32(self.weight[self.used].tobytes()),
        }


class StreamSource:
    """Arrays of rows from an iterator that `restart` makes anew for every epoch.

    Rows are shuffled within a block; their order between blocks is that of the stream. Packed bits
    are unpacked as they come.
    """

    incomplete: bool | None = None
    """Whether NaN are missing values; None as long as nothing has been settled."""

    def __init__(
        self,
        restart: Callable[[], Iterable[Piece]],
        check: Callable[[Piece], np.ndarray],
        restartable: bool = True,
    ):
        self.restart, self.check, self.restartable = restart, check, restartable
        self._head: np.ndarray | None = None
        self._asked = 0
        self._begun: Iterator[Piece] | None = None

    def blocks(
        self,
        rng: np.random.Generator | None,
        batch_size: int,
        skip: int = 0,
        share: slice | None = None,
    ) -> Iterator[Block]:
        """The blocks of an epoch but the first `skip`, of equal size; the last one is padded."""
        if share is not None:
            raise ValueError(
                "X: expected an array, which may be memory-mapped, to train on several devices, "
                "got a stream, of which every process would have to read all."
            )
        empty = True
        for number, (rows, size) in enumerate(self._regular(batch_size)):
            empty = False
            order = np.arange(len(rows)) if rng is None else rng.permutation(len(rows))
            if number < skip:
                continue
            weight, index = np.zeros(size, np.float32), np.zeros(size, np.int32)
            weight[: len(rows)], index[: len(rows)] = 1.0, order
            full = np.zeros((size, *rows.shape[1:]), rows.dtype)
            full[: len(rows)] = rows
            yield Block(full, index.reshape(-1, batch_size), weight.reshape(-1, batch_size))
        if empty:
            raise ValueError(
                "X: expected an iterator that gives arrays of samples, got an empty one; training "
                "runs over it once per epoch, so pass a function that makes a new iterator (or an "
                "object whose __iter__ does)."
            )

    def _regular(self, batch_size: int) -> Iterator[tuple[np.ndarray, int]]:
        """The stream's rows in pieces of one size, and that size."""
        waiting: list[np.ndarray] = []
        n_waiting, size, short = 0, 0, True
        for piece in self._pieces():
            rows = self.check(piece)
            if not len(rows):
                continue
            if not size:
                row_bytes = max(rows.nbytes // max(len(rows), 1), 1)
                size = max(min(BLOCK_BYTES // row_bytes, 2**16) // batch_size, 1) * batch_size
            waiting.append(rows)
            n_waiting += len(rows)
            if n_waiting >= size:
                everything = np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                n_full = n_waiting // size
                for number in range(n_full):
                    yield everything[number * size : (number + 1) * size], size
                short = False
                waiting, n_waiting = [everything[n_full * size :].copy()], n_waiting % size
        if n_waiting:
            # The only block needs no more padding than its last batch.
            size = -(-n_waiting // batch_size) * batch_size if short else size
            yield np.concatenate(waiting), size

    def _pieces(self) -> Iterator[Piece]:
        """The stream from its beginning; what `head` has read of it is not read again."""
        begun, self._begun = self._begun, None
        if begun is not None:
            return begun
        return (p.unpacked() if isinstance(p, PackedBits) else p for p in self.restart())

    def head(self, n_rows: int) -> PyTree[AnyArray]:
        """The first rows of the stream."""
        if self._head is None or len(self._head) == self._asked < n_rows:
            pieces = self._pieces()
            taken: list[Piece] = []
            rows: list[np.ndarray] = []
            for piece in pieces:
                taken.append(piece)
                rows.append(self.check(piece)[:n_rows])
                if sum(map(len, rows)) >= n_rows:
                    break
            if not any(map(len, rows)):
                next(self.blocks(None, 1))
            self._begun = itertools.chain(taken, pieces)
            self._head, self._asked = np.concatenate(rows)[:n_rows], n_rows
        return self._head[:n_rows]

    def fingerprint(self) -> dict[str, object]:
        """A check sum of the first rows."""
        return {"checksum": _checksum(self.head(64))}

    def n_batches(self, batch_size: int) -> None:
        """The batches of an epoch are not known."""

    def split(self, fraction: float) -> NoReturn:
        """Refuse to set rows aside for validation."""
        raise ValueError(
            "X_val: expected samples to stop early by, got None; a stream cannot be split."
        )


Source = ArraySource | StreamSource
"""Rows (n, *shape) that are read once per epoch."""


def _checksum(rows: PyTree[AnyArray]) -> int:
    return zlib.crc32(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(rows)))


def gather(source: Stored, chosen: NDArray[np.intp]) -> np.ndarray:
    """Rows in memory, zeros for padding, in steps that give the pages of a mapped file back."""
    target = np.zeros((len(chosen), *source.shape[1:]), source.dtype)
    row_bytes = max(source.nbytes // max(len(source), 1), 1)
    # A step may touch a page cluster of 64 KiB for every row; chunks are read once in each.
    step = max(BLOCK_BYTES // max(row_bytes, 2**16), 1)
    step = len(chosen) if isinstance(file_behind(source), StoredRows) else step
    order = np.argsort(chosen, kind="stable")
    order = order[np.searchsorted(chosen[order], 0) :]
    for start in range(0, len(order), step):
        part = order[start : start + step]
        target[part] = source[chosen[part]]
        release(source)
    return target
