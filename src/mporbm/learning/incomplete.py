"""Learning from samples with missing values, which the machine itself integrates out.

The gradient of the log-probability of what was observed is, with the free energy F,

``E_{p(V_missing | V_observed)}[grad -F(V)] - E_model[grad -F(V)]``.

Missing values are drawn for every update by some Gibbs steps that leave the observed ones as they
are. Where there are persistent chains, the missing values of a sample start at those of a chain: of
a sample of which nothing was observed they are then a draw from the model, and its gradient is 0 in
the mean, however few the steps.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree

from ..machine import Machine, Units
from ..sampling.evidence import Evidence, posterior_sample
from ..tensor.arrays import RandomKey, Samples
from .gradient import Batch, Objective
from .monitor import Snapshot, snapshot

N_STEPS, N_WATCHED_STEPS = 5, 50
"""The Gibbs steps that fill in a batch, and those that fill in the samples that are watched."""
FILLED = 0x0F11
"""Makes the key of filled-in values another one than those of an update."""


class IncompleteLikelihood(Objective):
    """``E_data[log p(V_observed)]``: the log-likelihood of samples in which NaN are missing values.

    Batches in which nothing is missing are learnt as by `Objective`.
    """

    def draw(self, key: Array, machine: Machine, data: Batch, chains: Array | None = None) -> Batch:
        """Fill in the missing values of a batch."""
        key = jax.random.fold_in(key, FILLED)
        return Batch(fill(key, machine, data.visible, N_STEPS, chains), data.weight)

    @eqx.filter_jit
    def watch(self, machine: Machine, stored: PyTree, units: Array) -> Snapshot:
        """Look at a few samples, with missing values as the machine fills them in.

        The reconstruction error is that of observed values alone.
        """
        visible = machine.visible_units.of_values(stored.astype(machine.coupling.dtype))
        observed = Evidence.from_missing(machine.visible_units, visible).known
        filled = fill(jax.random.key(0), machine, visible, N_WATCHED_STEPS)
        passed = machine.visible_mean(machine.hidden_mean(filled))
        error = jnp.where(observed, (visible - passed) ** 2, 0.0).sum()
        error = error / jnp.maximum(observed.sum(), 1).astype(error.dtype)
        seen: Snapshot = eqx.tree_at(
            lambda s: s.reconstruction_error, snapshot(machine, filled, units), error
        )
        return seen

    def field_limit(self, machine: Machine, stored: PyTree) -> float:
        """Say beyond which field a training diverges, by what was observed."""
        return super().field_limit(machine, np.nan_to_num(stored))


def fill(
    key: RandomKey,
    machine: Machine,
    visible: Float[Array, "n ..."],
    n_steps: int,
    chains: Float[Array, "m ..."] | None = None,
) -> Float[Array, "n ..."]:
    """Draw what is missing of each sample, by chains of `n_steps` that keep what was observed.

    They start at the visible states `chains`, one after the other, or else at the means of what the
    other samples of the batch have there.
    """
    evidence = Evidence.from_missing(machine.visible_units, visible)

    def drawn() -> Array:
        if chains is None:
            n_observed = evidence.known.sum(axis=0)
            mean = evidence.value.sum(axis=0) / jnp.maximum(n_observed, 1).astype(visible.dtype)
            other = machine.visible_units.mean(machine.visible_bias)
            start = jnp.where(n_observed > 0, mean, other)
        else:
            start = chains[jnp.arange(len(visible)) % len(chains)]
        return posterior_sample(key, machine, evidence, n_steps, evidence.clamp(start))

    filled: Array = jax.lax.cond(evidence.known.all(), lambda: visible, drawn)
    return filled


def with_base_rates(units: Units, rows: Samples) -> Samples:
    """Put the means of independent units at the base rates of what was observed for NaN.

    The base rates stay the same, and what is missing adds nothing to how the samples vary: so they
    are seen by what training starts with, and by the automatic rates.
    """
    if rows.dtype.kind != "f":
        return rows
    unknown = np.asarray(units.joined(jnp.isnan(rows)))
    rows = np.where(unknown, rows.dtype.type(np.nan), rows)
    mean = np.asarray(units.mean(jnp.asarray(units.base_bias(rows))))
    return np.where(unknown, mean.astype(rows.dtype), rows)
