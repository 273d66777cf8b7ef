"""The gradient of the log-likelihood from samples of data and model (the paper's Fig. 5)."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Coupling, Machine
from .parameters import Parameters, n_factors


class Batch(eqx.Module):
    """Visible states ``(n, *visible_shape)`` with weights (n,) that sum to 1."""

    visible: Array
    weight: Array

    def __init__(self, visible: Array, weight: Array):
        self.visible = visible
        self.weight = weight

    def mean(self, values: Array) -> Array:
        """The weighted mean over the batch."""
        return jnp.tensordot(self.weight, values, axes=1)


class GradientInfo(eqx.Module):
    """What computing a gradient showed besides."""

    hidden_rate: Array
    """``E_data[H]``, of the hidden shape."""
    largest_field: Array
    """The largest absolute value of any hidden field."""


def gradient(
    machine: Machine, positive: Batch, negative: Batch, moved: Sequence[int] | None = None
) -> tuple[Parameters, GradientInfo]:
    """``E_positive[grad -F(V)] - E_negative[grad -F(V)]``, with the free energy F.

    This is the gradient of the log-likelihood where `positive` is the data and `negative` is
    distributed as the model. Hidden layers enter as means ``p(H = 1 | V)``: to sum them out has
    less variance than to sample them.

    `moved` are the positions of the factors to derive for, all by default.
    """
    fields = [machine.hidden_field(batch.visible) for batch in (positive, negative)]
    hidden = [machine.hidden_units.mean(field) for field in fields]
    weights = [positive.weight, -negative.weight]
    signed = [
        mean * weight.reshape(-1, *(1,) * (mean.ndim - 1))
        for mean, weight in zip(hidden, weights, strict=True)
    ]
    hidden_rate = positive.mean(hidden[0])
    parts = coupling_gradient(
        machine.coupling,
        jnp.concatenate([positive.visible, negative.visible]),
        jnp.concatenate(signed),
        range(n_factors(machine)) if moved is None else moved,
    )
    ascent = Parameters(
        parts,
        positive.mean(positive.visible) - negative.mean(negative.visible),
        hidden_rate - negative.mean(hidden[1]),
    )
    largest = jnp.maximum(*(jnp.abs(field).max() for field in fields))
    return ascent, GradientInfo(hidden_rate, largest)


def coupling_gradient(
    coupling: Coupling, visible: Array, hidden: Array, moved: Sequence[int]
) -> tuple[Array | None, ...]:
    """The derivative of ``sum_n <V_n, W(H_n)>`` for each moved factor, None for the others."""
    arrays, structure = jax.tree.flatten(coupling)

    def interaction(chosen: list[Array]) -> Array:
        every = list(arrays)
        for k, array in zip(moved, chosen, strict=True):
            every[k] = array
        product: Coupling = jax.tree.unflatten(structure, every)
        return jnp.vdot(product.apply_transpose(visible), hidden)

    found = dict(zip(moved, jax.grad(interaction)([arrays[k] for k in moved]), strict=True))
    return tuple(found.get(k) for k in range(len(arrays)))
