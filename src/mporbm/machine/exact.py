"""Exact quantities of small machines, by enumeration of all states of the smaller layer.

The other layer is summed out analytically: with n units on the smaller side the cost is 2^n
products with the coupling, and the memory that of a chunk of them.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..tensor.check import check_integer
from .machine import Machine
from .units import Bernoulli

MAX_UNITS = 24
MAX_LISTED_UNITS = 20
CHUNK_ENTRIES = 2**22


class Expectations(eqx.Module):
    """Means under the model's joint distribution p(V, H)."""

    visible: Array
    """``E[V]``, of the visible shape."""
    hidden: Array
    """``E[H]``, of the hidden shape."""
    product: Array
    """``E[V H]``, of shape ``(*visible_shape, *hidden_shape)``."""


def states(n_units: int) -> Array:
    """All 2^n states of n binary units as rows; row s holds the binary digits of s, highest first.

    Examples
    --------
    >>> states(2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    _check_feasible("n_units", check_integer("n_units", n_units), MAX_LISTED_UNITS)
    return _digits(jnp.arange(2**n_units), n_units, jnp.result_type(float))


def log_partition(machine: Machine) -> Array:
    """``log Z = log sum_{V,H} exp(-E(V, H))``."""
    return _log_partition(_check_machine(machine))


@eqx.filter_jit
def _log_partition(machine: Machine) -> Array:
    shape, _, free_energy = _smaller_layer(machine)
    starts, chunk = _chunks(machine, shape)

    # Gradients compute each chunk again instead of keeping them all.
    @jax.checkpoint
    def chunk_value(start: Array) -> Array:
        return jax.nn.logsumexp(-free_energy(chunk(start)))

    return jax.nn.logsumexp(jax.lax.map(chunk_value, starts))


def log_probability(machine: Machine, visible: Any) -> Array:
    """``log p(V) = -F(V) - log Z`` of each visible tensor of a batch."""
    return _check_machine(machine).unnormalized_log_probability(visible) - log_partition(machine)


def visible_distribution(machine: Machine) -> Array:
    """``p(V)`` of all 2^n visible states, in the order of `states`."""
    if not isinstance(_check_machine(machine).visible_units, Bernoulli):
        raise ValueError(
            f"machine: expected Bernoulli visible units, got {machine.visible_units}; the states "
            f"of real units cannot be listed."
        )
    _check_feasible("machine.visible_shape", math.prod(machine.visible_shape))
    return _visible_distribution(machine)


@eqx.filter_jit
def _visible_distribution(machine: Machine) -> Array:
    starts, chunk = _chunks(machine, machine.visible_shape)
    minus_energies = jax.lax.map(lambda start: -machine.free_energy(chunk(start)), starts)
    return jax.nn.softmax(minus_energies.reshape(-1))


def expectations(machine: Machine) -> Expectations:
    """``E[V]``, ``E[H]`` and ``E[V H]``: the exact gradients of log Z for B, C and W."""
    return _expectations(_check_machine(machine))


@eqx.filter_jit
def _expectations(machine: Machine) -> Expectations:
    shape, visible_is_smaller, free_energy = _smaller_layer(machine)
    starts, chunk = _chunks(machine, shape)
    log_z = _log_partition(machine)

    def add(total: Expectations, start: Array) -> tuple[Expectations, None]:
        states = chunk(start)
        weights = jnp.exp(-free_energy(states) - log_z)
        v = states if visible_is_smaller else machine.visible_mean(states)
        h = machine.hidden_mean(states) if visible_is_smaller else states
        flat_v, flat_h = v.reshape(len(v), -1), h.reshape(len(h), -1)
        product = (weights[:, None] * flat_v).T @ flat_h
        return Expectations(
            total.visible + jnp.tensordot(weights, v, axes=1),
            total.hidden + jnp.tensordot(weights, h, axes=1),
            total.product + product.reshape(total.product.shape),
        ), None

    b, c = machine.visible_bias, machine.hidden_bias
    zero = Expectations(
        jnp.zeros_like(b), jnp.zeros_like(c), jnp.zeros((*b.shape, *c.shape), b.dtype)
    )
    total, _ = jax.lax.scan(add, zero, starts)
    return total


def n_enumerated_units(machine: Machine) -> int:
    """Count the units of the smaller layer that can be enumerated."""
    layers = [math.prod(machine.hidden_shape)]
    if machine.visible_units.is_binary:
        layers.append(math.prod(machine.visible_shape))
    return min(layers)


def _smaller_layer(machine: Machine) -> tuple[tuple[int, ...], bool, Callable[[Array], Array]]:
    """Its shape, whether it is the visible one, and its free energy."""
    n_visible, n_hidden = math.prod(machine.visible_shape), math.prod(machine.hidden_shape)
    visible_is_smaller = n_visible < n_hidden and isinstance(machine.visible_units, Bernoulli)
    name = "visible_shape" if visible_is_smaller else "hidden_shape"
    _check_feasible(f"machine.{name}", n_visible if visible_is_smaller else n_hidden)
    if visible_is_smaller:
        return machine.visible_shape, True, machine.free_energy
    return machine.hidden_shape, False, machine.hidden_free_energy


def _chunks(machine: Machine, shape: tuple[int, ...]) -> tuple[Array, Callable[[Array], Array]]:
    """The first state of each chunk of a layer's states, and the chunk that starts there.

    A chunk is small enough for both layers to have at most CHUNK_ENTRIES entries.
    """
    n_units = math.prod(shape)
    larger = max(math.prod(machine.visible_shape), math.prod(machine.hidden_shape))
    size = 2 ** min(n_units, max(CHUNK_ENTRIES // larger, 1).bit_length() - 1)

    def chunk(start: Array) -> Array:
        digits = _digits(start + jnp.arange(size), n_units, machine.coupling.dtype)
        return digits.reshape(size, *shape)

    return jnp.arange(0, 2**n_units, size), chunk


def _digits(numbers: Array, n_units: int, dtype: jnp.dtype) -> Array:
    shifts = jnp.arange(n_units - 1, -1, -1)
    return ((numbers[:, None] >> shifts) & 1).astype(dtype)


def _check_machine(machine: Any) -> Machine:
    if not isinstance(machine, Machine):
        raise TypeError(f"machine: expected a Machine, got {type(machine).__name__}.")
    return machine


def _check_feasible(name: str, n_units: int, limit: int = MAX_UNITS) -> None:
    if n_units > limit:
        raise ValueError(
            f"{name}: expected at most {limit} units to enumerate, got {n_units}: "
            f"2^{n_units} states are too many."
        )
