"""scikit-learn estimators: RBM, MvRBM, TvRBM, MPORBM; codings of data that are not binary."""

from .coding import Binarize, BitPlanes
from .machines import MPORBM, RBM, MvRBM, TvRBM
from .model_file import load

__all__ = ["MPORBM", "RBM", "Binarize", "BitPlanes", "MvRBM", "TvRBM", "load"]
