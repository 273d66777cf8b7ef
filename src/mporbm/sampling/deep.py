"""Inference, bounds and samples of machines with several layers.

The units of a deep Boltzmann machine are a `Machine`'s (`mporbm.machine.layered`), whose data are
its first visible units, so it uses the samplers of machines. Added here are mean-field inference of
the other layers, bounds on the log-likelihood, and samples of deep belief networks.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int, Shaped

from ..machine import DeepBelief, Machine
from ..machine.hash_rng import hash_bits, hash_split
from ..machine.layered import layered
from ..tensor.arrays import RandomKey
from ..tensor.matmul import MANY_USES
from .evidence import Evidence, mean_field, posterior_sample

N_MEAN_FIELD = 10
"""The passes of mean-field inference."""


def infer_layers(
    machine: Machine, visible: Float[Array, "n ..."], n_steps: int = N_MEAN_FIELD
) -> Float[Array, "n even"]:
    """Infer all even layers of a deep machine: the data, and the mean-field means of the others.

    The means are those of the best independent units q, found one half of the layers after the
    other.
    """
    n_data, (n_even,) = layered(machine).sizes[0], machine.visible_shape
    value = jnp.pad(visible.reshape(len(visible), n_data), ((0, 0), (0, n_even - n_data)))
    observed = jnp.broadcast_to(jnp.arange(n_even) < n_data, value.shape)
    return mean_field(machine, Evidence.from_known(value, observed), n_steps).mean


def variational_free_energy(
    machine: Machine, visible: Float[Array, "n even"]
) -> Float[Array, " n"]:
    """``E_q[E(X)] - entropy(q)`` from what `infer_layers` gave: at least the free energy F(V).

    The best q of the odd layers is summed out as if the even ones were at their means, since the
    energy is linear in these.
    """
    n_data = layered(machine).sizes[0]
    entropy = machine.visible_units.entropy(visible)[:, n_data:]
    return machine.free_energy(visible) - entropy.sum(axis=-1)


def belief_bound(
    key: RandomKey, belief: DeepBelief, visible: Float[Array, "n ..."], n_samples: int
) -> Float[Array, " n"]:
    """A lower bound on ``log p(V) + log Z``, with the log Z of the machine on top.

    It is ``E_q[log p(X_0..X_{L-1}) - log q(X_1..X_{L-1} | X_0)] + log Z``. The mean is
    over `n_samples` passes up; the entropy of a layer given the one below is exact. The random
    numbers of a sample depend on it, and not on where in a batch it stands.
    """
    belief = belief.planned(len(visible), MANY_USES)
    keys = _sample_keys(key, visible)

    def passed(key: Array, visible: Array) -> Array:
        states = [state[None] for state in belief.up_samples(key, visible)]
        bound = -belief.top.free_energy(states[-1])
        for k, (up, down) in enumerate(zip(belief.recognition, belief.generation, strict=True)):
            field = up.hidden_field(states[k])
            units = up.hidden_units
            entropy = units.log_partition(field).sum() - (field * units.mean(field)).sum()
            likelihood = down.visible_units.log_density(
                states[k], down.visible_field(states[k + 1])
            )
            bound = bound + entropy + likelihood.sum()
        return bound[0]

    def add(number: Array, total: Array) -> Array:
        chosen = jax.vmap(lambda key: jax.random.fold_in(key, number))(keys)
        return total + jax.vmap(passed)(chosen, visible)

    total = jax.lax.fori_loop(0, n_samples, add, jnp.zeros(len(visible), visible.dtype))
    mean: Array = total / n_samples
    return mean


def _sample_keys(key: RandomKey, visible: Float[Array, "n ..."]) -> Shaped[Array, "n ..."]:
    """A key for each sample, by a hash of its values: exact, whatever stands around it."""
    values = visible.reshape(len(visible), -1).astype(jnp.float32)
    words = jax.lax.bitcast_convert_type(values, jnp.uint32)
    # The last bits of small numbers are 0, and a product would lose the others.
    words = words ^ (words >> 16)
    codes = (words * hash_bits(key, words.shape[1:])).sum(axis=1, dtype=jnp.uint32)
    keys: Array = jax.vmap(lambda code: jax.random.fold_in(key, code))(codes)
    return keys


def belief_sample(
    key: RandomKey,
    belief: DeepBelief,
    n_samples: int,
    n_steps: int | Int[Array, ""],
    start: Float[Array, "n ..."] | None = None,
) -> Float[Array, "n ..."]:
    """Sample by chains of `n_steps` of the machine on top, and a pass down of random states.

    The chains start at given states of the visible layer of that machine, or as independent units.
    """
    chain, down = hash_split(key)
    top = belief.top
    nothing = jnp.zeros((n_samples, *top.visible_shape), top.coupling.dtype)
    evidence = Evidence.from_known(nothing, jnp.zeros((), bool))
    return belief.down_samples(down, posterior_sample(chain, top, evidence, n_steps, start))[0]
