"""scikit-learn estimators: machines, deep stacks of them, codings of data that are not binary."""

from .coding import Binarize, BitPlanes
from .deep import DBM, DBN, MPODBM, MPODBN
from .machines import MPORBM, RBM, MvRBM, TvRBM
from .model_file import load

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
