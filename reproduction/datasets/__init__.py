"""The data sets of the experiments, as scikit-learn's own loaders give them."""

from .alphadigits import load_alphadigits
from .arcene import load_arcene
from .coil100 import load_coil100
from .density import load_connect_four, load_ocr_letters
from .drivface import load_drivface

__all__ = [
    "load_alphadigits",
    "load_arcene",
    "load_coil100",
    "load_connect_four",
    "load_drivface",
    "load_ocr_letters",
]
