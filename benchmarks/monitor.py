"""What is watched during a training, beside what is true afterwards.

5000 images of MNIST to learn from and 5000 to judge by, thresholded, all from the 60,000 for
training. Twenty settings that learn well, badly or too much are ranked by what `history_` says
after the last epoch, and by the likelihood of the images to judge by (annealing in both
directions): rank correlations (Spearman). One setting is then repeated with 8 seeds: how far what
was watched, and the likelihood, spread from the smallest to the largest, in per cent of the mean.

    MPORBM_DATA=... python benchmarks/monitor.py --out monitor.json
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from mporbm import MPORBM, RBM, MvRBM, TvRBM
from mporbm.datasets import load_mnist

N_SAMPLES, N_SEEDS = 5000, 8
PLAIN = {"rule": "plain", "learning_rate": 0.05}
PAPER = {**PLAIN, "negative_phase": "cd", "schedule": "constant", "momentum": 0.5}
SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "MPORBM by default": (MPORBM, {}),
    **{f"MPORBM, rank {rank}": (MPORBM, {"rank": rank}) for rank in (1, 2, 20)},
    **{f"MPORBM, {n} epochs": (MPORBM, {"n_iter": n}) for n in (2, 5, 10)},
    "MPORBM 10x10, rank 5": (MPORBM, {"hidden_shape": (10, 10), "rank": 5}),
    "MPORBM 14x14, rank 20": (MPORBM, {"hidden_shape": (14, 14), "rank": 20}),
    "MPORBM, CD-1": (MPORBM, {"negative_phase": "cd"}),
    "MPORBM, CD-SU": (MPORBM, {"scheme": "su"}),
    "MPORBM, plain rule": (MPORBM, PLAIN),
    "MPORBM, paper's settings": (MPORBM, PAPER),
    "MPORBM, constant rate": (MPORBM, {"schedule": "constant"}),
    "MvRBM": (MvRBM, {}),
    "TvRBM 196, rank 20": (TvRBM, {"hidden_shape": 196, "rank": 20}),
    **{f"RBM {n}": (RBM, {"hidden_shape": n}) for n in (16, 64, 256)},
    "RBM 64, plain rule": (RBM, {"hidden_shape": 64, **PLAIN}),
}
SEEDED = "MPORBM, rank 2"
WATCHED = {
    "log_likelihood": "log-likelihood",
    "score": "score",
    "validation_log_likelihood": "log-likelihood, held out",
    "validation_score": "score, held out",
}


def measure(name: str, seed: int) -> dict[str, float]:
    """Train a machine; what was watched at the end, and the likelihood of held-out images."""
    images = load_mnist("train").data > 127
    train, held_out = images[:N_SAMPLES], images[-N_SAMPLES:]
    kind, options = SETTINGS[name]
    model = kind(**{"n_iter": 40, **options}, random_state=seed).fit(train, X_val=held_out[:1000])
    last = model.history_[-1]
    log_z = model.log_partition("ais", n_temperatures=2000)
    density = -float(model.free_energy(held_out).mean(dtype=np.float64))
    found = {key: float(last.get(key, np.nan)) for key in WATCHED}
    size = log_z.effective_sample_size
    return {**found, "nats": density - log_z.value, "effective_sample_size": size}


def correlations(results: Mapping[str, list[dict[str, float]]]) -> dict[str, float]:
    """Rank correlations of what was watched with the likelihood, over the settings."""
    runs = [runs[0] for runs in results.values()]
    nats = [run["nats"] for run in runs]
    watched = {key: [run[key] for run in runs] for key in WATCHED}
    return {
        key: float(spearmanr(values, nats, nan_policy="omit").statistic)
        for key, values in watched.items()
    }


def spread(runs: list[dict[str, float]], key: str) -> float:
    """From the smallest to the largest of all seeds, in per cent of the mean."""
    values = [run[key] for run in runs]
    return float(100.0 * np.ptp(values) / abs(np.mean(values)))


def show(results: Mapping[str, list[dict[str, float]]], console: Console) -> None:
    """One row for each setting, then correlations and spreads."""
    table = Table(title="Watched after the last epoch, and what is true", title_justify="left")
    for heading in ("machine", *WATCHED.values(), "nats of held-out images", "ESS"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for name, runs in results.items():
        first = runs[0]
        values = [f"{first[key]:.2f}" for key in (*WATCHED, "nats")]
        table.add_row(name, *values, f"{first['effective_sample_size']:.0f}")
    table.add_section()
    table.add_row("rank correlation", *(f"{r:.2f}" for r in correlations(results).values()), "", "")
    if len(runs := results.get(SEEDED, [])) > 1:
        spreads = [f"{spread(runs, key):.1f} %" for key in (*WATCHED, "nats")]
        table.add_row(f"spread of {len(runs)} seeds, {SEEDED}", *spreads, "")
    console.print(table)


def main() -> None:
    """Measure all settings and seeds; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    path = parser.parse_args().out
    results: dict[str, list[dict[str, float]]] = {}
    if path is not None and path.exists():
        results = json.loads(path.read_text(encoding="utf-8"))
    console = Console(width=160)
    for name in SETTINGS:
        runs = results.setdefault(name, [])
        for seed in range(len(runs), N_SEEDS if name == SEEDED else 1):
            with console.status(f"{name}, seed {seed}"):
                runs.append(measure(name, seed))
            if path is not None:
                path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    show(results, console)


if __name__ == "__main__":
    main()
