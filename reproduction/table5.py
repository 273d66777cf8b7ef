"""Table 5: layers and numbers of weights of the machines that complete and denoise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mporbm.evaluation.run_cache import Outcome

from . import generation
from .runs import Run
from .scale import Scale
from .verdicts import verdict

PAPER = {"RBM": 78400, "MvRBM": 560, "MPORBM": 22400}


def runs(scale: Scale) -> list[Run]:
    """One training of each machine."""
    return [generation.run_of(scale, machine, 0) for machine in generation.machines(scale)]


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """The numbers of weights as they were trained."""
    layers = {"RBM": ("784", "100"), "TvRBM": ("28x28", "100")}
    rows, counts = [], {}
    for run in runs(scale):
        machine = run.configuration["machine"]
        visible, hidden = layers.get(machine, ("28x28", "10x10"))
        counts[machine] = outcome(run)["parameters"]
        paper = {"count": PAPER[machine]} if machine in PAPER else None
        cells = [{"text": visible}, {"text": hidden}, paper, {"count": counts[machine]}]
        rows.append({"label": machine, "kind": "machine", "cells": cells})
    holds = all(counts[machine] == count for machine, count in PAPER.items())
    return {
        "name": "table5",
        "title": "Table 5. Layers and weights of the machines that complete and denoise",
        "text": [
            f"The rank of the MPORBM, and of the TvRBM, which is not in the paper, is "
            f"{generation.RANK}."
        ],
        "tables": [
            {
                "name": "table5-weights",
                "caption": "Layers and numbers of weights, without biases",
                "unit": "",
                "better": None,
                "columns": ["visible layer", "hidden layer", "paper", "here"],
                "rows": rows,
                "verdicts": [
                    verdict(holds, f"The numbers are {'' if holds else 'not '}those of the paper.")
                ],
                "notes": [],
            }
        ],
        "figures": [],
        "verdicts": [],
    }
