"""What is inferred and estimated about several layers.

The units of a deep Boltzmann machine are a `Machine`'s (`mporbm.machine.layered`), whose data are
its first visible units: all samplers are those of machines. Here stand mean-field inference of the
other layers, the bounds on the log-likelihood, and samples of deep belief networks.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import entr

from ..machine import DeepBelief, Machine
from ..machine.hash_rng import hash_bits, hash_split
from ..machine.layered import layered
from ..tensor.plan import MANY_USES
from .evidence import Evidence, mean_field, posterior_sample

N_MEAN_FIELD = 10
"""The passes of mean-field inference."""


def infer_layers(machine: Machine, visible: Array, n_steps: int = N_MEAN_FIELD) -> Array:
    """All even layers of a deep machine: the data, and the mean-field means of the others.

    The means are those of the best independent units q, found one half of the layers after the
    other.
    """
    value, observed = widened(machine, visible, jnp.ones_like(visible, bool))
    return mean_field(machine, Evidence.from_known(value, observed), n_steps).mean


def widened(machine: Machine, visible: Array, observed: Array) -> tuple[Array, Array]:
    """Data, and which of them were seen, as visible units of a deep machine."""
    n_data, (n_even,) = layered(machine).sizes[0], machine.visible_shape
    room = (0, 0), (0, n_even - n_data)
    return (
        jnp.pad(visible.reshape(len(visible), n_data), room),
        jnp.pad(observed.reshape(len(visible), n_data), room),
    )


def variational_free_energy(machine: Machine, visible: Array) -> Array:
    """``E_q[E(X)] - entropy(q)`` from what `infer_layers` gave: at least the free energy F(V).

    The best q of the odd layers is summed out as if the even ones were at their means, since the
    energy is linear in these.
    """
    inferred = visible[:, layered(machine).sizes[0] :]
    return machine.free_energy(visible) - (entr(inferred) + entr(1.0 - inferred)).sum(axis=-1)


def belief_bound(key: Array, belief: DeepBelief, visible: Array, n_samples: int) -> Array:
    """``E_q[log p(X_0..X_{L-1}) - log q(X_1..X_{L-1} | X_0)] + log Z`` of the machine on top.

    Less log Z this is at most ``log p(V)``. The mean is over `n_samples` passes up; the entropy of
    a layer given the one below is exact. The random numbers of a sample depend on it, and not on
    where in a batch it stands.
    """
    belief = belief.planned(len(visible), MANY_USES)
    keys = _keys_of(key, visible)

    def passed(key: Array, visible: Array) -> Array:
        states = [state[None] for state in belief.up_samples(key, visible)]
        bound = -belief.top.free_energy(states[-1])
        for k, (up, down) in enumerate(zip(belief.recognition, belief.generation, strict=True)):
            field = up.hidden_field(states[k])
            entropy = up.hidden_units.log_partition(field) - field * up.hidden_units.mean(field)
            likelihood = down.visible_units.log_density(
                states[k], down.visible_field(states[k + 1])
            )
            bound = bound + entropy.sum() + likelihood.sum()
        return bound[0]

    def add(number: Array, total: Array) -> Array:
        chosen = jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)
        return total + jax.vmap(passed)(chosen, visible)

    total = jax.lax.fori_loop(0, n_samples, add, jnp.zeros(len(visible), visible.dtype))
    mean: Array = total / n_samples
    return mean


def _keys_of(key: Array, visible: Array) -> Array:
    """A key for each sample, by a hash of its values: exact, whatever stands around it."""
    values = visible.reshape(len(visible), -1).astype(jnp.float32)
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    # The last bits of small numbers are 0, and a product would lose the others.
    words = words ^ (words >> 16)
    codes = (words * hash_bits(key, words.shape[1:])).sum(axis=1, dtype=jnp.uint32)
    keys: Array = jax.vmap(lambda code: jax.random.fold_in(key, code))(codes)
    return keys


def belief_sample(key: Array, belief: DeepBelief, n_samples: int, n_steps: Any) -> Array:
    """Samples: chains of `n_steps` of the machine on top, and a pass down of random states."""
    chain, down = hash_split(key)
    top = belief.top
    nothing = jnp.zeros((n_samples, *top.visible_shape), top.coupling.dtype)
    evidence = Evidence.from_known(nothing, jnp.zeros((), bool))
    return belief.down_samples(down, posterior_sample(chain, top, evidence, n_steps))[0]
