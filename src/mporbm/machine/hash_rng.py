"""Random bits at the price of a few multiplications, in the same pass that uses them.

JAX's own generator (threefry) makes good keys, but to draw every unit of a layer by its 20 rounds
takes half as long as all matrix products of a step, and even one key is a loop of its own in the
compiled program. Here a bit depends on the words of a key and its position by a hash, which is
compiled into the loop that needs it. Entries do not depend on the size of an array, nor on who
computes it. Not for cryptography.
"""

import math
from itertools import cycle

import jax
import jax.numpy as jnp
from jax import Array

MIXERS = ((0x21F0AAAD, 0xD35A2D97, 15), (0x7FEB352D, 0x846CA68B, 16))
"""Multipliers and last shifts of 32-bit mixers, found by a search for the least bias
(github.com/skeeto/hash-prospector)."""
START = 0x9E3779B9
"""Where positions are counted from, so that a key of zeros is like any other."""


def hash_bits(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform words of 32 bits: positions, mixed after each word of the key is added."""
    if key.shape and not jnp.issubdtype(key.dtype, jnp.uint32):
        raise ValueError(f"key: expected one key, got an array of keys of shape {key.shape}.")
    words = jax.random.key_data(key)
    state: Array = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape) + jnp.uint32(START)
    for word, (first, second, shift) in zip(words, cycle(MIXERS), strict=False):
        state = state + word
        state = (state ^ (state >> 16)) * jnp.uint32(first)
        state = (state ^ (state >> 15)) * jnp.uint32(second)
        state = state ^ (state >> shift)
    return state


def hash_split(key: Array, n_keys: int = 2) -> Array:
    """As `jax.random.split`, by `hash_bits`: a key is used for one of both, and once."""
    data = hash_bits(key, (n_keys, *jax.random.key_data(key).shape))
    keys: Array = jax.random.wrap_key_data(data, impl=jax.random.key_impl(key))
    return keys
