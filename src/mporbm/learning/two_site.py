"""The two-site scheme: neighbouring cores are merged, moved and split, so that ranks change."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Machine, MPOCoupling
from ..machine.hash_rng import hash_split
from ..tensor import MPO
from .gauge import padded
from .gradient import Batch
from .parameters import Parameters
from .scheme import LearningState, Rates, Rule, Scheme, StepInfo, combine, norm


class TwoSite(Scheme):
    """For every bond in turn: merge its two cores, step, split by SVD.

    The merged core contains every rank of the bond up to the size that the bond's arrays have room
    for, so ranks grow within an update; `truncate` lets them fall. The MPO is kept in
    mixed-canonical form centred on the merged core, where the plain gradient is the natural one.
    Unused rows and columns of the cores are zero: shapes, and with them the compiled program, stay
    the same while ranks change.

    A velocity of merged cores would refer to bases that every split changes, so cores move without
    one, by ``rate / (1 - momentum)``, the length that momentum leads to in the end.
    """

    def n_updates(self, machine: Machine) -> int:
        """One for every bond."""
        return len(_cores(machine)) - 1

    def init(self, key: Array, rule: Rule, machine: Machine, n_chains: int) -> LearningState:
        """The machine in right-canonical form."""
        state = super().init(key, rule, _right_canonical(machine), n_chains)
        return LearningState(state.machine, state.velocity, (), state.chains)

    def step(
        self, key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """A sweep over all bonds, left to right, and back to right-canonical form."""
        infos = []
        for k, bond_key in enumerate(hash_split(key, self.n_updates(state.machine))):
            state, info = _update_bond(bond_key, rule, state, data, rates, k)
            infos.append(info)
        machine = _right_canonical(state.machine)
        return LearningState(machine, state.velocity, (), state.chains), combine(infos)


def _update_bond(
    key: Array, rule: Rule, state: LearningState, data: Batch, rates: Rates, k: int
) -> tuple[LearningState, StepInfo]:
    """A negative phase, then a step of cores k and k + 1 as one and of both biases."""
    machine = state.machine
    chains, samples = rule.negative_phase.step(key, machine, state.chains, data)
    cores = _cores(machine)
    merged = _merge(machine, k)

    def reshape(batch: Batch) -> Batch:
        return Batch(batch.visible.reshape(-1, *merged.visible_shape), batch.weight)

    ascent, info = rule.gradient(merged, reshape(data), reshape(samples), (k,))
    rate = rates.coupling / (1.0 - rule.momentum)
    step = (rate * ascent.factors[k]).astype(machine.coupling.dtype)
    moved = rule.decayed(_cores(merged)[k], rates.coupling) + step
    cores[k], cores[k + 1] = _split(moved, cores[k], cores[k + 1])

    biases = [
        (b, rule.velocity(v, g.reshape(b.shape), rates.bias))
        for b, v, g in (
            (machine.visible_bias, state.velocity.visible_bias, ascent.visible_bias),
            (machine.hidden_bias, state.velocity.hidden_bias, ascent.hidden_bias),
        )
    ]
    velocity = Parameters(state.velocity.factors, *(v for _, v in biases))
    theta = Parameters(tuple(cores), *(b + v for b, v in biases))
    step_info = StepInfo(norm(ascent), info.largest_field)
    return LearningState(theta.into(machine), velocity, (), chains), step_info


def _merge(machine: Machine, k: int) -> Machine:
    """The same machine with cores k and k + 1, and their modes, as one."""
    cores = _cores(machine)
    left, right = cores[k], cores[k + 1]
    pair = jnp.einsum("rijs,sklt->rikjlt", left, right)
    modes = left.shape[1] * right.shape[1], left.shape[2] * right.shape[2]
    coupling = MPOCoupling(
        MPO([*cores[:k], pair.reshape(len(left), *modes, right.shape[-1]), *cores[k + 2 :]])
    )
    return Machine(
        coupling,
        machine.visible_bias.reshape(coupling.visible_shape),
        machine.hidden_bias.reshape(coupling.hidden_shape),
        machine.visible_units,
        machine.hidden_units,
    )


def _split(pair: Array, left: Array, right: Array) -> tuple[Array, Array]:
    """The best cores with the shapes of `left` and `right`, the left one orthonormal."""
    (r, i, j, s), (_, k, m, t) = left.shape, right.shape
    matrix = pair.reshape(r, i, k, j, m, t).transpose(0, 1, 3, 2, 4, 5).reshape(r * i * j, -1)
    u, values, v = jnp.linalg.svd(matrix, full_matrices=False)
    u, rest = u[:, :s], values[:s, None] * v[:s]
    room = s - u.shape[1]
    u, rest = jnp.pad(u, ((0, 0), (0, room))), jnp.pad(rest, ((0, room), (0, 0)))
    used = jnp.pad(_nonzero(values[:s]), (0, room))
    return (u * used).reshape(left.shape), (rest * used[:, None]).reshape(right.shape)


@eqx.filter_jit
def _right_canonical(machine: Machine) -> Machine:
    """The same machine with every core but the first right-orthonormal, on the bonds it uses."""
    cores = _cores(machine)
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


def used_ranks(mpo: MPO) -> tuple[int, ...]:
    """The ranks, without the zero rows and columns of padded cores."""
    if mpo.boundary == "periodic":
        return mpo.ranks
    return tuple(len(_used_rows(core)) for core in mpo.cores[1:])


def trimmed(mpo: MPO) -> MPO:
    """The same MPO without the zero rows and columns of padded cores."""
    used = [[0], *(_used_rows(core) for core in mpo.cores[1:]), [0]]
    return MPO(
        [
            np.asarray(core)[left][..., right]
            for core, left, right in zip(mpo.cores, used, used[1:], strict=False)
        ]
    )


def _used_rows(core: Array) -> list[int]:
    """The rows of a core that are not zero; one at least, for W = 0 has rank 1 too."""
    sizes = np.abs(np.asarray(core)).max(axis=(1, 2, 3))
    return np.flatnonzero(sizes).tolist() or [0]


def truncate(machine: Machine, tolerance: float) -> Machine:
    """The machine with W rounded to a relative error, its cores as large as before."""
    coupling = machine.coupling
    assert isinstance(coupling, MPOCoupling)
    mpo = padded(coupling.mpo.round(tolerance=tolerance).train, coupling.mpo.ranks)
    smaller = eqx.tree_at(lambda m: m.coupling, machine, MPOCoupling(mpo))
    return _right_canonical(smaller)


def _nonzero(values: Array) -> Array:
    """1 where a singular value is more than a rounding error of the largest."""
    limit = 10.0 * float(np.finfo(values.dtype).eps) * values.max()
    return jnp.asarray(values > limit, values.dtype)


def _cores(machine: Machine) -> list[Array]:
    return list(jax.tree.leaves(machine.coupling))
