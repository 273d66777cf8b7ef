"""The map between linear and multi-indices, the paper's Eq. (1)."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from .check import check_choice, check_shape

Order = Literal["C", "F"]


def linear_index(
    multi_index: Sequence[ArrayLike] | Int[np.ndarray, "d ..."],
    shape: Sequence[int],
    order: Order = "C",
) -> Int[np.ndarray, "..."]:
    """The position of entry ``[i_1, ..., i_d]`` in the flattened tensor, counted from 0.

    ``order="F"`` is the paper's Eq. (1), ``i = i_1 + sum_k i_k prod_{p<k} I_p`` (there counted
    from 1); ``order="C"`` is NumPy's, ``i = i_d + sum_k i_k prod_{p>k} I_p``.

    Parameters
    ----------
    multi_index
        d integers, or d integer arrays that broadcast against each other.

    Examples
    --------
    >>> int(linear_index((2, 1), (4, 3), order="F")), int(linear_index((2, 1), (4, 3)))
    (6, 7)
    """
    sizes = _check_indexed(shape, order)
    if not isinstance(multi_index, (Sequence, np.ndarray)):
        raise TypeError(
            f"multi_index: expected a sequence of {len(sizes)} indices, got {multi_index!r}."
        )
    if len(multi_index) != len(sizes):
        raise ValueError(
            f"multi_index: expected {len(sizes)} indices, one per mode of shape {sizes}, "
            f"got {len(multi_index)}."
        )
    indices = [
        _check_indices(f"multi_index[{k}]", index, size)
        for k, (index, size) in enumerate(zip(multi_index, sizes, strict=True))
    ]
    try:
        np.broadcast_shapes(*(index.shape for index in indices))
    except ValueError:
        raise ValueError(
            f"multi_index: expected arrays that broadcast against each other, got shapes "
            f"{[index.shape for index in indices]}."
        ) from None
    return np.asarray(np.ravel_multi_index(tuple(indices), sizes, order=order))


def multi_index(
    linear_index: ArrayLike, shape: Sequence[int], order: Order = "C"
) -> tuple[Int[np.ndarray, "..."], ...]:
    """The multi-index ``(i_1, ..., i_d)`` of a linear index: the inverse of `linear_index`.

    Examples
    --------
    >>> [int(i) for i in multi_index(6, (4, 3), order="F")]
    [2, 1]
    """
    sizes = _check_indexed(shape, order)
    index = _check_indices("linear_index", linear_index, math.prod(sizes))
    return tuple(np.asarray(part) for part in np.unravel_index(index, sizes, order=order))


def _check_indexed(shape: object, order: object) -> tuple[int, ...]:
    sizes = check_shape("shape", shape)
    check_choice("order", order, ("C", "F"))
    limit = np.iinfo(np.intp).max
    if math.prod(sizes) > limit:
        raise ValueError(
            f"shape={sizes}: expected at most {limit} entries, got {math.prod(sizes)}."
        )
    return sizes


def _check_indices(name: str, value: ArrayLike, size: int) -> Int[np.ndarray, "..."]:
    array = np.asarray(value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got dtype {array.dtype} (value {value!r}).")
    if array.size and not (array.min() >= 0 and array.max() < size):
        raise ValueError(
            f"{name}: expected integers in 0..{size - 1}, got values in "
            f"{array.min()}..{array.max()}."
        )
    return array.astype(np.intp)
