"""How the time of a sweep grows with order, rank, batch and size, beside what the plans predict.

python benchmarks/scaling.py --out docs/results/scaling.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from contest import turns
from rich.console import Console
from rich.table import Table
from step import Sweep

from mporbm.machine import Machine, MPOCoupling
from mporbm.tensor.matmul import N_USES

Point = tuple[float, tuple[int, ...], tuple[int, ...], int, int]
"""A number, and the visible shape, the hidden shape, the rank and the batch that belong to it."""


def axes() -> dict[str, list[Point]]:
    """What grows in each curve while all else stays."""
    return {
        "4^d visible units of order d": [
            (float(4**d), (4,) * d, (2,) * d, 8, 64) for d in (5, 6, 7, 8)
        ],
        "rank": [(float(r), (64, 64, 8), (8, 8, 4), r, 32) for r in (4, 8, 16, 32)],
        "batch": [(float(n), (64, 64, 8), (8, 8, 4), 16, n) for n in (8, 16, 32, 64, 128)],
        "visible units of order 3": [
            (float(8 * m * m), (m, m, 8), (8, 8, 4), 16, 32) for m in (32, 48, 64, 96, 128)
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="a JSON file for the curves")
    asked = parser.parse_args()
    table = Table(title="exponents of the time of a sweep", title_justify="left")
    for heading in ("what grows", "measured", "operations of the plan"):
        table.add_column(heading, justify="left" if heading == "what grows" else "right")
    found: dict[str, Any] = {}
    for name, points in axes().items():
        found[name] = curve(points, asked.rounds)
        table.add_row(name, *(f"{found[name][key]:.2f}" for key in ("measured", "predicted")))
    Console().print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def curve(points: list[Point], rounds: int) -> dict[str, Any]:
    """Times and operations at all points, which take turns."""
    sweeps, operations = {}, []
    for number, visible, hidden, rank, batch in points:
        coupling = MPOCoupling.random(jax.random.key(0), visible, hidden, rank)
        sweeps[str(number)] = Sweep(Machine(coupling), batch).whole()
        plan = coupling.plan(batch)
        operations.append(len(visible) * (N_USES * plan.n_operations + 2 * plan.n_merging))
    seconds = turns(sweeps, rounds)
    numbers = [point[0] for point in points]
    medians = [float(np.median(times)) for times in seconds.values()]
    return {
        "numbers": numbers,
        # Times mean something only beside each other.
        "relative_times": [median / medians[0] for median in medians],
        "relative_operations": [n / operations[0] for n in operations],
        "measured": exponent(numbers, medians),
        "predicted": exponent(numbers, operations),
    }


def exponent(numbers: list[float], values: list[float] | list[int]) -> float:
    """The slope of logarithms."""
    return float(np.polyfit(np.log(numbers), np.log(values), 1)[0])


if __name__ == "__main__":
    main()
