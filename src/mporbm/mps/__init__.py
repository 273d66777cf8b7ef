"""Layers in matrix product state form: the machine, how it learns, and its estimator."""

from .estimator import MPSRBM
from .machine import MPSMachine

__all__ = ["MPSRBM", "MPSMachine"]
