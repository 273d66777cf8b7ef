"""Samples with missing values, as estimators take them: NaN, or what a masked array masks."""

import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ..learning import Objective
from ..learning.incomplete import IncompleteLikelihood
from ..machine import Machine, gaussian
from ..sampling.evidence import BURN_IN, Evidence, posterior_start, posterior_step
from ..sampling.incomplete import clamped_log_weights, log_mean_weights
from ..tensor import MPSBatch
from ..training import ArraySource, StreamSource
from ..training.sources import Source
from . import batches, inputs, scaling

LEARNERS = "MPORBM, RBM, MvRBM and TvRBM"
"""The estimators that learn from samples with missing values."""
N_FEATURE_STEPS = 100
"""The Gibbs steps along which features are averaged over what is missing."""
N_CHAINS, N_TEMPERATURES = 16, 200
"""The chains that estimate the probability of what was observed of a sample, and their steps."""
N_NAMED = 5
"""The most units that a warning names."""


def hint(estimator: BaseEstimator) -> str:
    """What to do with missing values where an estimator does not take them."""
    if estimator._TAKES_MISSING:
        return (
            "transform and score_samples take samples with missing values, and complete fills "
            "them in"
        )
    return (
        f"{LEARNERS} take samples with missing values, {type(estimator).__name__} does not; fill "
        f"them in first, for instance with MPORBM().fit(X).complete(X)"
    )


def refuse(estimator: BaseEstimator) -> NoReturn:
    """Refuse samples with missing values."""
    raise ValueError(f"X: expected finite numbers, got NaN; {hint(estimator)}.")


# Data to learn from


def read_source(
    estimator: BaseEstimator, X: object, weight: object, *, n_iter: int, reset: bool
) -> tuple[Source, object]:
    """Check samples and their weights; also give the rows themselves if X is an array."""
    takes_shape = reset and not estimator._goes_on()
    if not inputs.is_stream(X):
        rows, missing = _checked(estimator, X, reset=takes_shape, shared=True)
        weights = inputs.check_weights(weight, len(rows))
        if takes_shape:
            counted = rows
            if weights is not None and not weights.all():
                counted = rows[np.flatnonzero(weights)]
            scaling.fit_scaling(estimator, counted)
        return _source(estimator, rows, missing, weights), rows
    if weight is not None:
        raise ValueError("sample_weight: expected None for a stream of samples.")

    def check(piece: object) -> np.ndarray:
        nonlocal takes_shape
        rows, missing = _checked(estimator, piece, reset=takes_shape)
        if takes_shape:
            scaling.fit_scaling(estimator, rows, of_stream=True)
        takes_shape = False
        if missing and stream.incomplete is False:
            raise ValueError(
                "X: expected the first NaN of a stream among its first samples, got it after "
                "complete ones had been learnt; let the stream begin with an array that has some, "
                "or with a masked array (np.ma.masked_invalid), by which it says that values may "
                "be missing."
            )
        if missing:
            stream.incomplete = True
            rows = rows[_informative(rows)]
        return cast("np.ndarray", scaling.states_of(estimator, rows))

    again = not isinstance(X, Iterator)
    stream = StreamSource(inputs.restart(X, n_iter), check, restartable=again)
    if n_iter > 1 or reset:
        stream.head(1)
    return stream, None


def read_array(estimator: BaseEstimator, X: object, *, reset: bool) -> ArraySource:
    """Check an array of samples."""
    return _source(estimator, *_checked(estimator, X, reset=reset))


def _source(
    estimator: BaseEstimator,
    rows: inputs.Rows,
    missing: bool,
    weights: NDArray[np.float32] | None = None,
) -> ArraySource:
    """Make a source of checked samples and their weights.

    Samples of which nothing was observed are left out, with a warning.
    """
    states = scaling.states_of(estimator, rows)
    if not missing:
        return ArraySource(states, weights)
    informative = _informative(rows)
    if not informative.any():
        raise ValueError("X: expected samples of which something was observed, got NaN alone.")
    return ArraySource(states, weights, np.flatnonzero(informative), incomplete=True)


def objective_for(source: Source, complete: Objective) -> Objective:
    """The objective for complete samples, or the one for those with missing values.

    From now on a stream is what its first samples are.
    """
    if source.incomplete is None:
        source.head(1)
    source.incomplete = bool(source.incomplete)
    return IncompleteLikelihood() if source.incomplete else complete


def _checked(
    estimator: BaseEstimator, X: object, *, reset: bool, shared: bool = False
) -> tuple[inputs.Rows, bool]:
    """Check rows to learn from, and say whether they, or a masked array, have missing values."""
    rows = inputs.check_rows(estimator, X, reset=reset, missing=True)
    taken, advice = estimator._TAKES_MISSING, hint(estimator)
    missing = inputs.check_values(
        rows, estimator.visible_units, shared=shared, missing=taken, hint=advice
    )
    if estimator.visible_units == "categorical":
        inputs.check_one_hot(rows)
    return rows, missing or (taken and isinstance(X, np.ma.MaskedArray))


def _informative(rows: inputs.Rows) -> NDArray[np.bool_]:
    """Which samples have an observed value; warn of others, and of units without any."""
    informative = np.zeros(len(rows), bool)
    seen = np.zeros(rows.shape[1:], bool)
    for start, block in inputs.blocks(rows):
        observed = ~np.isnan(block)
        informative[start : start + len(block)] = observed.reshape(len(block), -1).any(axis=1)
        seen |= observed.any(axis=0)
    if informative.any() and not informative.all():
        first = int(np.argmin(informative))
        warnings.warn(
            f"X: {int((~informative).sum())} of {len(rows)} samples, the first of them sample "
            f"{first}, are NaN alone and say nothing; they are left out.",
            stacklevel=2,
        )
    if informative.any() and not seen.all():
        units = [tuple(map(int, unit)) for unit in np.argwhere(~seen)]
        named = ", ".join(map(str, units[:N_NAMED])) + (", ..." if len(units) > N_NAMED else "")
        warnings.warn(
            f"X: {len(units)} of {seen.size} values are NaN in every sample, at {named}: nothing "
            f"is learnt about them; leave them out of X.",
            stacklevel=2,
        )
    return informative


# What is known of a sample with missing values


def features(estimator: BaseEstimator, rows: inputs.Rows | MPSBatch, key: Array) -> np.ndarray:
    """Compute the features of samples, of some of which values are missing."""
    kind = estimator.feature
    return _each_kind(
        rows,
        lambda some: estimator._batched(estimator._FEATURES[kind], some, key),
        lambda some: estimator._batched(
            posterior_features, some, key, kind, chains=True, title="transform"
        ),
    )


def log_clamped(estimator: BaseEstimator, rows: inputs.Rows | MPSBatch, key: Array) -> np.ndarray:
    """Compute ``-F(V)`` of samples, or estimate ``log Z(V_observed)`` where values are missing."""

    def estimate(some: np.ndarray) -> np.ndarray:
        weights = estimator._batched(
            clamped,
            some,
            jax.random.fold_in(key, 1),
            jnp.asarray(N_TEMPERATURES),
            repeats=N_CHAINS,
            chains=True,
            title="score",
        )
        return log_mean_weights(weights.reshape(len(some), N_CHAINS))[0].astype(weights.dtype)

    return _each_kind(rows, lambda some: -estimator._batched(batches.free_energy, some), estimate)


@batches.compiled
def clamped(machine: Machine, visible: Array, key: Array, n_temperatures: Array) -> Array:
    """The logarithm of an unbiased estimate of ``Z(V_observed)``, or its value in closed form."""
    if gaussian.is_gaussian(machine):
        return gaussian.given(machine, visible, ~jnp.isnan(visible)).log_density
    return clamped_log_weights(key, machine, visible, n_temperatures)


@batches.compiled
def posterior_features(machine: Machine, visible: Array, key: Array, feature: str) -> Array:
    """The mean of a feature along a chain that keeps what was observed, its beginning left out.

    A random state is one given the last state of the chain.
    """
    if gaussian.is_gaussian(machine):
        return exact_features(machine, visible, key, feature)
    evidence = Evidence.from_missing(machine.visible_units, visible)
    start, last, chain = jax.random.split(key, 3)
    first = int(BURN_IN * N_FEATURE_STEPS)

    def step(number: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        visible, mean = state
        field = machine.hidden_field(visible)
        value = field if feature == "field" else machine.hidden_units.mean(field)
        share = 1.0 / jnp.maximum(number - first + 1, 1).astype(field.dtype)
        # Before the burn-in is over the mean is the latest value.
        mean = mean + share * (value - mean)
        moved = posterior_step(jax.random.fold_in(chain, number), machine, evidence, visible)
        return moved, mean

    visible = posterior_start(start, machine, evidence)
    mean = jnp.zeros((len(visible), *machine.hidden_shape), visible.dtype)
    end: tuple[Array, Array] = jax.lax.fori_loop(0, N_FEATURE_STEPS, step, (visible, mean))
    if feature == "state":
        return machine.sample_hidden(last, end[0])
    return end[1]


def exact_features(machine: Machine, visible: Array, key: Array, feature: str) -> Array:
    """The mean of a feature given what was observed, or a state, where both layers are Gaussian."""
    noise = None
    if feature == "state":
        noise = jax.random.normal(key, (len(visible), machine.hidden_bias.size), visible.dtype)
    hidden = gaussian.given(machine, visible, ~jnp.isnan(visible), noise=noise).hidden
    # Mean states are fields times the variance.
    return hidden / machine.hidden_units.mean(jnp.ones(())) if feature == "field" else hidden


def _each_kind(
    rows: inputs.Rows | MPSBatch,
    complete: Callable[[np.ndarray], np.ndarray],
    incomplete: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Apply one function to complete samples, and another to those with missing values."""
    everything = np.asarray(rows)
    missing = np.isnan(everything).reshape(len(everything), -1).any(axis=1)
    parts = [
        (chosen, function) for chosen, function in ((~missing, complete), (missing, incomplete))
    ]
    found = [(chosen, function(everything[chosen])) for chosen, function in parts if chosen.any()]
    result = np.empty((len(everything), *found[0][1].shape[1:]), found[0][1].dtype)
    for chosen, values in found:
        result[chosen] = values
    return result
