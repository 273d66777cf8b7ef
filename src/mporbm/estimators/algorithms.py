"""From the parameters of an estimator to the algorithm that they ask for."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax.numpy as jnp

from ..learning import (
    NEGATIVE_PHASES,
    Algorithm,
    MaximumLikelihood,
    Objective,
    Rates,
    Scheme,
    UpdateRule,
)
from ..machine import Machine, Model
from ..machine.gaussian import is_gaussian, within_bounds
from ..precision import converted, double_precision
from .base import EstimatorBase

NEAR_BOUNDARY = 1.0 - 1e-6
"""The largest singular value of scaled weights that is known to stay below 1 when it is rounded."""
QUASI_NEWTON_EPOCHS = 100
"""The epochs of maximum likelihood where their number is not asked for."""


def build_algorithm(
    estimator: EstimatorBase,
    machine: Model,
    scheme: Scheme,
    rates: Rates,
    objective: Objective,
    centred: bool,
    complete: bool,
) -> Algorithm:
    """Build Algorithm 1, or maximum likelihood for a machine whose likelihood has a closed form.

    `complete` is whether every value of every sample is known.
    """
    gauge = getattr(estimator, "gauge", None) is not None
    by_likelihood = is_gaussian(machine)
    options: dict[str, object] = {"n_gibbs": estimator.n_gibbs, "gauge": gauge}
    if not centred:
        options |= {"learning_rate": rates.coupling, "bias_rate": rates.bias}
    # Nothing is drawn where the likelihood is known.
    name = "cd" if by_likelihood else estimator.negative_phase
    rule = UpdateRule(
        gauge=gauge,
        centred=centred and not by_likelihood,
        momentum=estimator.momentum,
        weight_decay=estimator.weight_decay,
        sparsity_target=estimator.sparsity_target or 0.0,
        sparsity_cost=0.0 if estimator.sparsity_target is None else estimator.sparsity_cost,
    )
    phase = NEGATIVE_PHASES.build(name, options)
    if by_likelihood:
        return MaximumLikelihood(scheme, phase, rule, objective, complete)
    return Algorithm(scheme, phase, rule, objective)


@contextmanager
def precise_training(estimator: EstimatorBase) -> Iterator[None]:
    """Train Gaussian layers in double precision; the machine they leave is in the usual one."""
    if not estimator._is_gaussian:
        yield
        return
    try:
        with double_precision():
            yield
    finally:
        if hasattr(estimator, "machine_"):
            estimator.machine_ = proper(estimator.machine_)


def proper(machine: Machine) -> Machine:
    """Bring a machine of Gaussian layers to the usual precision; others stay as they are.

    Weights that rounding, or a lower rank, left without a distribution shrink by as little as it
    takes to have one.
    """
    if not is_gaussian(machine):
        return machine
    usual = converted(machine, jnp.result_type(float))
    with double_precision():
        precise = converted(usual, jnp.float64)
        inside = within_bounds(precise, NEAR_BOUNDARY, NEAR_BOUNDARY)
    return converted(inside, jnp.result_type(float))
