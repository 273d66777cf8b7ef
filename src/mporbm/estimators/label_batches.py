"""What a machine with a label does with many samples, the label summed out."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine
from ..machine.labels import label_fields, label_logits, logits_of_fields
from ..machine.layered import layered, stack_of
from .batches import compiled


def _mixed(machine: Machine, visible: Array, of_fields: Callable[[Array], Array]) -> Array:
    """Average a function of the hidden fields over ``p(y | V)``."""
    fields = label_fields(machine, visible.reshape(len(visible), -1))
    weight = jax.nn.softmax(logits_of_fields(machine, fields))
    mean = (weight[..., None] * of_fields(fields)).sum(axis=-2)
    return mean.reshape(len(visible), *layered(machine).shapes[1])


@compiled
def state(machine: Machine, visible: Array, key: Array) -> Array:
    """Draw hidden states: first the label, then the units given the label."""
    first, second = jax.random.split(key)
    fields = label_fields(machine, visible.reshape(len(visible), -1))
    labels = jax.random.categorical(first, logits_of_fields(machine, fields))
    chosen = jnp.take_along_axis(fields, labels[:, None, None], axis=1)[:, 0]
    return machine.hidden_units.sample(second, chosen).reshape(
        len(visible), *layered(machine).shapes[1]
    )


@compiled
def logits(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute ``log p(y | V)`` of each label, up to a constant."""
    return label_logits(machine, visible)


@compiled
def up_and_down(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute ``E[V | E[H | V]]`` with the label summed out."""
    hidden = _mixed(machine, visible, machine.hidden_units.mean)
    passed = machine.visible_mean(hidden.reshape(len(visible), -1))
    return passed[:, : math.prod(visible.shape[1:])].reshape(visible.shape)


@compiled
def free_energy(machine: Machine, visible: Array, key: Array | None) -> Array:
    """Compute ``F(V)`` with the label summed out."""
    lowest = stack_of(machine)[0]
    axes = tuple(range(1, visible.ndim))
    own = (visible * lowest.visible_bias - lowest.visible_units.potential(visible)).sum(axis=axes)
    return -own - jax.nn.logsumexp(label_logits(machine, visible), axis=-1)


FEATURES: dict[str, Callable[[Machine, Array, Array], Array]] = {
    "probability": compiled(lambda m, visible, key: _mixed(m, visible, m.hidden_units.mean)),
    "field": compiled(lambda m, visible, key: _mixed(m, visible, lambda fields: fields)),
    "state": state,
}
"""What `transform` computes: with the label summed out by ``p(y | V)``."""
