"""Boltzmann machines for tensor data: RBM, MvRBM, TvRBM and MPORBM."""

import importlib
from importlib.metadata import version as _version
from typing import Any

from .cache import enable_compilation_cache

__version__ = _version("mporbm")

_LAYERS = (
    "datasets",
    "diagram",
    "estimators",
    "evaluation",
    "learning",
    "machine",
    "mps",
    "pictures",
    "sampling",
    "sweep",
    "tensor",
    "training",
)
ESTIMATOR_MODULES = {
    **dict.fromkeys(("MPORBM", "RBM", "MvRBM", "TvRBM"), "estimators"),
    **dict.fromkeys(("MPODBN", "DBN", "MPODBM", "DBM"), "estimators"),
    **dict.fromkeys(("MPOClassRBM", "ClassRBM"), "estimators"),
    "MPSRBM": "mps",
}
"""Where each estimator is."""
_CODINGS = ("BitPlanes", "Binarize", "Alphabet", "Standardize")
_MODULES = {**ESTIMATOR_MODULES, **dict.fromkeys((*_CODINGS, "load"), "estimators")}
__all__ = [*_MODULES, *_LAYERS, "enable_compilation_cache"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first asked for: JAX takes seconds to load."""
    if name in _LAYERS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
