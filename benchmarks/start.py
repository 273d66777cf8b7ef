"""How long a first `fit` takes in a new process: with nothing compiled yet, and with all of it.

A process imports the library and trains on images of MNIST's size for one epoch, and then for one
more, which is what does not belong to the start. Fresh and kept programs take turns.

    python benchmarks/start.py --out build/bench/start.json
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from contest import quartiles
from rich.console import Console
from rich.table import Table

PROGRAM = """
import json, sys, time
start = time.perf_counter()
import mporbm
light = "jax" not in sys.modules and "matplotlib" not in sys.modules
imported = time.perf_counter()
from mporbm import MPORBM
import jax, numpy as np
loaded = time.perf_counter()
mporbm.enable_compilation_cache()
compiling = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiling.append(seconds) if "backend_compile" in event else None
)
images = np.random.default_rng(0).random((1000, 28, 28)) < 0.15
model = MPORBM((10, 10), rank=40, n_iter=1, batch_size=100, random_state=0, warm_start=True)
seconds = []
for _ in range(2):
    before = time.perf_counter()
    model.fit(images)
    seconds.append(time.perf_counter() - before)
print(json.dumps({"import mporbm": imported - start, "libraries": loaded - imported,
                  "first fit": seconds[0], "of that, XLA": sum(compiling),
                  "second fit": seconds[1], "light": light}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    asked = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {"nothing compiled": {}, "compiled before": {}}
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory() as folder:
            for parts in found.values():
                for part, value in _measure(folder).items():
                    parts.setdefault(part, []).append(value)
    table = Table(title="seconds of a new process", title_justify="left")
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
    summary = {n: {part: quartiles(v) for part, v in parts.items()} for n, parts in found.items()}
    for part in next(iter(summary.values())):
        table.add_row(part, *(f"{parts[part][1]:.2f}" for parts in summary.values()))
    Console().print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")


def _measure(folder: str) -> dict[str, float]:
    environment = {**os.environ, "MPORBM_CACHE": folder}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    answer: dict[str, float] = json.loads(done.stdout)
    if not answer.pop("light"):
        raise SystemExit("import mporbm has imported JAX or Matplotlib.")
    return answer


if __name__ == "__main__":
    main()
