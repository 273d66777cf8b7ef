"""Sweeps over settings: many trainings, each kept once it is done, and what tells them apart."""

from .plan import Plan, Range
from .ranking import MEASURES, Ranked, Ranking, rank
from .run import Run, Samples
from .search import Search

__all__ = ["MEASURES", "Plan", "Range", "Ranked", "Ranking", "Run", "Samples", "Search", "rank"]
