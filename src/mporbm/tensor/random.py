"""Normal factors, scaled so that the entries of their product have a wanted standard deviation."""

import math
from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import DTypeLike

from .arrays import DType, RandomKey
from .check import check_dtype, check_key, check_positive


def factor_std(std: float, n_factors: int, n_terms: int = 1) -> float:
    """The std of independent factor entries that gives a sum of products the wanted std.

    A sum of `n_terms` products of `n_factors` entries of std s has std
    ``s**n_factors * sqrt(n_terms)``.
    """
    return float((check_positive("std", std) / math.sqrt(n_terms)) ** (1.0 / n_factors))


def normal_arrays(
    key: RandomKey, shapes: Sequence[tuple[int, ...]], std: float, dtype: DTypeLike | None = None
) -> list[Array]:
    """Independent normal arrays of the given shapes and standard deviation."""
    arrays: list[Array] = _normal_arrays(check_key(key), tuple(shapes), check_dtype(dtype), std)
    return arrays


@partial(jax.jit, static_argnums=(1, 2))
def _normal_arrays(
    key: RandomKey,
    shapes: tuple[tuple[int, ...], ...],
    dtype: DType,
    std: float | Float[Array, ""],
) -> list[Array]:
    # One draw for all: compiling a generator for each shape would take seconds.
    sizes = [math.prod(shape) for shape in shapes]
    entries = jnp.asarray(std, dtype) * jax.random.normal(key, (sum(sizes),), dtype)
    parts = jnp.split(entries, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
