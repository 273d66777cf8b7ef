"""Boltzmann machines for tensor data: RBM, MvRBM, TvRBM and MPORBM."""

import importlib
from importlib.metadata import version as _version
from typing import Any

__version__ = _version("mporbm")
__all__ = ["diagram", "machine", "tensor"]


def __getattr__(name: str) -> Any:
    """Import a layer when it is first asked for: JAX and matplotlib take seconds to load."""
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
