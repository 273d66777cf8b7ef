"""Learning: negative phases x schemes x gauge, and the training loop."""

from .checkpoint import CheckpointWarning
from .classification import (
    LabelledBatch,
    LabelledCD,
    LabelledParameters,
    LabelledPCD,
    LabelledRows,
    LabelledRule,
    Labelling,
)
from .data import ArraySource, StreamSource
from .deep import MeanField, WakeSleep
from .gradient import Batch, gradient
from .negative import (
    ContrastiveDivergence,
    FastPersistentCD,
    NegativePhase,
    ParallelTempering,
    PersistentCD,
)
from .packed import PackedBits
from .parameters import Parameters
from .rate import automatic_rates
from .scheme import Alternating, LearningState, Rates, Rule, Scheme, Simultaneous
from .storage import FileFormatError
from .training import DivergenceWarning, Settings, Training
from .two_site import TwoSite

__all__ = [
    "Alternating",
    "ArraySource",
    "Batch",
    "CheckpointWarning",
    "ContrastiveDivergence",
    "DivergenceWarning",
    "FastPersistentCD",
    "FileFormatError",
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
    "PackedBits",
    "ParallelTempering",
    "Parameters",
    "PersistentCD",
    "Rates",
    "Rule",
    "Scheme",
    "Settings",
    "Simultaneous",
    "StreamSource",
    "Training",
    "TwoSite",
    "WakeSleep",
    "automatic_rates",
    "gradient",
]
