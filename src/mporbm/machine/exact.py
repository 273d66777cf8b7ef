"""Exact quantities of small machines, by enumeration of all states of the smaller layer.

The other layer is summed out analytically: the cost is a product with the coupling for each state
of the layer that has fewer (2^n for n binary units), the memory that of a chunk of them.
"""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from ..tensor.check import check_integer
from . import gaussian
from .machine import Machine
from .units import Bernoulli, Units

MAX_UNITS = 24
"""The most binary units whose states are enumerated."""
MAX_LISTED_UNITS = 20
"""The most binary units whose states `states` gives."""
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
    _check_feasible("n_units", 2 ** check_integer("n_units", n_units), MAX_LISTED_UNITS)
    return Bernoulli().states(jnp.arange(2**n_units), (n_units,), jnp.result_type(float))


def log_partition(machine: Machine) -> Array:
    """``log Z = log sum_{V,H} exp(-E(V, H))``; in closed form if both layers are Gaussian."""
    if gaussian.is_gaussian(_check_machine(machine)):
        closed_form: Array = eqx.filter_jit(gaussian.log_partition)(machine)
        return closed_form
    return _log_partition(machine)


@eqx.filter_jit
def _log_partition(machine: Machine) -> Array:
    layer, free_energy = _smaller_layer(machine)
    starts, chunk = _chunks(machine, layer)

    # Gradients compute each chunk again instead of keeping them all.
    @jax.checkpoint
    def chunk_value(start: Array) -> Array:
        states, log_weights = chunk(start)
        return jax.nn.logsumexp(log_weights - free_energy(states))

    return jax.nn.logsumexp(jax.lax.map(chunk_value, starts))


def log_probability(machine: Machine, visible: ArrayLike) -> Array:
    """``log p(V) = -F(V) - log Z`` of each visible tensor of a batch."""
    return _check_machine(machine).unnormalized_log_probability(visible) - log_partition(machine)


def visible_distribution(machine: Machine) -> Array:
    """``p(V)`` of all visible states, in the order of `Units.states`."""
    n_states = _Layer.visible(_check_machine(machine)).n_states
    if n_states is None:
        raise ValueError(
            f"machine: expected visible units whose states can be listed, such as Bernoulli(), got "
            f"{machine.visible_units}."
        )
    _check_feasible("machine.visible_shape", n_states)
    return _visible_distribution(machine)


@eqx.filter_jit
def _visible_distribution(machine: Machine) -> Array:
    layer = _Layer.visible(machine)
    starts, chunk = _chunks(machine, layer)
    minus_energies = jax.lax.map(lambda start: -machine.free_energy(chunk(start)[0]), starts)
    return jax.nn.softmax(minus_energies.reshape(-1)[: layer.n_states])


def expectations(machine: Machine) -> Expectations:
    """``E[V]``, ``E[H]`` and ``E[V H]``: the exact gradients of log Z for B, C and W."""
    return _expectations(_check_machine(machine))


@eqx.filter_jit
def _expectations(machine: Machine) -> Expectations:
    layer, free_energy = _smaller_layer(machine)
    starts, chunk = _chunks(machine, layer)
    log_z = _log_partition(machine)

    def add(total: Expectations, start: Array) -> tuple[Expectations, None]:
        states, log_weights = chunk(start)
        weights = jnp.exp(log_weights - free_energy(states) - log_z)
        v = states if layer.is_visible else machine.visible_mean(states)
        h = machine.hidden_mean(states) if layer.is_visible else states
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


class _Layer(eqx.Module):
    """One of the layers of a machine, to be enumerated."""

    units: Units
    shape: tuple[int, ...] = eqx.field(static=True)
    is_visible: bool = eqx.field(static=True)

    @classmethod
    def visible(cls, machine: Machine) -> "_Layer":
        return cls(machine.visible_units, machine.visible_shape, True)

    @classmethod
    def hidden(cls, machine: Machine) -> "_Layer":
        return cls(machine.hidden_units, machine.hidden_shape, False)

    @property
    def n_states(self) -> int | None:
        return self.units.n_states(self.shape)


def fewest_states(machine: Machine) -> int | None:
    """The number of states of the smaller layer; None if those of neither can be listed."""
    return _smaller(machine).n_states


def _smaller(machine: Machine) -> _Layer:
    visible, hidden = _Layer.visible(machine), _Layer.hidden(machine)
    if hidden.n_states is None:
        return visible
    fewer = visible.n_states is not None and visible.n_states < hidden.n_states
    return visible if fewer else hidden


def _smaller_layer(machine: Machine) -> tuple[_Layer, Callable[[Array], Array]]:
    """The layer with fewer states, and its free energy."""
    layer = _smaller(machine)
    if layer.n_states is None:
        raise ValueError(
            "machine: expected a layer whose states can be listed, such as one of Bernoulli(), got "
            "none."
        )
    name = "visible_shape" if layer.is_visible else "hidden_shape"
    _check_feasible(f"machine.{name}", layer.n_states)
    return layer, machine.free_energy if layer.is_visible else machine.hidden_free_energy


def _chunks(
    machine: Machine, layer: _Layer
) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """The first state of each chunk of a layer's states, and the chunk that starts there.

    A chunk is small enough for both layers to have at most CHUNK_ENTRIES entries. Its states come
    with logarithms of weights: those beyond the last state of the layer count nothing.
    """
    n_states = layer.n_states
    assert n_states is not None
    larger = max(math.prod(machine.visible_shape), math.prod(machine.hidden_shape))
    size = min(n_states, 2 ** (max(CHUNK_ENTRIES // larger, 1).bit_length() - 1))

    def chunk(start: Array) -> tuple[Array, Array]:
        numbers, dtype = start + jnp.arange(size), machine.coupling.dtype
        states = layer.units.states(numbers % n_states, layer.shape, dtype)
        return states, jnp.where(numbers < n_states, 0.0, -jnp.inf).astype(dtype)

    return jnp.arange(0, n_states, size), chunk


def _check_machine(machine: object) -> Machine:
    if not isinstance(machine, Machine):
        raise TypeError(f"machine: expected a Machine, got {type(machine).__name__}.")
    return machine


def _check_feasible(name: str, n_states: int, most_units: int = MAX_UNITS) -> None:
    if n_states > 2**most_units:
        raise ValueError(
            f"{name}: expected at most 2^{most_units} states to enumerate, those of {most_units} "
            f"binary units, got 2^{math.log2(n_states):.3g}."
        )
