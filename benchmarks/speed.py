"""How fast we train and infer, as ratios to others and to the limit of the machine.

All contenders of a case take turns (`contest`); a ratio is the median over the rounds, with the
quartiles. Above 1 means that ours is faster.

    make bench
"""

import argparse
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contest import THREADS, Contender, contest, ratios
from rich.console import Console
from rich.table import Table

DENSE = {"scikit_learn": "scikit-learn", "learnergy": "learnergy", "rbms": "rbms"}
MPO = {"numpy": "NumPy + opt_einsum", "torch": "torch"}


@dataclass(frozen=True)
class Case:
    """Contenders of the same work; ours is the first."""

    title: str
    contenders: Mapping[str, Contender]
    n_samples: int
    """How many samples a round trains, or infers."""


def cases() -> dict[str, Case]:
    """Everything that is measured."""
    found = {}
    for n_hidden in (100, 500):
        arguments: dict[str, Any] = {
            "n_visible": 784,
            "n_hidden": n_hidden,
            "batch": 100,
            "n_batches": 200,
        }
        arguments["n_iter"] = 10 if n_hidden == 100 else 4
        contenders = {"ours": Contender("dense", "ours", arguments)}
        contenders |= {title: Contender("dense", name, arguments) for name, title in DENSE.items()}
        contenders["matrix products alone"] = Contender("dense", "products", arguments)
        if n_hidden == 100:
            contenders["the same by the library that XLA chooses"] = Contender(
                "dense", "products", {**arguments, "chosen": False}
            )
        found[f"rbm-{n_hidden}"] = Case(
            f"RBM 784 -> {n_hidden}, CD-1, batch 100", contenders, 20_000 * arguments["n_iter"]
        )
    for visible, hidden, rank, batch, n_batches in (
        ((28, 28), (10, 10), 40, 100, 200),
        ((80, 80, 8), (10, 10, 5), 20, 50, 10),
        ((128, 128, 24), (10, 10, 5), 20, 16, 8),
    ):
        arguments = {"visible": visible, "hidden": hidden, "batch": batch, "n_batches": n_batches}
        ranked = {**arguments, "rank": rank}
        contenders = {"ours": Contender("mpo", "ours", ranked)}
        contenders |= {title: Contender("mpo", name, ranked) for name, title in MPO.items()}
        if len(visible) == 2:
            contenders["NumPy + opt_einsum, double"] = Contender(
                "mpo", "numpy", {**ranked, "double": True}
            )
        contenders["ours, with the gauge"] = Contender(
            "mpo", "ours", {**ranked, "gauge": "canonical"}
        )
        if math.prod(visible) * math.prod(hidden) < 10**8:
            contenders["our RBM"] = Contender("mpo", "dense", arguments)
        title = f"MPORBM {_times(visible)} -> {_times(hidden)}, rank {rank}, CD-AOP, batch {batch}"
        found[f"mporbm-{_times(visible)}"] = Case(title, contenders, batch * n_batches)
    arguments = {"visible": (64, 64, 3), "hidden": (32, 32, 3), "batch": 50, "n_batches": 10}
    contenders = {"ours": Contender("mpo", "ours", {**arguments, "rank": 1})}
    for rank in (2, 5, 9):
        contenders[f"rank {rank}"] = Contender("mpo", "ours", {**arguments, "rank": rank})
    contenders["our RBM"] = Contender("mpo", "dense", arguments)
    found["mporbm-64x64x3"] = Case(
        "MPORBM 64x64x3 -> 32x32x3, rank 1, CD-AOP, batch 50", contenders, 500
    )
    arguments = {"n_images": 10_000, "n_hidden": 100, "n_gibbs": 100}
    for name in ("complete", "denoise"):
        contenders = {
            "ours": Contender("inference", name, arguments),
            "scikit-learn": Contender("inference", "scikit_learn", arguments),
        }
        found[name] = Case(
            f"{name} 10,000 images, 100 Gibbs steps, 100 hidden units", contenders, 10_000
        )
    return found


def measure(case: Case, rounds: int) -> dict[str, Any]:
    """Ratios to ours, and the memory of each."""
    results = contest(case.contenders, rounds)
    first = results["ours"]
    return {
        "title": case.title,
        "samples_per_second": case.n_samples / sorted(first.seconds)[rounds // 2],
        "others": {
            name: {
                "ratio": ratios(result.seconds, first.seconds),
                "peak_memory": result.peak_memory,
            }
            for name, result in results.items()
            if name != "ours"
        },
        "peak_memory": first.peak_memory,
        "seconds": {name: result.seconds for name, result in results.items()},
    }


def show(found: Mapping[str, Any], console: Console) -> None:
    """One table for each case."""
    for outcome in found.values():
        table = Table(title=outcome["title"], title_justify="left")
        table.add_column("contender", no_wrap=True)
        table.add_column("their time / ours", justify="right")
        table.add_column("peak memory", justify="right")
        table.add_row("ours", "1", _mebibytes(outcome["peak_memory"]))
        for name, other in outcome["others"].items():
            low, middle, high = other["ratio"]
            cells = f"{middle:.2f} ({low:.2f}-{high:.2f})", _mebibytes(other["peak_memory"])
            table.add_row(name, *cells)
        console.print(table)


def main() -> None:
    """Measure what is asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = cases()
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(known)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often contenders take turns")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"CASE: expected one of {', '.join(known)}, got {unknown[0]}")
    console = Console()
    for name in arguments.names or known:
        with console.status(known[name].title):
            found = measure(known[name], arguments.rounds)
        show({name: found}, console)
        if arguments.out is not None:
            keep(arguments.out, name, found)


def keep(path: Path, name: str, found: dict[str, Any]) -> None:
    """Write the result of a case beside those of others that are there."""
    cases = {}
    if path.exists():
        cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    machine = {"threads": THREADS, "processor": platform.processor()}
    text = json.dumps({"machine": machine, "cases": {**cases, name: found}}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _mebibytes(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.0f} MiB"


if __name__ == "__main__":
    main()
