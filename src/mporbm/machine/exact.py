"""Exact quantities of small machines, by enumeration of all states of the smaller layer.

The other layer is summed out analytically, so the cost is 2^n for n units on the smaller side
whatever the size of the larger one.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..tensor.check import check_integer
from .machine import Machine
from .units import Bernoulli

MAX_UNITS = 24
CHUNK_UNITS = 12
T = TypeVar("T")


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
    _check_feasible("n_units", check_integer("n_units", n_units))
    return _digits(jnp.arange(2**n_units), n_units, jnp.result_type(float))


def log_partition(machine: Machine) -> Array:
    """``log Z = log sum_{V,H} exp(-E(V, H))``."""
    return _log_partition(_check_machine(machine))


@eqx.filter_jit
def _log_partition(machine: Machine) -> Array:
    shape, _, free_energy = _smaller_layer(machine)

    def chunk_value(chunk: Array) -> Array:
        return jax.nn.logsumexp(-free_energy(chunk))

    return jax.nn.logsumexp(_map_chunks(chunk_value, shape, machine))


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
    def chunk_value(chunk: Array) -> Array:
        return -machine.free_energy(chunk)

    return jax.nn.softmax(_map_chunks(chunk_value, machine.visible_shape, machine).reshape(-1))


def expectations(machine: Machine) -> Expectations:
    """``E[V]``, ``E[H]`` and ``E[V H]``, from which every exact gradient follows."""
    return _expectations(_check_machine(machine))


@eqx.filter_jit
def _expectations(machine: Machine) -> Expectations:
    shape, visible_is_smaller, free_energy = _smaller_layer(machine)
    log_z = log_partition(machine)

    def chunk_value(chunk: Array) -> Expectations:
        weights = jnp.exp(-free_energy(chunk) - log_z)
        v = chunk if visible_is_smaller else machine.visible_mean(chunk)
        h = machine.hidden_mean(chunk) if visible_is_smaller else chunk
        weighted = jnp.tensordot(weights, v, axes=1), jnp.tensordot(weights, h, axes=1)
        flat_v, flat_h = v.reshape(len(v), -1), h.reshape(len(h), -1)
        product = (weights[:, None] * flat_v).T @ flat_h
        return Expectations(*weighted, product.reshape(v.shape[1:] + h.shape[1:]))

    chunks = _map_chunks(chunk_value, shape, machine)
    total: Expectations = jax.tree.map(lambda part: part.sum(axis=0), chunks)
    return total


def _smaller_layer(machine: Machine) -> tuple[tuple[int, ...], bool, Callable[[Array], Array]]:
    """Its shape, whether it is the visible one, and its free energy."""
    n_visible, n_hidden = math.prod(machine.visible_shape), math.prod(machine.hidden_shape)
    visible_is_smaller = n_visible < n_hidden and isinstance(machine.visible_units, Bernoulli)
    name = "visible_shape" if visible_is_smaller else "hidden_shape"
    _check_feasible(f"machine.{name}", n_visible if visible_is_smaller else n_hidden)
    if visible_is_smaller:
        return machine.visible_shape, True, machine.free_energy
    return machine.hidden_shape, False, machine.hidden_free_energy


def _map_chunks(function: Callable[[Array], T], shape: tuple[int, ...], machine: Machine) -> T:
    """Apply a function to all states of a layer, a chunk at a time to bound the memory."""
    n_units = math.prod(shape)
    chunk = 2 ** min(n_units, CHUNK_UNITS)
    dtype = machine.visible_bias.dtype

    def on_chunk(start: Array) -> T:
        return function(_digits(start + jnp.arange(chunk), n_units, dtype).reshape(chunk, *shape))

    values: T = jax.lax.map(on_chunk, jnp.arange(0, 2**n_units, chunk))
    return values


def _digits(numbers: Array, n_units: int, dtype: jnp.dtype) -> Array:
    shifts = jnp.arange(n_units - 1, -1, -1)
    return ((numbers[:, None] >> shifts) & 1).astype(dtype)


def _check_machine(machine: Any) -> Machine:
    if not isinstance(machine, Machine):
        raise TypeError(f"machine: expected a Machine, got {type(machine).__name__}.")
    return machine


def _check_feasible(name: str, n_units: int) -> None:
    if n_units > MAX_UNITS:
        raise ValueError(
            f"{name}: expected at most {MAX_UNITS} units to enumerate, got {n_units}: "
            f"2^{n_units} states are too many."
        )
