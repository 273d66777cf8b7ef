"""The paper's experiments: each table and figure is a module of its name."""

from .reproduce import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "reproduce"]
