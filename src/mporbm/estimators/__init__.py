"""scikit-learn estimators: machines, deep stacks of them, classifiers; codings of data."""

from .alphabet import Alphabet
from .belief import DBN, MPODBN
from .classifier import ClassRBM, MPOClassRBM
from .coding import Binarize, BitPlanes
from .deep_boltzmann import DBM, MPODBM
from .machines import RBM, MvRBM, TvRBM
from .model_file import load
from .mporbm import MPORBM
from .scaling import Standardize

__all__ = [
    "DBM",
    "DBN",
    "MPODBM",
    "MPODBN",
    "MPORBM",
    "RBM",
    "Alphabet",
    "Binarize",
    "BitPlanes",
    "ClassRBM",
    "MPOClassRBM",
    "MvRBM",
    "Standardize",
    "TvRBM",
    "load",
]
