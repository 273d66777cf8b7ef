"""Random bits at the price of a few multiplications, in the same pass that uses them."""

import math

import jax
import jax.numpy as jnp
from jax import Array

MIXERS = ((0x21F0AAAD, 0xD35A2D97, 15), (0x7FEB352D, 0x846CA68B, 16))
"""Multipliers and last shifts of 32-bit mixers, found by a search for the least bias
(github.com/skeeto/hash-prospector)."""


def random_bits(key: Array, shape: tuple[int, ...]) -> Array:
    """Uniform words of 32 bits: a hash of their positions, keyed twice.

    JAX's own generator makes two words of a key. To draw every entry of a large array with its 20
    rounds would take half as long as all matrix products of a step; mixing positions with these
    words is nearly free, because it is compiled into the loop that needs the bits. An entry does
    not depend on the size of the array, nor on who computes it. Not for cryptography.
    """
    words = jax.random.bits(key, (len(MIXERS),), jnp.uint32)
    state = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    for word, (first, second, shift) in zip(words, MIXERS, strict=True):
        state = state + word
        state = (state ^ (state >> 16)) * jnp.uint32(first)
        state = (state ^ (state >> 15)) * jnp.uint32(second)
        state = state ^ (state >> shift)
    return state
