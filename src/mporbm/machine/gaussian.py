"""Machines of two Gaussian layers, of which everything is known in closed form.

With visible units of variances s, hidden ones of variances t, and L some visible units that are
integrated out while the others are known,

``log p~(V_known, H) = -<H, K H> / 2 + <a, H> + terms of V_known``,
``K = 1 / t - W_L^T s_L W_L``,  ``a = C + W_known^T V_known + W_L^T (s_L B_L)``:

the hidden layer is normal with mean ``K^-1 a`` and covariance ``K^-1``, and so is, given it, each
unknown visible unit. There is a distribution only while the K of all visible units is positive
definite; the machine is then a factor model, and V has the covariance ``(1 / s - W t W^T)^-1``.
The cost is that of a matrix of the hidden layer's size, for each pattern of known units.
"""

import math
from typing import TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from .machine import Machine
from .units import Gaussian, Units


def is_gaussian(model: object) -> TypeGuard[Machine]:
    """Whether a model is a machine of two Gaussian layers."""
    return (
        isinstance(model, Machine)
        and isinstance(model.visible_units, Gaussian)
        and isinstance(model.hidden_units, Gaussian)
    )


class Given(eqx.Module):
    """A machine given the known units of samples, which lie along the first axis of each array."""

    log_density: Array
    """``log of the integral of exp(-E)`` over what is not known."""
    visible_mean: Array
    visible_variance: Array
    hidden: Array
    """The mean of the hidden layer, or with noise a draw."""


def given(
    machine: Machine,
    visible: Array,
    known: Array,
    field: Array | float = 0.0,
    noise: Array | None = None,
) -> Given:
    """Condition a machine on the known units of some samples; other values are ignored.

    `field` is an additional one on the visible units, whose variances may be those of each sample,
    as after noisy observations. Standard normal `noise`, as the flat hidden layer, makes a draw of
    it. Without a distribution all is NaN.
    """
    weights, t = machine.coupling.to_matrix(), hidden_variance(machine)
    shape, n, m = visible.shape, len(visible), weights.shape[1]

    def flat(array: Array) -> Array:
        return jnp.broadcast_to(array, shape).astype(visible.dtype).reshape(n, -1)

    s, bias = flat(_variance(machine.visible_units)), flat(machine.visible_bias + field)
    known = jnp.broadcast_to(known, shape).reshape(n, -1)
    values = jnp.where(known, visible.reshape(n, -1), 0.0)
    free = jnp.where(known, 0.0, s)
    pull = machine.hidden_bias.reshape(-1) + (values + free * bias) @ weights

    noise = jnp.zeros_like(pull) if noise is None else noise

    def solve(free: Array, pull: Array, noise: Array) -> tuple[Array, ...]:
        """Factorise one K, and solve for some samples that have it."""
        root = precision_root(weights, t, free)
        half = solve_root(root, pull.T)
        hidden = solve_root(root, half + noise.T, transposed=True)
        spread = (solve_root(root, weights.T) ** 2).sum(axis=0)
        return jnp.log(jnp.diagonal(root)).sum(), (half**2).sum(axis=0), hidden.T, spread

    def together(free: Array, pull: Array, noise: Array) -> tuple[Array, ...]:
        log_root, square, hidden, spread = solve(free[0], pull, noise)
        return (
            jnp.broadcast_to(log_root, (n,)),
            square,
            hidden,
            jnp.broadcast_to(spread, free.shape),
        )

    def apart(free: Array, pull: Array, noise: Array) -> tuple[Array, ...]:
        def one(row: tuple[Array, ...]) -> tuple[Array, ...]:
            log_root, square, hidden, spread = solve(row[0], row[1][None], row[2][None])
            return log_root, square[0], hidden[0], spread

        rows = free, pull, noise
        # One after the other: XLA can wait forever for a batch of factorisations in a loop.
        found: tuple[Array, ...] = jax.lax.map(one, rows)
        return found

    is_shared = (free == free[0]).all()
    found = jax.lax.cond(is_shared, together, apart, free, pull, noise)
    log_root, square, hidden, spread = found
    of_units = jnp.where(
        known,
        values * (bias - 0.5 * values / s),
        0.5 * (s * bias**2 + jnp.log(2.0 * math.pi * s)),
    )
    density = of_units.sum(axis=1) + 0.5 * (square + m * math.log(2.0 * math.pi)) - log_root
    mean = values + free * (bias + hidden @ weights.T)
    spread = free + free**2 * spread
    layers = mean.reshape(shape), spread.reshape(shape), hidden.reshape(n, *machine.hidden_shape)
    return Given(density, *layers)


def log_partition(machine: Machine) -> Array:
    """``log Z``; infinite where there is no distribution."""
    nothing = jnp.zeros((1, *machine.visible_shape), machine.coupling.dtype)
    value = given(machine, nothing, jnp.zeros((), bool)).log_density[0]
    return jnp.where(jnp.isfinite(value), value, jnp.inf)


def within_bounds(machine: Machine, limit: float, share: float) -> Machine:
    """Shrink W to a share if the largest singular value of ``s^1/2 W t^1/2`` reaches a limit.

    There is a distribution where it is below 1.
    """
    s = jnp.broadcast_to(_variance(machine.visible_units), machine.visible_shape).reshape(-1)
    scaled = jnp.sqrt(hidden_variance(machine)) * machine.coupling.to_matrix()
    largest = jnp.sqrt(jnp.linalg.eigvalsh(scaled.T @ (s[:, None] * scaled))[-1])
    factors = machine.coupling.factors
    ratio = jnp.where(largest < limit, 1.0, share / largest) ** (1.0 / len(factors))
    coupling = machine.coupling.with_factors(
        jax.tree.map(lambda factor: (ratio * factor).astype(factor.dtype), factors)
    )
    shrunk: Machine = eqx.tree_at(lambda m: m.coupling, machine, coupling)
    return shrunk


def draw(
    key: Array,
    machine: Machine,
    visible: Array,
    known: Array,
    field: Array | float = 0.0,
) -> Array:
    """Draw the unknown units of each sample from their distribution given its known ones."""
    up, down = jax.random.split(key)
    noise = jax.random.normal(up, (len(visible), machine.hidden_bias.size), visible.dtype)
    mean = given(machine, visible, known, field, noise).visible_mean
    s = _variance(machine.visible_units)
    drawn = mean + jnp.sqrt(s) * jax.random.normal(down, visible.shape, visible.dtype)
    return jnp.where(known, visible, drawn)


def hidden_variance(machine: Machine) -> Array:
    """The variance of each unit of the flat hidden layer."""
    t = jnp.broadcast_to(_variance(machine.hidden_units), machine.hidden_shape).reshape(-1)
    return t.astype(machine.coupling.dtype)


def precision_root(weights: Array, t: Array, free: Array) -> Array:
    """The Cholesky factor of K; NaN where it is not positive.

    `free` are the variances of the visible units that are integrated out, 0 for the others.
    """
    precision = jnp.diag(1.0 / t) - weights.T @ (free[:, None] * weights)
    root: Array = jnp.linalg.cholesky(precision)
    return root


def solve_root(root: Array, right: Array, transposed: bool = False) -> Array:
    """Solve a system with a Cholesky factor, or with its transpose."""
    trans = int(transposed)
    found: Array = jax.scipy.linalg.solve_triangular(root, right, lower=True, trans=trans)
    return found


def _variance(units: Units) -> Array:
    assert isinstance(units, Gaussian), "both layers are Gaussian"
    return units.variance
