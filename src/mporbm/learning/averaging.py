"""The mean of a machine over the last part of its training.

Steps of a given length do not become shorter as the gradient does: parameters keep moving around
what they have learnt, and their mean is better than any of them. After n batches

``mean <- mean + w (theta - mean),  w = (1 + s) / (n + s),  s = 9``,

which averages over about the last tenth of them, however many there are (Shamir & Zhang 2013).
Factors are averaged as they are, because their gauge hardly changes from batch to batch. Where
factors are balanced anew the mean begins again.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Model

SHARPNESS = 9.0
"""One over the share of the batches that counts, less one."""


class Average(eqx.Module):
    """A machine whose parameters are means of those that were learnt."""

    machine: Model
    n_batches: Array

    @classmethod
    def begin(cls, machine: Model) -> "Average":
        """Begin before the first batch."""
        return cls(machine, jnp.zeros((), jnp.int32))

    def add(self, machine: Model, counts: Array) -> "Average":
        """Take the parameters after another batch into the mean, if the batch counts."""
        n_batches = self.n_batches + counts.astype(jnp.int32)
        weight = (1.0 + SHARPNESS) / (jnp.maximum(n_batches, 1) + SHARPNESS)

        def mean(old: Array, new: Array) -> Array:
            return jnp.where(counts, old + weight.astype(old.dtype) * (new - old), old)

        return Average(jax.tree.map(mean, self.machine, machine), n_batches)

    def restart(self, machine: Model) -> "Average":
        """Forget what was averaged, but not for how long."""
        return Average(machine, self.n_batches)
