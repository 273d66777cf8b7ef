"""Block Gibbs sampling of a machine with labels: the hidden layer, then visible units and label."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..machine import LabelledMachine
from ..machine.hash_rng import hash_split

Labelled = tuple[Array, Array]
"""Visible states and their labels."""


def labelled_gibbs_step(
    key: Array, machine: LabelledMachine, visible: Any, labels: Any
) -> Labelled:
    """V' ~ p(V | H) and y' ~ p(y | H) after H ~ p(H | V, y): leaves p(V, y) as it is."""
    up, down, across = hash_split(key, 3)
    hidden = machine.given(labels).sample_hidden(up, visible)
    return machine.sample_visible(down, hidden), machine.sample_labels(across, hidden)


def labelled_gibbs(
    key: Array, machine: LabelledMachine, visible: Any, labels: Any, n_steps: int = 1
) -> Labelled:
    """`n_steps` of `labelled_gibbs_step`, at least one."""
    state = jnp.asarray(visible, machine.coupling.dtype), jnp.asarray(labels)
    planned = machine.planned(len(state[0]))
    first, rest = hash_split(key)
    # The first step stands outside of the loop, as in `mporbm.sampling.gibbs`.
    state = labelled_gibbs_step(first, planned, *state)
    if n_steps > 1:
        keys = hash_split(rest, n_steps - 1)
        state, _ = jax.lax.scan(
            lambda state, key: (labelled_gibbs_step(key, planned, *state), None), state, keys
        )
    return state
