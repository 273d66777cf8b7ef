"""From the parameters of an estimator to its learning algorithm, and to its identity."""

from typing import Any

from ..learning import NEGATIVE_PHASES, Algorithm, Objective, Rates, Scheme, UpdateRule
from .base import EstimatorBase
from .header import plain

NOT_PART_OF_A_TRAINING = {
    *("n_iter", "verbose", "checkpoint", "checkpoint_interval", "feature", "output"),
    *("random_state", "warm_start"),
}
"""Parameters that may change between a checkpoint and the training that goes on from it."""


def build_algorithm(
    parameters: EstimatorBase, scheme: Scheme, objective: Objective, rates: Rates
) -> Algorithm:
    """Put the four choices of the learning algorithm together."""
    gauge = getattr(parameters, "gauge", None) is not None
    options = {
        "n_gibbs": parameters.n_gibbs,
        "learning_rate": rates.coupling,
        "bias_rate": rates.bias,
        "gauge": gauge,
    }
    target = parameters.sparsity_target
    rule = UpdateRule(
        gauge=gauge,
        momentum=parameters.momentum,
        weight_decay=parameters.weight_decay,
        sparsity_target=0.0 if target is None else target,
        sparsity_cost=0.0 if target is None else parameters.sparsity_cost,
    )
    negative_phase = NEGATIVE_PHASES.build(parameters.negative_phase, options)
    return Algorithm(scheme, negative_phase, rule, objective)


def training_identity(estimator: EstimatorBase) -> dict[str, Any]:
    """Say what a checkpoint must have been made with to go on from it."""
    parameters = {
        name: plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_PART_OF_A_TRAINING
    }
    # Where rates, or what is dropped, depend on the number of epochs, it is another training.
    changing = estimator.schedule != "constant" or estimator.learning_rate == "auto"
    if changing or getattr(estimator, "scheme", None) == "two-site":
        parameters["n_iter"] = estimator.n_iter
    return {"class": type(estimator).__name__, **parameters}
