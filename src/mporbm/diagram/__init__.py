"""Tensor network diagrams: the paper's graphical language, drawn with matplotlib."""

from ..extras import extra

with extra("pictures", "mporbm.diagram"):
    from .machine import draw
    from .paper import FIGURES, save_figures

__all__ = ["FIGURES", "draw", "save_figures"]
