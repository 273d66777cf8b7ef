"""What missing values cost: machines that learn MNIST with some of its pixels missing at random.

MPORBM 28x28 -> 20x25 of rank 40 by the default rule, from 60,000 images thresholded at 127, of
which each pixel is missing (NaN) with the same probability, the same ones in every epoch. Machines
are judged by the mean log-likelihood in nats of the 10,000 test images, of which nothing is
missing. For comparison, missing pixels can be imputed by the mean of the pixel instead.

    MPORBM_DATA=... python benchmarks/incomplete.py --out build/bench/incomplete.json
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import mporbm
from mporbm import MPORBM
from mporbm.datasets import load_mnist

COLUMNS = ("nats", "forward", "reverse", "ESS", "seconds")


def images(part: str) -> np.ndarray:
    """All images of a part of MNIST, thresholded at 127."""
    pixels: np.ndarray = load_mnist(part, return_X_y=True)[0]
    return pixels > 127


def with_missing(train: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Samples of which a share of the values is NaN, at random."""
    missing = np.random.default_rng(seed).random(train.shape) < share
    return np.where(missing, np.float32(np.nan), train)


def imputed(train: np.ndarray) -> np.ndarray:
    """The samples with the mean of what was observed of a pixel in place of NaN."""
    return np.where(np.isnan(train), np.nanmean(train, axis=0, dtype=np.float64), train).astype(
        np.float32
    )


def measure(train: np.ndarray, test: np.ndarray, epochs: int, seed: int) -> dict[str, float]:
    """Train a machine, and judge it by complete samples that it has not seen."""
    model = MPORBM(hidden_shape=(20, 25), rank=40, n_iter=epochs, random_state=seed)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    log_z = model.log_partition()
    nats = float(model.score_samples(test, log_z).mean(dtype=np.float64))
    return {
        "nats": nats,
        "forward": nats + log_z.value - log_z.forward,
        "reverse": nats + log_z.value - log_z.reverse,
        "ESS": log_z.effective_sample_size,
        "seconds": seconds,
    }


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--missing", type=float, nargs="+", default=[0.0, 0.1, 0.3, 0.5])
    parser.add_argument("--imputed", type=float, nargs="*", default=[0.5])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=60_000, help="as many of the images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    asked = parser.parse_args()
    mporbm.enable_compilation_cache()
    found: dict[str, dict[str, float]] = {}
    if asked.out is not None and asked.out.exists():
        found = json.loads(asked.out.read_text(encoding="utf-8"))
    train, test = images("train")[: asked.samples], images("test")
    runs = [(share, False) for share in asked.missing] + [(share, True) for share in asked.imputed]
    for share, is_imputed in runs:
        name = f"{100 * share:g} %{', imputed' if is_imputed else ''}"
        if name in found:
            continue
        rows = with_missing(train, share, asked.seed) if share else train
        rows = imputed(rows) if is_imputed else rows
        found[name] = measure(rows, test, asked.epochs, asked.seed)
        if asked.out is not None:
            asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"| missing | {' | '.join(COLUMNS)} |")
    print(f"|---{'|---:' * len(COLUMNS)}|")
    for name, result in found.items():
        numbers = [f"{result[column]:.{1 if column != 'ESS' else 0}f}" for column in COLUMNS]
        print(f"| {name} | {' | '.join(numbers)} |")


if __name__ == "__main__":
    main()
