"""Kinds of units: what one unit does with the field that it feels, one file for each kind.

A new kind is a subclass of `Units` in a file of its own, registered under a name.
"""

from .base import HIDDEN_UNITS, UNITS, Observation, Units
from .bernoulli import Bernoulli
from .categorical import Categorical
from .copies import Copies
from .gaussian import Gaussian
from .joint import JointUnits
from .rectified import Rectified

__all__ = [
    "HIDDEN_UNITS",
    "UNITS",
    "Bernoulli",
    "Categorical",
    "Copies",
    "Gaussian",
    "JointUnits",
    "Observation",
    "Rectified",
    "Units",
]
