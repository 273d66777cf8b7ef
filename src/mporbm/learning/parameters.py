"""What learning moves: the factors of the coupling and the two biases."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine


class Parameters(eqx.Module):
    """The arrays of a coupling, in the order of its nodes, and both biases.

    Also the type of gradients and velocities; a gradient has None for a factor that stays. Biases
    are arrays, or trains where a layer is in MPS form.
    """

    factors: tuple[Any, ...]
    visible_bias: Any
    hidden_bias: Array

    @classmethod
    def of(cls, machine: Machine) -> "Parameters":
        """Take the parameters out of a machine."""
        return cls(machine.coupling.factors, machine.visible_bias, machine.hidden_bias)

    @classmethod
    def zeros_like(cls, machine: Machine) -> "Parameters":
        """Zeros, the increments that Algorithm 1 starts with."""
        zeros: Parameters = jax.tree.map(jnp.zeros_like, cls.of(machine))
        return zeros

    @property
    def biases(self) -> tuple[Any, Array]:
        """Both biases, the visible one first."""
        return self.visible_bias, self.hidden_bias

    def into(self, machine: Machine) -> Machine:
        """Put these parameters into a machine in place of its own."""
        changed: Machine = eqx.tree_at(
            lambda m: (m.coupling, m.visible_bias, m.hidden_bias),
            machine,
            (machine.coupling.with_factors(self.factors), *self.biases),
        )
        return changed


def n_factors(machine: Machine) -> int:
    """Count the arrays of the coupling: d for an MPO, 1 if dense."""
    return len(machine.coupling.factors)
