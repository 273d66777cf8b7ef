"""What a checkpoint must have been made with, for a training to go on from it."""

from ..learning import SCHEMES
from .base import EstimatorBase, plain

NOT_PART_OF_A_TRAINING = {"n_iter", "random_state", "warm_start", "verbose", "feature", "output"}
NOT_PART_OF_A_TRAINING |= {"checkpoint", "checkpoint_interval"}
"""Parameters that may change between a checkpoint and the training that goes on from it."""


def identity_of(estimator: EstimatorBase) -> dict[str, object]:
    """List the class of an estimator and the parameters that make its training what it is."""
    left_out = NOT_PART_OF_A_TRAINING
    # Where rates, or what is dropped, depend on the number of epochs, it is another training.
    changing = estimator.schedule != "constant" or estimator.learning_rate == "auto"
    if changing or SCHEMES[getattr(estimator, "scheme", "su")].depends_on_n_iter:
        left_out = left_out - {"n_iter"}
    parameters: dict[str, object] = plain(estimator.get_params(deep=False))
    kept = {name: value for name, value in parameters.items() if name not in left_out}
    return {"class": type(estimator).__name__, **kept}
