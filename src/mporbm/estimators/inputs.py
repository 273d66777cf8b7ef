"""Data as the estimators take them: tensors or rows, in memory, in files or as streams."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeGuard

import numpy as np
from jaxtyping import Bool, Float32, Shaped
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from ..tensor import MPSBatch
from ..tensor.check import check_shape
from ..training import devices as team
from ..training.rows import CodedRows, PackedBits, StoredRows, file_behind, is_zarr, release
from ..training.sources import BLOCK_BYTES

LARGEST_UNSCALED, LARGEST_LEVEL = 127.0, 10.0
"""The largest value, in absolute terms, that data for Bernoulli units may have, with a warning; and
that of whole numbers, which are levels to be scaled."""
REPLACE = (
    "replace them first, for instance with sklearn.impute.SimpleImputer, or complete them with a "
    "mask"
)
"""What to do with NaN that nobody takes."""
Rows = np.ndarray | PackedBits | StoredRows | CodedRows
"""Samples one along the first axis: in memory, memory-mapped, packed or stored."""
Stream = Iterable[ArrayLike] | Callable[[], Iterable[ArrayLike]]
"""An iterator over arrays of samples, or a function that makes one."""


def is_stream(X: object) -> TypeGuard[Stream]:
    """Whether X is an iterator, or makes one, instead of being an array."""
    if hasattr(X, "__array__"):
        return False
    return callable(X) or (isinstance(X, Iterable) and not hasattr(X, "__len__"))


def restart(X: Stream, n_iter: int) -> Callable[[], Iterator[ArrayLike]]:
    """A function that gives a new iterator over a stream for every epoch."""
    if callable(X):
        return lambda: iter(X())
    if isinstance(X, Iterator) and n_iter > 1:
        raise ValueError(
            f"X: expected a stream that can be read n_iter={n_iter} times, got an iterator, which "
            f"can be read once; pass a function that makes it, or call partial_fit on its parts."
        )
    return lambda: iter(X)


def check_rows(
    estimator: BaseEstimator,
    X: object,
    *,
    reset: bool,
    allow_nan: bool = False,
    missing: bool = False,
) -> Rows:
    """X as rows ``(n, *visible_shape)`` of real numbers; `reset` takes the shape from X.

    Tensors ``(n, *visible_shape)`` and flattened rows (n, n_features) are the same to every method.
    Types stay as they are, files and zarr stores are not read as a whole, and packed bits stay
    packed, but where they might have been unknown: their completion is no smaller than they are.
    Masked arrays become floating-point numbers, NaN where they are masked. With `missing` NaN are
    left to `check_values`, and with `allow_nan` infinite numbers, too, to whoever ignores them.
    """
    if isinstance(X, MPSBatch):
        raise TypeError(
            f"X: expected an array for {type(estimator).__name__}, got an MPSBatch, which MPSRBM "
            f"takes; its full tensors are X.to_tensors()."
        )
    expected = estimator.visible_shape if reset else estimator.visible_shape_
    given, flat = check_flat(
        estimator, X, expected, reset=reset, allow_nan=allow_nan, missing=missing
    )
    if reset:
        shape = given if len(given) > 1 else flat.shape[1:]
        shape = shape if expected is None else check_shape("visible_shape", expected)
        if math.prod(shape) != flat.shape[1]:
            raise ValueError(
                f"visible_shape={shape}: expected a shape of {flat.shape[1]} units, as many as X "
                f"has features, got {math.prod(shape)}."
            )
        estimator.visible_shape_ = shape
    rows = flat.reshape(len(flat), *estimator.visible_shape_)
    return np.asarray(rows) if allow_nan else rows


def check_flat(
    estimator: BaseEstimator,
    X: object,
    expected: object,
    *,
    reset: bool,
    allow_nan: bool = False,
    missing: bool = False,
) -> tuple[tuple[int, ...], Rows]:
    """The shape of the samples as they were given, and they as flat rows of real numbers.

    Tensors must be of the `expected` shape, if there is one.
    """
    array: Any = unmasked(X) if isinstance(X, np.ma.MaskedArray) else X
    if isinstance(X, (list, tuple)):
        # Of what is no array scikit-learn says what is wrong with it.
        with suppress(ValueError):
            array = np.asarray(X)
    elif not isinstance(X, np.ndarray) and is_zarr(X):
        array = StoredRows(array)
    given: tuple[int, ...] = getattr(array, "shape", ())
    dtype = getattr(array, "dtype", None)
    if getattr(dtype, "kind", "") in ("S", "U"):
        raise ValueError(
            f"X: expected numbers, got strings (dtype {dtype}); convert them first, for "
            f"instance with X.astype(float)."
        )
    # What is not in memory as it is; all else scikit-learn knows better.
    kept = isinstance(array, (PackedBits, StoredRows))
    if kept and (len(given) < 2 or array.dtype.kind not in "biuf"):
        raise ValueError(
            f"X: expected samples of real numbers, one along the first axis, got shape {given} of "
            f"dtype {dtype}."
        )
    if 0 in given and (kept or len(given) > 2):
        raise ValueError(f"X: expected at least one sample and no empty mode, got shape {given}.")
    if len(given) > 2:
        if expected is not None and given[1:] != (shape := check_shape("visible_shape", expected)):
            modes = ", ".join(map(str, shape))
            raise ValueError(
                f"X: expected shape (n_samples, {modes}) or (n_samples, {math.prod(shape)}), got "
                f"samples of shape {given[1:]}."
            )
        array = array.reshape(given[0], -1)
    finite: bool | str = "allow-nan" if missing else not allow_nan
    flat = validate_data(
        estimator,
        array,
        reset=reset,
        skip_check_array=kept,
        dtype="numeric",
        ensure_all_finite=finite if file_behind(array) is None else False,
        ensure_min_samples=1,
    )
    return tuple(given[1:]), flat


def unmasked(array: np.ma.MaskedArray) -> np.ndarray:
    """Give floating-point numbers for a masked array, NaN where it is masked."""
    dtype = array.dtype if array.dtype.kind == "f" else np.result_type(array.dtype, np.float32)
    return np.ma.filled(array.astype(dtype), np.nan)


def check_values(
    rows: Rows,
    visible_units: str,
    *,
    shared: bool = False,
    missing: bool = False,
    hint: str = REPLACE,
) -> bool:
    """Refuse values that cannot be those of the visible units; say whether any are NaN.

    These are refused, too, with a hint what to do, but where they may be `missing`.
    """
    if rows.dtype == bool:
        return False
    smallest, largest, is_missing = range_and_missing(rows, shared=shared)
    if is_missing and not missing:
        value_range(rows, shared=shared, hint=hint)
    if visible_units != "bernoulli" or (smallest >= 0.0 and largest <= 1.0):
        return is_missing
    found = "X: expected values from 0 to 1 for Bernoulli visible units, got"
    furthest, first = max(largest, -smallest), next(blocks(rows))[1]
    is_whole = rows.dtype.kind != "f" or bool((np.nan_to_num(first) % 1.0 == 0.0).all())
    limit = LARGEST_LEVEL if is_whole else LARGEST_UNSCALED
    if rows.dtype == np.uint8 or furthest > limit:
        raise ValueError(
            f"{found} {smallest:g} to {largest:g}; scale or binarise them first, for instance X / "
            f"{largest:g} or X > {0.5 * (smallest + largest):g}, or set visible_units='gaussian' "
            f"for standardised data."
        )
    warnings.warn(
        f"{found} {smallest:.3g} to {largest:.3g}; they are taken as they are. Scale them, or set "
        f"visible_units='gaussian'.",
        UserWarning,
        stacklevel=4,
    )
    return is_missing


def check_one_hot(samples: Rows) -> None:
    """Refuse samples of categorical units whose first ones are not one-hot along the last mode."""
    rows = next(blocks(samples))[1]
    known = rows[~np.isnan(rows).any(axis=-1)] if rows.dtype.kind == "f" else rows
    total = known.sum(axis=-1)
    if known.size and not (np.isin(known, (0, 1)).all() and (total == 1).all()):
        raise ValueError(
            f"X: expected one-hot states along the last mode for categorical visible units, a 1 "
            f"and else 0, got values from {known.min():g} to {known.max():g} whose sums are from "
            f"{total.min():g} to {total.max():g}; mporbm.Alphabet makes such states of symbols, "
            f"and visible_shape says what the modes are."
        )


def value_range(rows: Rows, *, shared: bool = False, hint: str = REPLACE) -> tuple[float, float]:
    """The smallest and the largest value; NaN is refused, with a hint what to do.

    Processes that have the same rows can have `shared` work.
    """
    return range_and_missing(rows, shared=shared, hint=hint)[:2]


def range_and_missing(
    rows: Rows, *, shared: bool = False, hint: str | None = None
) -> tuple[float, float, bool]:
    """The smallest and the largest value, and whether any are NaN: with a hint they are refused."""
    smallest, largest, is_missing = math.inf, -math.inf, False
    for start, block in blocks(rows, *(team.process_rank() if shared else (0, 1))):
        low, high = float(block.min()), float(block.max())
        if math.isnan(low) and hint is None:
            is_missing, known = True, block[~np.isnan(block)]
            low, high = float(known.min(initial=smallest)), float(known.max(initial=largest))
            if len(known) == 0:
                continue
        smallest, largest = min(smallest, low), max(largest, high)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"X: expected finite numbers, got NaN or inf in samples {start} to "
                f"{start + len(block) - 1}; {hint or REPLACE}."
            )
    if not shared:
        return smallest, largest, is_missing
    is_missing = bool(team.common_range(0.0, float(is_missing))[1])
    return *team.common_range(smallest, largest), is_missing


def blocks(rows: Rows, first: int = 0, every: int = 1) -> Iterator[tuple[int, np.ndarray]]:
    """The rows a block at a time, each with the number of its first row; or only some blocks."""
    row_bytes = rows.dtype.itemsize * math.prod(rows.shape[1:])
    step = max(BLOCK_BYTES // max(row_bytes, 1), 1)
    for start in range(first * step, len(rows), every * step):
        yield start, np.asarray(rows[start : start + step])
        release(rows)


def check_mask(mask: ArrayLike | None, rows: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
    """Which values of the rows are known: those that the mask says, or that are not NaN."""
    shape = rows.shape
    seen = ~np.isnan(rows) if rows.dtype.kind == "f" else np.broadcast_to(np.True_, shape)
    if mask is None:
        return seen
    given = np.asarray(mask)
    if given.dtype != bool:
        raise TypeError(
            f"mask: expected an array of bool, True where a value is known, got dtype "
            f"{given.dtype}; try mask.astype(bool)."
        )
    flat = math.prod(shape[1:])
    if given.shape in ((len(rows), flat), (1, flat), (flat,)) and given.shape != shape:
        given = given.reshape(*given.shape[:-1], *shape[1:])
    if given.shape not in (shape, shape[1:], (1, *shape[1:])):
        raise ValueError(
            f"mask: expected shape {shape}, as X has, or {shape[1:]} for all samples, got "
            f"{given.shape}."
        )
    if rows.dtype.kind == "f" and (given & ~seen).any():
        raise ValueError(
            "mask: expected False wherever X is NaN, got True; try mask & ~np.isnan(X)."
        )
    return np.broadcast_to(given, shape)


def check_weights(sample_weight: object, n_samples: int) -> Float32[np.ndarray, " n"] | None:
    """One weight of at least 0 for each sample, not all 0."""
    if sample_weight is None:
        return None
    expected = f"sample_weight: expected shape ({n_samples},), one"
    try:
        weight = np.asarray(sample_weight, np.float32)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{expected} number for each sample; {error}.") from error
    if weight.shape != (n_samples,):
        raise ValueError(f"{expected} weight for each sample, got {weight.shape}.")
    if not np.isfinite(weight).all() or weight.min() < 0.0 or weight.max() == 0.0:
        raise ValueError(
            "sample_weight: expected finite weights of at least 0, not all of them 0, got "
            f"{weight.min()} to {weight.max()}."
        )
    return weight


def check_labels(name: str, y: ArrayLike) -> Shaped[np.ndarray, " n"]:
    """Check labels as scikit-learn takes them: one-dimensional, finite, not continuous."""
    labels: np.ndarray = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name=name)
    check_classification_targets(labels)
    return labels


def take_weight(fit_params: dict[str, object]) -> object:
    """Take the sample weights out of the other keywords of `fit`, and refuse what is left."""
    weight = fit_params.pop("sample_weight", None)
    if fit_params:
        raise TypeError(
            f"fit: expected the keywords X_val and sample_weight, got "
            f"{', '.join(sorted(fit_params))}."
        )
    return weight
