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
from jax import Array
from jaxtyping import PyTree

from ..machine import Coupling, Machine
from ..machine.hash_rng import hash_split
from .centring import Centre, centre_step, settle
from .gauge import precondition, step_shares, transport_velocity
from .gradient import Batch, GradientInfo, Objective, Parameters, Planned, norm, plan_update
from .monitor import StepInfo, combine_infos
from .negative_phases import NegativePhase
from .rule import Rates, UpdateRule
from .zero_sum import zero_sum_machine, zero_sum_step


class LearningState(eqx.Module):
    """All that an update changes."""

    machine: PyTree
    velocity: PyTree
    former: tuple[PyTree, ...]
    """With gauge and momentum, the coupling at which each factor's velocity was computed."""
    chains: PyTree
    centre: PyTree = None
    """The offsets of a centred rule, a `Centre`; one for each machine of a deep belief network."""


class Scheme(eqx.Module):
    """Which factors an update moves, and what happens before the first and after the last."""

    needs_bonds: ClassVar[bool] = False  # Whether it is for the cores of an open MPO only.
    can_average: ClassVar[bool] = True  # Whether the factors of two updates have a mean.
    depends_on_n_iter: ClassVar[bool] = False  # Whether it asks how much of the training is over.

    @abstractmethod
    def groups(self, machine: PyTree) -> tuple[tuple[int, ...], ...]:
        """List the factors that move together, one group for each update of a batch."""

    def init(
        self, key: Array, algorithm: "Algorithm", machine: PyTree, n_chains: int
    ) -> LearningState:
        """Lines 1-3: no velocity yet, fresh chains."""
        machine = zero_sum_machine(machine)
        rule, coupling = algorithm.rule, machine.coupling
        has_former = rule.gauge and rule.has_momentum
        former = (coupling,) * len(coupling.factors) if has_former else ()
        chains = algorithm.negative_phase.init(key, machine, n_chains)
        centre = Centre.begin(machine) if rule.centred else None
        return LearningState(machine, Parameters.zeros_like(machine), former, chains, centre)

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
    objective: Objective = eqx.field(default_factory=Objective)
    is_bounded: ClassVar[bool] = True
    """Whether fields beyond a limit say that something went wrong."""

    def init(self, key: Array, machine: PyTree, n_chains: int) -> LearningState:
        """Begin, as the scheme says."""
        return self.scheme.init(key, self, machine, n_chains)

    def step(
        self, key: Array, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Learn from one batch, as the scheme says."""
        chains = self.negative_phase.visible_states(state.chains)
        data = self.objective.draw(key, state.machine, data, chains)
        return self.scheme.step(key, self, state, data, rates)

    def update(
        self, key: Array, state: LearningState, data: Batch, rates: Rates, moved: tuple[int, ...]
    ) -> tuple[LearningState, StepInfo]:
        """Lines 6-14 for the factors `moved` of W and both biases."""
        # W, or the merged cores that its plan asks for: formed once, for samples and gradient.
        planned = plan_update(state.machine, len(data), moved)
        chains, ascent, info = self.gradient(key, state.chains, data, planned)
        step_info = StepInfo(norm(ascent), info.largest_field)
        ascent, rates = centre_step(self.rule, planned, ascent, state.centre, rates)
        ascent = zero_sum_step(planned, ascent)
        machine, velocity, former = ascend(self.rule, state, ascent, rates, moved)
        machine, centre = settle(machine, state.machine.coupling, state.centre, info)
        return LearningState(machine, velocity, former, chains, centre), step_info

    def gradient(
        self, key: Array, chains: PyTree, data: Batch, planned: Planned
    ) -> tuple[PyTree, Parameters, GradientInfo]:
        """Lines 6-10: move the chains, and take the gradient of what was planned."""
        machine, pull_back = planned
        chains, samples = self.negative_phase.step(key, machine, chains, data)
        ascent, info = self.objective.gradient(machine, pull_back, data, samples)
        return chains, self.rule.with_sparsity(ascent, info.hidden_mean), info


def ascend(
    rule: UpdateRule, state: LearningState, ascent: Parameters, rates: Rates, moved: tuple[int, ...]
) -> tuple[Machine, Parameters, tuple[Coupling, ...]]:
    """Lines 11-14: the machine after a step, its velocity, and the couplings of that velocity."""
    coupling, theta = state.machine.coupling, Parameters.of(state.machine)
    velocities, former = list(state.velocity.factors), list(state.former)
    for c in moved:
        if rule.gauge and rule.has_momentum:
            velocities[c] = transport_velocity(coupling, c, former[c], velocities[c])
            former[c] = coupling
        velocities[c] = rule.accelerate(velocities[c], ascent.factors[c], rates.coupling)
        if rule.gauge:
            velocities[c] = precondition(coupling, c, velocities[c])
    share = step_shares(coupling, moved) if rule.gauge else dict.fromkeys(moved, 1.0)
    factors = list(theta.factors)
    for c in moved:
        factors[c] = rule.decay(factors[c], share[c] * rates.coupling) + share[c] * velocities[c]
    biases, bias_velocities = rule.move_biases(theta, state.velocity, ascent, rates.bias)
    machine = Parameters(tuple(factors), *biases).into(state.machine)
    velocity = Parameters(tuple(velocities), *bias_velocities)
    return machine, velocity if rule.has_momentum else state.velocity, tuple(former)


def split_for(key: Array, n_updates: int) -> Array | list[Array]:
    """Keys for the updates of a batch; a single update has the key of the batch."""
    return [key] if n_updates == 1 else hash_split(key, n_updates)
