"""Annealed importance sampling: log Z of machines too large to enumerate (Neal 2001).

Between the base machine (b = 0: independent visible units at the base rates B_0, hidden units
undecided) and the machine itself (b = 1) lie the distributions of Salakhutdinov & Murray (2008),

``p_b(V, H) ~ exp(b (<V, W(H)> + <C, H>) + <V, (1 - b) B_0 + b B>)``.

Weights vary most near b = 1, where the modes of a machine come apart: temperatures are spaced as
``b = u (2 - u)`` for even u from 0 to 1, half of them in the last quarter.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from ..machine import Machine
from ..tensor.arrays import RandomKey, Tensor
from ..tensor.check import check_array, check_integer
from ..tensor.matmul import MANY_USES
from .gibbs import between, gibbs_step, independent_units

FEWEST_TEMPERATURES, MOST_TEMPERATURES = 1000, 16_000
"""Steps between which annealing chooses, where nothing is said."""
EFFECTIVE_SHARE, FEWEST_EFFECTIVE = 1 / 8, 10.0
"""The share of the chains that is to be effective then, and the least number of them."""


class LogPartition(eqx.Module):
    """The logarithm of the partition function Z, estimated or exact.

    The forward estimate of Z is unbiased, so that of log Z is too low on average; the reverse one
    is too high if its chains begin with samples of the machine. Together they bracket log Z.
    """

    value: float
    """The forward estimate, or the exact value."""
    standard_error: float
    """The standard error of `value`; 0 if exact."""
    effective_sample_size: float
    """``(sum w)^2 / sum w^2`` of the importance weights w: a few mean that `value` is not to be
    trusted; infinite if exact."""
    reverse: float = math.nan
    """The estimate of the chains from the machine to the base; NaN if there are none."""

    @property
    def exact(self) -> bool:
        """Whether log Z was computed exactly."""
        return math.isinf(self.effective_sample_size)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 % confidence around `value`, from the standard error."""
        return self.value - 1.96 * self.standard_error, self.value + 1.96 * self.standard_error


def log_partition(
    key: RandomKey,
    machine: Machine,
    base_bias: Tensor | None = None,
    *,
    n_chains: int = 256,
    n_temperatures: int | None = None,
) -> LogPartition:
    """Estimate log Z by annealed importance sampling in both directions.

    Parameters
    ----------
    machine
        The machine.
    base_bias
        The bias B_0 of the base machine, best at the base rates of the data; by default the
        machine's own bias B, which may lie in one mode and miss another.
    n_chains
        Independent chains in each direction.
    n_temperatures
        Steps from b = 0 to 1; the error falls with their number. By default 1000, doubled up to
        16,000 until an eighth of the chains is effective.
    """
    n_chains = check_integer("n_chains", n_chains, minimum=2)
    number, most = FEWEST_TEMPERATURES, MOST_TEMPERATURES
    if n_temperatures is not None:
        number = most = check_integer("n_temperatures", n_temperatures)
    base = machine.visible_bias if base_bias is None else base_bias
    base = check_array("base_bias", base, machine.visible_shape).astype(machine.coupling.dtype)
    enough = min(max(EFFECTIVE_SHARE * n_chains, FEWEST_EFFECTIVE), n_chains / 2)
    while True:
        # As an array: one compiled program for every number of temperatures.
        end, forward = _forwards(key, machine, base, n_chains, jnp.asarray(number))
        value, error, size = _summary(forward)
        if size >= enough or number >= most:
            break
        number *= 2
    backward = _backwards(key, machine, base, end, forward, jnp.asarray(number))
    base_value = float(_base_log_partition(machine, base))
    return LogPartition(base_value + value, error, size, base_value - _summary(backward)[0])


@eqx.filter_jit
def _forwards(
    key: RandomKey,
    machine: Machine,
    base: Float[Array, "..."],
    n_chains: int,
    n_temperatures: Int[Array, ""],
) -> tuple[Float[Array, "chains ..."], Float[Array, " chains"]]:
    """The ends of the chains from the base to the machine, and the logarithms of their weights."""
    machine = machine.planned(n_chains, MANY_USES)
    start_key, forward_key, *_ = jax.random.split(key, 5)
    start = independent_units(start_key, between(machine, base, 0.0), (n_chains,))
    return _anneal(forward_key, machine, base, start, n_temperatures, reverse=False)


@eqx.filter_jit
def _backwards(
    key: RandomKey,
    machine: Machine,
    base: Float[Array, "..."],
    end: Float[Array, "chains ..."],
    forward: Float[Array, " chains"],
    n_temperatures: Int[Array, ""],
) -> Float[Array, " chains"]:
    """The logarithms of the weights of chains from the machine to the base."""
    n_chains = len(end)
    machine = machine.planned(n_chains, MANY_USES)
    *_, choice_key, mix_key, backward_key = jax.random.split(key, 5)
    # Samples of the machine: the ends of the forward chains by their weights, which then move on.
    chosen = end[jax.random.categorical(choice_key, forward, shape=(n_chains,))]
    chosen = jax.lax.fori_loop(
        0,
        n_temperatures // 10,
        lambda k, v: gibbs_step(jax.random.fold_in(mix_key, k), machine, v),
        chosen,
    )
    return _anneal(backward_key, machine, base, chosen, n_temperatures, reverse=True)[1]


def _anneal(
    key: RandomKey,
    machine: Machine,
    base: Float[Array, "*visible"],
    visible: Float[Array, " chains *visible"],
    n_temperatures: Int[Array, ""],
    *,
    reverse: bool,
) -> tuple[Float[Array, " chains *visible"], Float[Array, " chains"]]:
    """Move chains along the temperatures: their ends, and the logarithms of their weights.

    Forwards a chain's weight gains ``p_b'(V) / p_b(V)`` at every rise from b to b', and V then
    moves at b'; backwards the other way round.
    """
    dtype = visible.dtype
    tilt = machine.visible_bias - base
    axes = tuple(range(1, visible.ndim))
    hidden_axes = tuple(range(1, 1 + len(machine.hidden_shape)))

    def gain(visible: Array, lower: Array, upper: Array) -> Array:
        field = machine.hidden_field(visible)
        units = machine.hidden_units
        # Differences of terms, not of sums, keep single precision good over many steps.
        terms = units.log_partition(upper * field) - units.log_partition(lower * field)
        return terms.sum(hidden_axes) + (upper - lower) * (visible * tilt).sum(axes)

    def spaced(rung: Array) -> Array:
        share = rung / n_temperatures
        return (share * (2.0 - share)).astype(dtype)

    def step(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        visible, weight = state
        rung = n_temperatures - number if reverse else number
        b, other = spaced(rung), spaced(rung - 1 if reverse else rung + 1)
        lower, upper = jnp.minimum(b, other), jnp.maximum(b, other)
        change = gain(visible, lower, upper)
        at = lower if reverse else upper
        moved = gibbs_step(jax.random.fold_in(key, number), between(machine, base, at), visible, at)
        return moved, weight - change if reverse else weight + change

    zero = jnp.zeros(len(visible), dtype)
    end, weight = jax.lax.fori_loop(0, n_temperatures, step, (visible, zero))
    return end, weight


def _base_log_partition(machine: Machine, base: Float[Array, "*visible"]) -> Float[Array, ""]:
    """The exact log Z at b = 0."""
    undecided = machine.hidden_units.log_partition(jnp.zeros_like(machine.hidden_bias))
    return machine.visible_units.log_partition(base).sum() + undecided.sum()


def _summary(log_weights: Float[Array, " chains"]) -> tuple[float, float, float]:
    """The logarithm of the mean weight, its standard error, and the effective sample size."""
    largest = log_weights.max()
    weights = jnp.exp(log_weights - largest)
    mean, n = weights.mean(), len(weights)
    error = weights.std(ddof=1) / mean / math.sqrt(n)
    size = weights.sum() ** 2 / (weights**2).sum()
    return float(largest + jnp.log(mean)), float(error), float(size)
