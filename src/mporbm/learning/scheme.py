"""Schemes: which parameters one update moves (the paper's CD-SU and CD-AOP, and two-site).

Each is an ``(init, step)`` pair: ``init(key, rule, machine, n_chains)`` gives the state of
learning, ``step(key, rule, state, data, rates)`` the state after one batch.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Coupling, Machine
from ..machine.hash_rng import hash_split
from .gauge import carried, natural, shares
from .gradient import Batch, GradientInfo, gradient
from .monitor import Snapshot, snapshot
from .negative_phases import NegativePhase
from .parameters import Parameters, n_factors


class Rates(eqx.Module):
    """Learning rates of the coupling and of the biases; the paper's alpha is both."""

    coupling: Array
    bias: Array

    def __init__(self, coupling: Any, bias: Any):
        self.coupling = jnp.asarray(coupling, float)
        self.bias = jnp.asarray(bias, float)

    def __mul__(self, factor: Any) -> "Rates":
        return Rates(self.coupling * factor, self.bias * factor)


class Rule(eqx.Module):
    """How a gradient becomes an increment, the same for every scheme (lines 11-14 of Algorithm 1).

    ``velocity <- momentum velocity + rate g``, ``theta <- theta + velocity``. With the gauge, g is
    the natural gradient of a factor, and its velocity goes on as the step in W that it was, as far
    as the factor can follow (`mporbm.learning.gauge`). The step in W is then never longer than
    that of a dense machine, whatever the scheme. A momentum of 0 leaves velocities at 0, and they
    cost nothing.

    Weight decay takes ``rate weight_decay / (1 - momentum)`` of every moved factor: with the gauge
    the gradient of ``-weight_decay/2 |W|^2``, without noise and so without velocity. A sparsity
    target t adds ``sparsity_cost (t - E_data[H])`` to the gradient of the hidden bias.
    """

    negative_phase: NegativePhase
    gauge: bool = eqx.field(static=True)
    has_momentum: bool = eqx.field(static=True)
    momentum: Array
    weight_decay: Array
    sparsity_target: Array
    sparsity_cost: Array

    def __init__(
        self,
        negative_phase: NegativePhase,
        *,
        gauge: bool = True,
        momentum: Any = 0.5,
        weight_decay: Any = 0.0,
        sparsity_target: Any = 0.0,
        sparsity_cost: Any = 0.0,
    ):
        self.negative_phase = negative_phase
        self.gauge = gauge
        self.has_momentum = isinstance(momentum, jax.core.Tracer) or float(momentum) != 0.0
        self.momentum = jnp.asarray(momentum, float)
        self.weight_decay = jnp.asarray(weight_decay, float)
        self.sparsity_target = jnp.asarray(sparsity_target, float)
        self.sparsity_cost = jnp.asarray(sparsity_cost, float)

    def gradient(
        self, machine: Machine, data: Batch, samples: Batch, moved: Sequence[int]
    ) -> tuple[Parameters, GradientInfo]:
        """The gradient of the moved factors and both biases, with the pull to sparsity."""
        return self.sparse(*gradient(machine, data, samples, moved))

    def sparse(self, ascent: Parameters, info: GradientInfo) -> tuple[Parameters, GradientInfo]:
        """A gradient with the pull to sparsity."""
        pull = self.sparsity_cost * (self.sparsity_target - info.hidden_rate)
        bias = ascent.hidden_bias + pull.astype(ascent.hidden_bias.dtype)
        return eqx.tree_at(lambda a: a.hidden_bias, ascent, bias), info

    def velocity(self, velocity: Array, ascent: Array, rate: Array) -> Array:
        """``momentum velocity + rate g``."""
        kept = self.momentum * velocity if self.has_momentum else 0.0
        return (kept + rate * ascent).astype(velocity.dtype)

    def decayed(self, factor: Array, rate: Array) -> Array:
        """A factor after weight decay, by as much as momentum makes of a steady gradient."""
        loss = rate * self.weight_decay / (1.0 - self.momentum)
        return factor * (1.0 - loss).astype(factor.dtype)


class LearningState(eqx.Module):
    """All that an update changes."""

    machine: Any
    velocity: Any
    """Parameters, or those of every machine that a scheme moves."""
    former: tuple[Any, ...]
    """With the gauge, the coupling that each factor's velocity belongs to."""
    chains: Any


class StepInfo(eqx.Module):
    """What one batch showed."""

    gradient_norm: Array
    """The norm of the gradient of all moved parameters, averaged over the updates."""
    largest_field: Array
    """The largest absolute value of any hidden field."""


class Scheme(eqx.Module):
    """Which parameters one update moves.

    Training asks it for all that depends on the kind of machine: what a batch of stored samples
    is, and what samples tell about a machine.
    """

    def batch(self, machine: Any, stored: Any, weight: Array) -> Batch:
        """Samples as they are stored, ready for `step`."""
        visible = stored.reshape(-1, *machine.visible_shape)
        visible = visible.astype(machine.coupling.dtype)
        return Batch(machine.visible_units.of_values(visible), weight)

    def watch(self, machine: Any, stored: Any, units: Array) -> Snapshot:
        """What a few samples tell about a machine."""
        return snapshot(machine, stored, units)

    def field_limit(self, machine: Any, stored: Any) -> float:
        """Larger fields than this are those of a training that diverges."""
        largest = float(np.abs(np.asarray(stored, np.float64)).max(initial=1.0))
        # Sensible weights stay far below: on average 1 for every visible unit.
        n_visible: int = math.prod(machine.visible_shape)
        return 1000.0 + n_visible * largest**2

    def init(self, key: Array, rule: Rule, machine: Any, n_chains: int) -> LearningState:
        """No velocity, fresh chains."""
        chains = rule.negative_phase.init(key, machine, n_chains)
        former = (machine.coupling,) * n_factors(machine) if rule.gauge else ()
        return LearningState(machine, Parameters.zeros_like(machine), former, chains)

    @abstractmethod
    def n_updates(self, machine: Any) -> int:
        """How many updates one batch gives."""

    @abstractmethod
    def step(
        self, key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """All updates that one batch gives."""


class Simultaneous(Scheme):
    """CD-SU: all factors and both biases at once."""

    def n_updates(self, machine: Machine) -> int:
        """One."""
        return 1

    def step(
        self, key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """One negative phase, one update."""
        every = tuple(range(n_factors(state.machine)))
        return update(key, rule, state, data, rates, every)


class Alternating(Scheme):
    """CD-AOP, Algorithm 1: one factor and both biases after the other.

    Every update has a negative phase of its own, with the factors as they are then.
    """

    def n_updates(self, machine: Machine) -> int:
        """One for every factor."""
        return n_factors(machine)

    def step(
        self, key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """As many updates as there are factors."""
        infos = []
        for k, factor_key in enumerate(hash_split(key, self.n_updates(state.machine))):
            state, info = update(factor_key, rule, state, data, rates, (k,))
            infos.append(info)
        return state, combine(infos)


def update(
    key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates, moved: tuple[int, ...]
) -> tuple[LearningState, StepInfo]:
    """A negative phase, then a step of the moved factors and all biases."""
    machine = state.machine
    chains, samples = rule.negative_phase.step(key, machine, state.chains, data)
    ascent, info = rule.gradient(machine, data, samples, moved)
    ascended = ascend(rule, machine, state.velocity, state.former, ascent, rates, moved)
    return LearningState(*ascended, chains), StepInfo(norm(ascent), info.largest_field)


def ascend(
    rule: Rule,
    machine: Machine,
    old: Parameters,
    former: tuple[Coupling, ...],
    ascent: Parameters,
    rates: Rates,
    moved: tuple[int, ...],
) -> tuple[Machine, Parameters, tuple[Coupling, ...]]:
    """A step along a gradient: the machine, its velocity and what that belongs to."""
    kind = type(old)
    coupling, theta = machine.coupling, kind.of(machine)
    steps: list[Array | None] = [None] * len(theta.factors)
    for k in moved:
        velocity = old.factors[k]
        if rule.gauge and rule.has_momentum:
            velocity = carried(coupling, k, former[k], velocity)
        steps[k] = rule.velocity(velocity, ascent.factors[k], rates.coupling)
    if rule.gauge:
        steps = list(natural(coupling, steps))
        if rule.has_momentum:
            former = tuple(coupling if k in moved else f for k, f in enumerate(former))
    pairs = zip(old.biases, ascent.biases, strict=True)
    velocities = kind(
        tuple(v if step is None else step for v, step in zip(old.factors, steps, strict=True)),
        *(rule.velocity(velocity, bias, rates.bias) for velocity, bias in pairs),
    )
    share = shares(coupling, moved) if rule.gauge else dict.fromkeys(moved, 1.0)
    moved_theta = kind(
        tuple(
            w if step is None else rule.decayed(w, share[k] * rates.coupling) + share[k] * step
            for k, (w, step) in enumerate(zip(theta.factors, steps, strict=True))
        ),
        *(b + v for b, v in zip(theta.biases, velocities.biases, strict=True)),
    )
    if not rule.has_momentum:
        velocities = old
    return moved_theta.into(machine), velocities, former


def combine(infos: Sequence[StepInfo]) -> StepInfo:
    """Several updates as one: the mean gradient norm, the largest field."""
    norms = jnp.stack([info.gradient_norm for info in infos])
    fields = jnp.stack([info.largest_field for info in infos])
    return StepInfo(norms.mean(), fields.max())


def norm(tree: Any) -> Array:
    """The Frobenius norm of all arrays together."""
    return jnp.sqrt(sum(jnp.vdot(array, array) for array in jax.tree.leaves(tree)))
