"""The two-site scheme: neighbouring cores are merged, moved and split, so that ranks change."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Machine, MPOCoupling
from ..tensor import MPO
from ..tensor.balance import pad_ranks, trim_ranks
from .algorithm import Algorithm, LearningState, Scheme, split_for
from .centring import centre_step, settle
from .gradient import Batch, Parameters, n_factors, norm, plan_update
from .monitor import StepInfo, combine_infos
from .rule import Rates
from .schemes import SCHEMES
from .zero_sum import zero_sum_machine, zero_sum_step


@SCHEMES.register("two-site")
class TwoSite(Scheme):
    """For every bond in turn: merge its two cores, step, split by SVD.

    The merged core contains every rank of the bond up to the size that the bond's arrays have room
    for, so ranks grow within an update; at the end of an epoch they fall to what matters. The MPO
    is kept in mixed-canonical form centred on the merged core, where the plain gradient is the
    natural one. Unused rows and columns of the cores are zero: shapes, and with them the compiled
    program, stay the same while ranks change.

    A velocity of merged cores would refer to bases that every split changes, so cores move without
    one, by ``rate / (1 - momentum)``, the length that momentum leads to in the end.

    Parameters
    ----------
    max_ranks
        The largest rank of every bond.
    rank_tolerance
        What may be dropped of W after each epoch, relative to its norm.
    """

    max_ranks: tuple[int, ...] = eqx.field(static=True, default=())
    rank_tolerance: float = eqx.field(static=True, default=0.25)

    needs_bonds: ClassVar[bool] = True
    can_average: ClassVar[bool] = False
    depends_on_n_iter: ClassVar[bool] = True

    def groups(self, machine: Machine) -> tuple[tuple[int, ...], ...]:
        """Both cores of each bond; the only core if there is no bond."""
        return tuple((k, k + 1) for k in range(n_factors(machine) - 1)) or ((0,),)

    def init(
        self, key: Array, algorithm: Algorithm, machine: Machine, n_chains: int
    ) -> LearningState:
        """Bring cores, with room for the largest ranks, into right-canonical form."""
        machine = zero_sum_machine(machine)
        mpo = _mpo(machine)
        if mpo.n_cores == 1:
            return super().init(key, algorithm, machine, n_chains)
        sizes = [max(pair) for pair in zip(self.max_ranks or mpo.ranks, mpo.ranks, strict=True)]
        machine = right_canonical(_with_mpo(machine, pad_ranks(mpo, sizes)))
        state = super().init(key, algorithm, machine, n_chains)
        return LearningState(machine, state.velocity, (), state.chains, state.centre)

    def step(
        self, key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Sweep over all bonds, left to right, and go back to right-canonical form."""
        groups = self.groups(state.machine)
        if groups == ((0,),):
            return algorithm.update(key, state, data, rates, (0,))
        infos = []
        for (k, _), bond_key in zip(groups, split_for(key, len(groups)), strict=True):
            state, info = _update_bond(bond_key, algorithm, state, data, rates, k)
            infos.append(info)
        machine = right_canonical(state.machine)
        state = LearningState(machine, state.velocity, (), state.chains, state.centre)
        return state, combine_infos(infos)

    def end_epoch(self, algorithm: Algorithm, state: LearningState, done: float) -> LearningState:
        """Let ranks fall: strictly from half-time on, as directions need time to matter."""
        mpo = _mpo(state.machine)
        if mpo.n_cores == 1:
            return state
        rounded = mpo.round(tolerance=min(2.0 * done, 1.0) * self.rank_tolerance).train
        machine = right_canonical(_with_mpo(state.machine, pad_ranks(rounded, mpo.ranks)))
        return LearningState(machine, state.velocity, state.former, state.chains, state.centre)

    def finish(self, machine: Machine) -> Machine:
        """Drop the room that ranks did not use."""
        return _with_mpo(machine, trim_ranks(_mpo(machine)))


def _update_bond(
    key: Array, algorithm: Algorithm, state: LearningState, data: Batch, rates: Rates, k: int
) -> tuple[LearningState, StepInfo]:
    """Update cores k and k + 1 as one, and both biases: lines 6-14 of Algorithm 1."""
    machine, rule = state.machine, algorithm.rule
    cores = list(machine.coupling.factors)
    pair = _merge(cores[k], cores[k + 1])

    merged = MPOCoupling(MPO([*cores[:k], pair, *cores[k + 2 :]]))
    planned = plan_update(machine, len(data), (k,), merged)
    chains, ascent, info = algorithm.gradient(key, state.chains, data, planned)
    step_info = StepInfo(norm(ascent), info.largest_field)
    ascent, rates = centre_step(rule, planned, ascent, state.centre, rates)
    ascent = zero_sum_step(planned, ascent)

    rate = rates.coupling / (1.0 - rule.momentum)
    step = (rate * ascent.factors[k]).astype(pair.dtype)
    moved = rule.decay(pair, rates.coupling) + step
    cores[k], cores[k + 1] = _split(moved, cores[k], cores[k + 1])
    theta, velocity = Parameters.of(machine), state.velocity
    biases, bias_velocities = rule.move_biases(theta, velocity, ascent, rates.bias)
    machine = Parameters(tuple(cores), *biases).into(machine)
    machine, centre = settle(machine, state.machine.coupling, state.centre, info)
    velocity = Parameters(velocity.factors, *bias_velocities)
    return LearningState(machine, velocity, (), chains, centre), step_info


def _merge(left: Array, right: Array) -> Array:
    """Contract two neighbouring cores to one, with their modes merged."""
    pair = jnp.einsum("rijs,sklt->rikjlt", left, right)
    modes = left.shape[1] * right.shape[1], left.shape[2] * right.shape[2]
    return pair.reshape(len(left), *modes, right.shape[-1])


def _split(pair: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """Find the best cores with the shapes of `left` and `right`, the left one orthonormal."""
    (r, i, j, s), (_, k, m, t) = left.shape, right.shape
    matrix = pair.reshape(r, i, k, j, m, t).transpose(0, 1, 3, 2, 4, 5).reshape(r * i * j, -1)
    u, values, v = jnp.linalg.svd(matrix, full_matrices=False)
    u, rest = u[:, :s], values[:s, None] * v[:s]
    room = s - u.shape[1]
    u, rest = jnp.pad(u, ((0, 0), (0, room))), jnp.pad(rest, ((0, room), (0, 0)))
    used = jnp.pad(_nonzero(values[:s]), (0, room))
    return (u * used).reshape(left.shape), (rest * used[:, None]).reshape(right.shape)


@eqx.filter_jit
def right_canonical(machine: Machine) -> Machine:
    """Make every core but the first right-orthonormal, on the bonds that it uses."""
    cores = list(machine.coupling.factors)
    for k in range(len(cores) - 1, 0, -1):
        r = cores[k].shape[0]
        u, values, v = jnp.linalg.svd(cores[k].reshape(r, -1), full_matrices=False)
        used = _nonzero(values)
        room = r - len(values)
        v = jnp.pad(v * used[:, None], ((0, room), (0, 0)))
        carry = jnp.pad(u * (values * used), ((0, 0), (0, room)))
        cores[k] = v.reshape(cores[k].shape)
        cores[k - 1] = jnp.tensordot(cores[k - 1], carry, axes=1)
    return Parameters(tuple(cores), machine.visible_bias, machine.hidden_bias).into(machine)


def _nonzero(values: Array) -> Array:
    """Mark with 1 where a singular value is more than a rounding error of the largest."""
    limit = 10.0 * float(np.finfo(values.dtype).eps) * values.max()
    return jnp.asarray(values > limit, values.dtype)


def _mpo(machine: Machine) -> MPO:
    return MPO(machine.coupling.factors)


def _with_mpo(machine: Machine, mpo: MPO) -> Machine:
    changed: Machine = eqx.tree_at(lambda m: m.coupling, machine, MPOCoupling(mpo))
    return changed
