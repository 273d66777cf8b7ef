"""Figures 8 and 9: test images completed from their right and from their bottom half."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mporbm.evaluation.run_cache import Outcome

from . import generation
from .runs import Run
from .scale import Scale

HALVES = {"figure8": "right", "figure9": "bottom"}


def runs(scale: Scale) -> list[Run]:
    """One training of each machine."""
    return [generation.run_of(scale, machine, 0) for machine in generation.machines(scale)]


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """Both figures."""
    return {
        "name": "figures8-9",
        "title": "Figures 8 and 9. Completed images",
        "text": ["The first test images. Nothing was picked by hand."],
        "tables": [],
        "figures": [
            generation.strips_figure(
                name,
                half,
                f"Figure {name[-1]}: the {half} half is given (posterior mean, first choice of "
                f"training images).",
                scale,
                outcome,
                folder,
            )
            for name, half in HALVES.items()
        ],
        "verdicts": [],
    }
