"""Rectified units: real ones that are never below 0."""

import math

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import log_ndtr, ndtri

from ...tensor.arrays import HostTensor, Samples
from ..hash_rng import hash_bits
from .base import HIDDEN_UNITS, Units

TAIL, DEPTH, N_NEWTON = -5.0, 12, 2
"""Fields below `TAIL` leave a tail of the normal distribution, whose integral is a continued
fraction of this depth; its quantiles are found by so many steps of Newton's method."""


@HIDDEN_UNITS.register("rectified")
class Rectified(Units):
    """Real units x >= 0 with ``potential(x) = x^2 / 2``: a normal distribution cut off at 0.

    In a field f the normal distribution has mean f and variance 1. Units are hidden ones: strong
    fields make them proportional to the field, weak ones turn them off (Nair & Hinton 2010).
    """

    @property
    def rest_variance(self) -> float:
        """``1 - 2 / pi``."""
        return 1.0 - 2.0 / math.pi

    def potential(self, state: Array) -> Array:
        """``x^2 / 2``."""
        return 0.5 * state**2

    def log_partition(self, field: Array) -> Array:
        """``f^2 / 2 + log Phi(f) + log(2 pi) / 2``, Phi being the normal distribution function."""
        near, far = _near(field), _far(field)
        body = 0.5 * near**2 + log_ndtr(near) + 0.5 * math.log(2.0 * math.pi)
        return jnp.where(field > TAIL, body, -jnp.log(far + 1.0 / _fraction(far)))

    def mean(self, field: Array) -> Array:
        """``f + phi(f) / Phi(f)``, phi being the normal density."""
        near = _near(field)
        body = near + jnp.exp(-self.log_partition(near))
        return jnp.where(field > TAIL, body, 1.0 / _fraction(_far(field)))

    def sample(self, key: Array, field: Array) -> Array:
        """Quantiles of uniform numbers of 32 bits."""
        precise = field.astype(jnp.promote_types(field.dtype, jnp.float32))
        uniform = (hash_bits(key, field.shape).astype(precise.dtype) + 0.5) * 2.0**-32
        near, far = _near(precise), _far(precise)
        body = near - ndtri(uniform * jnp.exp(log_ndtr(near)))
        # With a = -f and M of `_fraction`, a share exp(-a x - x^2 / 2) M(a + x) / M(a) lies above
        # x. Without the ratio the quantile would be the first x; the slope of its log is -1 / M.
        surprise = -jnp.log(uniform)
        tail = 2.0 * surprise / (far + jnp.sqrt(far**2 + 2.0 * surprise))
        whole = jnp.log(far + 1.0 / _fraction(far))
        for _ in range(N_NEWTON):
            rate = far + tail + 1.0 / _fraction(far + tail)
            excess = far * tail + 0.5 * tail**2 + jnp.log(rate) - whole - surprise
            tail = tail - excess / rate
        state = jnp.where(precise > TAIL, body, tail)
        return jnp.maximum(state, 0.0).astype(field.dtype)

    def total_variance(self, mean: Array, spread: Array) -> Array:
        """Refuse: the variance is no function of the mean."""
        raise NotImplementedError("Rectified units are hidden ones, whose variance is not told.")

    def entropy(self, mean: Array) -> Array:
        """Refuse: the entropy is no function of the mean that is known."""
        raise NotImplementedError("Rectified units have no mean-field entropy.")

    def base_bias(self, rows: Samples) -> HostTensor:
        """Refuse: data are of other kinds."""
        raise NotImplementedError("Rectified units are hidden ones, without base rates.")


def _near(field: Array) -> Array:
    """Fields of the body; those of the tail must not spoil gradients."""
    return jnp.where(field > TAIL, field, TAIL)


def _far(field: Array) -> Array:
    """Minus the fields of the tail."""
    return -jnp.where(field > TAIL, TAIL, field)


def _fraction(a: Array) -> Array:
    """``a + 2 / (a + 3 / (a + ...))``, with ``1 / M(a) = a + 1 / _fraction(a)`` for Mills' ratio.

    ``M(a) = (1 - Phi(a)) / phi(a)``; the error is below 3e-11 from a = 5 on.
    """
    fraction = a
    for k in range(DEPTH, 1, -1):
        fraction = a + k / fraction
    return fraction
