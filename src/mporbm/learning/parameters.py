"""What learning moves: the factors of the coupling and the biases."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine


class Parameters(eqx.Module):
    """The arrays of a coupling, in the order of its nodes, and two biases (arrays, or MPS).

    Also the type of gradients and velocities; a gradient has None for a factor that stays. A
    subclass for machines with more biases adds their names to `BIASES`, as fields in that order.
    """

    factors: tuple[Any, ...]
    visible_bias: Any
    hidden_bias: Array

    BIASES: ClassVar[tuple[str, ...]] = ("visible_bias", "hidden_bias")

    def __init__(self, factors: tuple[Any, ...], *biases: Any):
        self.factors = factors
        for name, bias in zip(self.BIASES, biases, strict=True):
            setattr(self, name, bias)

    @classmethod
    def of(cls, machine: Machine) -> Self:
        """The parameters of a machine."""
        factors = tuple(jax.tree.leaves(machine.coupling))
        return cls(factors, *(getattr(machine, name) for name in cls.BIASES))

    @classmethod
    def zeros_like(cls, machine: Machine) -> "Parameters":
        """Zeros, the increments that Algorithm 1 starts with."""
        zeros: Parameters = jax.tree.map(jnp.zeros_like, cls.of(machine))
        return zeros

    @property
    def biases(self) -> tuple[Any, ...]:
        """All but the factors."""
        return tuple(getattr(self, name) for name in self.BIASES)

    def into(self, machine: Machine) -> Machine:
        """The machine with these parameters instead of its own."""
        structure = jax.tree.structure(machine.coupling)
        coupling = jax.tree.unflatten(structure, self.factors)
        changed: Machine = eqx.tree_at(
            lambda m: (m.coupling, *(getattr(m, name) for name in self.BIASES)),
            machine,
            (coupling, *self.biases),
        )
        return changed


def n_factors(machine: Machine) -> int:
    """The number of arrays of the coupling: d for an MPO, 1 if dense."""
    return len(jax.tree.leaves(machine.coupling))
