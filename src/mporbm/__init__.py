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
_ESTIMATORS = (
    *("MPORBM", "RBM", "MvRBM", "TvRBM", "MPODBN", "DBN", "MPODBM", "DBM"),
    *("MPOClassRBM", "ClassRBM"),
    *("BitPlanes", "Binarize", "load"),
)
__all__ = [*_ESTIMATORS, *_LAYERS, "enable_compilation_cache"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first asked for: JAX takes seconds to load."""
    if name in _LAYERS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _ESTIMATORS:
        return getattr(importlib.import_module(f"{__name__}.estimators"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
