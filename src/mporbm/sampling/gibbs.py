"""Block Gibbs sampling: all hidden units, then all visible units (Algorithm 1, lines 6-9)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped

from ..machine import Machine
from ..machine.hash_rng import hash_split
from ..tensor.arrays import AnyArray, RandomKey


def gibbs_step(
    key: RandomKey,
    machine: Machine,
    visible: Shaped[AnyArray, "*batch"],
    inverse_temperature: float | Float[Array, "..."] = 1.0,
) -> Float[Array, "*batch"]:
    """Draw V' ~ p(V | H) after H ~ p(H | V), which leaves the model's distribution of V as it is.

    At an inverse temperature b below 1 the distribution is the flatter

    ``p_b(V, H) ~ exp(b (<V, W(H)> + <C, H>) + <V, B>)``,

    which at b = 0 is the machine without hidden layer: independent visible units at the rate that
    B gives them. `inverse_temperature` broadcasts against the fields.
    """
    up, down = hash_split(key)
    hidden = machine.hidden_units.sample(up, inverse_temperature * machine.hidden_field(visible))
    field = inverse_temperature * machine.coupling.apply(hidden) + machine.visible_bias
    return machine.visible_units.sample(down, field)


def gibbs(
    key: RandomKey, machine: Machine, visible: Shaped[AnyArray, "*batch"], n_steps: int = 1
) -> Float[Array, "*batch"]:
    """Take `n_steps` of `gibbs_step`; without a step the visible states come back."""
    state: Array = jnp.asarray(visible, machine.coupling.dtype)
    machine = machine.planned(math.prod(state.shape[: -len(machine.visible_shape)]))
    first, rest = hash_split(key)
    # The first step stands outside of the loop: XLA then shares its hidden field with whoever
    # else needs it, as the gradient of contrastive divergence does.
    if n_steps > 0:
        state = gibbs_step(first, machine, state)
    if n_steps > 1:
        keys = hash_split(rest, n_steps - 1)
        state, _ = jax.lax.scan(
            lambda state, key: (gibbs_step(key, machine, state), None), state, keys
        )
    return state


def independent_units(
    key: RandomKey, machine: Machine, leading: tuple[int, ...]
) -> Float[Array, "..."]:
    """Draw visible states ``(*leading, *visible_shape)`` of the machine without hidden layer."""
    shape = (*leading, *machine.visible_shape)
    return machine.visible_units.sample(key, jnp.broadcast_to(machine.visible_bias, shape))


def between(machine: Machine, base_bias: Float[Array, "*visible"], b: ArrayLike) -> Machine:
    """The machine with the visible bias ``(1 - b) B_0 + b B`` of an inverse temperature b."""
    bias = base_bias + b * (machine.visible_bias - base_bias)
    moved: Machine = eqx.tree_at(lambda m: m.visible_bias, machine, bias)
    return moved
