"""Bits that stay packed as integers until a batch of them is used."""

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
from numpy.typing import NDArray

MOST_BITS = 32
"""The most bits of a value: JAX knows larger integers only in double precision."""


class PackedBits(eqx.Module):
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

    codes: Any
    n_bits: int = eqx.field(static=True)
    sample_shape: tuple[int, ...] = eqx.field(static=True)
    gray: bool = eqx.field(static=True)

    def __init__(
        self, codes: Any, n_bits: int, shape: tuple[int, ...] | None = None, gray: bool = False
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
    def ndim(self) -> int:
        """The number of modes, that of the samples included."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[np.bool_]:
        """Bool."""
        return np.dtype(bool)

    @property
    def nbytes(self) -> int:
        """The memory of the codes."""
        return int(self.codes.nbytes)

    @property
    def base(self) -> Any:
        """The codes: who looks for the file behind a view finds it behind them."""
        return self.codes

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: Any) -> "PackedBits":
        # scikit-learn says X[chosen, ...].
        chosen, *others = chosen if isinstance(chosen, tuple) else (chosen,)
        if any(other is not Ellipsis for other in others):
            raise IndexError(
                "PackedBits: expected an index of the first axis, the samples; use unpacked() "
                "for single bits."
            )
        chosen_bits: PackedBits = jax.tree.map(lambda codes: codes[chosen], self)
        return chosen_bits

    def reshape(self, *shape: Any) -> "PackedBits":
        """The same samples with modes of other sizes; their number may be given as -1."""
        first, *modes = shape[0] if isinstance(shape[0], (tuple, list)) else shape
        if self.codes.ndim != 2 or first not in (-1, len(self)):
            raise ValueError(
                f"shape={shape}: expected the first axis of {self.shape}, the samples, to stay."
            )
        # NumPy knows what to make of a size of -1.
        sample_shape = np.empty(self.sample_shape, bool).reshape(modes).shape
        return PackedBits(self.codes, self.n_bits, sample_shape, self.gray)

    def unpacked(self) -> Any:
        """All bits as an array of bool, of NumPy or JAX as the codes are."""
        # What is stored is read.
        codes = self.codes[:]
        # Computed planes fuse with what follows; to read them as constants takes much longer.
        positions = codes.__array_namespace__().arange(self.n_bits, dtype=np.uint32)
        planes = (1 << (self.n_bits - 1 - positions)).astype(codes.dtype)
        return ((codes[..., None] & planes) != 0).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("copy=False: expected None or True, as bits have to be unpacked.")
        return np.asarray(self.unpacked(), dtype)


def unpacked(rows: Any) -> Any:
    """Rows as arrays: the bits of those that are packed, on their own or within a pytree."""
    return jax.tree.map(
        lambda part: part.unpacked() if isinstance(part, PackedBits) else part,
        rows,
        is_leaf=lambda part: isinstance(part, PackedBits),
    )
