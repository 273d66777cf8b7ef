"""Quasi-Newton minimisation by the limited-memory method of Broyden, Fletcher, Goldfarb & Shanno.

Nocedal & Wright, *Numerical Optimization* (2006), Algorithms 7.4 and 7.5, with backtracking: a step
is halved until the value is finite and has fallen far enough, so that functions may have a boundary
beyond which they are NaN.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

N_PAIRS = 50
"""The steps that are remembered: on factor models 50 are worth 1.5 nats over 10, after as many."""
SUFFICIENT, N_HALVINGS = 1e-4, 30
"""The share of the decrease that the slope promises, and how often a step is halved for it."""
FIRST_STEP = 0.1
"""The length of a step of which nothing is known."""
Value = Callable[[Float[Array, " n"]], Float[Array, ""]]


class Memory(eqx.Module):
    """The last steps, and what they changed in the gradient, the newest last; zeros are unused."""

    steps: Float[Array, "pairs n"]
    changes: Float[Array, "pairs n"]
    is_done: Array
    """Whether no step was found that makes the value smaller."""

    @classmethod
    def empty(cls, like: Float[Array, " n"], n_pairs: int = N_PAIRS) -> "Memory":
        """Remember nothing."""
        zeros = jnp.zeros((n_pairs, *like.shape), like.dtype)
        return cls(zeros, zeros, jnp.zeros((), bool))

    def direction(self, gradient: Float[Array, " n"]) -> Float[Array, " n"]:
        """Multiply minus the gradient with the inverse Hessian that the pairs tell of."""
        products = (self.steps * self.changes).sum(axis=1)
        rho = jnp.where(products > 0.0, 1.0 / jnp.where(products > 0.0, products, 1.0), 0.0)

        def back(rest: Array, pair: tuple[Array, ...]) -> tuple[Array, Array]:
            step, change, scale = pair
            share = scale * (step @ rest)
            return rest - share * change, share

        def forth(found: Array, pair: tuple[Array, ...]) -> tuple[Array, None]:
            step, change, scale, share = pair
            return found + step * (share - scale * (change @ found)), None

        pairs = self.steps, self.changes, rho
        rest, shares = jax.lax.scan(back, gradient, pairs, reverse=True)
        newest = self.changes[-1] @ self.changes[-1]
        size = FIRST_STEP / jnp.maximum(jnp.linalg.norm(gradient), FIRST_STEP)
        scale = jnp.where(newest > 0.0, products[-1] / jnp.where(newest > 0.0, newest, 1.0), size)
        found, _ = jax.lax.scan(forth, scale * rest, (*pairs, shares))
        return -found

    def add(self, step: Array, change: Array) -> "Memory":
        """Remember another pair, if the function was convex along it, and forget the oldest."""
        eps = float(np.finfo(step.dtype).eps)
        convex = step @ change > eps * jnp.linalg.norm(step) * jnp.linalg.norm(change)

        def with_newest(old: Array, new: Array) -> Array:
            return jnp.where(convex, jnp.roll(old, -1, axis=0).at[-1].set(new), old)

        steps, changes = with_newest(self.steps, step), with_newest(self.changes, change)
        return Memory(steps, changes, jnp.zeros((), bool))


class Point(eqx.Module):
    """Where a minimisation has come to."""

    x: Float[Array, " n"]
    value: Float[Array, ""]
    gradient: Float[Array, " n"]


Carry = tuple[Point, Memory, Array, Array]
"""Where a minimisation is, the steps that it took and the points that it tried."""


def minimise(
    function: Value, x: Float[Array, " n"], memory: Memory, n_steps: int
) -> tuple[Point, Memory, Int[Array, ""]]:
    """Take up to `n_steps` steps from x; also give how often the function was computed.

    Steps end where none is found that makes the value smaller, even along the gradient.
    """
    derive = jax.value_and_grad(function)

    def search(point: Point, direction: Array) -> tuple[Point, Array, Array]:
        """Halve a step until it is good enough: where it ends, whether it is, the number tried."""
        slope = point.gradient @ direction

        def good(end: Point, length: Array) -> Array:
            # NaN is not.
            return end.value <= point.value + SUFFICIENT * length * slope

        def tried(length: Array) -> Point:
            moved = point.x + length * direction
            return Point(moved, *derive(moved))

        def halve(carry: tuple[Point, Array, Array]) -> tuple[Point, Array, Array]:
            _, length, number = carry
            return tried(0.5 * length), 0.5 * length, number + 1

        def goes_on(carry: tuple[Point, Array, Array]) -> Array:
            end, length, number = carry
            return ~good(end, length) & (number < N_HALVINGS)

        one = jnp.ones((), point.x.dtype)
        start = tried(one), one, jnp.ones((), jnp.int32)
        end, length, number = jax.lax.while_loop(goes_on, halve, start)
        # A step that changes nothing is none.
        return end, good(end, length) & (end.value < point.value), number

    def step(carry: Carry) -> Carry:
        point, memory, number, n_tried = carry
        end, found, more = search(point, memory.direction(point.gradient))
        known = memory.add(end.x - point.x, end.gradient - point.gradient)
        # Without success it is tried again along the gradient, and that is the end of it.
        empty = Memory.empty(point.x, len(memory.steps))
        was_empty = ~(memory.steps[-1] != 0.0).any()
        failed = eqx.tree_at(lambda m: m.is_done, empty, was_empty)
        memory = jax.tree.map(lambda a, b: jnp.where(found, a, b), known, failed)
        point = jax.tree.map(lambda a, b: jnp.where(found, a, b), end, point)
        return point, memory, number + 1, n_tried + more

    def goes_on(carry: Carry) -> Array:
        _, memory, number, _ = carry
        return ~memory.is_done & (number < n_steps)

    zero = jnp.zeros((), jnp.int32)
    begin = Point(x, *derive(x)), memory, zero, zero + 1
    point, memory, _, n_tried = jax.lax.while_loop(goes_on, step, begin)
    return point, memory, n_tried
