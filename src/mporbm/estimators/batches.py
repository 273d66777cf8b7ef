"""What a trained machine does with many samples: compiled calls on batches of one size."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree
from numpy.typing import DTypeLike

from ..learning.monitor import pseudo_log_likelihood
from ..machine import Machine, Model
from ..machine.gaussian import is_gaussian
from ..precision import converted, double_precision
from ..sampling import evidence, gibbs, gibbs_step
from ..tensor import MPSBatch
from ..tensor.arrays import RandomKey
from ..tensor.matmul import MANY_USES
from ..training.rows import unpacked
from .inputs import Rows
from .progress import progress_bar

BATCH = 256
"""The most samples of one compiled call; the last call is padded."""
CHAINS = 1024
"""The same for calls of many steps, whose products are faster the more rows they have."""
CALLS = 2
"""How many of those run at once: where one has work for a single core, the other has the rest."""
BATCH_ENTRIES = 2**23
"""The most entries of a layer in such a call."""
METHODS = ("auto", "gibbs", "mean-field", "reconstruct")
"""How a posterior mean is found."""

Kind = TypeVar("Kind", bound=Model)
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Observed = tuple[Float[Array, "n ..."], Bool[Array, "n ..."]]
"""Visible values, and which of them were seen."""


def in_batches(
    function: Callable[..., object],
    machine: Model,
    rows: Rows | MPSBatch,
    key: RandomKey | None = None,
    *extra: object,
    observed: Bool[np.ndarray, "n ..."] | None = None,
    repeats: int = 1,
    chains: bool = False,
    title: str = "",
) -> PyTree[np.ndarray]:
    """``function(machine, batch, key, *extra)`` of all rows, in batches of one size.

    Padding to one size compiles once, and makes a row's result independent of the others. For
    `chains` of many steps the size may be larger, and for few rows is the next power of two.
    Machines of two Gaussian layers, whose matrices are stiff, compute in double precision. With
    `observed` the batch is a pair of arrays. Each row is taken `repeats` times in a row. A `title`
    shows a progress bar.
    """
    n_results = len(rows) * repeats
    size = batch_size(machine)
    if chains:
        size = min(batch_size(machine, CHAINS), power_of_two(n_results))
    precise = is_gaussian(machine)
    if precise:
        with double_precision():
            machine = converted(machine, jnp.float64)
    dtype = jax.tree.leaves(machine)[0].dtype

    def call(number: int) -> PyTree[np.ndarray]:
        start = number * size
        stop = min(start + size, n_results)
        chosen = slice(start, stop) if repeats == 1 else np.arange(start, stop) // repeats
        # Contexts are those of a thread.
        with double_precision() if precise else nullcontext():
            batch = padded(unpacked(rows[chosen]), size, dtype)
            if observed is not None:
                batch = batch, padded(observed[chosen], size, bool)
            batch_key = None if key is None else jax.random.fold_in(key, number)
            answer = function(machine, batch, batch_key, *extra)
            return jax.tree.map(lambda part: np.asarray(part)[: stop - start], answer)

    def room(part: np.ndarray) -> np.ndarray:
        return np.empty((n_results, *part.shape[1:]), part.dtype)

    results: PyTree[np.ndarray] = None
    stop = 0
    bar = progress_bar(title, len(rows), "samples") if title else nullcontext()
    with ThreadPoolExecutor(CALLS) as pool, bar as show:
        # Two programs with factorisations in loops can wait for each other forever.
        called = pool.map if chains and not precise and n_results > size else map
        try:
            for answer in called(call, range(-(-n_results // size))):
                if results is None:
                    results = jax.tree.map(room, answer)
                start, stop = stop, min(stop + size, n_results)
                pairs = zip(jax.tree.leaves(results), jax.tree.leaves(answer), strict=True)
                for result, part in pairs:
                    result[start:stop] = part
                if show is not None:
                    show(stop // repeats, "")
        finally:
            # After an interrupt no other call begins.
            pool.shutdown(wait=False, cancel_futures=True)
    return results


def batch_size(machine: Model, most: int | None = None) -> int:
    """The most samples of a compiled call for a machine."""
    return max(min(BATCH_ENTRIES // machine.n_batch_entries, most or BATCH), 1)


def power_of_two(number: int) -> int:
    """The next power of two."""
    return 1 << (number - 1).bit_length()


def padded(rows: PyTree[np.ndarray], size: int, dtype: DTypeLike) -> PyTree[Array]:
    """Rows of a type on the device, an array or several, with zeros to a number of rows."""

    def filled(stored: np.ndarray) -> Array:
        full = np.zeros((size, *stored.shape[1:]), dtype)
        full[: len(stored)] = stored
        return jnp.asarray(full)

    return jax.tree.map(filled, rows)


def compiled(
    function: Callable[Concatenate[Kind, Arguments], Result],
) -> Callable[Concatenate[Kind, Arguments], Result]:
    """A function of a machine and a batch as one program, with the plan of the largest batch."""

    @wraps(function)
    def planned(machine: Kind, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        ready = cast("Kind", machine.planned(batch_size(machine), MANY_USES))
        return function(ready, *args, **kwargs)

    program: Callable[Concatenate[Kind, Arguments], Result] = eqx.filter_jit(planned)
    return program


FEATURES: dict[str, Callable[[Model, PyTree[Array], RandomKey], Array]] = {
    "probability": compiled(lambda machine, visible, key: machine.hidden_mean(visible)),
    "field": compiled(lambda machine, visible, key: machine.hidden_field(visible)),
    "state": compiled(lambda machine, visible, key: machine.sample_hidden(key, visible)),
}
"""What `transform` computes."""


@compiled
def up_and_down(machine: Model, visible: PyTree[Array], key: object) -> PyTree[Array]:
    """``E[V | E[H | V]]``."""
    return machine.visible_mean(machine.hidden_mean(visible))


@compiled
def free_energy(machine: Machine, visible: PyTree[Array], key: object) -> Float[Array, " n"]:
    """``F(V)``."""
    return machine.free_energy(visible)


@compiled
def pseudo_likelihood(
    machine: Machine, visible: Array, key: object, units: Int[Array, " k"]
) -> Float[Array, " n"]:
    """The pseudo-log-likelihood by the conditionals of some units."""
    return pseudo_log_likelihood(machine, visible, units)


@compiled
def chain(machine: Machine, visible: Array, key: RandomKey, n_gibbs: int) -> Array:
    """Gibbs steps."""
    return gibbs(key, machine, visible, n_gibbs)


@compiled
def continued(machine: Machine, visible: Array, key: RandomKey, n_gibbs: Array) -> Array:
    """As many Gibbs steps as an argument says: one program for all numbers of them."""

    def step(number: Array, visible: Array) -> Array:
        return gibbs_step(jax.random.fold_in(key, number), machine, visible)

    moved: Array = jax.lax.fori_loop(0, n_gibbs, step, visible)
    return moved


@compiled
def draw(
    machine: Model, batch: Observed, key: RandomKey, noise: Array | None, n_gibbs: Array
) -> Array:
    """A draw from ``p(V | evidence)``."""
    noisy, known = evidence.observe(machine, *batch, noise)
    if is_gaussian(noisy):
        return evidence.exact_sample(key, noisy, known)
    return evidence.posterior_sample(key, noisy, known, n_gibbs)


@compiled
def posterior(
    machine: Model,
    batch: Observed,
    key: RandomKey | None,
    noise: Array | None,
    n_gibbs: Array,
    method: str,
    return_std: bool,
) -> Array | tuple[Array, Array]:
    """The posterior mean of each unit by one of `METHODS`, or that and its standard deviation."""
    noisy, known = evidence.observe(machine, *batch, noise)
    if method == "reconstruct":
        answer = evidence.reconstruct(machine, known, batch[1])
    elif method == "auto" and is_gaussian(noisy):
        answer = evidence.exact(noisy, known)
    elif method == "mean-field":
        answer = evidence.mean_field(noisy, known, n_gibbs)
    else:
        assert key is not None, "a chain needs random numbers"
        answer = evidence.posterior_average(key, noisy, known, n_gibbs)
    return (answer.mean, jnp.sqrt(answer.variance)) if return_std else answer.mean


@compiled
def noise_level(
    machine: Model, batch: Observed, key: RandomKey, scale: Float[Array, "..."]
) -> Float[Array, ""]:
    """The noise that explains a batch best, of units multiplied by a scale."""
    return evidence.estimate_noise(key, machine, *batch, scale)
