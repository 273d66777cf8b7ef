"""Tensor network diagrams: the paper's graphical language, drawn with matplotlib."""

from .machine import draw

__all__ = ["draw"]
