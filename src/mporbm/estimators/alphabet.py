"""Sequences of symbols as one-hot states for categorical units, and symbols back."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Bool, Int, Shaped
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..tensor.arrays import DType, Samples
from ..training.sources import BLOCK_BYTES
from .coding import Coding

LONGEST_SYMBOL = 64
"""The most characters of a symbol."""
Symbols = Shaped[np.ndarray, "n *sites"]
"""Strings or integers, as an array that knows their type."""


@dataclass(eq=False, repr=False)
class Alphabet(Coding):
    """Symbols as one-hot states, one group of units for each: for categorical visible units.

    Samples are strings of equal length, whose characters are the symbols, or arrays
    ``(n, *sites)`` of strings or integers. The K states of a site are a mode of their own, in the
    order of the alphabet: aligned proteins of 53 sites become 53x21.

    Parameters
    ----------
    alphabet
        The symbols that there can be: one string of characters, or a sequence of strings or
        integers; by default those that occur in the samples seen in `fit`, sorted.

    Attributes
    ----------
    alphabet_
        The symbols, as an array.
    shape_
        The shape of the coded samples, ``(*sample_shape_, K)``.
    sample_shape_, dtype_
        The shape of the sites, and the type of the symbols.
    is_text_
        Whether samples are strings, which `inverse_transform` then gives back.

    Examples
    --------
    >>> from mporbm import Alphabet
    >>> coding = Alphabet("-ACGT").fit(["GATTACA", "GA-TACA"])
    >>> states = coding.transform(["GATTACA"])
    >>> states.shape, states.dtype
    ((1, 7, 5), dtype('bool'))
    >>> coding.inverse_transform(states)
    array(['GATTACA'], dtype='<U7')
    """

    alphabet: str | Sequence[str] | Sequence[int] | np.ndarray | None = None

    _units: ClassVar[str] = "categorical"

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the shape of the samples and, if none is given, the alphabet; `y` is ignored."""
        symbols, is_text = _symbols(X)
        dtype = symbols.dtype
        if self.alphabet is None:
            known = np.unique(symbols)
        else:
            known = _known_symbols(self.alphabet, dtype)
        if dtype.kind == "U":
            lengths, most = np.char.str_len(known), 1 if is_text else LONGEST_SYMBOL
            if lengths.min() < 1 or lengths.max() > most:
                raise ValueError(
                    f"alphabet: expected symbols of 1 to {most} characters, got one of "
                    f"{lengths.min() if lengths.min() < 1 else lengths.max()}; pass samples as "
                    f"arrays (n_samples, ...) of longer symbols, and give gaps a symbol."
                )
        self._learn(known, symbols.shape[1:], is_text)
        if self.alphabet is not None:
            for _ in self._numbers(symbols):
                pass
        return self

    def transform(self, X: object) -> Bool[np.ndarray, "n *sites states"]:
        """The states as booleans ``(n, *shape_)``, of each site exactly one True.

        X are samples like those of `fit`; arrays may be flattened.
        """
        check_is_fitted(self)
        symbols, _ = _symbols(X)
        if symbols.shape[1:] not in (self.sample_shape_, (self.n_features_in_,)):
            modes = ", ".join(map(str, self.sample_shape_))
            given = f"samples of shape {symbols.shape[1:]}"
            raise ValueError(
                f"X: expected shape (n_samples, {modes}) or (n_samples, {self.n_features_in_}), or "
                f"strings of {self.n_features_in_} characters, as in fit, got {given}."
            )
        n_states = len(self.alphabet_)
        states = np.zeros((len(symbols), self.n_features_in_, n_states), bool)
        for start, numbers in self._numbers(symbols):
            block = states[start : start + len(numbers)]
            np.put_along_axis(block, numbers[:, :, None], True, axis=2)
        return states.reshape(len(symbols), *self.shape_)

    def inverse_transform(self, X: object) -> Samples:
        """The symbols of one-hot states, and the likeliest ones of probabilities.

        X are samples ``(n, *shape_)`` or flattened: states as booleans or integers, or
        probabilities as floating-point numbers, of which the first one wins of equal ones. Strings
        come back as an array of strings, other samples in their shape and type.
        """
        check_is_fitted(self)
        bits = self._bits(X, self.shape_)
        n_states = len(self.alphabet_)

        def likeliest(block: np.ndarray) -> np.ndarray:
            groups = block.reshape(len(block), self.n_features_in_, n_states)
            if groups.dtype.kind != "f" and (wrong := groups.sum(axis=2) != 1).any():
                sample, site = np.argwhere(wrong)[0]
                raise ValueError(
                    f"X: expected one state of each site, got {groups[sample, site].sum()} at "
                    f"{self._place(site)}; pass probabilities as floating-point numbers."
                )
            symbols: np.ndarray = self.alphabet_[groups.argmax(axis=2)]
            return symbols

        found = self._decoded(likeliest, bits, self.alphabet_.dtype)
        if not self.is_text_:
            return found
        # The characters of a row are in memory as those of a string are.
        text: Samples = np.ascontiguousarray(found).view(f"<U{self.n_features_in_}")[:, 0]
        return text

    def transform_mask(self, mask: ArrayLike) -> Bool[np.ndarray, "..."]:
        """Which units are known, from which symbols are: all states of a site or none."""
        known = super().transform_mask(mask)
        return np.repeat(known[..., None], len(self.alphabet_), axis=-1)

    # Model files

    @classmethod
    def from_header(
        cls, parameters: Mapping[str, Any], fitted: Mapping[str, Any], dtype: DType
    ) -> Self:
        """Build a coding from what a model file says of it, in which anything may stand."""
        symbols, is_text = fitted["alphabet_"], fitted["is_text_"]
        if not isinstance(symbols, list) or not isinstance(is_text, bool):
            raise TypeError("an alphabet that is no list")
        known = _known_symbols(symbols, dtype)
        shape = tuple(fitted["sample_shape_"])
        if is_text and (known.dtype != "<U1" or len(shape) != 1):
            raise ValueError("strings of symbols that are no characters")
        coding = cls(**parameters)
        coding._learn(known, shape, is_text)
        return coding

    def _learn(self, known: np.ndarray, sample_shape: tuple[int, ...], is_text: bool) -> None:
        """Keep what `fit` has found."""
        self.alphabet_ = known
        self.sample_shape_ = sample_shape
        self.shape_ = (*sample_shape, len(known))
        self.n_features_in_ = math.prod(sample_shape)
        self.dtype_ = known.dtype
        self.is_text_ = is_text

    def _numbers(self, symbols: Symbols) -> Iterator[tuple[int, Int[np.ndarray, "n width"]]]:
        """The places of symbols in the alphabet, a block of flat rows at a time."""
        order = np.argsort(self.alphabet_, kind="stable")
        ordered = self.alphabet_[order]
        if (symbols.dtype.kind == "U") != (ordered.dtype.kind == "U"):
            kinds = ("integers", "strings")[:: 1 if ordered.dtype.kind == "U" else -1]
            raise ValueError(f"X: expected {kinds[1]}, as the alphabet has, got {kinds[0]}.")
        flat = symbols.reshape(len(symbols), -1)
        step = max(BLOCK_BYTES // (8 * flat.shape[1]), 1)
        for start in range(0, len(flat), step):
            block = flat[start : start + step]
            places = np.minimum(np.searchsorted(ordered, block), len(ordered) - 1)
            if (wrong := ordered[places] != block).any():
                sample, site = np.argwhere(wrong)[0]
                raise ValueError(
                    f"X: expected symbols of the alphabet {_shown(self.alphabet_)}, got "
                    f"{block[sample, site].item()!r} at {self._place(site)} of sample "
                    f"{start + sample}; replace it, or fit with an alphabet that has it."
                )
            yield start, order[places]

    def _place(self, site: int | np.integer) -> str:
        """Say where the symbol is that comes at a position of a flat sample."""
        place = tuple(int(k) for k in np.unravel_index(site, self.sample_shape_))
        return f"site {place[0]}" if len(place) == 1 else f"site {place}"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _symbols(X: object) -> tuple[Symbols, bool]:
    """Samples as an array ``(n, *sites)`` of symbols, and whether they came as strings."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"X: expected strings of equal length, or an array (n_samples, ...) of symbols; {error}"
        ) from error
    if array.dtype.kind in "OT" and array.size:
        if wrong := [item for item in array.flat if not isinstance(item, str)][:1]:
            raise TypeError(
                f"X: expected strings or integers, got {type(wrong[0]).__name__} "
                f"({wrong[0]!r:.50})."
            )
        array = array.astype(str)
    if array.size == 0:
        raise ValueError(
            f"X: expected at least one sample with at least one symbol, got shape {array.shape}."
        )
    if array.dtype.kind not in "iuU":
        raise TypeError(
            f"X: expected strings or integers, got dtype {array.dtype}; convert the symbols first, "
            f"for instance with X.astype(int) or X.astype(str)."
        )
    if array.dtype.kind == "U" and array.ndim == 1:
        return _characters(array), True
    if array.ndim < 2:
        raise ValueError(
            f"X: expected an array (n_samples, ...) of symbols, one sample along the first axis, "
            f"got shape {array.shape}."
        )
    return array, False


def _characters(strings: np.ndarray) -> Symbols:
    """The characters of strings of equal length: (n, length)."""
    lengths = np.char.str_len(strings)
    if (other := lengths != lengths[0]).any():
        number = int(other.argmax())
        raise ValueError(
            f"X: expected strings of equal length, got {lengths[0]} characters in sample 0 and "
            f"{lengths[number]} in sample {number}; align them first, or fill them up with a "
            f"symbol of its own, for instance s.ljust({lengths.max()}, '-')."
        )
    if lengths[0] == 0:
        raise ValueError("X: expected at least one symbol in each sample, got empty strings.")
    shortest = np.ascontiguousarray(strings.astype(f"<U{lengths[0]}"))
    return shortest.view("<U1").reshape(len(strings), -1)


def _known_symbols(alphabet: np.ndarray | Iterable[object], dtype: DType) -> np.ndarray:
    """The symbols of an alphabet that is given, of the kind that samples of a type have."""
    symbols: list[Any] = alphabet.tolist() if isinstance(alphabet, np.ndarray) else list(alphabet)
    is_text = dtype.kind == "U"
    kind, name = (str, "strings") if is_text else (int, "integers")
    wrong = [s for s in symbols if not isinstance(s, kind) or isinstance(s, bool) or s == ""]
    if not symbols or wrong:
        given = f"{wrong[0]!r:.50}" if symbols else "none"
        raise ValueError(f"alphabet: expected {name}, as the samples have, got {given}.")
    if len(set(symbols)) < len(symbols):
        twice = next(s for s, count in Counter(symbols).items() if count > 1)
        raise ValueError(f"alphabet: expected each symbol once, got {twice!r:.50} twice.")
    if is_text:
        if (longest := max(map(len, symbols))) > LONGEST_SYMBOL:
            raise ValueError(
                f"alphabet: expected symbols of at most {LONGEST_SYMBOL} characters, got one of "
                f"{longest}."
            )
        return np.array(symbols, np.str_)
    limits = np.iinfo(dtype)
    if min(symbols) < limits.min or max(symbols) > limits.max:
        raise ValueError(
            f"alphabet: expected integers that {dtype} can hold, the type of the samples, got "
            f"{min(symbols)} to {max(symbols)}."
        )
    return np.array(symbols, dtype)


def _shown(symbols: np.ndarray) -> str:
    """An alphabet as errors show it."""
    if symbols.dtype == "<U1":
        return repr("".join(symbols.tolist()))
    return repr(symbols.tolist()) if len(symbols) <= 20 else f"of {len(symbols)} symbols"
