"""Markov chains on the visible layer of a machine."""

from .gibbs import gibbs, gibbs_step, independent_units
from .tempering import Tempering, TemperingInfo

__all__ = ["Tempering", "TemperingInfo", "gibbs", "gibbs_step", "independent_units"]
