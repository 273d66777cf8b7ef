"""The objective and its gradient, from samples of data and model (the paper's Fig. 5)."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.sharding import PartitionSpec
from jaxtyping import PyTree

from ..machine import Coupling, Machine
from ..tensor.check import check_batch
from ..tensor.matmul import MatmulForm
from .monitor import Snapshot, snapshot

SAMPLE_AXIS = "samples"
"""The axis of the device mesh along which devices share samples (`mporbm.training.devices`)."""
Sums = TypeVar("Sums")
Whole = TypeVar("Whole")


class Batch(eqx.Module):
    """Visible states ``(n, *visible_shape)``, or an `MPSBatch`, with weights that sum to 1.

    Weights are those of the samples, and 0 for rows of padding.
    """

    visible: PyTree
    weight: Array

    def __len__(self) -> int:
        return len(self.weight)

    @classmethod
    def equal(cls, visible: Array) -> "Batch":
        """Make a batch of samples that count the same."""
        return cls(visible, jnp.full(len(visible), 1.0 / len(visible), visible.dtype))

    def mean(self, values: Array) -> Array:
        """Average values over the batch, by its weights."""
        return jnp.tensordot(self.weight, values, axes=1)


class Parameters(eqx.Module):
    """The arrays of a coupling, in the order of its nodes, and both biases.

    Also the type of gradients and velocities; a gradient has None for a factor that stays. Biases
    are arrays, or trains where a layer is in MPS form.
    """

    factors: tuple[PyTree, ...]
    visible_bias: PyTree
    hidden_bias: Array

    @classmethod
    def of(cls, machine: Machine) -> "Parameters":
        """Take the parameters out of a machine."""
        return cls(machine.coupling.factors, machine.visible_bias, machine.hidden_bias)

    @classmethod
    def zeros_like(cls, machine: Machine) -> "Parameters":
        """Zeros, the increments that Algorithm 1 starts with."""
        zeros: Parameters = jax.tree.map(jnp.zeros_like, cls.of(machine))
        return zeros

    @property
    def biases(self) -> tuple[PyTree, Array]:
        """Both biases, the visible one first."""
        return self.visible_bias, self.hidden_bias

    def into(self, machine: Machine) -> Machine:
        """Put these parameters into a machine in place of its own."""
        changed: Machine = eqx.tree_at(
            lambda m: (m.coupling, m.visible_bias, m.hidden_bias),
            machine,
            (machine.coupling.with_factors(self.factors), *self.biases),
        )
        return changed


def n_factors(machine: Machine) -> int:
    """Count the arrays of the coupling: d for an MPO, 1 if dense."""
    return len(machine.coupling.factors)


def norm(tree: PyTree) -> Array:
    """Compute the Frobenius norm of all arrays together."""
    return jnp.sqrt(sum(jnp.vdot(array, array) for array in jax.tree.leaves(tree)))


class GradientInfo(eqx.Module):
    """What computing a gradient showed besides."""

    hidden_mean: Array
    """``E_data[H]``, of the hidden shape."""
    largest_field: Array
    """The largest absolute value of any hidden field."""


class PullBack(eqx.Module):
    """The way from the gradient of W, in the form that products need, to those of its factors."""

    coupling: Coupling
    derivative: Callable[..., tuple[list[Array]]]
    moved: tuple[int, ...] = eqx.field(static=True)
    n_rows: int = eqx.field(static=True)

    def __call__(self, ascent: MatmulForm) -> tuple[Array | None, ...]:
        """Derive for the moved factors; None stands for those that stay."""
        found = dict(zip(self.moved, self.derivative(ascent)[0], strict=True))
        return tuple(found.get(k) for k in range(len(self.coupling.factors)))


Planned = tuple[Machine, PullBack]
"""A machine with W formed for an update, and the way back to its factors."""


def plan_update(
    machine: Machine,
    n_rows: int,
    moved: Sequence[int] | None = None,
    coupling: Coupling | None = None,
) -> Planned:
    """Form W once for an update: the machine with it, and the way back to its factors.

    Products are planned for batches of `n_rows`. `moved` are the positions of the factors to
    derive for, all by default, of the machine's coupling or of another one of the same W. The
    gradient of merged cores costs two contractions, half of which the fields have done.
    """
    whole = machine.unplanned().coupling if coupling is None else coupling
    factors = whole.factors
    moved = tuple(range(len(factors)) if moved is None else moved)

    def merge(chosen: list[Array]) -> MatmulForm:
        every = list(factors)
        for k, array in zip(moved, chosen, strict=True):
            every[k] = array
        return whole.with_factors(tuple(every)).matmul_form(n_rows)

    form, derivative = jax.vjp(merge, [factors[k] for k in moved])
    return machine.formed(form), PullBack(whole, derivative, moved, n_rows)


def plan_again(planned: Planned) -> Planned:
    """Plan anew within `shard_map`, where a derivative that was taken outside cannot be used."""
    machine, pull_back = planned
    return plan_update(machine, pull_back.n_rows, pull_back.moved, pull_back.coupling)


def log_likelihood_gradient(
    machine: Machine, pull_back: PullBack, positive: Batch, negative: Batch
) -> tuple[Parameters, GradientInfo]:
    """``E_positive[grad -F(V)] - E_negative[grad -F(V)]``, with the free energy F.

    This is the gradient of the log-likelihood where `positive` is the data and `negative` is
    distributed as the model. Hidden layers enter as means ``p(H = 1 | V)``: to sum them out has
    less variance than to sample them. `machine` and `pull_back` come from `plan_update`.
    """

    def difference(
        planned: Planned, positive: Batch, negative: Batch
    ) -> tuple[tuple[Parameters, Array], Array]:
        machine, pull_back = planned
        phases = [_phase(machine, batch) for batch in (positive, negative)]
        ascent = Parameters(
            pull_back(jax.tree.map(jnp.subtract, *(phase.coupling for phase in phases))),
            positive.mean(positive.visible) - negative.mean(negative.visible),
            phases[0].hidden_mean - phases[1].hidden_mean,
        )
        largest = jnp.maximum(*(phase.largest_field for phase in phases))
        return (ascent, phases[0].hidden_mean), largest

    (ascent, hidden_mean), largest = sum_over_devices(
        difference, plan_again, (machine, pull_back), positive, negative
    )
    return ascent, GradientInfo(hidden_mean, largest)


def gradient(
    machine: Machine, positive: Batch, negative: Batch, moved: Sequence[int] | None = None
) -> tuple[Parameters, GradientInfo]:
    """Compute `log_likelihood_gradient` of a machine that was not planned yet."""
    return log_likelihood_gradient(*plan_update(machine, len(positive), moved), positive, negative)


class _Phase(eqx.Module):
    coupling: MatmulForm
    """``E[grad <V, W(H)>]`` of the merged cores, with the mean of H given V."""
    hidden_mean: Array
    largest_field: Array


def _phase(machine: Machine, batch: Batch) -> _Phase:
    dtype, form = machine.coupling.dtype, machine.coupling.matmul_form(len(batch))
    visible = check_batch("visible", batch.visible, machine.visible_shape, dtype)
    field, rows = form.contract_rows(visible.reshape(len(visible), -1))
    # Flat, for XLA's loops run along the last axis, which may be short.
    shape = machine.hidden_shape
    units = machine.hidden_units.reshape(shape, (math.prod(shape),))
    field = field + machine.hidden_bias.reshape(-1)
    hidden = units.mean(field)
    _, columns = form.contract_columns(hidden * batch.weight[:, None].astype(dtype))
    return _Phase(
        form.gradient(rows, columns),
        batch.mean(hidden).reshape(machine.hidden_shape),
        jnp.abs(field).max(),
    )


def sum_over_devices(
    function: Callable[..., tuple[Sums, Array]],
    prepare: Callable[[Whole], Whole],
    whole: Whole,
    *batches: PyTree,
) -> tuple[Sums, Array]:
    """Compute ``function(whole, *batches)``: sums over samples, and the largest of something.

    Where devices share the samples each takes its own, after it has prepared what all have, and
    what they send is as large as the sums, not as what these were computed from.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if SAMPLE_AXIS not in mesh.axis_names:
        return function(whole, *batches)

    def own(whole: Whole, *batches: PyTree) -> tuple[Sums, Array]:
        sums, largest = function(prepare(whole), *batches)
        # In a place of its own, the largest is part of the same message.
        places = jnp.zeros(mesh.shape[SAMPLE_AXIS], largest.dtype)
        places = places.at[jax.lax.axis_index(SAMPLE_AXIS)].set(largest)
        # Every array would be a message, and a short one takes as long as a long one.
        message, read = ravel_pytree((sums, places))
        total, every = read(jax.lax.psum(message, SAMPLE_AXIS))  # type: ignore[no-untyped-call]
        return total, every.max()

    along = [PartitionSpec(SAMPLE_AXIS)] * len(batches)  # type: ignore[no-untyped-call]
    everywhere = PartitionSpec()  # type: ignore[no-untyped-call]
    shared = jax.shard_map(
        own, in_specs=(everywhere, *along), out_specs=everywhere, check_vma=False
    )
    answer: tuple[Sums, Array] = shared(whole, *batches)
    return answer


class Objective(eqx.Module):
    """What is maximised: how batches are made, the gradient, and what is watched.

    This one is the paper's, ``E_data[log p(V)]``; others override what they change.
    """

    def batch(self, machine: PyTree, stored: PyTree, weight: Array) -> Batch:
        """Make stored samples ready for learning."""
        visible = stored.reshape(-1, *machine.visible_shape).astype(machine.coupling.dtype)
        return Batch(machine.visible_units.of_values(visible), weight)

    def draw(self, key: Array, machine: PyTree, data: Batch, chains: Array | None = None) -> Batch:
        """Draw what an update learns from; here the samples as they are.

        `chains` are the visible states of persistent chains, if there are any.
        """
        return data

    def gradient(
        self, machine: Machine, pull_back: PullBack, data: Batch, samples: Batch
    ) -> tuple[Parameters, GradientInfo]:
        """Derive for the factors that `pull_back` leads to and for both biases."""
        return log_likelihood_gradient(machine, pull_back, data, samples)

    def watch(self, machine: PyTree, stored: PyTree, units: Array) -> Snapshot:
        """Look at a few samples; `units` are those whose conditionals make the score."""
        return snapshot(machine, stored, units)

    def field_limit(self, machine: PyTree, stored: PyTree) -> float:
        """Say beyond which field a training diverges.

        Sensible weights stay far below: on average 1 for every visible unit.
        """
        largest = float(np.abs(np.asarray(stored, np.float64)).max(initial=1.0))
        n_visible: int = math.prod(machine.visible_shape)
        return 1000.0 + n_visible * largest**2
