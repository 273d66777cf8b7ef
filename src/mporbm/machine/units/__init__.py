"""Kinds of units: what one unit does with the field that it feels, one file for each kind.

A new kind is a subclass of `Units` in a file of its own and a line in `UNITS`.
"""

from .base import Observation, Units
from .bernoulli import Bernoulli
from .categorical import Categorical
from .copies import Copies
from .gaussian import Gaussian
from .joint import JointUnits

UNITS: dict[str, type[Units]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gaussian": Gaussian,
}
"""The kinds that data may have, by name; each can be made without arguments."""

__all__ = [
    "UNITS",
    "Bernoulli",
    "Categorical",
    "Copies",
    "Gaussian",
    "JointUnits",
    "Observation",
    "Units",
]
