"""Log-likelihood of MNIST's test images by machines of several kinds and rules, in nats.

All 60,000 training images, thresholded at 127, PCD-1, batches of 100, 10 epochs, a rate that falls
linearly to 0; and the machine that `MPORBM()` is. log Z is estimated by annealed importance
sampling forwards, backwards and by both together, with 256 chains. 1000 samples are told by a
3-nearest-neighbour classifier: the total variation distance of their classes (TV) from those of the
test images, and the rarest class. Adversarial accuracies (AA) are the shares of test images and of
samples that are nearer to their own kind; exact samples would have 0.5. The inverse has all pixels
flipped. Stochastic images have pixels that are drawn once, by their grey values: other data, whose
likelihoods cannot be compared with those of thresholded ones.

    MPORBM_DATA=... python -m benchmarks.likelihood [CASE...] --seeds 3 --out likelihood.json
"""

import argparse
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import KNeighborsClassifier

from mporbm import MPORBM, RBM, MvRBM
from mporbm.datasets import load_mnist
from mporbm.evaluation.samples import adversarial_accuracy
from reproduction.densities import DENSITIES

KINDS: dict[str, Any] = {"RBM": RBM, "MvRBM": MvRBM, "MPORBM": MPORBM}
COMMON: dict[str, Any] = {"negative_phase": "pcd", "schedule": "linear", "momentum": 0.0}
COMMON |= {"n_iter": 10, "rule": "centred"}
PLAIN = {"rule": "plain", "momentum": 0.5, "learning_rate": 0.05}
CASES = (
    "MPORBM 20x25, rank 40",
    "MPORBM 32x32, rank 40",
    "RBM 500",
    "RBM 64",
    "RBM 91",
    "MPORBM by default",
    "MPORBM 20x25, rank 40, inverse",
)
"""What is measured if nothing is asked for. Other sizes, ", rectified", ", 40 epochs", ", plain
rule" and ", stochastic" can be."""
CASE = re.compile(
    r"(RBM|MvRBM|MPORBM) (?:([0-9x]+)|by default)(?:, rank (\d+))?(, rectified)?"
    r"(?:, (\d+) epochs)?(, plain rule)?(?:, (stochastic|inverse))?"
)


def build(name: str, seed: int) -> Any:
    """Make the estimator of a case."""
    kind, shape, rank, rectified, n_epochs, plain, _ = _parts(name)
    options: dict[str, Any] = {} if shape is None else dict(COMMON)
    if shape is not None:
        sizes = tuple(map(int, shape.split("x")))
        options["hidden_shape"] = sizes if kind != "RBM" else sizes[0]
    if rank is not None:
        options["rank"] = int(rank)
    if rectified is not None:
        options["hidden_units"] = "rectified"
    if n_epochs is not None:
        options["n_iter"] = int(n_epochs)
    return KINDS[str(kind)](**{**options, **(PLAIN if plain else {})}, random_state=seed)


def _parts(name: str) -> tuple[str | None, ...]:
    """Read the name of a case: machine, epochs, rule, and how images are made binary."""
    if (found := CASE.fullmatch(name)) is None:
        raise ValueError(f"CASE: expected a name such as {CASES[0]!r}, got {name!r}.")
    return found.groups()


N_SAMPLES = 1000


def measure(name: str, seed: int, n_temperatures: int) -> dict[str, float]:
    """Train a machine, and say how likely test images are, and how its samples fall on classes."""
    digits, true_digits = (load_mnist(subset).target for subset in ("train", "test"))
    made = _parts(name)[-1]
    train, test, _ = DENSITIES["mnist-stochastic" if made == "stochastic" else "mnist"].load()
    if made == "inverse":
        train, test = ~train, ~test
    model = build(name, seed)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    log_z = model.log_partition("ais", n_temperatures=n_temperatures)
    density = -float(model.free_energy(test).mean(dtype=np.float64))
    neighbours = KNeighborsClassifier(3)
    neighbours.fit(train[:20_000].reshape(20_000, -1), digits[:20_000])
    drawn = model.sample(N_SAMPLES, random_state=seed)
    found, true = (
        np.bincount(labels, minlength=10) / len(labels)
        for labels in (neighbours.predict(drawn.reshape(N_SAMPLES, -1)), true_digits)
    )
    adversarial = adversarial_accuracy(test.astype(np.float32), drawn, seed)
    return {
        "weights": model.n_parameters_,
        "temperatures": n_temperatures,
        "seconds": seconds,
        "nats": density - log_z.value,
        "forward": density - log_z.forward,
        "reverse": density - log_z.reverse,
        "effective_sample_size": log_z.effective_sample_size,
        "variation": 0.5 * float(np.abs(found - true).sum()),
        "rarest_class": float(found.min()),
        "adversarial_real": adversarial.truth,
        "adversarial_synthetic": adversarial.synthetic,
    }


def show(results: Mapping[str, list[dict[str, float]]], console: Console) -> None:
    """One row for each machine: means over the seeds, with the smallest and largest."""
    table = Table(title="Test log-likelihood, thresholded MNIST", title_justify="left")
    columns = ["weights", "seconds", "nats", "forward", "reverse", "ESS", "TV", "rarest"]
    columns += ["AA of images", "AA of samples"]
    for column in ("machine", *columns):
        table.add_column(column, justify="left" if column == "machine" else "right")
    for name, runs in results.items():
        cells = [name, f"{runs[0]['weights']:.0f}", _spread(runs, "seconds", 0)]
        cells += [_spread(runs, way, 2) for way in ("nats", "forward", "reverse")]
        cells += [_spread(runs, "effective_sample_size", 0), _spread(runs, "variation", 2)]
        cells += [_spread(runs, "rarest_class", 2)]
        cells += [_spread(runs, f"adversarial_{kind}", 2) for kind in ("real", "synthetic")]
        table.add_row(*cells)
    console.print(table)


def _spread(runs: list[dict[str, float]], name: str, digits: int) -> str:
    values = [run[name] for run in runs]
    mean, low, high = (f"{f(values):.{digits}f}" for f in (np.mean, min, max))
    return mean if len(values) == 1 else f"{mean} ({low} to {high})"


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--temperatures", type=int, default=4000)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    arguments = parser.parse_args()
    for name in arguments.names:
        build(name, 0)
    results: dict[str, list[dict[str, float]]] = {}
    if arguments.out is not None and arguments.out.exists():
        results = json.loads(arguments.out.read_text(encoding="utf-8"))
    known = {run["temperatures"] for runs in results.values() for run in runs}
    if known - {arguments.temperatures}:
        parser.error(
            f"--out: expected runs with {arguments.temperatures} temperatures, got {known}"
        )
    console = Console(width=180)
    for name in arguments.names or CASES:
        for seed in range(len(results.get(name, [])), arguments.seeds):
            with console.status(f"{name}, seed {seed}"):
                results.setdefault(name, []).append(measure(name, seed, arguments.temperatures))
            if arguments.out is not None:
                text = json.dumps(results, indent=1)
                arguments.out.write_text(text + "\n", encoding="utf-8")
    show(results, console)


if __name__ == "__main__":
    main()
