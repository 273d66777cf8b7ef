"""What a trained machine does with many samples: compiled calls on batches of one size."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..learning.monitor import pseudo_log_likelihood
from ..machine import Machine, Model
from ..sampling import evidence, gibbs
from ..tensor.matmul import MANY_USES
from ..training.rows import unpacked

BATCH = 256
"""The most samples of one compiled call; the last call is padded."""
CHAINS = 1024
"""The same for calls of many steps, whose products are faster the more rows they have."""
CALLS = 2
"""How many of those run at once: where one has work for a single core, the other has the rest."""
BATCH_ENTRIES = 2**23
"""The most entries of a layer in such a call."""


def in_batches(
    function: Any,
    machine: Model,
    rows: Any,
    key: Array | None = None,
    *extra: Any,
    observed: NDArray[np.bool_] | None = None,
    repeats: int = 1,
    chains: bool = False,
    show: Callable[[int], None] = lambda n_done: None,
) -> Any:
    """``function(machine, batch, key, *extra)`` of all rows, in batches of one size.

    Padding to one size compiles once, and makes a row's result independent of the others. For
    `chains` of many steps the size may be larger, and for few rows is the next power of two. With
    `observed` the batch is a pair of arrays. Each row is taken `repeats` times in a row. `show` is
    told how many rows are done.
    """
    n_results = len(rows) * repeats
    size = batch_size(machine)
    if chains:
        size = min(batch_size(machine, CHAINS), power_of_two(n_results))
    dtype = machine.coupling.dtype

    def call(number: int) -> Any:
        start = number * size
        stop = min(start + size, n_results)
        chosen = slice(start, stop) if repeats == 1 else np.arange(start, stop) // repeats
        batch = padded(unpacked(rows[chosen]), size, dtype)
        if observed is not None:
            batch = batch, padded(observed[chosen], size, bool)
        batch_key = None if key is None else jax.random.fold_in(key, number)
        answer = function(machine, batch, batch_key, *extra)
        return jax.tree.map(lambda part: np.asarray(part)[: stop - start], answer)

    results: Any = None
    stop = 0
    with ThreadPoolExecutor(CALLS) as pool:
        called = pool.map if chains and n_results > size else map
        try:
            for answer in called(call, range(-(-n_results // size))):
                if results is None:
                    results = jax.tree.map(lambda part: _room(n_results, part), answer)
                start, stop = stop, min(stop + size, n_results)
                pairs = zip(jax.tree.leaves(results), jax.tree.leaves(answer), strict=True)
                for result, part in pairs:
                    result[start:stop] = part
                show(stop // repeats)
        finally:
            # After an interrupt no other call begins.
            pool.shutdown(wait=False, cancel_futures=True)
    return results


def batch_size(machine: Model, most: int | None = None) -> int:
    """The most samples of a compiled call for a machine."""
    return max(min(BATCH_ENTRIES // machine.n_batch_entries, most or BATCH), 1)


def power_of_two(number: int) -> int:
    """The next one."""
    return 1 << (number - 1).bit_length()


def padded(rows: Any, size: int, dtype: Any) -> Any:
    """Rows of a type on the device, an array or several, with zeros to a number of rows."""

    def filled(stored: NDArray[Any]) -> Any:
        full = np.zeros((size, *stored.shape[1:]), dtype)
        full[: len(stored)] = stored
        return jnp.asarray(full)

    return jax.tree.map(filled, rows)


def _room(n_rows: int, part: NDArray[Any]) -> NDArray[Any]:
    """For all rows of a result of which this is a part."""
    return np.empty((n_rows, *part.shape[1:]), part.dtype)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a machine and a batch as one program, with the plan of the largest batch."""

    @eqx.filter_jit
    @wraps(function)
    def program(machine: Model, *arguments: Any) -> Any:
        return function(machine.planned(batch_size(machine), MANY_USES), *arguments)

    return program


@compiled
def probability(machine: Model, visible: Any, key: Any) -> Array:
    """``p(H = 1 | V)``."""
    return machine.hidden_mean(visible)


@compiled
def field(machine: Model, visible: Any, key: Any) -> Array:
    """The hidden fields."""
    return machine.hidden_field(visible)


@compiled
def state(machine: Model, visible: Any, key: Array) -> Array:
    """Random hidden states."""
    return machine.sample_hidden(key, visible)


@compiled
def up_and_down(machine: Model, visible: Any, key: Any) -> Any:
    """``E[V | E[H | V]]``."""
    return machine.visible_mean(machine.hidden_mean(visible))


@compiled
def free_energy(machine: Machine, visible: Any, key: Any) -> Array:
    """``F(V)``."""
    return machine.free_energy(visible)


@compiled
def pseudo_likelihood(machine: Machine, visible: Array, key: Any, units: Array) -> Array:
    """The pseudo-log-likelihood by the conditionals of some units."""
    return pseudo_log_likelihood(machine, visible, units)


@compiled
def chain(machine: Machine, visible: Array, key: Array, n_gibbs: int) -> Array:
    """Gibbs steps."""
    return gibbs(key, machine, visible, n_gibbs)


Observed = tuple[Array, Array]
"""Visible values, and which of them were seen."""


@compiled
def draw(machine: Model, batch: Observed, key: Array, noise: Any, n_gibbs: Array) -> Array:
    """A draw from ``p(V | evidence)``."""
    return evidence.posterior_sample(key, *evidence.observe(machine, *batch, noise), n_gibbs)


Answer = Array | tuple[Array, Array]
"""The mean of each unit, or that and its standard deviation."""


@compiled
def average(
    machine: Model, batch: Observed, key: Array, noise: Any, n_gibbs: Array, return_std: bool
) -> Answer:
    """The posterior mean by Gibbs sampling."""
    machine, known = evidence.observe(machine, *batch, noise)
    return _answer(evidence.posterior_average(key, machine, known, n_gibbs), return_std)


@compiled
def mean_field(
    machine: Model, batch: Observed, key: Any, noise: Any, n_gibbs: Array, return_std: bool
) -> Answer:
    """The posterior mean by mean-field theory."""
    machine, known = evidence.observe(machine, *batch, noise)
    return _answer(evidence.mean_field(machine, known, n_gibbs), return_std)


@compiled
def reconstruct(
    machine: Model, batch: Observed, key: Any, noise: Any, n_gibbs: Any, return_std: bool
) -> Answer:
    """One pass up and down."""
    known = evidence.observe(machine, *batch, noise)[1]
    return _answer(evidence.reconstruct(machine, known, batch[1]), return_std)


def _answer(posterior: evidence.Posterior, return_std: bool) -> Answer:
    return (posterior.mean, jnp.sqrt(posterior.variance)) if return_std else posterior.mean


@compiled
def noise_level(machine: Model, batch: Observed, key: Array) -> Array:
    """The noise that explains a batch best."""
    return evidence.estimate_noise(key, machine, *batch)


FEATURES = {"probability": probability, "field": field, "state": state}
METHODS = {"gibbs": average, "mean-field": mean_field, "reconstruct": reconstruct}
