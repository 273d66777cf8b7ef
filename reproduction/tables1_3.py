"""Tables 1 to 3: the data sets, and the layers of the machines for each."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mporbm.evaluation.run_cache import Outcome

from . import classification
from .runs import Run
from .scale import Scale
from .tasks import TASKS, samples, split

REVISION = 2


def run(task: str) -> dict[str, Any]:
    """Facts of a data set."""
    values, labels = samples(task)
    parts = split(labels, 0, TASKS[task].train_share)
    return {
        "shape": list(values.shape[1:]),
        "range": [int(values.min()), int(values.max())],
        "n_samples": len(labels),
        "n_classes": len(np.unique(labels)),
        "parts": [len(part) for part in parts],
        "source": TASKS[task].load().source,
    }


def runs(scale: Scale) -> list[Run]:
    """All data sets of Table 4."""
    return [Run(__name__, {"task": name}, 0.1) for name in classification.tasks(scale)]


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """The tables, from what was loaded and trained."""
    data, layers, notes = [], [], []
    for run in runs(scale):
        task, facts = TASKS[run.configuration["task"]], outcome(run)
        low, high = facts["range"]
        cells = [
            {"text": _times(facts["shape"])},
            {"text": "binary" if (low, high) == (0, 1) else f"{low} to {high}"},
            *({"count": facts[name]} for name in ("n_samples", "n_classes")),
            *({"count": n} for n in facts["parts"]),
        ]
        data.append({"label": task.title, "kind": "machine", "cells": cells})
        dense = [np.prod(task.visible_shape), np.prod(task.hidden_shape)]
        shapes = [dense[0], task.matrix_shapes[0], task.visible_shape]
        shapes += [dense[1], task.matrix_shapes[1], task.hidden_shape]
        cells = [{"text": _times(shape)} for shape in shapes]
        layers.append({"label": task.title, "kind": "machine", "cells": cells})
        notes.append(f"{task.title}: {facts['source']}")
    machines = ("RBM", "MvRBM", "MPORBM")
    common: dict[str, Any] = {"unit": "", "better": None, "verdicts": []}
    return {
        "name": "tables1-3",
        "title": "Tables 1 to 3. Data sets and layers",
        "text": [
            "Values that are not binary are coded by their bits, as in the paper: a mode of its "
            "own, joined with the colours if there are any."
        ],
        "tables": [
            {
                "name": "table1",
                "caption": "Table 1: the data sets, and the sizes of a random split",
                "columns": [
                    *("shape", "values", "samples", "classes"),
                    *("training", "validation", "test"),
                ],
                "rows": data,
                "notes": notes,
                **common,
            },
            {
                "name": "table2-3",
                "caption": "Tables 2 and 3: visible and hidden layers",
                "columns": [
                    *(f"{name}, visible" for name in machines),
                    *(f"{name}, hidden" for name in machines),
                ],
                "rows": layers,
                "notes": [],
                **common,
            },
        ],
        "figures": [],
        "verdicts": [],
    }


def _times(shape: Any) -> str:
    return "x".join(map(str, np.atleast_1d(shape).tolist()))
