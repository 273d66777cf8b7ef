"""What the defaults of `MPORBM` are chosen by: likelihood and features of held-out samples.

Every setting differs from the defaults in one thing, but for the defaults of before. Machines learn
50 to 55,000 images of MNIST, thresholded at 127, Alphadigits, OCR letters, and COIL-100 (means of
8x8 pixels, the 4 first bits of each colour as planes: 16x16x12), and are judged by samples that
they have not seen, which are not those that are tested elsewhere: the mean log-likelihood in nats,
by annealing in both directions, and, but for OCR letters, the error of a 1-nearest-neighbour
classifier by hidden fields in per cent, learnt from the same samples.

    MPORBM_DATA=... python -m benchmarks.defaults --seeds 2 --out defaults.json
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from mporbm import MPORBM, BitPlanes
from mporbm.datasets import load_mnist
from mporbm.evaluation.neighbours import classify, error_rate
from mporbm.learning.rates import automatic_epochs
from reproduction import datasets
from reproduction.settings import PAPER
from reproduction.tasks import split

N_HELD_OUT = 5000


class Data(NamedTuple):
    """Samples to learn from and to judge by, with their classes if there are any."""

    train: np.ndarray
    held_out: np.ndarray
    classes: tuple[np.ndarray, np.ndarray] | None


def mnist(n_samples: int, seed: int) -> Data:
    """Random training images, and the last 5000 of all."""
    images, classes = load_mnist("train", return_X_y=True)
    images = images > 127
    n_others = len(images) - N_HELD_OUT
    chosen = np.random.default_rng(seed).permutation(n_others)[:n_samples]
    held_out = slice(n_others, None)
    return Data(images[chosen], images[held_out], (classes[chosen], classes[held_out]))


def alphadigits(seed: int) -> Data:
    """29 of each class to learn from, and the 5 to choose by."""
    images, labels = datasets.load_alphadigits(return_X_y=True)
    train, held_out, _ = split(labels, seed, train_share=0.75)
    return Data(images[train], images[held_out], (labels[train], labels[held_out]))


def ocr_letters(seed: int) -> Data:
    """8000 letters of the published validation part to learn from, and the other 2000."""
    letters = datasets.load_ocr_letters("valid").data
    order = np.random.default_rng(seed).permutation(len(letters))
    return Data(letters[order[:8000]], letters[order[8000:]], None)


def coil100(seed: int) -> Data:
    """Four of five views of every object to learn from, and the fifth."""
    images, objects = datasets.load_coil100(return_X_y=True)
    small = images.reshape(-1, 16, 8, 16, 8, 3).mean(axis=(2, 4)).astype(np.uint8) >> 4
    planes = np.asarray(BitPlanes(n_bits=4).fit_transform(small))
    held_out = np.zeros(len(planes), bool)
    held_out[np.random.default_rng(seed).permutation(len(planes))[: len(planes) // 5]] = True
    return Data(planes[~held_out], planes[held_out], (objects[~held_out], objects[held_out]))


DATA: dict[str, Callable[[int], Data]] = {
    "MNIST, 50": lambda seed: mnist(50, seed),
    "MNIST, 500": lambda seed: mnist(500, seed),
    "MNIST, 3000": lambda seed: mnist(3000, seed),
    "Alphadigits": alphadigits,
    "OCR letters": ocr_letters,
    "COIL-100": coil100,
    "MNIST, 55,000": lambda seed: mnist(55_000, seed),
}


def resized(factor: float) -> Callable[[MPORBM, np.ndarray], MPORBM]:
    """Multiply the sizes of the default hidden layer, which has at most about 1000 units."""

    def change(model: MPORBM, train: np.ndarray) -> MPORBM:
        modes = train.shape[1:]
        share = factor * min((1000 / math.prod(modes)) ** (1 / len(modes)), 1.0)
        return model.set_params(hidden_shape=tuple(math.ceil(share * size) for size in modes))

    return change


def batches(factor: float) -> Callable[[MPORBM, np.ndarray], MPORBM]:
    """Multiply the default number of epochs."""

    def change(model: MPORBM, train: np.ndarray) -> MPORBM:
        n_batches = math.ceil(len(train) / min(model.batch_size, len(train)))
        return model.set_params(n_iter=round(factor * automatic_epochs(n_batches)))

    return change


def options(**values: Any) -> Callable[[MPORBM, np.ndarray], MPORBM]:
    """Set other parameters."""
    return lambda model, train: model.set_params(**values)


def before(model: MPORBM, train: np.ndarray) -> MPORBM:
    """Go back to the first defaults: the paper's rule, and a third of each mode at rank 20."""
    shape = tuple(math.ceil(size / 3) for size in train.shape[1:])
    return model.set_params(**PAPER, n_iter=50, rank=20, hidden_shape=shape)


SETTINGS: dict[str, Callable[[MPORBM, np.ndarray], MPORBM]] = {
    "defaults": options(),
    "defaults of before": before,
    **{f"rank {rank}": options(rank=rank) for rank in (1, 2, 5, 10, 20, 40)},
    "a quarter of the epochs": batches(0.25),
    "4 times the epochs": batches(4.0),
    "half of each hidden mode": resized(0.5),
    "1.5 times each hidden mode": resized(1.5),
    "negative_phase='cd'": options(negative_phase="cd"),
    "schedule='constant'": options(schedule="constant"),
    "weight_decay=0.001": options(weight_decay=0.001),
}


def measure(data: str, setting: str, seed: int) -> dict[str, float]:
    """Train a machine, and judge it by samples that it has not seen."""
    train, held_out, classes = DATA[data](seed)
    model = SETTINGS[setting](MPORBM(random_state=seed, feature="field"), train)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    log_z = model.log_partition("ais", n_temperatures=1000)
    found = {
        "nats": -float(model.free_energy(held_out).mean(dtype=np.float64)) - log_z.value,
        "training": -float(model.free_energy(train[:5000]).mean(dtype=np.float64)) - log_z.value,
        "effective_sample_size": log_z.effective_sample_size,
        "weights": model.n_parameters_,
        "seconds": seconds,
    }
    if classes is not None:
        rows = [model.transform(part) for part in (train[:10_000], held_out)]
        found["error"] = error_rate(classify(rows[0], classes[0][:10_000], rows[1]), classes[1])
    return found


def show(results: Mapping[str, Mapping[str, list[dict[str, float]]]], console: Console) -> None:
    """One row for each setting, nats and errors for each set of data: means over the seeds."""
    table = Table(title="Held-out nats / 1-NN error in per cent", title_justify="left")
    for column in ("setting", *results):
        table.add_column(column, justify="left" if column == "setting" else "right")
    for setting in SETTINGS:
        cells = [setting]
        for found in results.values():
            if not (runs := found.get(setting)):
                cells.append("")
                continue
            text = f"{np.mean([run['nats'] for run in runs]):.1f}"
            if min(run["effective_sample_size"] for run in runs) < 10:
                text += "?"
            if "error" in runs[0]:
                text += f" / {np.mean([run['error'] for run in runs]):.1f}"
            cells.append(text)
        table.add_row(*cells)
    console.print(table)


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", metavar="DATA", help=f"of {'; '.join(DATA)}")
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), help="some of them only")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    arguments = parser.parse_args()
    for name, given, known in (
        ("DATA", arguments.data, DATA),
        ("--settings", arguments.settings, SETTINGS),
    ):
        if unknown := [each for each in given if each not in known]:
            parser.error(f"{name}: expected one of {'; '.join(known)}, got {unknown[0]}")
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    if arguments.out is not None and arguments.out.exists():
        results = json.loads(arguments.out.read_text(encoding="utf-8"))
    console = Console(width=160)
    for seed in range(arguments.seeds):
        for data in arguments.data or DATA:
            for setting in arguments.settings:
                runs = results.setdefault(data, {}).setdefault(setting, [])
                if len(runs) > seed:
                    continue
                with console.status(f"{data}, {setting}, seed {seed}"):
                    runs.append(measure(data, setting, seed))
                if arguments.out is not None:
                    text = json.dumps(results, indent=1)
                    arguments.out.write_text(text + "\n", encoding="utf-8")
    show(results, console)


if __name__ == "__main__":
    main()
