"""Codings of data that are not binary: samples as bits, and bits or their probabilities back."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float, Shaped
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..tensor.arrays import Samples
from ..tensor.check import check_integer, check_real, check_shape
from ..training.rows import MOST_BITS, CodedRows, PackedBits, file_behind
from . import inputs
from .inputs import Rows

Block = Shaped[np.ndarray, "n width"]
"""Some rows in memory."""
LEEWAY = 1e-3
"""How far from 0 to 1 probabilities may be: averages of them are rounded."""


class Coding(TransformerMixin, BaseEstimator):
    """The base of codings, which keeps the shape of samples and gives them back."""

    sample_shape_: tuple[int, ...]
    n_features_in_: int
    _units: ClassVar[str] = "Bernoulli"
    """The visible units that coded samples are for."""

    def _fit_rows(self, X: object) -> Rows:
        """X as flat rows, whose shape and type are kept."""
        given, rows = inputs.check_flat(self, X, None, reset=True)
        self.sample_shape_ = given if len(given) > 1 else rows.shape[1:]
        self.dtype_ = rows.dtype
        return rows

    def _rows(self, X: object) -> Rows:
        """X as flat rows like those of `fit`."""
        check_is_fitted(self)
        return inputs.check_flat(self, X, self.sample_shape_, reset=False)[1]

    def _bits(self, X: object, shape: tuple[int, ...]) -> np.ndarray | PackedBits:
        """Coded samples of some shape, or their probabilities, as flat rows."""
        bits = X if isinstance(X, PackedBits) else np.asarray(X)
        n_bits = math.prod(shape)
        if bits.ndim < 2 or bits.shape[1:] not in (shape, (n_bits,)):
            modes = ", ".join(map(str, shape))
            raise ValueError(
                f"X: expected shape (n_samples, {modes}) or (n_samples, {n_bits}), got "
                f"{bits.shape}."
            )
        if bits.dtype.kind not in "biuf":
            raise TypeError(f"X: expected bits or probabilities, got dtype {bits.dtype}.")
        return bits.reshape(len(bits), n_bits)

    def transform_mask(self, mask: ArrayLike) -> Bool[np.ndarray, "..."]:
        """Which bits are known, from which values are: ``(*sample_shape_)`` or with samples first.

        It is what `complete` takes together with coded samples.
        """
        check_is_fitted(self)
        known = np.asarray(mask)
        shape = self.sample_shape_
        if known.dtype != bool or known.shape[-len(shape) :] != shape:
            raise ValueError(
                f"mask: expected bool of shape {shape}, or with samples first, got {known.dtype} "
                f"of shape {known.shape}."
            )
        return known

    def _decoded(
        self,
        function: Callable[[Block], Block],
        bits: np.ndarray | PackedBits,
        dtype: DTypeLike,
    ) -> Samples:
        """``function`` of flat rows of bits or probabilities, as samples."""

        def checked(block: Block) -> Block:
            low, high = block.min(), block.max()
            if not (low >= -LEEWAY and high <= 1.0 + LEEWAY):
                raise ValueError(
                    f"X: expected bits, or probabilities from 0 to 1, got {low:g} to {high:g}; "
                    f"pass what a machine of {self._units} units gives."
                )
            return function(block)

        flat = _by_blocks(checked, bits, self.n_features_in_, dtype)
        return flat.reshape(len(bits), *self.sample_shape_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


@dataclass(eq=False, repr=False)
class BitPlanes(Coding):
    """Whole numbers as their bits, each of them a binary unit.

    The bits of a value are a mode of their own, the highest first: images of 80x80 grey levels
    become tensors of 80x80x8. Those of a colour image (three modes, the last of size 3 or 4) join
    the colours: 128x128x3 becomes 128x128x24. They stay packed, in the memory of the values, until
    a machine uses them batch by batch.

    Parameters
    ----------
    n_bits
        How many bits a value has, up to 32: values are below ``2**n_bits``.
    gray
        Whether to use Gray code, in which neighbouring values differ in one bit.
    shape
        The shape of the coded samples, whatever that of the values: 10000 features of 10 bits as
        (100, 100, 10).

    Attributes
    ----------
    shape_
        The shape of the coded samples.
    sample_shape_, dtype_
        The shape and type of the values, as `inverse_transform` gives them back.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import BitPlanes
    >>> X = np.random.default_rng(0).integers(256, size=(20, 4, 4), dtype=np.uint8)
    >>> coding = BitPlanes().fit(X)
    >>> bits = coding.transform(X)
    >>> bits.shape, bits.nbytes == X.nbytes
    ((20, 4, 4, 8), True)
    >>> bool((coding.inverse_transform(bits) == X).all())
    True
    >>> coding.inverse_transform(np.full((1, 4, 4, 8), 0.5))[0, 0]
    array([127.5, 127.5, 127.5, 127.5])
    """

    n_bits: int = 8
    gray: bool = False
    shape: Sequence[int] | None = None

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the shape and the type of the values; `y` is ignored."""
        n_bits = check_integer("n_bits", self.n_bits)
        if n_bits > MOST_BITS:
            raise ValueError(f"n_bits={n_bits}: expected at most {MOST_BITS}.")
        self._fit_rows(X)
        sample = self.sample_shape_
        if self.shape is not None:
            self.shape_ = check_shape("shape", self.shape)
            if math.prod(self.shape_) != math.prod(sample) * n_bits:
                raise ValueError(
                    f"shape={self.shape_}: expected a shape of {math.prod(sample) * n_bits} bits, "
                    f"{n_bits} for each of the {math.prod(sample)} values of a sample, got "
                    f"{math.prod(self.shape_)}."
                )
        elif len(sample) == 3 and sample[-1] in (3, 4):
            self.shape_ = (*sample[:-1], sample[-1] * n_bits)
        else:
            self.shape_ = (*sample, n_bits)
        return self

    def transform(self, X: object) -> PackedBits:
        """The bits of each value, packed: ``(n, *shape_)``.

        X are whole numbers from 0 to ``2**n_bits - 1`` of any type, in samples of the fitted shape
        or flattened. Unsigned integers in memory-mapped files stay there, but for Gray code.
        """
        codes = self._codes(self._rows(X))
        assert not isinstance(codes, (PackedBits, CodedRows)), "codes are whole numbers"
        return PackedBits(codes, self.n_bits, self.shape_, self.gray)

    def inverse_transform(self, X: object) -> Samples:
        """Values from their bits, or expected values from probabilities.

        X are samples ``(n, *shape_)`` or flattened: bits as booleans or integers, packed or not,
        give values ``(n, *sample_shape_)`` of the fitted type; the probabilities of independent
        bits, as floating-point numbers, give expected values in double precision.
        """
        check_is_fitted(self)
        bits = self._bits(X, self.shape_)
        if isinstance(X, PackedBits) and (X.n_bits, X.gray) != (self.n_bits, self.gray):
            raise ValueError(
                f"X: expected bits with n_bits={self.n_bits} and gray={self.gray}, got them with "
                f"n_bits={X.n_bits} and gray={X.gray}."
            )
        if bits.dtype.kind == "f":
            return self._decoded(self._expected, bits, np.float64)
        return self._decoded(self._exact, bits, self.dtype_)

    def transform_mask(self, mask: ArrayLike) -> Bool[np.ndarray, "..."]:
        """Which bits are known, from which values are: all bits of a value or none."""
        known = super().transform_mask(mask)
        repeated = np.repeat(known[..., None], self.n_bits, axis=-1)
        return repeated.reshape(*known.shape[: -len(self.sample_shape_)], *self.shape_)

    def _codes(self, rows: Rows) -> Rows:
        """The values as unsigned integers; rows that are such stay as they are."""
        n_bytes, unsigned = rows.dtype.itemsize, rows.dtype.kind == "u"
        largest = 2**self.n_bits - 1
        code_type = np.min_scalar_type(largest)

        def refusal(given: str, hint: str) -> ValueError:
            return ValueError(
                f"X: expected whole numbers from 0 to {largest} for n_bits={self.n_bits}, got "
                f"{given}; {hint}."
            )

        def code(values: Block) -> Block:
            codes = values.astype(code_type)
            if (wrong := codes != values).any():
                hint = f"scale and round them, for instance np.rint(X / X.max() * {largest})"
                raise refusal(f"{values[wrong][0]:g}", hint)
            return codes ^ (codes >> 1) if self.gray else codes

        if not (unsigned and 8 * n_bytes <= self.n_bits):
            low, high = inputs.value_range(rows)
            if low < 0 or high > largest:
                hint = "shift or scale them, for instance X - X.min()"
                if low >= 0 and high < 2**MOST_BITS:
                    hint = f"set n_bits={int(high).bit_length()}, or scale them"
                raise refusal(f"{low:g} to {high:g}", hint)
        usable = unsigned and rows.dtype.isnative and 8 * n_bytes <= MOST_BITS
        small = n_bytes <= code_type.itemsize or file_behind(rows) is not None
        if usable and small and not self.gray:
            return rows
        return _by_blocks(code, rows, rows.shape[1], code_type)

    def _expected(self, bits: Block) -> Float[np.ndarray, "n width"]:
        """Expected values of independent bits; those of certain ones are exact."""
        values = np.zeros((len(bits), self.n_features_in_))
        sign = np.ones_like(values)
        # Horner's rule, as the highest bit comes first.
        for bit in np.moveaxis(bits.reshape(*values.shape, self.n_bits), -1, 0):
            if self.gray:
                # A bit is the parity of those of the Gray code from the highest on.
                sign *= 1.0 - 2.0 * bit
                bit = 0.5 - 0.5 * sign
            values = 2.0 * values + bit
        return values

    def _exact(self, bits: Block) -> Block:
        values = self._expected(bits)
        with np.errstate(all="ignore"):
            exact: Block = values.astype(self.dtype_)
        if (wrong := exact != values).any():
            raise ValueError(
                f"X: expected bits of values that {self.dtype_} can hold, the type of the samples "
                f"seen in fit, got {values[wrong][0]:g}; fit with another type, for instance "
                f"X.astype({np.min_scalar_type(2**self.n_bits - 1).name!r})."
            )
        return exact


@dataclass(eq=False, repr=False)
class Binarize(Coding):
    """Real numbers as one bit each: whether they are above a threshold.

    Parameters
    ----------
    threshold
        What a value has to be above; by default the middle between the smallest and the largest
        value seen in `fit`.

    Attributes
    ----------
    threshold_
        The threshold.
    low_, high_
        What `inverse_transform` makes of 0 and of 1: the mean of the values seen in `fit` that are
        at most, or above, the threshold; the end of their range, if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import Binarize
    >>> X = np.array([[0, 255], [255, 0]], np.uint8)
    >>> coding = Binarize().fit(X)
    >>> coding.transform(X)
    array([[False,  True],
           [ True, False]])
    >>> coding.inverse_transform([[True, True]])
    array([[255, 255]], dtype=uint8)
    >>> coding.inverse_transform([[0.2, 0.4]])
    array([[ 51., 102.]])
    """

    threshold: float | None = None

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the threshold and what stands for either side of it; `y` is ignored."""
        rows = self._fit_rows(X)
        ends = (0.0, 1.0) if rows.dtype == bool else inputs.value_range(rows)
        middle = 0.5 * ends[0] + 0.5 * ends[1]
        given = self.threshold
        self.threshold_ = middle if given is None else check_real("threshold", given)
        n_values, distance = np.zeros(2), np.zeros(2)
        for _, block in inputs.blocks(rows):
            above = self._above(block)
            for side, values in enumerate((block[~above], block[above])):
                n_values[side] += values.size
                # From the end of the range: that of data with two values is exactly 0.
                distance[side] += np.subtract(values, ends[side], dtype=np.float64).sum()
        self.low_, self.high_ = (ends + distance / np.maximum(n_values, 1.0)).tolist()
        return self

    def transform(self, X: object) -> Rows:
        """Which values are above the threshold: booleans ``(n, *sample_shape_)``.

        X are real numbers, in samples of the fitted shape or flattened; booleans stay as they are.
        """
        rows = self._rows(X)
        if rows.dtype != bool:
            inputs.value_range(rows)
            rows = _by_blocks(self._above, rows, rows.shape[1], bool)
        return rows.reshape(len(rows), *self.sample_shape_)

    def inverse_transform(self, X: object) -> Samples:
        """`low_` and `high_` for bits, and what is between them for probabilities.

        X are samples of the fitted shape, or flattened: bits as booleans or integers, or
        probabilities as floating-point numbers. From bits come values of the fitted type, if it
        can hold `low_` and `high_`, else all in double precision.
        """
        check_is_fitted(self)
        bits = self._bits(X, self.sample_shape_)
        whole = self.low_.is_integer() and self.high_.is_integer()
        exact = bits.dtype.kind != "f" and (whole or self.dtype_.kind == "f")
        return self._decoded(self._expected, bits, self.dtype_ if exact else np.float64)

    def _above(self, block: Block) -> Bool[np.ndarray, "n width"]:
        return block if block.dtype == bool else block > self.threshold_

    def _expected(self, bits: Block) -> Float[np.ndarray, "n width"]:
        high = bits.astype(np.float64)
        # Exact for 0 and 1, as low + bit (high - low) is not.
        return np.asarray((1.0 - high) * self.low_ + high * self.high_)


def _by_blocks(
    function: Callable[[Block], Block], rows: Rows, width: int, dtype: DTypeLike
) -> Block:
    """``function`` of all rows as an array (n, width), with a block of them in memory at a time."""
    result = np.empty((len(rows), width), dtype)
    for start, block in inputs.blocks(rows):
        result[start : start + len(block)] = function(block)
    return result
