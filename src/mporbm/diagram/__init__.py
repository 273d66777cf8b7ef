"""Tensor network diagrams: the paper's graphical language, drawn with matplotlib."""

from .machine import draw
from .paper import FIGURES, save_figures

__all__ = ["FIGURES", "draw", "save_figures"]
