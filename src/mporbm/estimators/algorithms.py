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
from ..machine import Model
from ..machine.gaussian import is_gaussian
from ..precision import converted, double_precision
from .base import EstimatorBase

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
            estimator.machine_ = converted(estimator.machine_, jnp.result_type(float))
