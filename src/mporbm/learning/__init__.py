"""The learning algorithms: negative phases x schemes x gauge."""

from .classification import (
    LabelledBatch,
    LabelledCD,
    LabelledParameters,
    LabelledPCD,
    LabelledRows,
    LabelledRule,
    Labelling,
)
from .deep import MeanField, WakeSleep
from .discriminative import classification_gradient, discriminative_gradient, label_score
from .gradient import Batch, gradient
from .negative_phases import (
    ContrastiveDivergence,
    FastPersistentCD,
    NegativePhase,
    ParallelTempering,
    PersistentCD,
)
from .parameters import Parameters
from .rates import automatic_rates
from .scheme import Alternating, LearningState, Rates, Rule, Scheme, Simultaneous
from .two_site import TwoSite

__all__ = [
    "Alternating",
    "Batch",
    "ContrastiveDivergence",
    "FastPersistentCD",
    "LabelledBatch",
    "LabelledCD",
    "LabelledPCD",
    "LabelledParameters",
    "LabelledRows",
    "LabelledRule",
    "Labelling",
    "LearningState",
    "MeanField",
    "NegativePhase",
    "ParallelTempering",
    "Parameters",
    "PersistentCD",
    "Rates",
    "Rule",
    "Scheme",
    "Simultaneous",
    "TwoSite",
    "WakeSleep",
    "automatic_rates",
    "classification_gradient",
    "discriminative_gradient",
    "gradient",
    "label_score",
]
