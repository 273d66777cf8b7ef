"""Centred variables, and steps of a given length.

With offsets mu and lambda, the means of V and H, the same machine reads

``-E(V, H) = <V - mu, W(H - lambda)> + <V - mu, b> + <c, H - lambda> + constant``,

where ``b = B + W(lambda)`` and ``c = C + W^T(mu)``. At fixed b and c, W learns what units have in
common beyond their means, and flipping the bits of the data changes nothing (Montavon & Müller
2012; Melchior, Fischer & Wiskott 2016). Divided by its length, a step is as long as the learning
rate says, whatever the machine and the data, and cannot overflow.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Coupling, Machine
from .gauge import precondition, step_shares
from .gradient import GradientInfo, Parameters, Planned, norm
from .monitor import weight_norm
from .rule import Rates, UpdateRule

SLIDING = 0.01
"""The share of an update in lambda."""


class Centre(eqx.Module):
    """The offsets mu and lambda.

    Both are known before a batch is seen: offsets by its own means would bias its gradient. mu
    stays at the means of independent units with the bias that learning starts with, which are the
    base rates of the data unless the start is random; lambda follows the hidden means of the data.
    """

    visible: Array
    hidden: Array

    @classmethod
    def begin(cls, machine: Machine) -> "Centre":
        """Take the means of a machine that has learnt nothing yet."""
        visible = machine.visible_units.mean(machine.visible_bias)
        return cls(visible, machine.hidden_mean(visible))


def centre_step(
    rule: UpdateRule, planned: Planned, ascent: Parameters, centre: Centre | None, rates: Rates
) -> tuple[Parameters, Rates]:
    """Turn a gradient for W, B and C into one for W, b and c, and rates into those of its length.

    For W it is ``g - mu x dC - dB x lambda``: what is taken away is the gradient of two pairs of
    layers, seen through the same factors. The natural step of a factor with gradient g is
    ``sqrt(<g, L^-1 g R^-1>)`` long in W; of several factors that share a step, the mean square
    counts, which is never too short. Weight decay is a part of the step. Without a centre nothing
    changes.

    Of a gradient that is mostly noise, the steps of a factor hold as much as the factor has
    parameters: a small one moves by less, as it would if the gradient of W itself were divided by
    its length.
    """
    if centre is None:
        return ascent, rates
    machine, pull_back = planned
    coupling, moved = pull_back.coupling, pull_back.moved
    form = machine.coupling.matmul_form(2)
    _, rows = form.contract_rows(_pair(centre.visible, ascent.visible_bias))
    _, columns = form.contract_columns(_pair(ascent.hidden_bias, centre.hidden))
    common = pull_back(form.gradient(rows, columns))
    factors = jax.tree.map(jnp.subtract, ascent.factors, common)
    square = norm(ascent.biases) ** 2
    for c, share in step_shares(coupling, moved).items():
        square += share * jnp.vdot(factors[c], precondition(coupling, c, factors[c]))
    decay = rule.weight_decay * weight_norm(coupling)
    # A gradient that is nothing but rounding errors must not become a step.
    least = 100.0 * float(np.finfo(square.dtype).eps)
    length = jnp.sqrt(square) + decay.astype(square.dtype) + least
    sizes = [factor.size for factor in coupling.factors]
    share = min(sum(sizes[c] for c in moved) / max(sizes), 1.0)
    return Parameters(factors, *ascent.biases), rates * (math.sqrt(share) / length)


def settle(
    machine: Machine, before: Coupling, centre: Centre | None, info: GradientInfo
) -> tuple[Machine, Centre | None]:
    """Let B and C make up for what the step of W, from `before`, has done to b and c.

    Then lambda follows the hidden means.
    """
    if centre is None:
        return machine, None
    after, mu, mean = machine.coupling, centre.visible, centre.hidden
    biases = (
        machine.visible_bias - (after.apply(mean) - before.apply(mean)),
        machine.hidden_bias - (after.apply_transpose(mu) - before.apply_transpose(mu)),
    )
    settled: Machine = eqx.tree_at(lambda m: (m.visible_bias, m.hidden_bias), machine, biases)
    return settled, Centre(mu, mean + SLIDING * (info.hidden_mean - mean))


def _pair(one: Array, other: Array) -> Array:
    """Make a batch of two flat layers."""
    return jnp.stack([one.reshape(-1), other.reshape(-1)])
