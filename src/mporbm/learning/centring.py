"""Centred variables, and steps of a given length.

With the means mu and lambda that the data give to V and H, the same machine reads

``-E(V, H) = <V - mu, W(H - lambda)> + <V - mu, b> + <c, H - lambda> + constant``,

where ``b = B + W(lambda)`` and ``c = C + W^T(mu)``. At fixed b and c, W learns what units have in
common beyond their means, and flipping the bits of the data changes nothing (Montavon & Müller
2012; Melchior, Fischer & Wiskott 2016). Divided by its length, a step is as long as the learning
rate says, whatever the machine and the data, and cannot overflow.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Coupling, Machine
from .gauge import precondition, step_shares
from .gradient import GradientInfo, Parameters, Planned, norm


def centred_direction(planned: Planned, ascent: Parameters, info: GradientInfo) -> Parameters:
    """Turn a gradient for W, B and C into one for W, b and c whose step has the length 1.

    For W it is ``g - mu x dC - dB x lambda``: what is taken away is the gradient of two pairs of
    layers, seen through the same factors. The natural step of a factor with gradient g is
    ``sqrt(<g, L^-1 g R^-1>)`` long in W; of several factors that share a step, the mean square
    counts, which is never too short.
    """
    machine, pull_back = planned
    coupling, moved = pull_back.coupling, pull_back.moved
    form = machine.coupling.matmul_form(2)
    _, rows = form.contract_rows(_pair(info.visible_mean, ascent.visible_bias))
    _, columns = form.contract_columns(_pair(ascent.hidden_bias, info.hidden_mean))
    common = pull_back(form.gradient(rows, columns))
    factors = jax.tree.map(jnp.subtract, ascent.factors, common)
    square = norm(ascent.biases) ** 2
    for c, share in step_shares(coupling, moved).items():
        square += share * jnp.vdot(factors[c], precondition(coupling, c, factors[c]))
    length = jnp.sqrt(square) + np.finfo(square.dtype).tiny
    direction: Parameters = jax.tree.map(
        lambda array: array / length, Parameters(factors, *ascent.biases)
    )
    return direction


def at_fixed_centre(machine: Machine, before: Coupling, info: GradientInfo) -> Machine:
    """Let B and C make up for what the step of W, from `before`, has done to b and c."""
    after, mu, mean = machine.coupling, info.visible_mean, info.hidden_mean
    biases = (
        machine.visible_bias - (after.apply(mean) - before.apply(mean)),
        machine.hidden_bias - (after.apply_transpose(mu) - before.apply_transpose(mu)),
    )
    settled: Machine = eqx.tree_at(lambda m: (m.visible_bias, m.hidden_bias), machine, biases)
    return settled


def _pair(one: Array, other: Array) -> Array:
    """Make a batch of two flat layers."""
    return jnp.stack([one.reshape(-1), other.reshape(-1)])
