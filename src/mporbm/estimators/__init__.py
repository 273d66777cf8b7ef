"""scikit-learn estimators: RBM, MvRBM, TvRBM, MPORBM."""

from .machines import MPORBM, RBM, MvRBM, TvRBM
from .model_file import load

__all__ = ["MPORBM", "RBM", "MvRBM", "TvRBM", "load"]
