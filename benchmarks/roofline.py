"""How near sweeps are to what the machine can do at most: its roofline.

A program that does f operations for every byte it moves can at best do as many operations a second
as the largest matrix products, or f times the bytes a second of the longest copies. Both limits
and all sweeps take turns; operations and bytes are those of the plan, and every rate is a share of
the fastest.

    python benchmarks/roofline.py --out build/bench/roofline.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from contest import Run, turns
from rich.console import Console
from rich.table import Table
from step import Sweep

from mporbm.machine import Coupling, DenseCoupling, Machine, MPOCoupling
from mporbm.tensor.matmul import BYTES_PER_NUMBER, N_USES

SIDE = 2048
"""Of the matrices whose product is the fastest."""
LENGTH = 2**25
"""Of the arrays that are too long for any cache."""

N_SWEEPS = 10
"""In one program, as in an epoch."""


def machines() -> dict[str, tuple[Coupling, int]]:
    """Couplings and batches."""
    key = jax.random.key(0)
    found: dict[str, tuple[Coupling, int]] = {
        f"RBM 784 -> {n}": (DenseCoupling.random(key, (784,), (n,)), 100) for n in (100, 500)
    }
    for visible, hidden, rank, batch in (
        ((28, 28), (10, 10), 40, 100),
        ((64, 64, 3), (32, 32, 3), 5, 50),
        ((80, 80, 8), (10, 10, 5), 20, 50),
        ((128, 128, 24), (10, 10, 5), 20, 16),
    ):
        sizes = " -> ".join("x".join(map(str, shape)) for shape in (visible, hidden))
        coupling = MPOCoupling.random(key, visible, hidden, rank)
        found[f"MPORBM {sizes}, rank {rank}"] = coupling, batch
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    asked = parser.parse_args()

    matrix, long = jnp.ones((SIDE, SIDE)), jnp.ones(LENGTH)
    multiply, copy = jax.jit(jnp.matmul), jax.jit(lambda x: x + 1.0)
    programs: dict[str, Run] = {
        "product": lambda: multiply(matrix, matrix).block_until_ready(),
        "copy": lambda: copy(long).block_until_ready(),
    }
    amounts: dict[str, tuple[float, float]] = {
        "product": (2.0 * SIDE**3, 3.0 * BYTES_PER_NUMBER * SIDE**2),
        "copy": (float(LENGTH), 2.0 * BYTES_PER_NUMBER * LENGTH),
    }
    for name, (coupling, batch) in machines().items():
        sweep = Sweep(Machine(coupling), batch, gauge=False)
        programs[name] = sweep.whole(N_SWEEPS)
        plan, n = coupling.plan(batch), N_SWEEPS * sweep.n_updates
        amounts[name] = (
            n * float(N_USES * plan.n_operations + 2 * plan.n_merging),
            n * float(BYTES_PER_NUMBER * N_USES * plan.n_moved),
        )
    seconds = turns(programs, asked.rounds)
    found = shares({name: float(np.median(s)) for name, s in seconds.items()}, amounts)
    table = Table(title="operations a second, as shares of the fastest matrix product")
    for heading in ("sweep", "operations / byte", "share", "limit"):
        table.add_column(heading, justify="left" if heading == "sweep" else "right")
    for name, point in found["sweeps"].items():
        cells = (point[key] for key in ("intensity", "share", "limit"))
        table.add_row(name, *(f"{cell:.2f}" for cell in cells))
    Console().print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def shares(seconds: dict[str, float], amounts: dict[str, tuple[float, float]]) -> dict[str, Any]:
    """Rates as shares of the fastest matrix product."""
    peak = amounts["product"][0] / seconds["product"]
    bandwidth = amounts["copy"][1] / seconds["copy"]
    sweeps = {}
    for name, (n_operations, n_bytes) in amounts.items():
        if name not in ("product", "copy"):
            intensity = n_operations / n_bytes
            sweeps[name] = {
                "intensity": intensity,
                "share": n_operations / seconds[name] / peak,
                "limit": min(1.0, intensity * bandwidth / peak),
            }
    return {"ridge": peak / bandwidth, "sweeps": sweeps}


if __name__ == "__main__":
    main()
