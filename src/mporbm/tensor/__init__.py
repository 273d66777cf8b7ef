"""Tensor algebra: index map, matrix product operators (MPO) and states (MPS).

Knows nothing of Boltzmann machines.
"""

from .index import linear_index, multi_index
from .mpo import MPO
from .mps import MPS, MPSBatch, interpolate
from .ranks import max_ranks
from .truncation import Truncation

__all__ = [
    "MPO",
    "MPS",
    "MPSBatch",
    "Truncation",
    "interpolate",
    "linear_index",
    "max_ranks",
    "multi_index",
]
