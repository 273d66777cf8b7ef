"""The paper's schemes: CD-AOP, one core after the other, and CD-SU, all of them at once."""

import equinox as eqx

from ..machine import Machine
from ..registry import Registry
from .algorithm import Algorithm, LearningState, Scheme
from .gradient import n_factors

SCHEMES: Registry[Scheme] = Registry()
"""What the parameter `scheme` of estimators may be."""


class Factorwise(Scheme):
    """A scheme that moves factors as they are, whatever the coupling."""

    def end_epoch(self, algorithm: Algorithm, state: LearningState, done: float) -> LearningState:
        """Balance the cores if gauged steps have made them large against each other."""
        coupling = state.machine.coupling
        balanced = coupling.rebalanced() if algorithm.rule.gauge else coupling
        if balanced is coupling:
            return state
        machine = eqx.tree_at(lambda m: m.coupling, state.machine, balanced)
        # Offsets in the gauge that was mean something else now.
        chains = algorithm.negative_phase.forget_gauge(state.chains)
        return LearningState(machine, state.velocity, state.former, chains, state.centre)


@SCHEMES.register("aop")
class Alternating(Factorwise):
    """CD-AOP, Algorithm 1: one factor after the other, and both biases with each.

    With several couplings (a label adds one), an update moves one factor of each.
    """

    def groups(self, machine: Machine) -> tuple[tuple[int, ...], ...]:
        """Each factor by itself; one of every coupling."""
        sizes = [len(part.factors) for part in machine.coupling.parts()]
        first = [sum(sizes[:position]) for position in range(len(sizes))]
        return tuple(
            tuple(start + c % size for start, size in zip(first, sizes, strict=True))
            for c in range(max(sizes))
        )


@SCHEMES.register("su")
class Simultaneous(Factorwise):
    """CD-SU: all factors and both biases at once."""

    def groups(self, machine: Machine) -> tuple[tuple[int, ...], ...]:
        """All factors together."""
        return (tuple(range(n_factors(machine))),)
