"""Annealed importance sampling: log Z of machines too large to enumerate (Neal 2001).

Chains go from independent units to the machine (forwards), and from samples of the machine back to
independent units. Either way their weights estimate Z; where samples of the machine are at hand,
as after a training with persistent chains, both together do so far better (`bridge`).

Between the base machine (b = 0: independent visible units at the base rates B_0, hidden units
undecided) and the machine itself (b = 1) lie the distributions of Salakhutdinov & Murray (2008),

``p_b(V, H) ~ exp(b (<V, W(H)> + <C, H>) + <V, (1 - b) B_0 + b B>)``.

Weights vary most near b = 1, where the modes of a machine come apart: temperatures are spaced as
``b = u (2 - u)`` for even u from 0 to 1, half of them in the last quarter.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int
from scipy.optimize import brentq
from scipy.special import expit

from ..machine import Machine
from ..tensor.arrays import RandomKey, Tensor
from ..tensor.check import check_array, check_batch, check_integer
from ..tensor.matmul import MANY_USES
from .gibbs import between, gibbs_step, independent_units

FEWEST_TEMPERATURES, MOST_TEMPERATURES = 1000, 16_000
"""Steps between which annealing chooses, where nothing is said."""
EFFECTIVE_SHARE, FEWEST_EFFECTIVE = 1 / 8, 10.0
"""The share of the chains that is to be effective then, and the least number of them."""
MOST_DISORDER = 0.5
"""By how many nats, beyond noise, the reverse estimate may be below the forward one then."""


class LogPartition(eqx.Module):
    """The logarithm of the partition function Z, estimated or exact.

    The forward estimate of Z is unbiased, so that of log Z is too low on average; the reverse one
    is too high if its chains begin with samples of the machine. Where it is the lower of both, by
    more than noise, they do not, and the difference is a part of the standard error.
    """

    value: float
    """The best estimate: that of both directions if samples of the machine were given, the forward
    one if not; or the exact value."""
    standard_error: float
    """The standard error of `value`; 0 if exact."""
    effective_sample_size: float
    """``(sum w)^2 / sum w^2`` of the importance weights w; of both directions together, what this
    is for forward weights of the same error. A few mean that `value` is not to be trusted, many
    that it is where no mode is missing; infinite if exact."""
    reverse: float = math.nan
    """The estimate of the chains from the machine to the base; NaN if there are none."""
    forward: float = math.nan
    """The estimate of the chains from the base to the machine; NaN if there are none."""

    @classmethod
    def known(cls, value: float) -> "LogPartition":
        """Say that a value is exact."""
        return cls(value, 0.0, math.inf, reverse=value, forward=value)

    @property
    def exact(self) -> bool:
        """Whether log Z was computed exactly."""
        return math.isinf(self.effective_sample_size)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 % confidence around `value`, from the standard error."""
        return self.value - 1.96 * self.standard_error, self.value + 1.96 * self.standard_error


class Estimate(NamedTuple):
    """The logarithm of a mean weight, its standard error, and the effective sample size."""

    value: float
    standard_error: float
    effective_sample_size: float


def log_partition(
    key: RandomKey,
    machine: Machine,
    base_bias: Tensor | None = None,
    *,
    samples: ArrayLike | None = None,
    n_chains: int = 256,
    n_temperatures: int | None = None,
) -> LogPartition:
    """Estimate log Z by annealed importance sampling in both directions.

    Parameters
    ----------
    machine
        The machine.
    base_bias
        The bias B_0 of the base machine, best at the base rates of the data; by default at those of
        `samples`, or else the machine's own bias B, which may lie in one mode and miss another.
    samples
        Visible states (m, ...), two or more, that are about samples of the machine, such as those
        of persistent chains, where the chains of the reverse direction begin: at `n_chains` of
        them, drawn at random. The estimate is then that of `bridge`. By default they begin where
        forward chains have ended, drawn by their weights, and the estimate is the forward one.
    n_chains
        Independent chains in each direction.
    n_temperatures
        Steps from b = 0 to 1; the error falls with their number. By default 1000, doubled up to
        16,000 until an eighth of the chains is effective and the directions are in order.
    """
    n_chains = check_integer("n_chains", n_chains, minimum=2)
    number, most = FEWEST_TEMPERATURES, MOST_TEMPERATURES
    if n_temperatures is not None:
        number = most = check_integer("n_temperatures", n_temperatures)
    base = machine.visible_bias if base_bias is None else base_bias
    starts = None
    if samples is not None:
        rows = check_batch("samples", samples, machine.visible_shape, machine.coupling.dtype)
        if rows.ndim != 1 + len(machine.visible_shape) or len(rows) < 2:
            modes = ", ".join(map(str, machine.visible_shape))
            raise ValueError(
                f"samples: expected shape (m, {modes}) with m of at least 2, got {rows.shape}."
            )
        if not bool(jnp.isfinite(rows).all()):
            raise ValueError("samples: expected finite numbers, got NaN or infinite ones.")
        starts = rows[jax.random.permutation(_keys(key)[2], len(rows))[:n_chains]]
        if base_bias is None:
            base = machine.visible_units.base_bias(np.asarray(rows))
    base = check_array("base_bias", base, machine.visible_shape).astype(machine.coupling.dtype)
    enough = min(max(EFFECTIVE_SHARE * n_chains, FEWEST_EFFECTIVE), n_chains / 2)
    while True:
        # As an array: one compiled program for every number of temperatures.
        steps = jnp.asarray(number)
        end, forward = _forwards(key, machine, base, n_chains, steps)
        found = ahead = mean_weight(forward)
        disorder = 0.0
        if starts is not None:
            backward = _backwards(key, machine, base, starts, steps)
            found, behind = bridge(forward, backward), mean_weight(backward)
            noise = math.hypot(ahead.standard_error, behind.standard_error)
            disorder = max(ahead.value + behind.value - 2.0 * noise, 0.0)
        is_settled = found.effective_sample_size >= enough and disorder < MOST_DISORDER
        if is_settled or number >= most:
            break
        number *= 2
    if starts is None:
        backward = _backwards(key, machine, base, _by_weight(key, end, forward), steps)
    base_value = float(_base_log_partition(machine, base))
    return LogPartition(
        base_value + found.value,
        math.hypot(found.standard_error, disorder),
        found.effective_sample_size,
        reverse=base_value - mean_weight(backward).value,
        forward=base_value + ahead.value,
    )


def mean_weight(log_weights: Float[Array, " chains"]) -> Estimate:
    """Take the logarithm of the mean weight, the estimate of one direction."""
    largest = log_weights.max()
    weights = jnp.exp(log_weights - largest)
    mean, n = weights.mean(), len(weights)
    error = weights.std(ddof=1) / mean / math.sqrt(n)
    size = weights.sum() ** 2 / (weights**2).sum()
    return Estimate(float(largest + jnp.log(mean)), float(error), float(size))


def bridge(forward: Float[Array, " chains"], backward: Float[Array, " starts"]) -> Estimate:
    """Estimate the logarithm of a ratio of partition functions from both directions (Bennett 1976).

    With r the ratio, a path whose weight forwards is w has gone backwards with probability
    ``sigmoid(log w - log r + log(n_backward / n_forward))``, if it is one of so many paths of
    either direction, all from exact samples. The estimate makes the directions that the paths have
    taken likeliest, and the curvature of this likelihood gives its error (Shirts et al. 2003).

    Parameters
    ----------
    forward, backward
        The logarithms of the weights of paths, each in its own direction.
    """
    ahead, back = np.asarray(forward, np.float64), -np.asarray(backward, np.float64)
    if not (np.isfinite(ahead).all() and np.isfinite(back).all()):
        return Estimate(math.nan, math.inf, 0.0)
    odds = math.log(len(back) / len(ahead))

    def excess(value: float) -> float:
        return float(expit(ahead - value + odds).sum() - expit(value - odds - back).sum())

    both = np.concatenate([ahead, back])
    far = 50.0 + abs(odds)
    value = float(brentq(excess, both.min() - far, both.max() + far))
    probability = expit(both - value + odds)
    information = float((probability * (1.0 - probability)).sum())
    with np.errstate(divide="ignore"):
        variance = max(np.divide(1.0, information) - 1.0 / len(ahead) - 1.0 / len(back), 0.0)
    n_chains = len(ahead)
    return Estimate(value, math.sqrt(variance), float(n_chains / (1.0 + n_chains * variance)))


def _keys(key: RandomKey) -> Array:
    """Split the key of an estimate: for the base, annealing, the choice, mixing, the way back."""
    return jax.random.split(key, 5)


@eqx.filter_jit
def _by_weight(
    key: RandomKey, end: Float[Array, "chains ..."], log_weight: Float[Array, " chains"]
) -> Float[Array, "chains ..."]:
    """Draw samples of the machine from the ends of forward chains."""
    return end[jax.random.categorical(_keys(key)[2], log_weight, shape=(len(end),))]


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
    start_key, forward_key, *_ = _keys(key)
    start = independent_units(start_key, between(machine, base, 0.0), (n_chains,))
    return _anneal(forward_key, machine, base, start, n_temperatures, reverse=False)


@eqx.filter_jit
def _backwards(
    key: RandomKey,
    machine: Machine,
    base: Float[Array, "..."],
    start: Float[Array, "chains ..."],
    n_temperatures: Int[Array, ""],
) -> Float[Array, " chains"]:
    """The logarithms of the weights of chains from the machine, where they mix, to the base."""
    machine = machine.planned(len(start), MANY_USES)
    *_, mix_key, backward_key = _keys(key)
    mixed = jax.lax.fori_loop(
        0,
        n_temperatures // 10,
        lambda k, v: gibbs_step(jax.random.fold_in(mix_key, k), machine, v),
        start,
    )
    return _anneal(backward_key, machine, base, mixed, n_temperatures, reverse=True)[1]


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
