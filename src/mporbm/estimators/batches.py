"""What a trained machine does with many samples: compiled calls on batches of one size."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..learning.monitor import pseudo_log_likelihood
from ..learning.packed import unpacked
from ..machine import Machine
from ..sampling import evidence, gibbs

BATCH = 256
"""The most samples of one compiled call; the last call is padded."""
BATCH_ENTRIES = 2**23
"""The most entries of a layer in such a call."""


def in_batches(
    function: Any,
    machine: Machine,
    rows: Any,
    key: Array | None = None,
    *extra: Any,
    observed: NDArray[np.bool_] | None = None,
    few: bool = False,
    show: Callable[[int], None] = lambda n_done: None,
) -> Any:
    """``function(machine, batch, key, *extra)`` of all rows, in batches of one size.

    Padding to one size compiles once, and makes a row's result independent of the others. Where
    rows are `few` and the function is slow, the size is the next power of two. With `observed` the
    batch is a pair of arrays. `show` is told how many rows are done.
    """
    entries = max(math.prod(machine.visible_shape), math.prod(machine.hidden_shape))
    size = max(min(BATCH_ENTRIES // entries, BATCH), 1)
    if few:
        size = min(size, 1 << (len(rows) - 1).bit_length())
    columns = (rows,) if observed is None else (rows, observed)
    results = []
    for number, batch in enumerate(_padded(columns, size, machine.coupling.dtype)):
        batch_key = None if key is None else jax.random.fold_in(key, number)
        result = function(machine, batch[0] if observed is None else batch, batch_key, *extra)
        results.append(jax.tree.map(np.asarray, result))
        show(min((number + 1) * size, len(rows)))
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(rows)], *results)


def _padded(columns: tuple[Any, ...], size: int, dtype: Any) -> Iterator[tuple[Array, ...]]:
    """Batches of one size, numbers in the machine's precision, the last one padded with zeros."""
    for start in range(0, len(columns[0]), size):
        batch = []
        for column in columns:
            part = unpacked(column[start : start + size])
            kind = bool if column.dtype == bool and column is not columns[0] else dtype
            padded = np.zeros((size, *column.shape[1:]), kind)
            padded[: len(part)] = part
            batch.append(jnp.asarray(padded))
        yield tuple(batch)


@eqx.filter_jit
def probability(machine: Machine, visible: Array, key: Any) -> Array:
    """``p(H = 1 | V)``."""
    return machine.hidden_mean(visible)


@eqx.filter_jit
def field(machine: Machine, visible: Array, key: Any) -> Array:
    """The hidden fields."""
    return machine.hidden_field(visible)


@eqx.filter_jit
def state(machine: Machine, visible: Array, key: Array) -> Array:
    """Random hidden states."""
    return machine.sample_hidden(key, visible)


@eqx.filter_jit
def up_and_down(machine: Machine, visible: Array, key: Any) -> Array:
    """``E[V | E[H | V]]``."""
    return machine.visible_mean(machine.hidden_mean(visible))


@eqx.filter_jit
def free_energy(machine: Machine, visible: Array, key: Any) -> Array:
    """``F(V)``."""
    return machine.free_energy(visible)


@eqx.filter_jit
def pseudo_likelihood(machine: Machine, visible: Array, key: Any, units: Array) -> Array:
    """The pseudo-log-likelihood by the conditionals of some units."""
    return pseudo_log_likelihood(machine, visible, units)


@eqx.filter_jit
def chain(machine: Machine, visible: Array, key: Array, n_gibbs: int) -> Array:
    """Gibbs steps."""
    return gibbs(key, machine, visible, n_gibbs)


Observed = tuple[Array, Array]
"""Visible values, and which of them were seen."""


@eqx.filter_jit
def draw(machine: Machine, batch: Observed, key: Array, noise: Any, n_gibbs: Array) -> Array:
    """A draw from ``p(V | evidence)``."""
    return evidence.posterior_sample(key, *evidence.observe(machine, *batch, noise), n_gibbs)


@eqx.filter_jit
def average(
    machine: Machine, batch: Observed, key: Array, noise: Any, n_gibbs: Array
) -> evidence.Posterior:
    """Mean and variance under evidence, by Gibbs sampling."""
    return evidence.posterior_average(key, *evidence.observe(machine, *batch, noise), n_gibbs)


@eqx.filter_jit
def mean_field(
    machine: Machine, batch: Observed, key: Any, noise: Any, n_gibbs: Array
) -> evidence.Posterior:
    """Mean and variance under evidence, by mean-field theory."""
    return evidence.mean_field(*evidence.observe(machine, *batch, noise), n_gibbs)


@eqx.filter_jit
def reconstruct(
    machine: Machine, batch: Observed, key: Any, noise: Any, n_gibbs: Any
) -> evidence.Posterior:
    """One pass up and down."""
    return evidence.reconstruction(machine, evidence.observe(machine, *batch, noise)[1], batch[1])


@eqx.filter_jit
def noise_level(machine: Machine, batch: Observed, key: Array) -> Array:
    """The noise that explains a batch best."""
    return evidence.estimate_noise(key, machine, *batch)


FEATURES = {"probability": probability, "field": field, "state": state}
METHODS = {"gibbs": average, "mean-field": mean_field, "reconstruct": reconstruct}
