"""Checks of user input: each error names the argument, the given and the expected value.

A wrong type raises `TypeError`, a wrong value `ValueError`.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray


def check_integer(name: str, value: Any, minimum: int = 1) -> int:
    """An integer of at least `minimum`; floats and booleans are refused, never rounded."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise TypeError(
            f"{name}={value!r}: expected an integer, got {type(value).__name__}; "
            f"convert it yourself, for instance with int(...)."
        )
    number = operator.index(value)
    if number < minimum:
        raise ValueError(f"{name}={number}: expected an integer of at least {minimum}.")
    return number


def check_shape(name: str, value: Any) -> tuple[int, ...]:
    """A shape: at least one mode, each a positive integer."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(
            f"{name}={value!r}: expected a sequence of positive integers such as (28, 28), "
            f"got {type(value).__name__}."
        )
    if len(value) == 0:
        raise ValueError(f"{name}={value!r}: expected at least one mode, such as (28, 28).")
    return tuple(check_integer(f"{name}[{k}]", size) for k, size in enumerate(value))


def check_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}: expected {expected}.")
    return value


def check_tolerance(name: str, value: Any) -> float:
    """A relative tolerance in [0, 1)."""
    number = check_real(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(
            f"{name}={number}: expected a relative error in [0, 1), such as 1e-3; "
            f"0 keeps everything."
        )
    return number


def check_positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = check_real(name, value)
    if not (number > 0.0 and math.isfinite(number)):
        raise ValueError(f"{name}={number}: expected a finite number above 0.")
    return number


def check_real(name: str, value: Any) -> float:
    """A real number, given as one: booleans, strings and arrays with a shape are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name}={value!r}: expected a real number, got {type(value).__name__}.")
    return float(value)


def check_array(name: str, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """A real floating-point JAX array with finite entries, of the given shape if one is given.

    Inside `jit` the entries are unknown and only type and shape are checked.
    """
    given = value if isinstance(value, Array) else np.asarray(value)
    _check_real_dtype(name, given)
    if shape is not None and given.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {given.shape}.")
    if not isinstance(given, jax.core.Tracer):
        _check_finite(name, np.asarray(given))
    if jnp.issubdtype(given.dtype, jnp.floating):
        return jnp.asarray(given)
    return jnp.asarray(given, jnp.result_type(float))


def host_array(
    name: str, value: Any, shape: tuple[int, ...] | None = None
) -> tuple[NDArray[np.float64], jnp.dtype[Any]]:
    """Finite real data as a float64 NumPy array, and the JAX dtype a result should have."""
    array = np.asarray(value)
    _check_real_dtype(name, array)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}.")
    _check_finite(name, array)
    floating = jnp.issubdtype(array.dtype, jnp.floating)
    return array.astype(np.float64), jnp.result_type(array.dtype if floating else float)


def _check_real_dtype(name: str, array: Any) -> None:
    if not (array.dtype.kind in "biu" or jnp.issubdtype(array.dtype, jnp.floating)):
        raise TypeError(f"{name}: expected an array of real numbers, got dtype {array.dtype}.")


def _check_finite(name: str, array: NDArray[Any]) -> None:
    n_bad = int(np.count_nonzero(~np.isfinite(array)))
    if n_bad:
        raise ValueError(
            f"{name}: expected finite entries, got {n_bad} of {array.size} that are NaN or "
            f"infinite; replace or remove them first."
        )


def check_batch(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A batch of tensors: any leading axes, then exactly `shape`."""
    array = value if isinstance(value, Array) else np.asarray(value)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        flat = math.prod(shape)
        hint = ""
        if len(shape) > 1 and array.ndim and array.shape[-1] == flat:
            hint = f"; unflatten it with {name}.reshape(-1, {', '.join(map(str, shape))})"
        raise ValueError(
            f"{name}: expected shape (..., {', '.join(map(str, shape))}), got {array.shape}{hint}."
        )
    _check_real_dtype(name, array)
    return jnp.asarray(array)
