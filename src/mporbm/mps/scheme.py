"""CD-SU and CD-AOP where samples and the visible bias are MPS.

With visible means ``V' = variance (W(h) + B)`` contrastive divergence needs V' in two places: in
the fields, ``W^T(V') = variance (G h + W^T(B))`` with ``G = W^T W``, and in the gradient,
``E[V' x H'] = variance (W(M) + B x m)`` with ``M = E[h x H']`` and ``m = E[H']``. So it is never
formed. All of this are contractions of two trains, and the gradient of a core is what stands around
it there: its left and right environments, weighted with the statistics of hidden units.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from ..learning.algorithm import Algorithm, LearningState, Scheme
from ..learning.gauge import ridge_solve
from ..learning.gradient import Batch, Objective, Parameters, n_factors, norm
from ..learning.monitor import Snapshot, StepInfo, combine_infos
from ..learning.rule import Rates, UpdateRule
from ..machine.hash_rng import hash_split
from ..tensor import MPO, MPS, MPSBatch
from ..tensor.environments import (
    FIELD_CONTRACTION,
    OVERLAP_CONTRACTION,
    EnvironmentContraction,
    fold,
    next_gram,
)
from .machine import MPSMachine

TERMS: tuple[tuple[EnvironmentContraction, str, str], ...] = (
    (FIELD_CONTRACTION, "V", "W"),
    (FIELD_CONTRACTION, "V", "B"),
    (OVERLAP_CONTRACTION, "W", "W"),
    (OVERLAP_CONTRACTION, "B", "W"),
    (OVERLAP_CONTRACTION, "W", "B"),
    (OVERLAP_CONTRACTION, "B", "B"),
)
"""Which trains are contracted; gradients are those of the second one."""


class Seen(eqx.Module):
    """All contractions of `TERMS`: what a phase needs to know of samples and parameters."""

    field: Array
    """``W^T(V_n)``, (n, J)."""
    bias: Array
    """``<V_n, B>``, (n, 1)."""
    gram: Array
    """``W^T W``, (J, J)."""
    bias_field: Array
    """``W^T(B)``, (1, J)."""
    field_bias: Array
    """``W^T(B)`` as a column, (J, 1): its gradient is that of B."""
    bias_square: Array
    """``<B, B>``, (1, 1)."""

    def mean_field(self, machine: MPSMachine, hidden: Array) -> Array:
        """The hidden field of the visible mean ``variance (W(h) + B)``, for each h."""
        return machine.variance * (hidden @ self.gram + self.bias_field)


class MPSLikelihood(Objective):
    """``E_data[log p(V)]`` of samples in MPS form, by contrastive divergence with mean values."""

    def batch(self, machine: MPSMachine, stored: PyTree, weight: Array) -> Batch:
        """Bring cores to the precision of the coupling."""
        return Batch(stored.astype(machine.coupling.dtype), weight)

    @eqx.filter_jit
    def watch(self, machine: MPSMachine, stored: PyTree, units: Array) -> Snapshot:
        """Look at a few samples: as `monitor.snapshot`, with |V - V'|^2 from inner products."""
        visible = stored.astype(machine.coupling.dtype)
        trains = _trains(machine, visible)
        seen = _see(trains, trains)
        bias, variance = machine.hidden_bias.reshape(-1), machine.variance
        hidden = machine.hidden_units.mean(seen.field + bias)
        passed = seen.mean_field(machine, hidden)
        # <V, V'> and |V'|^2 of V' = variance (W(H) + B)
        overlap = variance * ((hidden * seen.field).sum(axis=1) + seen.bias[:, 0])
        own = (hidden @ seen.bias_field[0]) + seen.bias_square[0, 0]
        square = variance * ((hidden * passed).sum(axis=1) + variance * own)
        error = visible.squared_norms() - 2.0 * overlap + square
        n_visible = jnp.prod(jnp.asarray(machine.visible_shape, float))
        error = (jnp.maximum(error, 0.0) / n_visible).mean()
        largest = jnp.maximum(jnp.abs(seen.field + bias).max(), jnp.abs(passed + bias).max())
        return Snapshot(error, -error, machine.free_energy(visible).mean(), largest)

    def field_limit(self, machine: MPSMachine, stored: PyTree) -> float:
        """Say beyond which field a training diverges, by the norms of the samples."""
        return 1000.0 + 10.0 * float(stored.squared_norms().max())


class MPSScheme(Scheme):
    """CD-AOP (`alternating`) or CD-SU for an `MPSMachine`, with mean visible values.

    An update of CD-AOP moves core k of W and of B, and C; its sweep keeps the environments of all
    cores to the right and extends those to the left, so that its cost is linear in d.
    """

    alternating: bool = eqx.field(static=True, default=True)

    def groups(self, machine: MPSMachine) -> tuple[tuple[int, ...], ...]:
        """Each core by itself, or all of them together."""
        every = range(n_factors(machine))
        return tuple((k,) for k in every) if self.alternating else (tuple(every),)

    def init(
        self, key: Array, algorithm: Algorithm, machine: MPSMachine, n_chains: int
    ) -> LearningState:
        """No velocity yet; chains begin at the data."""
        return LearningState(machine, Parameters.zeros_like(machine), (), None)

    def step(
        self, key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Sweep over all cores, or update all of them once."""
        step = _sweep if self.alternating else _all_at_once
        return step(key, algorithm, state, data, rates)


Trains = Mapping[str, Sequence[Array]]
"""The cores of V, W and B by name."""
Moved = tuple[Array, Array]
"""Parameters after an update, and their velocity."""


def _all_at_once(
    key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
) -> tuple[LearningState, StepInfo]:
    """CD-SU: the gradients of all cores from one pass along the chain, and back."""
    machine: MPSMachine = state.machine
    rule = algorithm.rule
    trains, velocity = _trains(machine, data.visible), _velocities(state.velocity)
    now = {name: list(trains[name]) for name in "WB"}
    seen, pull_back = jax.vjp(lambda moved: _see(trains, moved), now)
    weights, slope, largest = _phases(
        key, algorithm, machine, seen, data.weight, machine.hidden_bias
    )
    (ascent,) = pull_back(weights)

    def move(name: str) -> list[Moved]:
        mpo = MPO(now[name])
        grams = [mpo.left_grams(), mpo.right_grams()] if rule.gauge else []
        sites = list(zip(now[name], velocity[name], ascent[name], *grams, strict=True))
        return fold(
            lambda _, site: (None, _move(rule, rates, name, len(sites), *site)), None, sites
        )[1]

    hidden = _move(rule, rates, "C", 1, machine.hidden_bias, state.velocity.hidden_bias, slope)
    moved = {name: move(name) for name in now}
    return _state(machine, moved, hidden), StepInfo(norm((ascent, slope)), largest)


class _Side(eqx.Module):
    """All to one side of a core: the environments of `TERMS`, and Gram matrices if gauged."""

    environments: list[Array]
    grams: dict[str, Array]


class _Site(eqx.Module):
    """What a sweep finds at a core."""

    key: Array
    cores: dict[str, Array]
    velocity: dict[str, Array]
    right: _Side


def _sweep(
    key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
) -> tuple[LearningState, StepInfo]:
    """CD-AOP: from core to core, with all that stands to the left and to the right of it."""
    machine: MPSMachine = state.machine
    rule = algorithm.rule
    trains, velocity = _trains(machine, data.visible), _velocities(state.velocity)
    rights = [contraction.right_environments(trains[a], trains[b]) for contraction, a, b in TERMS]
    ends = [contraction.boundary(trains[a], trains[b]) for contraction, a, b in TERMS]
    gauged = "WB" if rule.gauge else ""
    after = {name: MPO(trains[name]).right_grams() for name in gauged}
    sites = [
        _Site(
            site_key,
            {name: cores[k] for name, cores in trains.items()},
            {name: cores[k] for name, cores in velocity.items()},
            _Side([right[k] for right in rights], {n: grams[k] for n, grams in after.items()}),
        )
        for k, site_key in enumerate(hash_split(key, len(trains["V"])))
    ]

    def step(
        carry: tuple[_Side, Moved], site: _Site
    ) -> tuple[tuple[_Side, Moved], tuple[dict[str, Moved], StepInfo]]:
        (left, (bias, bias_velocity)), right, cores = carry, site.right, site.cores

        def see(moved: dict[str, Array]) -> Seen:
            sides = zip(TERMS, left.environments, right.environments, strict=True)
            return Seen(
                *(term.contract_between(x, cores[a], moved[b], y) for (term, a, b), x, y in sides)
            )

        seen, pull_back = jax.vjp(see, {name: cores[name] for name in "WB"})
        weights, slope, largest = _phases(site.key, algorithm, machine, seen, data.weight, bias)
        (ascent,) = pull_back(weights)
        moved = {}
        for name in "WB":
            grams = [side.grams[name] for side in (left, right) if rule.gauge]
            old = cores[name], site.velocity[name]
            moved[name] = _move(rule, rates, name, 1, *old, ascent[name], *grams)
        new = {**cores, **{name: core for name, (core, _) in moved.items()}}
        pairs = zip(TERMS, left.environments, strict=True)
        next_left = _Side(
            [term.next_left(old, new[a], new[b]) for (term, a, b), old in pairs],
            {name: next_gram(gram, new[name]) for name, gram in left.grams.items()},
        )
        hidden = _move(rule, rates, "C", 1, bias, bias_velocity, slope)
        return (next_left, hidden), (moved, StepInfo(norm((ascent, slope)), largest))

    ones = jnp.ones((1, 1), machine.coupling.dtype)
    hidden = machine.hidden_bias, state.velocity.hidden_bias
    start = _Side(ends, dict.fromkeys(gauged, ones)), hidden
    (_, hidden), found = fold(step, start, sites)
    moved = {name: [site[name] for site, _ in found] for name in "WB"}
    return _state(machine, moved, hidden), combine_infos([info for _, info in found])


def _move(
    rule: UpdateRule,
    rates: Rates,
    name: str,
    n_moved: int,
    old: Array,
    velocity: Array,
    ascent: Array,
    *grams: Array,
) -> Moved:
    """Move C, or one of `n_moved` cores of W or B, with the Gram matrices beside it if gauged."""
    share = 1.0
    if grams:
        left, right = grams
        rows = ridge_solve(left, ascent.reshape(len(left), -1)).reshape(-1, len(right))
        ascent = ridge_solve(right, rows.T).T.reshape(ascent.shape)
        # Natural steps of several cores add up: shared out, they are no longer than one.
        share = 1.0 / n_moved
    rate = rates.coupling if name == "W" else rates.bias
    velocity = rule.accelerate(velocity, ascent, rate)
    old = rule.decay(old, share * rate) if name == "W" else old
    return old + share * velocity, velocity


def _phases(
    key: Array, algorithm: Algorithm, machine: MPSMachine, seen: Seen, weight: Array, bias: Array
) -> tuple[Seen, Array, Array]:
    """The weight of each contraction in the gradient, the gradient of C, and the largest field."""
    units = machine.hidden_units
    field = seen.field + bias.reshape(-1)
    positive = units.mean(field)
    largest = jnp.abs(field).max()
    for step_key in hash_split(key, algorithm.negative_phase.n_gibbs):
        state = units.sample(step_key, field)
        field = seen.mean_field(machine, state) + bias.reshape(-1)
    negative = weight[:, None] * units.mean(field)
    variance = machine.variance
    weights = Seen(
        field=weight[:, None] * positive,
        bias=weight[:, None],
        gram=-variance * state.T @ negative,
        bias_field=-variance * negative.sum(axis=0)[None],
        field_bias=-variance * (weight @ state)[:, None],
        bias_square=-variance * weight.sum().reshape(1, 1),
    )
    rate = weight @ positive
    ascent = Parameters((), None, rate - negative.sum(axis=0))
    slope = algorithm.rule.with_sparsity(ascent, rate).hidden_bias.reshape(bias.shape)
    return weights, slope, jnp.maximum(largest, jnp.abs(field).max())


def _trains(machine: MPSMachine, visible: MPSBatch) -> Trains:
    samples = [jnp.asarray(core) for core in visible.cores]
    return {"V": samples, "W": machine.coupling.mpo.cores, "B": machine.bias_cores}


def _velocities(velocity: Parameters) -> Trains:
    bias = [core[:, :, None] for core in velocity.visible_bias.cores]
    return {"W": velocity.factors, "B": bias}


def _see(trains: Trains, moved: Trains) -> Seen:
    return Seen(*(contraction.contract(trains[a], moved[b]) for contraction, a, b in TERMS))


def _state(machine: MPSMachine, moved: dict[str, list[Moved]], hidden: Moved) -> LearningState:
    """From the cores of W and B with their velocities, and C with its own."""
    parameters, velocity = (
        Parameters(
            tuple(site[part] for site in moved["W"]),
            MPS([site[part][:, :, 0] for site in moved["B"]]),
            hidden[part],
        )
        for part in (0, 1)
    )
    return LearningState(parameters.into(machine), velocity, (), None)
