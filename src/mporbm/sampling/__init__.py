"""Markov chains on the visible layer of a machine, and what is estimated from them."""

from .ais import LogPartition, log_partition
from .evidence import Evidence, Posterior, observe
from .gibbs import gibbs, gibbs_step, independent_units
from .tempering import Tempering, TemperingInfo

__all__ = [
    "Evidence",
    "LogPartition",
    "Posterior",
    "Tempering",
    "TemperingInfo",
    "gibbs",
    "gibbs_step",
    "independent_units",
    "log_partition",
    "observe",
]
