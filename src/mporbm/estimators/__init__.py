"""scikit-learn estimators: machines, deep stacks of them, classifiers; codings of data."""

from .belief import DBN, MPODBN
from .coding import Binarize, BitPlanes
from .deep_boltzmann import DBM, MPODBM
from .machines import RBM, MvRBM, TvRBM
from .model_file import load
from .mporbm import MPORBM

__all__ = [
    "DBM",
    "DBN",
    "MPODBM",
    "MPODBN",
    "MPORBM",
    "RBM",
    "Binarize",
    "BitPlanes",
    "MvRBM",
    "TvRBM",
    "load",
]
