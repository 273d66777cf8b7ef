"""What an estimator hands to training: everything but the data."""

from typing import Any, Literal, NamedTuple

import equinox as eqx

from ..learning import Algorithm, Rates
from ..learning.rates import Schedule


class TrainingConfig(eqx.Module):
    """How long to train, and what to do on the way."""

    n_iter: int
    batch_size: int
    schedule: Schedule
    n_iter_no_change: int | None
    """Stop after so many epochs without a better validation score; None trains to the end."""
    on_divergence: Literal["stop", "back-off"]
    checkpoint: str | None
    checkpoint_interval: int
    shuffle: bool = True


class Specification(NamedTuple):
    """A training but for its data: what starts, how it learns, how fast, how long."""

    machine: Any
    algorithm: Algorithm
    rates: Rates
    config: TrainingConfig
    seed: int
    identity: dict[str, Any]
    """What a checkpoint must have been made with to go on from it."""
