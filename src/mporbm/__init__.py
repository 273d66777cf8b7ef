"""Boltzmann machines for tensor data: RBM, MvRBM, TvRBM and MPORBM."""

from importlib.metadata import version

__version__ = version("mporbm")
