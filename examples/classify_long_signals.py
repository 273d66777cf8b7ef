"""Classify signals of 2^30 points that are never formed.

Tones, chirps, decaying tones and beats with random parameters are sampled at 2^30 points each: as
arrays, 8 GB a signal. In quantics form (MPS with a core for every binary digit of the position) a
signal takes a few kilobytes, found from a few thousand of its values by cross interpolation.
MPSRBM learns from these MPS directly; 1-NN on its features is compared with a coupling of rank 1,
and with 1-NN by the inner products of the signals themselves.

    pip install "mporbm[cli]"
    python examples/classify_long_signals.py
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from sklearn.neighbors import KNeighborsClassifier

from mporbm import MPSRBM
from mporbm.tensor import MPSBatch

ORDER = 30
RANKS = (1, 4, 12)
LENGTH = 6.0
"""The norm of every signal: that of white noise in 36 directions of variance 1."""
Function = Callable[[NDArray[np.float64]], Any]


def main() -> None:
    """Run all seeds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="number of random data sets")
    parser.add_argument("--train", type=int, default=10, help="signals of each class to learn from")
    parser.add_argument("--test", type=int, default=20, help="signals of each class to classify")
    parser.add_argument("--n-iter", type=int, default=40, help="epochs")
    options = parser.parse_args()
    if min(options.seeds, options.train, options.test, options.n_iter) < 1:
        parser.error("all options: expected integers of at least 1")
    scores: dict[str, list[float]] = {}
    with Progress() as progress:
        task = progress.add_task("signals and machines", total=options.seeds * (len(RANKS) + 1))
        for seed in range(options.seeds):
            rng = np.random.default_rng(seed)
            train, y_train = signals(rng, options.train)
            test, y_test = signals(rng, options.test)
            nearest = np.asarray(train.inner(test)).argmax(axis=0)
            inner = "1-NN by inner products, no machine"
            scores.setdefault(inner, []).append(float(np.mean(y_train[nearest] == y_test)))
            progress.advance(task)
            for rank in RANKS:
                model = MPSRBM(16, rank=rank, batch_size=20)
                model.set_params(n_iter=options.n_iter, random_state=seed).fit(train)
                classifier = KNeighborsClassifier(1).fit(model.transform(train), y_train)
                score = float(classifier.score(model.transform(test), y_test))
                scores.setdefault(f"MPSRBM of rank {rank}, 16 features", []).append(score)
                progress.advance(task)
    print_table(scores, train)


def signals(rng: np.random.Generator, n_samples: int) -> tuple[MPSBatch, NDArray[np.int64]]:
    """Signals of four classes in quantics form, all of one norm, and their labels."""
    functions: list[Function] = []
    for _ in range(n_samples):
        functions += [tone(rng), chirp(rng), decay(rng), beat(rng)]
    batch = MPSBatch.from_functions(functions, ORDER, tolerance=1e-3).astype(np.float32)
    lengths = np.sqrt(np.asarray(batch.squared_norms()))
    return batch * (LENGTH / lengths), np.tile(np.arange(4), n_samples)


def carrier(rng: np.random.Generator) -> Function:
    """The phase of a tone of about 24 periods."""
    frequency, phase = rng.normal(24.0, 0.3), rng.normal(0.0, 0.8)
    return lambda x: 2.0 * np.pi * frequency * x + phase


def tone(rng: np.random.Generator) -> Function:
    """A sine."""
    phase = carrier(rng)
    return lambda x: np.sin(phase(x))


def chirp(rng: np.random.Generator) -> Function:
    """A sine that gets faster."""
    phase, rate = carrier(rng), rng.uniform(6.0, 10.0)
    return lambda x: np.sin(phase(x) + 2.0 * np.pi * rate * (x - 0.5) ** 2)


def decay(rng: np.random.Generator) -> Function:
    """A sine that dies away."""
    phase, rate = carrier(rng), rng.uniform(2.0, 4.0)
    return lambda x: np.exp(-rate * x) * np.sin(phase(x))


def beat(rng: np.random.Generator) -> Function:
    """A sine that swells and fades."""
    phase, frequency = carrier(rng), rng.uniform(2.0, 3.0)
    return lambda x: np.sin(phase(x)) * np.cos(2.0 * np.pi * frequency * x)


def print_table(scores: dict[str, list[float]], train: MPSBatch) -> None:
    """Accuracies as means over seeds with their standard deviations."""
    table = Table(
        title=f"{len(train)} signals of 2^{ORDER} points to learn from, 4 classes; "
        f"{train.nbytes / len(train) / 1024:.0f} KiB a signal",
        title_justify="left",
    )
    table.add_column("classifier")
    table.add_column("accuracy", justify="right")
    table.add_row("chance", "0.25")
    for name, values in scores.items():
        table.add_row(name, f"{np.mean(values):.2f} +- {np.std(values):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
