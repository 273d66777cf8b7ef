"""What learning moves: the factors of the coupling and both biases."""

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine


class Parameters(eqx.Module):
    """The arrays of a coupling, in the order of its nodes, and two biases (arrays, or MPS).

    Also the type of gradients and velocities; a gradient has None for a factor that stays.
    """

    factors: tuple[Any, ...]
    visible_bias: Any
    hidden_bias: Array

    def __init__(self, factors: tuple[Any, ...], visible_bias: Any, hidden_bias: Array):
        self.factors = factors
        self.visible_bias = visible_bias
        self.hidden_bias = hidden_bias

    @classmethod
    def of(cls, machine: Machine) -> Self:
        """The parameters of a machine."""
        factors = tuple(jax.tree.leaves(machine.coupling))
        return cls(factors, machine.visible_bias, machine.hidden_bias)

    @classmethod
    def zeros_like(cls, machine: Machine) -> "Parameters":
        """Zeros, the increments that Algorithm 1 starts with."""
        zeros: Parameters = jax.tree.map(jnp.zeros_like, cls.of(machine))
        return zeros

    def into(self, machine: Machine) -> Machine:
        """The machine with these parameters instead of its own."""
        structure = jax.tree.structure(machine.coupling)
        coupling = jax.tree.unflatten(structure, self.factors)
        changed: Machine = eqx.tree_at(
            lambda m: (m.coupling, m.visible_bias, m.hidden_bias),
            machine,
            (coupling, self.visible_bias, self.hidden_bias),
        )
        return changed


def n_factors(machine: Machine) -> int:
    """The number of arrays of the coupling: d for an MPO, 1 if dense."""
    return len(jax.tree.leaves(machine.coupling))
