"""Tensor network diagrams: the paper's graphical language, drawn with matplotlib."""

from ..extras import extra

with extra("pictures", "mporbm.diagram"):
    from .machine import draw

__all__ = ["draw"]
