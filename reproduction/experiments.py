"""All experiments of the paper: run what is missing, then gather the results."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from mporbm.atomic import locked, write_text
from mporbm.evaluation.processes import available_cores
from mporbm.evaluation.run_cache import Outcome

from . import beyond, figure7, figures8_9, likelihood, table4, table5, table6, table7, tables1_3
from .runs import Run, perform_all
from .scale import Scale

EXPERIMENTS: dict[str, ModuleType] = {
    "likelihood": likelihood,
    "tables1-3": tables1_3,
    "table4": table4,
    "figure7": figure7,
    "table5": table5,
    "table6": table6,
    "figures8-9": figures8_9,
    "table7": table7,
    "beyond": beyond,
}
"""Modules of experiments by their names: likelihood, those of the paper in its order, and more."""
REFERENCES = [
    "C. Chen, K. Batselier, C.-Y. Ko, N. Wong: Matrix product operator restricted Boltzmann "
    "machines. International Joint Conference on Neural Networks, 2019.",
    "G. Qi, Y. Sun, J. Gao, Y. Hu, J. Li: Matrix variate restricted Boltzmann machine. "
    "International Joint Conference on Neural Networks, 2016.",
    "T. D. Nguyen, T. Tran, D. Phung, S. Venkatesh: Tensor-variate restricted Boltzmann machines. "
    "AAAI Conference on Artificial Intelligence, 2015.",
    "R. Salakhutdinov, I. Murray: On the quantitative analysis of deep belief networks. "
    "International Conference on Machine Learning, 2008.",
]


def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    full: bool = False,
    seeds: int | None = None,
    command: str = "python -m reproduction",
    n_jobs: int | None = None,
    shown: bool = True,
) -> dict[str, Any]:
    """Do the experiments of some names, and write their results.

    Outcomes are kept in ``folder/runs``, so that what was done once is not done again, pictures in
    ``folder/figures``, and all results in ``folder/results.json``, whose content is returned.
    While it runs, nobody else can use the folder.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(f"names: expected some of {', '.join(EXPERIMENTS)}, got {name!r}.")
    scale = Scale(full, seeds)
    chosen = {name: module for name, module in EXPERIMENTS.items() if name in names}
    kept = folder / "runs"
    runs = [run for module in chosen.values() for run in module.runs(scale)]
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        perform_all(runs, kept, n_jobs=n_jobs, shown=shown)
        results = gather(chosen, scale, folder, command)
        write_text(folder / "results.json", json.dumps(results, indent=1, allow_nan=False) + "\n")
    return results


def gather(
    chosen: dict[str, ModuleType], scale: Scale, folder: Path, command: str
) -> dict[str, Any]:
    """Gather the results of experiments whose runs are all done."""
    found: dict[Path, Outcome] = {}

    def outcome(run: Run) -> Outcome:
        path = run.path(folder / "runs")
        if path not in found:
            kept = run.outcome(folder / "runs")
            if kept is None:
                raise FileNotFoundError(f"{path}: the outcome of a run is missing; start again.")
            found[path] = kept
        return found[path]

    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    sections = [module.section(scale, outcome, figures) for module in chosen.values()]
    return {
        "format": 1,
        "title": "Matrix product operator restricted Boltzmann machines: the paper, reproduced",
        "mode": "full" if scale.full else "quick",
        "version": metadata.version("mporbm"),
        "command": command,
        "date": date.today().isoformat(),
        "seconds": round(sum(kept["seconds"] for kept in found.values()), 1),
        "environment": _environment(),
        "summary": [verdict for section in sections for verdict in section.pop("summary", [])],
        "sections": sections,
        "references": REFERENCES,
    }


def _environment() -> dict[str, str]:
    versions = {name: metadata.version(name) for name in ("jax", "numpy", "scikit-learn")}
    cores = f"{len(available_cores())} of {os.cpu_count()} cores, {platform.machine()}"
    return {"Python": platform.python_version(), **versions, "processor": cores}
