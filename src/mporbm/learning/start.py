"""Where training starts: small weights, and biases that know the base rates of the data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import equinox as eqx
import jax
import numpy as np
from jax import Array

from ..machine import Coupling, Machine, Units
from ..registry import accepted
from ..tensor.arrays import HostTensor, Samples

MOST_RANK = 20
"""The largest rank where none is asked for."""


def starting_machine(
    kind: type[Coupling],
    rows: Samples,
    hidden_shape: Sequence[int],
    units: tuple[Units, Units],
    visible_bias: HostTensor | None,
    *,
    seed: int,
    key: Array,
    options: Mapping[str, object],
) -> Machine:
    """Build a machine of small weights for samples like some rows.

    With a visible bias, weights look where the samples vary, if the kind of coupling has a way to
    (`mporbm.tensor.sketch`); without, weights are random and biases 0, as in Algorithm 1.
    `units` are those of the visible and of the hidden layer, `options` what the coupling is built
    with besides both shapes.
    """
    coupling = None
    if visible_bias is not None:
        rng = np.random.default_rng([seed, seed])
        coupling = kind.from_data(rng, rows, hidden_shape, **accepted(kind.from_data, options))
    if coupling is None:
        random = cast("Any", kind).random
        coupling = random(key, rows.shape[1:], hidden_shape, **accepted(random, options))
    return Machine(coupling, visible_bias, None, *units)


def automatic_rank(n_samples: int | None, n_weights: Callable[[int], int]) -> int:
    """Choose the largest rank up to 20 with no more weights than samples, which may be unknown.

    Machines of far more weights learn few samples by heart (``benchmarks/defaults.py``).
    """
    if n_samples is None:
        return MOST_RANK
    ranks = range(MOST_RANK, 1, -1)
    return next((rank for rank in ranks if n_weights(rank) <= n_samples), 1)


def mirrored(below: Machine, start: Machine) -> Machine:
    """Build the machine below upside down, or give `start` where that has another shape or units.

    Its visible layer is distributed as the hidden layer of the one below: a belief network with it
    on top is that machine, and what it learns from there adds to the bound on the log-likelihood
    (Hinton, Osindero & Teh 2006, Section 4).
    """
    coupling = below.coupling.transposed()
    same_units = type(below.visible_units.single) is type(start.hidden_units)
    if coupling is None or coupling.hidden_shape != start.hidden_shape or not same_units:
        return start
    return Machine(coupling, below.hidden_bias, below.visible_bias, start.visible_units)


def with_unit_fields(machine: Machine, rows: Samples) -> Machine:
    """Scale W so that the hidden fields of the samples spread by 1, and centre them at 0.

    Labels teach W only as far as hidden units tell samples apart: of small weights, the gradient
    of ``log p(y | V)`` is as small.
    """
    visible = np.asarray(rows, machine.coupling.dtype)
    field = np.asarray(_hidden_fields(machine.coupling, visible), np.float64)
    spread = float(field.std(axis=0).mean())
    # Samples that are all the same have no scale.
    scale = 1.0 / spread if spread > 0.0 else 1.0
    factors = machine.coupling.factors
    share = scale ** (1.0 / len(factors))
    scaled = jax.device_put([share * np.asarray(factor) for factor in factors])
    coupling = machine.coupling.with_factors(scaled)
    center = -scale * field.mean(axis=0)
    units = machine.visible_units, machine.hidden_units
    return Machine(coupling, machine.visible_bias, center, *units)


@eqx.filter_jit
def _hidden_fields(coupling: Coupling, visible: np.ndarray) -> Array:
    return coupling.apply_transpose(visible)
