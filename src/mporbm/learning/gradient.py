"""The gradient of the log-likelihood from samples of data and model (the paper's Fig. 5)."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Coupling, Machine
from ..tensor.check import check_batch
from ..tensor.matmul import MatmulForm
from .device_sums import summed
from .parameters import Parameters


class Batch(eqx.Module):
    """Visible states ``(n, *visible_shape)``, or an `MPSBatch`, with weights that sum to 1."""

    visible: Any
    weight: Array

    def __init__(self, visible: Any, weight: Array):
        self.visible = visible
        self.weight = weight

    def mean(self, values: Array) -> Array:
        """The weighted mean over the batch."""
        return jnp.tensordot(self.weight, values, axes=1)


class GradientInfo(eqx.Module):
    """What computing a gradient showed besides."""

    hidden_rate: Array
    """``E_data[H]``, of the hidden shape."""
    largest_field: Array
    """The largest absolute value of any hidden field."""


def gradient(
    machine: Machine, positive: Batch, negative: Batch, moved: Sequence[int] | None = None
) -> tuple[Parameters, GradientInfo]:
    """``E_positive[grad -F(V)] - E_negative[grad -F(V)]``, with the free energy F.

    This is the gradient of the log-likelihood where `positive` is the data and `negative` is
    distributed as the model. Hidden layers enter as means ``p(H = 1 | V)``: to sum them out has
    less variance than to sample them.

    `moved` are the positions of the factors to derive for, all by default.
    """

    def difference(
        machine: Machine, positive: Batch, negative: Batch
    ) -> tuple[tuple[Parameters, Array], Array]:
        product, pull_back = merged(machine.coupling, len(positive.visible), moved)
        phases = [_phase(machine, product, batch) for batch in (positive, negative)]
        ascent = Parameters(
            pull_back(jax.tree.map(jnp.subtract, *(phase.coupling for phase in phases))),
            positive.mean(positive.visible) - negative.mean(negative.visible),
            phases[0].hidden_rate - phases[1].hidden_rate,
        )
        largest = jnp.maximum(*(phase.largest_field for phase in phases))
        return (ascent, phases[0].hidden_rate), largest

    (ascent, hidden_rate), largest = summed(difference, machine, positive, negative)
    return ascent, GradientInfo(hidden_rate, largest)


def merged(
    coupling: Coupling, n_rows: int, moved: Sequence[int] | None = None
) -> tuple[MatmulForm, Callable[[MatmulForm], tuple[Array | None, ...]]]:
    """A coupling as its products with `n_rows` need it, and the way back to its moved factors.

    The gradient of the merged cores costs two contractions, half of which the fields have done;
    the function makes gradients of the factors of it, None for those that stay.
    """
    arrays, structure = jax.tree.flatten(coupling)
    moved = range(len(arrays)) if moved is None else moved

    def merge(chosen: list[Array]) -> MatmulForm:
        every = list(arrays)
        for k, array in zip(moved, chosen, strict=True):
            every[k] = array
        whole: Coupling = jax.tree.unflatten(structure, every)
        return whole.product(n_rows)

    product, pull_back = jax.vjp(merge, [arrays[k] for k in moved])

    def factors(ascent: MatmulForm) -> tuple[Array | None, ...]:
        found = dict(zip(moved, pull_back(ascent)[0], strict=True))
        return tuple(found.get(k) for k in range(len(arrays)))

    return product, factors


class _Phase(eqx.Module):
    coupling: MatmulForm
    """``E[grad <V, W(H)>]`` of the merged cores, with the mean of H given V."""
    hidden_rate: Array
    largest_field: Array


def _phase(machine: Machine, product: MatmulForm, batch: Batch) -> _Phase:
    dtype = machine.coupling.dtype
    visible = check_batch("visible", batch.visible, machine.visible_shape, dtype)
    field, rows = product.contract_rows(visible.reshape(len(visible), -1))
    field = field + machine.hidden_bias.reshape(-1)
    hidden = machine.hidden_units.mean(field)
    _, columns = product.contract_columns(hidden * batch.weight[:, None].astype(dtype))
    return _Phase(
        product.gradient(rows, columns),
        batch.mean(hidden).reshape(machine.hidden_shape),
        jnp.abs(field).max(),
    )
