"""Weak scaling: twice the processes and twice the batch, on one thread each.

Three teams take turns: one process, two that train together, and two that do not know each other,
who show what two cores of this machine lose to each other anyway.

    python benchmarks/weak.py --out docs/performance/weak.json
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from contest import quartiles, ratios
from rich.console import Console
from rich.table import Table

from mporbm.cli.processes import free_port

CASES: dict[str, dict[str, Any]] = {
    "MPORBM 28x28 -> 10x10, rank 40": {"visible": (28, 28), "hidden": (10, 10), "rank": 40},
    "the same, ten times the batch": {
        "visible": (28, 28),
        "hidden": (10, 10),
        "rank": 40,
        "batch": 1000,
        "n_batches": 20,
    },
    "MPORBM 80x80x8 -> 10x10x5, rank 20": {
        "visible": (80, 80, 8),
        "hidden": (10, 10, 5),
        "rank": 20,
        "batch": 50,
        "n_batches": 10,
    },
    "RBM 784 -> 500": {"visible": (784,), "hidden": (500,)},
}
ANSWER = "seconds: "
TEAMS = {"one": 1, "two together": 2, "two apart": 2}


class Team:
    """Processes that do the same at the same time, each on a core of its own."""

    def __init__(self, case: str, n_processes: int, together: bool):
        port = free_port() if together else 0
        self.members = [
            subprocess.Popen(
                [
                    sys.executable,
                    __file__,
                    "--member",
                    case,
                    str(number),
                    str(n_processes),
                    str(port),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(n_processes)
        ]
        self.answers()

    def answers(self) -> list[float]:
        """A number of every member, among what libraries print."""
        found = []
        for member in self.members:
            assert member.stdout is not None
            line = next(line for line in member.stdout if line.startswith(ANSWER))
            found.append(float(line.removeprefix(ANSWER)))
        return found

    def seconds(self) -> float:
        """How long an epoch takes until the last one has done it."""
        for member in self.members:
            assert member.stdin is not None
            member.stdin.write("go\n")
            member.stdin.flush()
        return max(self.answers())

    def dismiss(self) -> None:
        """Let all of them end, at the same time."""
        for member in self.members:
            assert member.stdin is not None
            member.stdin.close()
        for member in self.members:
            member.wait()


def member(case: str, number: int, n_processes: int, port: int) -> None:
    """One process of a team: an epoch for every line that it reads."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[number]})
    import jax

    if port:
        jax.distributed.initialize(f"127.0.0.1:{port}", n_processes, number)
    from mporbm import MPORBM, RBM

    asked = {"batch": 100, "n_batches": 100, **CASES[case]}
    batch = asked["batch"] * (n_processes if port else 1)
    rng = np.random.default_rng(0)
    samples = rng.random((batch * asked["n_batches"], *asked["visible"])) < 0.2
    common = {"batch_size": batch, "learning_rate": 1e-3, "init": "random", "random_state": 0}
    model: Any = RBM(asked["hidden"], **common)
    if "rank" in asked:
        model = MPORBM(asked["hidden"], rank=asked["rank"], **common)
    for _ in range(2):
        model.partial_fit(samples)
    print(f"{ANSWER}0", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        model.partial_fit(samples)
        print(f"{ANSWER}{time.perf_counter() - start}", flush=True)


def measure(case: str, rounds: int) -> dict[str, Any]:
    """Times relative to those of one process, in quartiles."""
    teams: dict[str, Team] = {}
    try:
        # One after the other, so that none compiles while another one does.
        for name, n_processes in TEAMS.items():
            teams[name] = Team(case, n_processes, name == "two together")
        seconds: dict[str, list[float]] = {name: [] for name in teams}
        for _ in range(rounds):
            for name, team in teams.items():
                seconds[name].append(team.seconds())
    finally:
        for team in teams.values():
            team.dismiss()
    one = seconds["one"]
    return {
        "efficiency": {name: ratios(one, seconds[name]) for name in TEAMS if name != "one"},
        "seconds": {name: quartiles(times) for name, times in seconds.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    parser.add_argument("--member", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.member:
        case, *numbers = asked.member
        member(case, *map(int, numbers))
        return
    found = {case: measure(case, asked.rounds) for case in CASES}
    table = Table(title=f"work in the time of one process, {asked.rounds} rounds in turns")
    for heading in ("machine", *TEAMS):
        table.add_column(heading)
    for case, result in found.items():
        shown = [_text(values) for values in result["efficiency"].values()]
        table.add_row(case, "1", *shown)
    Console().print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _text(values: Sequence[float]) -> str:
    low, middle, high = values
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


if __name__ == "__main__":
    main()
