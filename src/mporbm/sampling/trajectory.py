"""Chains that follow a machine while it learns: log Z and samples along the trajectory.

Chains that are exact samples of independent units, and move by every machine that a training has
passed through since, are annealed importance samples of the last one (Neal 2001; Béreux et al.
2024): between two machines the parameters go along a straight line, each step from theta to theta'
adds ``F_theta(V) - F_theta'(V)`` to the log-weight of a chain before the chain moves, and

``Z_0 times the mean weight``

is an unbiased estimate of Z. Where weights become unequal, chains are drawn anew by their weights,
and the logarithm of the mean weight goes over into log Z (a particle method, still unbiased).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from ..machine import Machine
from ..machine.hash_rng import hash_split
from ..tensor.arrays import RandomKey, Tensor
from ..tensor.matmul import MANY_USES
from .ais import LogPartition
from .gibbs import independent_log_partition, independent_units

RESAMPLING = 0.5
"""The share of effective chains below which they are drawn anew."""


class Population(eqx.Module):
    """Weighted chains of a machine, and log Z of those before them."""

    visible: Float[Array, "chains ..."]
    log_weight: Float[Array, " chains"]
    family: Int[Array, " chains"]
    """The chain of the beginning that each of them comes from."""
    log_partition: Float[Array, ""]
    """log Z but for the mean of the weights."""

    @classmethod
    def begin(cls, key: RandomKey, base: Machine, n_chains: int) -> "Population":
        """Draw exact samples of a machine without weights, whose log Z is known."""
        visible = independent_units(key, base, (n_chains,))
        weight = jnp.zeros(n_chains, visible.dtype)
        value = independent_log_partition(base).astype(visible.dtype)
        return cls(visible, weight, jnp.arange(n_chains, dtype=jnp.int32), value)

    def resampled(self, key: RandomKey) -> "Population":
        """Draw chains by their weights, which are then all equal (systematic resampling)."""
        n_chains = len(self.log_weight)
        ends = jnp.cumsum(jax.nn.softmax(self.log_weight))
        places = (jnp.arange(n_chains) + jax.random.uniform(key, dtype=ends.dtype)) / n_chains
        chosen = jnp.minimum(jnp.searchsorted(ends, places * ends[-1]), n_chains - 1)
        return Population(
            self.visible[chosen],
            jnp.zeros_like(self.log_weight),
            self.family[chosen],
            self.log_partition + _log_mean(self.log_weight),
        )

    @eqx.filter_jit
    def estimate(self) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """Estimate log Z, its standard error, and the number of families that count.

        The families' shares q of all weight have an effective number ``1 / sum q^2``, and the
        variance of log Z is about ``sum q^2 - 1/n`` (Chan & Lai 2013). As long as nothing was drawn
        anew, every chain is a family, and both are those of importance sampling.
        """
        n_chains = len(self.log_weight)
        share = jax.ops.segment_sum(jax.nn.softmax(self.log_weight), self.family, n_chains)
        squares = (share**2).sum()
        error = jnp.sqrt(jnp.maximum(squares - 1.0 / n_chains, 0.0) * n_chains / (n_chains - 1))
        return self.log_partition + _log_mean(self.log_weight), error, 1.0 / squares

    def summary(self) -> LogPartition:
        """Say what is known of log Z; there is no estimate in reverse."""
        value, error, size = map(float, self.estimate())
        return LogPartition(value, error, size)


def base_machine(machine: Machine, base_bias: Tensor) -> Machine:
    """Take the weights and the hidden bias out of a machine: independent units, by `base_bias`.

    A product is 0 if its first factor is: on the line from here to the machine, W grows evenly in
    whatever form it is multiplied.
    """
    first = jax.tree.map(jnp.zeros_like, machine.coupling.factors[0])
    base: Machine = eqx.tree_at(
        lambda m: (m.coupling, m.visible_bias, m.hidden_bias),
        machine,
        (
            machine.coupling.with_factors((first, *machine.coupling.factors[1:])),
            jnp.asarray(base_bias, machine.coupling.dtype).reshape(machine.visible_shape),
            jnp.zeros_like(machine.hidden_bias),
        ),
    )
    return base


@eqx.filter_jit
def follow(
    key: RandomKey,
    population: Population,
    start: Machine,
    end: Machine,
    n_steps: Int[Array, ""],
    cooling: bool = False,
) -> Population:
    """Move the chains of machine `start` along the line to machine `end`, in so many steps.

    Steps become shorter towards the end if this is `cooling`, from independent units
    (`mporbm.sampling.ais`). Afterwards chains are drawn anew if less than half of them are
    effective.
    """
    move_key, choice_key = hash_split(key)
    visible, gain = anneal(move_key, start, end, population.visible, n_steps, cooling)
    weight = population.log_weight + gain
    moved = Population(visible, weight, population.family, population.log_partition)
    share = jax.nn.softmax(weight)
    is_even = 1.0 / (share**2).sum() >= RESAMPLING * len(weight)
    chosen: Population = jax.lax.cond(
        is_even, lambda p: p, lambda p: p.resampled(choice_key), moved
    )
    return chosen


def anneal(
    key: RandomKey,
    start: Machine,
    end: Machine,
    visible: Float[Array, "chains ..."],
    n_steps: Int[Array, ""],
    cooling: bool = False,
) -> tuple[Float[Array, "chains ..."], Float[Array, " chains"]]:
    """Move chains along the line between two machines: their ends, and what log-weights gain."""
    start, end = (machine.planned(len(visible), MANY_USES) for machine in (start, end))
    axes = tuple(range(1, visible.ndim))
    hidden_axes = tuple(range(1, 1 + len(end.hidden_shape)))

    def at(number: Array) -> Machine:
        share = (number / n_steps).astype(visible.dtype)
        share = share * (2.0 - share) if cooling else share
        between: Machine = jax.tree.map(lambda a, b: a + share * (b - a), start, end)
        return between

    def step(number: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        visible, field, weight = state
        former, machine = at(number), at(number + 1)
        up, down = hash_split(jax.random.fold_in(key, number))
        felt = machine.hidden_field(visible)
        units = machine.hidden_units
        # Differences of terms, not of sums, keep single precision good over many steps.
        terms = units.log_partition(felt) - units.log_partition(field)
        tilt = machine.visible_bias - former.visible_bias
        gain = terms.sum(hidden_axes) + (visible * tilt).sum(axes)
        moved = machine.visible_units.sample(down, machine.visible_field(units.sample(up, felt)))
        return moved, machine.hidden_field(moved), weight + gain

    first = visible, start.hidden_field(visible), jnp.zeros(len(visible), visible.dtype)
    end_visible, _, gain = jax.lax.fori_loop(0, n_steps, step, first)
    return end_visible, gain


def _log_mean(log_weight: Float[Array, " chains"]) -> Float[Array, ""]:
    return jax.nn.logsumexp(log_weight) - jnp.log(len(log_weight))
