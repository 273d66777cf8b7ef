"""Algorithm 1 of the paper, on one page.

=========== ===============================================================================
lines 4-5   for every batch, for every core c: `schemes.Alternating`; CD-SU: `Simultaneous`
lines 6-9   the negative phase draws V_K from the data, or from chains that go on
line 10     ``g = E_data[grad -F(V)] - E_model[grad -F(V_K)]``, hidden units as means (Fig. 5)
lines 11-13 ``velocity <- momentum velocity + rate g``, of core c and of both biases
line 14     ``theta <- theta + velocity``
=========== ===============================================================================
"""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from ..machine import Coupling, Machine
from ..machine.hash_rng import hash_split
from .gauge import precondition, step_shares, transport_velocity
from .gradient import Batch, LogLikelihood, Objective, Parameters, n_factors, plan_update
from .negative_phases import NegativePhase
from .rule import Rates, UpdateRule


class LearningState(eqx.Module):
    """All that an update changes."""

    machine: PyTree
    velocity: PyTree
    former: tuple[PyTree, ...]  # With gauge and momentum, the coupling of each velocity.
    chains: PyTree


class StepInfo(eqx.Module):
    """What a batch showed: the norm of the gradient, and the largest hidden field."""

    gradient_norm: Array
    largest_field: Array


class Scheme(eqx.Module):
    """Which factors an update moves, and what happens before the first and after the last."""

    needs_bonds: ClassVar[bool] = False  # Whether it is for the cores of an open MPO only.

    @abstractmethod
    def groups(self, machine: PyTree) -> tuple[tuple[int, ...], ...]:
        """List the factors that move together, one group for each update of a batch."""

    def init(
        self, key: Array, algorithm: "Algorithm", machine: PyTree, n_chains: int
    ) -> LearningState:
        """Lines 1-3: no velocity yet, fresh chains."""
        rule, n = algorithm.rule, n_factors(machine)
        former = (machine.coupling,) * n if rule.gauge and rule.has_momentum else ()
        chains = algorithm.negative_phase.init(key, machine, n_chains)
        return LearningState(machine, Parameters.zeros_like(machine), former, chains)

    def step(
        self, key: Array, algorithm: "Algorithm", state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Lines 5-15: update one group after the other, each with a negative phase of its own."""
        groups, infos = self.groups(state.machine), list[StepInfo]()
        for group, group_key in zip(groups, split_for(key, len(groups)), strict=True):
            state, info = algorithm.update(group_key, state, data, rates, group)
            infos.append(info)
        return state, combine_infos(infos)

    def end_epoch(self, algorithm: "Algorithm", state: LearningState, done: float) -> LearningState:
        """Tidy up after an epoch; `done` is the share of the training that is over."""
        return state

    def finish(self, machine: PyTree) -> PyTree:
        """Bring a trained machine into the form that users see."""
        return machine


class Algorithm(eqx.Module):
    """The four choices of a learning algorithm; training needs its `init` and its `step`."""

    scheme: Scheme
    negative_phase: NegativePhase
    rule: UpdateRule = eqx.field(default_factory=UpdateRule)
    objective: Objective = eqx.field(default_factory=LogLikelihood)

    def init(self, key: Array, machine: PyTree, n_chains: int) -> LearningState:
        """Begin, as the scheme says."""
        return self.scheme.init(key, self, machine, n_chains)

    def step(
        self, key: Array, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Learn from one batch, as the scheme says."""
        return self.scheme.step(key, self, state, data, rates)

    def update(
        self, key: Array, state: LearningState, data: Batch, rates: Rates, moved: tuple[int, ...]
    ) -> tuple[LearningState, StepInfo]:
        """Lines 6-14 for the factors `moved` of W and both biases."""
        # W, or the merged cores that its plan asks for: formed once, for samples and gradient.
        planned, pull_back = plan_update(state.machine, len(data), moved)
        chains, samples = self.negative_phase.step(key, planned, state.chains, data)
        ascent, info = self.objective.gradient(planned, pull_back, data, samples)
        ascent = self.rule.with_sparsity(ascent, info.hidden_rate)
        moved_to = ascend(self.rule, state, ascent, rates, moved)
        return LearningState(*moved_to, chains), StepInfo(norm(ascent), info.largest_field)


def ascend(
    rule: UpdateRule, state: LearningState, ascent: Parameters, rates: Rates, moved: tuple[int, ...]
) -> tuple[Machine, Parameters, tuple[Coupling, ...]]:
    """Lines 11-14: the machine after a step, its velocity, and the couplings of that velocity."""
    coupling, theta, old = state.machine.coupling, Parameters.of(state.machine), state.velocity
    steps, former = list(old.factors), list(state.former)
    for c in moved:
        if rule.gauge and rule.has_momentum:
            steps[c] = transport_velocity(coupling, c, former[c], steps[c])
            former[c] = coupling
        steps[c] = rule.accelerate(steps[c], ascent.factors[c], rates.coupling)
        if rule.gauge:
            steps[c] = precondition(coupling, c, steps[c])
    share = step_shares(coupling, moved) if rule.gauge else dict.fromkeys(moved, 1.0)
    factors = list(theta.factors)
    for c in moved:
        factors[c] = rule.decay(factors[c], share[c] * rates.coupling) + share[c] * steps[c]
    biases = rule.accelerate_biases(old, ascent, rates.bias)
    moved_biases = (b + v for b, v in zip(theta.biases, biases, strict=True))
    machine = Parameters(tuple(factors), *moved_biases).into(state.machine)
    return machine, Parameters(tuple(steps), *biases) if rule.has_momentum else old, tuple(former)


def split_for(key: Array, n_updates: int) -> Array | list[Array]:
    """Keys for the updates of a batch; a single update has the key of the batch."""
    return [key] if n_updates == 1 else hash_split(key, n_updates)


def combine_infos(infos: list[StepInfo]) -> StepInfo:
    """Summarise several updates: the mean gradient norm, the largest field."""
    norms, fields = zip(*((info.gradient_norm, info.largest_field) for info in infos), strict=True)
    return StepInfo(jnp.stack(norms).mean(), jnp.stack(fields).max())


def norm(tree: PyTree) -> Array:
    """Compute the Frobenius norm of all arrays together."""
    return jnp.sqrt(sum(jnp.vdot(array, array) for array in jax.tree.leaves(tree)))
