"""Learning of all layers at once: deep Boltzmann machines and deep belief networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from ..machine import Coupling, DeepBelief, Machine
from ..machine.hash_rng import hash_split
from ..machine.layered import layered
from ..sampling.deep import belief_bound, infer_layers, variational_free_energy
from .algorithm import Algorithm, LearningState, Scheme, ascend
from .centring import Centre, centre_step, settle
from .gradient import (
    Batch,
    GradientInfo,
    Objective,
    Parameters,
    gradient,
    n_factors,
    norm,
    plan_update,
)
from .monitor import (
    Snapshot,
    StepInfo,
    combine_infos,
    reconstruction_error,
    training_score,
)
from .rule import Rates, UpdateRule

N_PASSES = 4
"""Passes up, the same for every epoch, by which the bound of watched samples is estimated."""
DRAWN = 0x0B17
"""Makes the key of drawn states another one than those of an update."""


class DrawnStates(Objective):
    """The log-likelihood of the states of a hidden layer, of which the probabilities are stored.

    ``E_data[E_q(X | V)[log p(X)]]``, with states drawn anew for every batch: what a layer adds to
    the bound on ``log p(V)`` (Hinton, Osindero & Teh 2006, Section 4). Probabilities in place of
    states would have the right means, but weaker correlations.
    """

    def batch(self, machine: Machine, stored: PyTree, weight: Array) -> Batch:
        """Probabilities, to be drawn from."""
        return Batch(stored.astype(machine.coupling.dtype), weight)

    def draw(self, key: Array, machine: Machine, data: Batch, chains: Array | None = None) -> Batch:
        """States of the samples."""
        states = jax.random.bernoulli(jax.random.fold_in(key, DRAWN), data.visible)
        states = states.astype(data.visible.dtype)
        return Batch(machine.visible_units.of_values(states), data.weight)


class MeanFieldBound(Objective):
    """A bound on the log-likelihood of a deep Boltzmann machine (Salakhutdinov & Hinton 2009).

    In the data's part of the gradient the other layers are at their mean-field means, so that it
    is the gradient of a bound on the log-likelihood. The model's part is any negative phase, best
    one whose chains do not begin at the data.
    """

    def batch(self, machine: Machine, stored: PyTree, weight: Array) -> Batch:
        """Samples, and the means of the other even layers."""
        visible = stored.astype(machine.coupling.dtype)
        return Batch(infer_layers(machine, visible), weight)

    @eqx.filter_jit
    def watch(self, machine: Machine, stored: PyTree, units: Array) -> Snapshot:
        """What a few samples tell, with the other layers as inferred."""
        n_data, (n_even,) = layered(machine).sizes[0], machine.visible_shape
        visible = infer_layers(machine, stored.astype(machine.coupling.dtype))
        field = machine.hidden_field(visible)
        passed = machine.visible_mean(machine.hidden_units.mean(field))
        error = ((visible - passed)[:, :n_data] ** 2).mean()
        # Only units of the data, of which there are fewer than the machine believes.
        score = training_score(machine, visible, units % n_data).mean() * (n_data / n_even)
        free_energy = variational_free_energy(machine, visible).mean()
        return Snapshot(error, score, free_energy, jnp.abs(field).max())


class PassOfMeans(Objective):
    """The objective of a deep belief network, watched by a pass of means up and down."""

    @eqx.filter_jit
    def watch(self, machine: DeepBelief, stored: PyTree, units: Array) -> Snapshot:
        """Look at a few samples by a pass of means; the free energy is less the bound on log p."""
        visible = stored.astype(machine.coupling.dtype)
        error = reconstruction_error(machine, visible).mean()
        highest = machine.up_mean(visible)
        passed = machine.visible_mean(machine.top.hidden_mean(highest))
        fields = [machine.hidden_field(visible), machine.hidden_field(passed)]
        largest = jnp.maximum(*(jnp.abs(field).max() for field in fields))
        bound = belief_bound(jax.random.key(0), machine, visible, N_PASSES)
        return Snapshot(error, -error, -bound.mean(), largest)


class WakeSleep(Scheme):
    """A deep belief network: the up-down algorithm (Hinton, Osindero & Teh 2006, Appendix B).

    Awake, states are drawn upwards from the data, and every conditional of `generation` learns to
    give the state below from the one above. Then the machine on top learns as any machine does,
    and from its samples states are drawn downwards: asleep, every conditional of `recognition`
    learns to give the state above from the one below. All factors of all couplings move at once.
    """

    def groups(self, machine: DeepBelief) -> tuple[tuple[int, ...], ...]:
        """All factors of all machines together."""
        return (tuple(range(sum(n_factors(m) for m in _machines(machine)))),)

    def init(
        self, key: Array, algorithm: Algorithm, machine: DeepBelief, n_chains: int
    ) -> LearningState:
        """No velocity yet, fresh chains for the machine on top."""
        states = [Scheme.init(self, key, algorithm, m, n_chains) for m in _machines(machine)]
        velocities, formers, centres = zip(
            *((state.velocity, state.former, state.centre) for state in states), strict=True
        )
        return LearningState(machine, velocities, formers, states[-1].chains, centres)

    def step(
        self, key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Learn awake, on top, and asleep, then move everything once."""
        machine: DeepBelief = state.machine
        up, through, down = hash_split(key, 3)
        wake = machine.up_samples(up, data.visible)
        highest = Batch(wake[-1], data.weight)
        chains, samples = algorithm.negative_phase.step(through, machine.top, state.chains, highest)
        sleep = machine.down_samples(down, samples.visible)
        ascent, info = gradient(machine.top, highest, samples)
        ascent = algorithm.rule.with_sparsity(ascent, info.hidden_mean)
        found = [
            conditional_gradient(m, Batch(low, samples.weight), high, upwards=True)
            for m, low, high in zip(machine.recognition, sleep, sleep[1:], strict=False)
        ]
        found += [
            conditional_gradient(m, Batch(low, data.weight), high, upwards=False)
            for m, low, high in zip(machine.generation, wake, wake[1:], strict=False)
        ]
        found.append((ascent, info))
        every = zip(
            _machines(machine), state.velocity, state.former, state.centre, found, strict=True
        )
        moved = [
            _move(algorithm.rule, LearningState(m, velocity, former, None, centre), *slope, rates)
            for m, velocity, former, centre, slope in every
        ]
        machines, velocities, formers, centres = zip(*moved, strict=True)
        n_below = len(machine.recognition)
        network = DeepBelief(machines[:n_below], machines[n_below:-1], machines[-1])
        infos = [StepInfo(norm(ascent), info.largest_field) for ascent, info in found]
        new = LearningState(network, velocities, formers, chains, centres)
        return new, combine_infos(infos)


def _move(
    rule: UpdateRule, state: LearningState, ascent: Parameters, info: GradientInfo, rates: Rates
) -> tuple[Machine, Parameters, tuple[Coupling, ...], Centre | None]:
    """Move all parameters of one machine: itself, its velocity and its offsets thereafter."""
    every = tuple(range(n_factors(state.machine)))
    planned = plan_update(state.machine, 2)
    ascent, rates = centre_step(rule, planned, ascent, state.centre, rates)
    machine, velocity, former = ascend(rule, state, ascent, rates, every)
    machine, centre = settle(machine, state.machine.coupling, state.centre, info)
    return machine, velocity, former, centre


def conditional_gradient(
    machine: Machine, low: Batch, high: Array, *, upwards: bool
) -> tuple[Parameters, GradientInfo]:
    """The gradient of ``E[log p(H | V)]`` (upwards) or ``E[log p(V | H)]``, over pairs V, H."""

    def log_likelihood(machine: Machine) -> tuple[Array, Array]:
        if upwards:
            field = machine.hidden_field(low.visible)
            terms = machine.hidden_units.log_density(high, field)
        else:
            field = machine.visible_field(high)
            terms = machine.visible_units.log_density(low.visible, field)
        return low.mean(terms.reshape(len(terms), -1).sum(axis=1)), jnp.abs(field).max()

    slope, largest = jax.grad(log_likelihood, has_aux=True)(machine)
    return Parameters.of(slope), GradientInfo(low.mean(high), largest)


def _machines(belief: DeepBelief) -> tuple[Machine, ...]:
    return (*belief.recognition, *belief.stack)
