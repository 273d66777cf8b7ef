"""How likely is what was observed of a sample: log Z of a machine with its observed units clamped.

``log p(V_observed) = log Z(V_observed) - log Z``, where ``Z(V_observed)`` is the sum of
``exp(-F(V))`` over the missing units. For each sample it is estimated by annealed importance
sampling (Neal 2001) between independent units and the clamped machine, along the distributions

``p_b(V_missing, H) ~ exp(-b E(V, H) + (1 - b) (<V, B_0> + <C_0, H>))``,

of which that at b = 0 has a sum in closed form. B_0 and C_0 are, for each chain, the means of the
fields that the clamped machine exerts along some Gibbs steps: independent units about where the
missing ones are, from where the way to the machine is short. The weights that chains gather on it
are unbiased estimates of ``Z(V_observed)``, however few the steps.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ..machine import Machine
from ..machine.hash_rng import hash_split
from ..tensor.arrays import RandomKey
from ..tensor.matmul import MANY_USES
from .evidence import BURN_IN, Count, Evidence, posterior_start

N_CHAINS, N_TEMPERATURES = 16, 200
"""The chains of each sample, and the steps of each, where nothing is said."""
N_BASE_STEPS = 50
"""The Gibbs steps whose fields are those of the independent units."""


def clamped_log_weights(
    key: RandomKey,
    machine: Machine,
    visible: Float[Array, "n ..."],
    n_temperatures: Count = N_TEMPERATURES,
) -> Float[Array, " n"]:
    """Estimate the logarithm of ``Z(V_observed)`` by one chain for each sample, NaN being missing.

    The mean of many such weights, not of their logarithms, is ``Z(V_observed)``; see
    `log_mean_weights`. Where nothing is missing it is ``-F(V)`` up to rounding.
    """
    machine = machine.planned(len(visible), MANY_USES)
    units, hidden_units = machine.visible_units, machine.hidden_units
    evidence = Evidence.from_missing(units, visible)
    base_key, start_key, chain = jax.random.split(key, 3)
    base_bias, base_hidden = _base_fields(base_key, machine, evidence)
    tilt = machine.visible_bias - base_bias

    def hidden_terms(field: Array, b: Array) -> Array:
        return hidden_units.log_partition(base_hidden + b * (field - base_hidden))

    def step(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        visible, weight = state
        lower, upper = (jnp.asarray((number + k) / n_temperatures, weight.dtype) for k in (0, 1))
        field = machine.hidden_field(visible)
        # Differences of terms, not of sums, keep single precision good over many steps.
        gain = _sums(hidden_terms(field, upper) - hidden_terms(field, lower))
        weight = weight + gain + (upper - lower) * _sums(visible * tilt)
        up, down = hash_split(jax.random.fold_in(chain, number))
        hidden = hidden_units.sample(up, base_hidden + upper * (field - base_hidden))
        moved = base_bias + upper * (machine.visible_field(hidden) - base_bias)
        return evidence.clamp(units.sample(down, moved)), weight

    start = evidence.clamp(units.sample(start_key, base_bias))
    # Observed units feel their bias from b = 0 on: terms of their states, of the others sums.
    terms = units.log_partition(base_bias)
    seen = units.log_density(evidence.clamp(jnp.zeros_like(base_bias)), base_bias) + terms
    known = evidence.known.reshape(*terms.shape, -1).all(axis=-1)
    weight = _sums(jnp.where(known, seen, terms)) + _sums(hidden_units.log_partition(base_hidden))
    end: tuple[Array, Array] = jax.lax.fori_loop(0, n_temperatures, step, (start, weight))
    return end[1]


def log_mean_weights(
    log_weights: Float[np.ndarray, "n chains"],
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Take the logarithm of each sample's mean weight, and its standard error."""
    largest = log_weights.max(axis=1, keepdims=True)
    weights = np.exp(np.asarray(log_weights - largest, np.float64))
    mean = weights.mean(axis=1)
    error = weights.std(axis=1, ddof=1) / mean / np.sqrt(weights.shape[1])
    return largest[:, 0] + np.log(mean), error


def _base_fields(key: RandomKey, machine: Machine, evidence: Evidence) -> tuple[Array, Array]:
    """Average the fields of both layers along a chain under the evidence, but for its beginning.

    The field of observed units is their bias.
    """
    start_key, chain = jax.random.split(key)
    first = int(BURN_IN * N_BASE_STEPS)

    def step(number: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        visible, mean, hidden_mean = state
        up, down = hash_split(jax.random.fold_in(chain, number))
        hidden_field = machine.hidden_field(visible)
        field = machine.visible_field(machine.hidden_units.sample(up, hidden_field))
        share = 1.0 / jnp.maximum(number - first + 1, 1).astype(field.dtype)
        mean = mean + share * (field - mean)
        hidden_mean = hidden_mean + share * (hidden_field - hidden_mean)
        return evidence.clamp(machine.visible_units.sample(down, field)), mean, hidden_mean

    visible = posterior_start(start_key, machine, evidence)
    zeros = jnp.zeros_like(visible), jnp.zeros((len(visible), *machine.hidden_shape), visible.dtype)
    _, mean, hidden_mean = jax.lax.fori_loop(0, N_BASE_STEPS, step, (visible, *zeros))
    return jnp.where(evidence.known, machine.visible_bias, mean), hidden_mean


def _sums(terms: Array) -> Array:
    """Sum up all but the first axis."""
    return terms.sum(axis=tuple(range(1, terms.ndim)))
