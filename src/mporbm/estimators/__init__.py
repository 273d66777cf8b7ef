"""scikit-learn estimators: RBM, MvRBM, TvRBM, MPORBM; classifiers; codings of data."""

from .classifier import ClassRBM, MPOClassRBM
from .coding import Binarize, BitPlanes
from .machines import MPORBM, RBM, MvRBM, TvRBM
from .model_file import load

__all__ = [
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
