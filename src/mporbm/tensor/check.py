"""Checks of user input: each error names the argument, the given and the expected value.

A wrong type raises `TypeError`, a wrong value `ValueError`.
"""

import math
import operator
import reprlib
from collections.abc import Sequence
from typing import SupportsFloat, SupportsIndex, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Real
from numpy.typing import ArrayLike, DTypeLike

from .arrays import AnyArray, DType, HostTensor, RandomKey


def check_integer(name: str, value: object, minimum: int = 1) -> int:
    """An integer of at least `minimum`; floats and booleans are refused, never rounded."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise TypeError(
            f"{name}={value!r}: expected an integer, got {type(value).__name__}; "
            f"convert it yourself, for instance with int(...)."
        ) from None
    if number < minimum:
        raise ValueError(f"{name}={number}: expected an integer of at least {minimum}.")
    return number


def check_sequence(name: str, value: object, expected: str) -> Sequence[object]:
    """A non-empty list or tuple; `expected` says of what."""
    message = f"{name}: expected a non-empty sequence of {expected}, got {reprlib.repr(value)}"
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{message} ({type(value).__name__}).")
    if len(value) == 0:
        raise ValueError(f"{message}.")
    return value


def check_shape(name: str, value: object) -> tuple[int, ...]:
    """A shape: at least one mode, each a positive integer."""
    sizes = value.tolist() if isinstance(value, np.ndarray) else value
    sizes = check_sequence(name, sizes, "positive integers, such as (28, 28)")
    return tuple(check_integer(f"{name}[{k}]", size) for k, size in enumerate(sizes))


def check_paired_shapes(
    first_name: str, first: object, second_name: str, second: object
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes with the same number of modes."""
    one, other = check_shape(first_name, first), check_shape(second_name, second)
    if len(one) != len(other):
        hint = "pad the shorter one with modes of size 1"
        if len(one) == 1 and first_name == "visible_shape":
            hint = (
                "if samples come flattened, visible_shape says what tensors they are, else " + hint
            )
        raise ValueError(
            f"{second_name}={other}: expected {len(one)} modes, as many as {first_name}={one}, "
            f"got {len(other)}; {hint}."
        )
    return one, other


def check_position(name: str, value: object, n_cores: int) -> int:
    """The position of a core, counted from 0 or, negative, from the end; as one from 0."""
    position = check_integer(name, value, minimum=-n_cores)
    if position >= n_cores:
        raise ValueError(
            f"{name}={position}: expected a core in 0..{n_cores - 1} (or counted from the end, "
            f"-1..-{n_cores})."
        )
    return position % n_cores


def check_concrete(name: str, what: str, value: object) -> None:
    """Refuse a traced array where the numbers themselves decide."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name}: expected concrete {what}, got traced ones; ranks depend on the numbers, so "
            f"call it outside of jit, grad and vmap."
        )


def check_choice(name: str, value: object, choices: Sequence[str | None]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        *most, last = (repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}: expected {', '.join(most)} or {last}.")
    return value


def check_real(name: str, value: object) -> float:
    """A real number, given as one: booleans, strings and arrays with a shape are refused."""
    scalar = np.ndim(cast(ArrayLike, value)) == 0 and not isinstance(value, (str, bytes))
    if not scalar or np.asarray(value).dtype.kind not in "iuf":
        raise TypeError(f"{name}={value!r}: expected a real number, got {type(value).__name__}.")
    return float(cast(SupportsFloat, value))


def check_tolerance(name: str, value: object) -> float:
    """A relative tolerance in [0, 1)."""
    number = check_real(name, value)
    if not 0.0 <= number < 1.0:
        raise ValueError(
            f"{name}={number}: expected a relative error in [0, 1), such as 1e-3; "
            f"0 keeps everything."
        )
    return number


def check_positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = check_real(name, value)
    if not (number > 0.0 and math.isfinite(number)):
        raise ValueError(f"{name}={number}: expected a finite number above 0.")
    return number


def check_key(key: object) -> RandomKey:
    """A single random key of JAX, of the new or the old (uint32) kind."""
    if not isinstance(key, Array) or not (
        (jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ())
        or (key.dtype == np.uint32 and key.ndim == 1)
    ):
        raise TypeError(
            f"key: expected one random key of JAX, got {reprlib.repr(key)}; "
            f"make one with jax.random.key(0)."
        )
    return key


def check_dtype(dtype: DTypeLike | None) -> DType:
    """A floating-point type, JAX's default one if None."""
    try:
        checked = jax.dtypes.canonicalize_dtype(float if dtype is None else dtype)
        if jnp.issubdtype(checked, jnp.floating):
            return checked
    except TypeError:
        pass
    raise TypeError(f"dtype={dtype!r}: expected a floating-point type such as jnp.float32.")


def check_array(
    name: str, value: object, shape: tuple[int, ...] | None = None
) -> Float[Array, "..."]:
    """A floating-point JAX array with finite entries, of the given shape if one is given.

    NumPy arrays are copied: JAX would share their memory, and change with them. Inside `jit` the
    entries are unknown and only type and shape are checked.
    """
    array, dtype = _checked_array(name, value, shape)
    return jnp.asarray(array, dtype)


def _checked_array(
    name: str, value: object, shape: tuple[int, ...] | None
) -> tuple[AnyArray, DType]:
    """The array, still in NumPy if it was not one of JAX, and the JAX dtype that it should have."""
    array = _real_array(name, value)
    if shape is not None and array.shape != shape:
        hint = f"; transpose it with {name}.T" if array.shape == shape[::-1] else ""
        hint = hint or _reshape_hint(name, array.shape, shape)
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}{hint}.")
    is_floating = jnp.issubdtype(array.dtype, jnp.floating)
    dtype = jax.dtypes.canonicalize_dtype(array.dtype if is_floating else float)
    if not isinstance(array, Array):
        with np.errstate(over="ignore"):
            array = np.array(array, dtype)
    if not isinstance(array, jax.core.Tracer) and getattr(array, "is_fully_addressable", True):
        # In NumPy, as JAX would compile a program for every shape.
        finite = np.isfinite(np.asarray(array))
        if not finite.all():
            raise ValueError(
                f"{name}: expected entries that are finite in {array.dtype}, got "
                f"{array.size - int(finite.sum())} of {array.size} that are NaN or infinite; "
                f"replace or remove them first."
            )
    return array, dtype


def host_array(
    name: str, value: object, shape: tuple[int, ...] | None = None
) -> tuple[HostTensor, DType]:
    """Finite real data as a float64 NumPy array, and the JAX dtype a result should have."""
    check_concrete(name, "numbers", value)
    _, dtype = _checked_array(name, value, shape)
    return np.asarray(value, np.float64), dtype


def check_batch(
    name: str, value: object, shape: tuple[int, ...], dtype: DType
) -> Float[Array, "..."]:
    """A batch of tensors in `dtype`: any leading axes, then exactly `shape`."""
    array = _real_array(name, value)
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        modes = ", ".join(map(str, shape))
        raise ValueError(
            f"{name}: expected shape (..., {modes}), got {array.shape}"
            f"{_reshape_hint(name, array.shape, shape)}."
        )
    return jnp.asarray(array, dtype)


def _real_array(name: str, value: object) -> Real[AnyArray, "..."] | Bool[AnyArray, "..."]:
    try:
        array = value if isinstance(value, Array) else np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: expected an array of real numbers; {error}") from error
    kinds = (jnp.bool_, jnp.integer, jnp.floating)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in kinds):
        raise TypeError(
            f"{name}: expected an array of real numbers, got {type(value).__name__} of "
            f"dtype {array.dtype}."
        )
    return array


def _reshape_hint(name: str, given: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """How to reshape, where the number of entries fits one tensor or a batch of them."""
    modes = ", ".join(map(str, shape))
    if math.prod(given) == math.prod(shape):
        return f"; reshape it with {name}.reshape({modes})"
    if len(given) > 1 and math.prod(given[1:]) == math.prod(shape):
        return f"; reshape it with {name}.reshape(-1, {modes})"
    return ""
