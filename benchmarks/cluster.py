"""What a large training would cost: 64 GPUs and 1e9 samples, by calculation.

Operations and bytes are those of the plan for the share of a batch that a GPU has. All assumptions
are in `Cluster`.

    python benchmarks/cluster.py --out docs/performance/cluster.json
"""

import argparse
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from mporbm.machine import Coupling, DenseCoupling, MPOCoupling
from mporbm.tensor.matmul import BYTES_PER_NUMBER, N_USES, Plan


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The machine and the work."""

    n_gpus: int = 64
    n_samples: float = 1e9
    batch: int = 256
    """Samples of a batch for each GPU."""
    peak: float = 19.5e12
    """Operations a second of a GPU in single precision (NVIDIA A100)."""
    memory: float = 1.5e12
    """Bytes a second of its memory."""
    efficiency: float = 0.3
    """The share of either limit that a step reaches."""
    network: float = 25e9
    """Bytes a second between two GPUs (200 Gbit/s for each)."""
    latency: float = 5e-6
    """Seconds for a message, however short."""
    hourly: float = 2.0
    """The price of a GPU for an hour, in dollars."""


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((28, 28), (10, 10), 40),
    ((128, 128, 24), (10, 10, 5), 20),
    ((64, 64, 3, 16), (16, 16, 3, 4), 30),
]
"""Visible units, hidden units, rank: digits, colour images in bits, short films."""


def cost(
    make: Callable[[], Coupling], n_units: int, alternating: bool, cluster: Cluster
) -> dict[str, float]:
    """Of one epoch in which every batch moves all parameters once, together or core by core."""
    plan, sizes = planned(make, cluster.batch)
    n_operations = N_USES * plan.n_operations + 2 * plan.n_merging
    n_moved = BYTES_PER_NUMBER * N_USES * plan.n_moved
    busy = max(n_operations / cluster.peak, n_moved / cluster.memory) / cluster.efficiency
    updates = [[size] for size in sizes] if alternating else [sizes]
    n_bytes = [BYTES_PER_NUMBER * (sum(moved) + n_units / len(updates)) for moved in updates]
    compute, talk = len(updates) * busy, sum(reduction(n, cluster) for n in n_bytes)
    rate = cluster.batch / (compute + talk)
    hours = cluster.n_samples / (rate * cluster.n_gpus) / 3600
    return {
        "bytes": sum(n_bytes),
        "compute": compute,
        "talk": talk,
        "hours": hours,
        "dollars": hours * cluster.n_gpus * cluster.hourly,
        # The weights, their velocity and their gradient.
        "memory": 3 * BYTES_PER_NUMBER * sum(sizes),
        "samples_per_second": rate,
    }


def reduction(n_bytes: float, cluster: Cluster) -> float:
    """Seconds to add up gradients: over a ring, or, if they are small, up and down a tree."""
    n, bandwidth = cluster.n_gpus, cluster.network
    ring = 2 * (n - 1) * (cluster.latency + n_bytes / n / bandwidth)
    tree = 2 * math.log2(n) * (cluster.latency + n_bytes / bandwidth)
    return min(ring, tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    asked = parser.parse_args()
    cluster = Cluster()
    found: dict[str, Any] = {"cluster": dataclasses.asdict(cluster), "machines": {}}
    table = Table(title=f"{cluster.n_gpus} GPUs, {cluster.n_samples:.0e} samples")
    for heading in ("machine", "sent a batch", "compute", "talk", "hours", "dollars", "memory"):
        table.add_column(heading, justify="left" if heading == "machine" else "right")
    for visible, hidden, rank in SHAPES:
        n_units = math.prod(visible) + math.prod(hidden)
        sizes = " -> ".join("x".join(map(str, shape)) for shape in (visible, hidden))
        for name, (make, alternating) in couplings(visible, hidden, rank).items():
            result = cost(make, n_units, alternating, cluster)
            found["machines"][f"{sizes}: {name}"] = result
            table.add_row(
                f"{sizes}: {name}",
                f"{result['bytes'] / 1e6:.2f} MB",
                f"{1e3 * result['compute']:.2f} ms",
                f"{1e3 * result['talk']:.2f} ms",
                f"{result['hours']:.2f}",
                f"{result['dollars']:.0f}",
                f"{result['memory'] / 1e6:.1f} MB",
            )
    Console(width=130).print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def couplings(
    visible: tuple[int, ...], hidden: tuple[int, ...], rank: int
) -> dict[str, tuple[Callable[[], Coupling], bool]]:
    """Of the same layers, and whether cores move one after the other."""
    key = jax.random.key(0)

    def cores() -> Coupling:
        return MPOCoupling.random(key, visible, hidden, rank)

    def matrix() -> Coupling:
        return DenseCoupling.random(key, (math.prod(visible),), (math.prod(hidden),))

    return {
        f"MPORBM, rank {rank}, CD-SU": (cores, False),
        f"MPORBM, rank {rank}, CD-AOP": (cores, True),
        "RBM": (matrix, False),
    }


def planned(make: Callable[[], Coupling], batch: int) -> tuple[Plan, list[int]]:
    """The plan of a coupling and the sizes of its cores, without its values."""
    plans = []

    def note() -> Coupling:
        coupling = make()
        plans.append(coupling.plan(batch))
        return coupling

    cores = jax.tree.leaves(jax.eval_shape(note))
    return plans[0], [math.prod(core.shape) for core in cores]


if __name__ == "__main__":
    main()
