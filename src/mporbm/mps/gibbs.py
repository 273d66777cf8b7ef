"""Gibbs sampling of the hidden layer where the visible one is Gaussian and never formed."""

import jax
import jax.numpy as jnp
from jax import Array

from ..machine.hash_rng import hash_split
from .machine import MPSMachine


def hidden_gibbs(key: Array, machine: MPSMachine, n_chains: int, n_gibbs: Array) -> Array:
    """Hidden states (n_chains, J_1..J_d) after Gibbs steps from units without a field of V.

    Given H, the hidden field of V is normal: ``variance (G H + W^T(B)) + sqrt(variance) u`` with
    u of covariance ``G = W^T W``. So V need not be drawn, and yet the steps are exact.
    """
    gram, variance = machine.gram(), machine.variance
    values, vectors = jnp.linalg.eigh(gram)
    root = vectors * jnp.sqrt(jnp.maximum(variance * values, 0.0))
    offset = variance * machine.bias_field() + machine.hidden_bias.reshape(-1)
    first_key, chain_key = hash_split(key)
    units = machine.hidden_units
    start = units.sample(first_key, jnp.broadcast_to(offset, (n_chains, len(offset))))

    def step(number: Array, hidden: Array) -> Array:
        noise_key, unit_key = hash_split(jax.random.fold_in(chain_key, number))
        noise = jax.random.normal(noise_key, hidden.shape, hidden.dtype)
        field = variance * hidden @ gram + noise @ root.T + offset
        return units.sample(unit_key, field)

    hidden: Array = jax.lax.fori_loop(0, n_gibbs, step, start)
    return hidden.reshape(n_chains, *machine.hidden_shape)
