"""All batches of a block in one compiled program."""

import contextlib

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ..learning import Algorithm, LearningState, Rates
from ..learning.averaging import Average
from .devices import Team
from .rows import unpacked


class Pace(eqx.Module):
    """Rates of an epoch at its first batch, how they change with every batch, and a limit."""

    rates: Rates
    change: Rates
    field_limit: Array
    """The hidden field beyond which nothing moves any more."""

    def at(self, number: ArrayLike) -> Rates:
        """The rates of a batch by its number in the epoch."""
        now: Rates = jax.tree.map(lambda rate, by: rate + number * by, self.rates, self.change)
        return now


class BlockInfo(eqx.Module):
    """What the batches of a block showed."""

    gradient_norm: Array
    n_batches: Array
    healthy: Array


Carry = tuple[LearningState, Average | None, BlockInfo]


def run_block(
    algorithm: Algorithm,
    state: LearningState,
    average: Average | None,
    block: tuple[PyTree[Array] | None, PyTree[Array], Array],
    key: Array,
    first: Array,
    pace: Pace,
    team: Team | None = None,
) -> Carry:
    """All batches of a block, one after the other.

    The key of a batch depends on its number in the epoch only. From the first unhealthy batch on
    nothing moves; batches of padding alone move nothing.
    """
    rows, index, weight = block
    dtype = state.machine.coupling.dtype

    def body(carry: Carry, batch: tuple[Array, ...]) -> tuple[Carry, None]:
        state, average, info = carry
        number, key, chosen, weight, total, n_weights = batch
        used = total > 0.0
        share = (weight / jnp.where(used, total, 1.0)).astype(dtype)
        stored = unpacked(chosen if rows is None else rows[chosen])
        data = algorithm.objective.batch(state.machine, stored, share)
        # A batch of heavier samples makes a longer step: every sample counts by its own weight.
        heavy = pace.at(number) * (total / jnp.maximum(n_weights, 1))
        new, step = algorithm.step(key, state, data, heavy)
        healthy = jnp.isfinite(step.gradient_norm) & (step.largest_field < pace.field_limit)
        healthy = info.healthy & (healthy | ~used)
        moves = healthy & used
        state = jax.tree.map(lambda a, b: jnp.where(moves, a, b), new, state)
        if team is not None:
            state = team.constrain_sharding(algorithm.negative_phase, state)
        if average is not None:
            average = average.add(state.machine, moves)
        gradient_norm = info.gradient_norm + jnp.where(moves, step.gradient_norm, 0.0)
        info = BlockInfo(gradient_norm, info.n_batches + moves, healthy)
        return (state, average, info), None

    start = BlockInfo(jnp.zeros((), dtype), jnp.zeros((), jnp.int32), jnp.ones((), bool))
    numbers = first + jnp.arange(len(weight))
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
    batches = (numbers, keys, index, weight, weight.sum(axis=1), (weight > 0.0).sum(axis=1))
    with contextlib.nullcontext() if team is None else team.at_work():
        carry, _ = jax.lax.scan(body, (state, average, start), batches)
    return carry
