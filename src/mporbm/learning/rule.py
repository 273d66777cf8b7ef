"""The update rule: how a gradient becomes a velocity and a step.

Lines 11-14 of Algorithm 1: ``velocity <- momentum velocity + rate g``,
``theta <- theta + velocity``. Biases step here (`UpdateRule.move_biases`), factors in
`algorithm.ascend`, where their gauge is known. Two schemes move their cores by themselves: two-site
(`two_site.py`), which has no velocity of cores, and that of layers in MPS form (`mps/scheme.py`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .gradient import Parameters


class Rates(eqx.Module):
    """Learning rates of the coupling and of the biases; the paper's alpha is both."""

    coupling: Array
    bias: Array

    def __init__(self, coupling: ArrayLike, bias: ArrayLike):
        self.coupling = jnp.asarray(coupling, float)
        self.bias = jnp.asarray(bias, float)

    def __mul__(self, factor: ArrayLike) -> "Rates":
        return Rates(self.coupling * factor, self.bias * factor)


class UpdateRule(eqx.Module):
    """Momentum, gauge, weight decay and sparsity.

    With the gauge, g is the natural gradient of a factor, and its velocity goes on as the step in
    W that it was, as far as the factor can follow (`mporbm.learning.gauge`). The step in W is then
    never longer than that of a dense machine. Factors without a velocity that could be carried
    (the two-site scheme) take the step that momentum leads to in the end; along a train (MPS form)
    velocities stay numbers of the cores. A momentum of 0 leaves velocities at 0, and they cost
    nothing.

    Weight decay takes ``rate weight_decay / (1 - momentum)`` of every moved factor: with the gauge
    the gradient of ``-weight_decay/2 |W|^2``, without noise and so without velocity. A sparsity
    target t adds ``sparsity_cost (t - E_data[H])`` to the gradient of the hidden bias.

    Centred, g is the gradient of centred variables divided by the length of its step
    (`mporbm.learning.centring`).
    """

    gauge: bool = eqx.field(static=True)
    centred: bool = eqx.field(static=True)
    has_momentum: bool = eqx.field(static=True)
    momentum: Array
    weight_decay: Array
    sparsity_target: Array
    sparsity_cost: Array

    def __init__(
        self,
        *,
        gauge: bool = True,
        centred: bool = False,
        momentum: ArrayLike = 0.5,
        weight_decay: ArrayLike = 0.0,
        sparsity_target: ArrayLike = 0.0,
        sparsity_cost: ArrayLike = 0.0,
    ):
        self.gauge, self.centred = gauge, centred
        self.has_momentum = isinstance(momentum, jax.core.Tracer) or bool(momentum != 0.0)
        self.momentum = jnp.asarray(momentum, float)
        self.weight_decay = jnp.asarray(weight_decay, float)
        self.sparsity_target = jnp.asarray(sparsity_target, float)
        self.sparsity_cost = jnp.asarray(sparsity_cost, float)

    def with_sparsity(self, ascent: Parameters, hidden_mean: Array) -> Parameters:
        """Add the sparsity term to the gradient of the hidden bias."""
        pull = self.sparsity_cost * (self.sparsity_target - hidden_mean)
        bias = ascent.hidden_bias + pull.astype(ascent.hidden_bias.dtype)
        pulled: Parameters = eqx.tree_at(lambda a: a.hidden_bias, ascent, bias)
        return pulled

    def accelerate(self, velocity: Array, ascent: Array, rate: Array) -> Array:
        """Compute the new velocity ``momentum velocity + rate g``."""
        kept = self.momentum * velocity if self.has_momentum else 0.0
        return (kept + rate * ascent).astype(velocity.dtype)

    def move_biases(
        self, theta: Parameters, velocity: Parameters, ascent: Parameters, rate: Array
    ) -> tuple[list[Array], list[Array]]:
        """Lines 11-14 for both biases: where they move, and their new velocities."""
        pairs = zip(velocity.biases, ascent.biases, strict=True)
        velocities = [self.accelerate(old, gradient, rate) for old, gradient in pairs]
        return [b + v for b, v in zip(theta.biases, velocities, strict=True)], velocities

    def decay(self, factor: Array, rate: Array) -> Array:
        """Shrink a factor by the step that momentum builds up from a steady weight decay."""
        loss = rate * self.weight_decay / (1.0 - self.momentum)
        return factor * (1.0 - loss).astype(factor.dtype)
