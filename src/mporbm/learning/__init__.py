"""The learning algorithms: `Algorithm` 1 of the paper and the choices it leaves open."""

from .algorithm import Algorithm, LearningState, Scheme
from .deep import DrawnStates, MeanFieldBound, PassOfMeans, WakeSleep
from .gradient import Batch, Objective, Parameters, gradient
from .maximum_likelihood import MaximumLikelihood
from .monitor import StepInfo
from .negative_phases import (
    NEGATIVE_PHASES,
    ContrastiveDivergence,
    FastPersistentCD,
    NegativePhase,
    ParallelTempering,
    PersistentCD,
)
from .rates import automatic_rates
from .rule import Rates, UpdateRule
from .schemes import SCHEMES, Alternating, Simultaneous
from .two_site import TwoSite

__all__ = [
    "NEGATIVE_PHASES",
    "SCHEMES",
    "Algorithm",
    "Alternating",
    "Batch",
    "ContrastiveDivergence",
    "DrawnStates",
    "FastPersistentCD",
    "LearningState",
    "MaximumLikelihood",
    "MeanFieldBound",
    "NegativePhase",
    "Objective",
    "ParallelTempering",
    "Parameters",
    "PassOfMeans",
    "PersistentCD",
    "Rates",
    "Scheme",
    "Simultaneous",
    "StepInfo",
    "TwoSite",
    "UpdateRule",
    "WakeSleep",
    "automatic_rates",
    "gradient",
]
