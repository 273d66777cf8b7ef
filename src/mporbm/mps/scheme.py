"""CD-SU and CD-AOP where samples and the visible bias are MPS.

With visible means ``V' = variance (W(h) + B)`` contrastive divergence needs V' in two places: in
the fields, ``W^T(V') = variance (G h + W^T(B))`` with ``G = W^T W``, and in the gradient,
``E[V' x H'] = variance (W(M) + B x m)`` with ``M = E[h x H']`` and ``m = E[H']``. So it is never
formed. All of this are contractions of two trains, and the gradient of a core is what stands around
it there: its left and right environments, weighted with the statistics of hidden units.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..learning.algorithm import (
    Algorithm,
    LearningState,
    Scheme,
    StepInfo,
    combine_infos,
    norm,
)
from ..learning.gauge import ridge_solve
from ..learning.gradient import Batch, Objective, Parameters, n_factors
from ..learning.monitor import Snapshot
from ..learning.rule import Rates, UpdateRule
from ..machine.hash_rng import hash_split
from ..tensor import MPO, MPS, MPSBatch
from ..tensor.environments import (
    FIELD_CONTRACTION,
    OVERLAP_CONTRACTION,
    Cores,
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
    """The same, (J, 1): its gradient is that of B."""
    bias_square: Array
    """``<B, B>``, (1, 1)."""

    def mean_field(self, machine: MPSMachine, hidden: Array) -> Array:
        """The hidden field of the visible mean ``variance (W(h) + B)``, for each h."""
        return machine.variance * (hidden @ self.gram + self.bias_field)


class MPSLikelihood(Objective):
    """``E_data[log p(V)]`` of samples in MPS form, by contrastive divergence with mean values."""

    def batch(self, machine: Any, stored: Any, weight: Array) -> Batch:
        """Bring cores to the precision of the coupling."""
        return Batch(stored.astype(machine.coupling.dtype), weight)

    def watch(self, machine: Any, stored: Any, units: Array) -> Snapshot:
        """Look at a few samples by inner products alone."""
        return _snapshot(machine, stored)

    def field_limit(self, machine: Any, stored: Any) -> float:
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


def _trains(machine: Any, visible: Any) -> dict[str, Cores]:
    return {"V": visible.cores, "W": machine.coupling.mpo.cores, "B": machine.bias_cores}


def _see(trains: dict[str, Cores], moved: dict[str, Cores]) -> Seen:
    return Seen(*(contraction.contract(trains[a], moved[b]) for contraction, a, b in TERMS))


def _all_at_once(
    key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
) -> tuple[LearningState, StepInfo]:
    """CD-SU: the gradients of all cores from one pass along the chain, and back."""
    machine: Any = state.machine
    rule = algorithm.rule
    trains = _trains(machine, data.visible)
    now = {name: list(trains[name]) for name in "WB"}
    seen, pull_back = jax.vjp(lambda moved: _see(trains, moved), now)
    hidden = machine.hidden_bias, state.velocity.hidden_bias
    weights, hidden, info = _phases(key, algorithm, machine, seen, data.weight, hidden, rates)
    (ascent,) = pull_back(weights)
    velocity = {"W": state.velocity.factors, "B": _as_mpo(state.velocity.visible_bias)}
    none: list[Any] = [None] * len(now["W"])
    moved = {}
    for name, cores in now.items():
        mpo = MPO(cores)
        sides = (mpo.left_grams(), mpo.right_grams()) if rule.gauge else (none, none)
        move = partial(_moved, rule, rates, name, len(cores))
        sites = list(zip(cores, velocity[name], ascent[name], *sides, strict=True))
        moved[name] = fold(partial(_alone, move), None, sites)[1]
    squares = [norm(ascent) ** 2, info.gradient_norm**2]
    return _state(machine, moved, hidden), StepInfo(jnp.sqrt(sum(squares)), info.largest_field)


def _sweep(
    key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
) -> tuple[LearningState, StepInfo]:
    """CD-AOP: from core to core, with all that stands to the left and to the right of it."""
    machine: Any = state.machine
    rule = algorithm.rule
    trains = _trains(machine, data.visible)
    d = len(trains["V"])
    rights = [contraction.right_environments(trains[a], trains[b]) for contraction, a, b in TERMS]
    gauged = "WB" if rule.gauge else ""
    after = {name: MPO(trains[name]).right_grams() for name in gauged}
    velocity = {"W": state.velocity.factors, "B": _as_mpo(state.velocity.visible_bias)}
    keys = hash_split(key, d)
    sites = [
        {
            "key": keys[k],
            "cores": {name: cores[k] for name, cores in trains.items()},
            "velocity": {name: cores[k] for name, cores in velocity.items()},
            "rights": [right[k] for right in rights],
            "grams": {name: gram[k] for name, gram in after.items()},
        }
        for k in range(d)
    ]
    ones = jnp.ones((1, 1), machine.coupling.dtype)
    start: dict[str, Any] = {
        "lefts": [contraction.boundary(trains[a], trains[b]) for contraction, a, b in TERMS],
        "grams": dict.fromkeys(gauged, ones),
        "hidden": (machine.hidden_bias, state.velocity.hidden_bias),
    }

    def step(carry: dict[str, Any], site: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        cores = site["cores"]

        def see(moved: dict[str, Array]) -> Seen:
            sides = zip(TERMS, carry["lefts"], site["rights"], strict=True)
            return Seen(
                *(
                    contraction.contract_between(left, cores[a], moved[b], right)
                    for (contraction, a, b), left, right in sides
                )
            )

        seen, pull_back = jax.vjp(see, {name: cores[name] for name in "WB"})
        weights, hidden, info = _phases(
            site["key"], algorithm, machine, seen, data.weight, carry["hidden"], rates
        )
        (ascent,) = pull_back(weights)
        moved = {
            name: _moved(
                rule,
                rates,
                name,
                1,
                cores[name],
                site["velocity"][name],
                ascent[name],
                carry["grams"].get(name),
                site["grams"].get(name),
            )
            for name in "WB"
        }
        new = {"V": cores["V"], **{name: core for name, (core, _) in moved.items()}}
        carried = {
            "lefts": [
                contraction.next_left(left, new[a], new[b])
                for (contraction, a, b), left in zip(TERMS, carry["lefts"], strict=True)
            ],
            "grams": {name: next_gram(gram, new[name]) for name, gram in carry["grams"].items()},
            "hidden": hidden,
        }
        gradient_norm = jnp.sqrt(norm(ascent) ** 2 + info.gradient_norm**2)
        return carried, (moved, StepInfo(gradient_norm, info.largest_field))

    end, results = fold(step, start, sites)
    moved = {name: [site[name] for site, _ in results] for name in "WB"}
    return _state(machine, moved, end["hidden"]), combine_infos([info for _, info in results])


def _moved(
    rule: UpdateRule,
    rates: Rates,
    name: str,
    n_moved: int,
    core: Array,
    velocity: Array,
    gradient: Array,
    left: Array | None,
    right: Array | None,
) -> tuple[Array, Array]:
    """A core and its velocity after an update of some cores; with the Gram matrices beside it."""
    share = 1.0
    if left is not None and right is not None:
        rows = ridge_solve(left, gradient.reshape(len(left), -1)).reshape(-1, len(right))
        gradient = ridge_solve(right, rows.T).T.reshape(gradient.shape)
        # Natural steps of several cores add up: shared out, they are no longer than one.
        share = 1.0 / n_moved
    rate = rates.coupling if name == "W" else rates.bias
    velocity = rule.accelerate(velocity, gradient, rate)
    if name == "W":
        core = rule.decay(core, share * rate)
    return core + share * velocity, velocity


def _alone(step: Callable[..., Any], carry: None, site: tuple[Any, ...]) -> tuple[None, Any]:
    """A step that needs nothing of other sites, for `fold`."""
    return None, step(*site)


def _state(machine: Any, moved: dict[str, Any], hidden: tuple[Array, Array]) -> LearningState:
    """From the cores of W and B with their velocities, and C with its own."""
    parameters, velocity = (
        Parameters(
            tuple(site[part] for site in moved["W"]),
            _as_mps([site[part] for site in moved["B"]]),
            hidden[part],
        )
        for part in (0, 1)
    )
    return LearningState(parameters.into(machine), velocity, (), None)


def _phases(
    key: Array,
    algorithm: Algorithm,
    machine: MPSMachine,
    seen: Seen,
    weight: Array,
    hidden: tuple[Array, Array],
    rates: Rates,
) -> tuple[Seen, tuple[Array, Array], StepInfo]:
    """The weight of each contraction in the gradient, C and its velocity moved, and their norm."""
    rule, units, bias = algorithm.rule, machine.hidden_units, hidden[0].reshape(-1)
    field = seen.field + bias
    positive = units.mean(field)
    largest = jnp.abs(field).max()
    for step_key in hash_split(key, algorithm.negative_phase.n_gibbs):
        state = units.sample(step_key, field)
        field = seen.mean_field(machine, state) + bias
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
    sparse = rule.sparsity_cost * (rule.sparsity_target - rate)
    ascent = rate - negative.sum(axis=0) + sparse.astype(rate.dtype)
    velocity = rule.accelerate(hidden[1], ascent.reshape(hidden[1].shape), rates.bias)
    info = StepInfo(norm(ascent), jnp.maximum(largest, jnp.abs(field).max()))
    return weights, (hidden[0] + velocity, velocity), info


def _as_mpo(mps: Any) -> tuple[Array, ...]:
    return tuple(core[:, :, None] for core in mps.cores)


def _as_mps(cores: Sequence[Array]) -> MPS:
    return MPS([core[:, :, 0] for core in cores])


@eqx.filter_jit
def _snapshot(machine: MPSMachine, visible: MPSBatch) -> Snapshot:
    """As `monitor.snapshot`: |V - V'|^2 from inner products."""
    visible = visible.astype(machine.coupling.dtype)
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
    error = jnp.maximum(error, 0.0) / n_visible
    return Snapshot(
        error.mean(),
        -error.mean(),
        machine.free_energy(visible).mean(),
        jnp.maximum(jnp.abs(seen.field + bias).max(), jnp.abs(passed + bias).max()),
    )
