"""scikit-learn estimators: machines, deep stacks of them, classifiers; codings of data."""

from .classifier import ClassRBM, MPOClassRBM
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
    "ClassRBM",
    "MPOClassRBM",
    "MvRBM",
    "TvRBM",
    "load",
]
