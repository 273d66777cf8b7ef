"""One training step as a compiled program: what `fit` runs for every batch, and its parts."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from mporbm.learning import (
    Algorithm,
    Alternating,
    Batch,
    ContrastiveDivergence,
    LearningState,
    Rates,
    UpdateRule,
    gradient,
)
from mporbm.machine import Machine
from mporbm.sampling import gibbs
from mporbm.training.devices import compiled

Step = Callable[[], Any]


class Sweep:
    """CD-AOP with CD-1 on one batch of random data: an update of each factor in turn."""

    def __init__(self, machine: Machine, batch: int, *, gauge: bool = True):
        self.machine = machine
        phase, rule = ContrastiveDivergence(n_gibbs=1), UpdateRule(gauge=gauge)
        self.algorithm = Algorithm(Alternating(), phase, rule)
        self.n_updates = len(self.algorithm.scheme.groups(machine))
        key = jax.random.key(0)
        visible = jax.random.bernoulli(key, 0.3, (batch, *machine.visible_shape))
        weight = jnp.full(batch, 1.0 / batch)
        self.data = Batch(visible.astype(machine.coupling.dtype), weight)
        self.state = self.algorithm.init(key, machine, batch)
        self.key = key

    def whole(self, n_sweeps: int = 1) -> Step:
        """All of it, as often as asked for in one program, as in an epoch."""
        rates = Rates(1e-4, 1e-4)

        @self._compiled
        def steps(key: Array, state: LearningState, data: Batch) -> LearningState:
            def step(number: Array, state: LearningState) -> LearningState:
                step_key = jax.random.fold_in(key, number)
                return self.algorithm.step(step_key, state, data, rates)[0]

            result: LearningState = jax.lax.fori_loop(0, n_sweeps, step, state)
            return result

        return lambda: jax.block_until_ready(  # type: ignore[no-untyped-call]
            steps(self.key, self.state, self.data).machine
        )

    def gradients(self) -> Step:
        """Gibbs sampling and gradients of each factor."""

        @self._compiled
        def step(key: Array, machine: Machine, data: Batch, nothing: Array) -> Any:
            found = []
            for k, update_key in enumerate(jax.random.split(key, self.n_updates)):
                samples = Batch(gibbs(update_key, machine, data.visible), data.weight)
                ascent, _ = gradient(machine, data, samples, (k,))
                machine = _after(machine, nothing * ascent.hidden_bias.sum())
                found.append(ascent)
            return found

        return self._called(step)

    def samples(self) -> Step:
        """Gibbs sampling, and the hidden fields of what was drawn."""

        @self._compiled
        def step(key: Array, machine: Machine, data: Batch, nothing: Array) -> Any:
            found = []
            for update_key in jax.random.split(key, self.n_updates):
                ready = machine.planned(len(data.visible))
                found.append(ready.hidden_field(gibbs(update_key, ready, data.visible)))
                machine = _after(machine, nothing * found[-1].sum())
            return found

        return self._called(step)

    def products(self) -> Step:
        """The products with W of Gibbs sampling alone: up, down and up again."""

        @self._compiled
        def step(key: Array, machine: Machine, data: Batch, nothing: Array) -> Any:
            found = []
            for _ in range(self.n_updates):
                ready = machine.planned(len(data.visible)).coupling
                passed = ready.apply(ready.apply_transpose(data.visible))
                found.append(ready.apply_transpose(passed))
                machine = _after(machine, nothing * found[-1].sum())
            return found

        return self._called(step)

    def _compiled(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Compiled as `fit` compiles its blocks."""
        machine = self.machine
        return compiled(step, math.prod((*machine.visible_shape, *machine.hidden_shape)))

    def _called(self, step: Callable[..., Any]) -> Step:
        nothing = jnp.zeros(())
        return lambda: jax.block_until_ready(  # type: ignore[no-untyped-call]
            step(self.key, self.machine, self.data, nothing)
        )


def _after(machine: Machine, zero: Array) -> Machine:
    """The same machine, but not before something else is known: updates cannot share anything."""
    later: Machine = eqx.tree_at(
        lambda m: m.coupling, machine, jax.tree.map(lambda array: array + zero, machine.coupling)
    )
    return later
