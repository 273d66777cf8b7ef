"""Sweeps over settings: many trainings, each kept once it is done, and what tells them apart."""

from .ranking import MEASURES, Ranked, Ranking, rank
from .run_cache import perform_all
from .samples import Samples
from .trial import Trial

__all__ = [
    "MEASURES",
    "Ranked",
    "Ranking",
    "Samples",
    "Trial",
    "perform_all",
    "rank",
]
