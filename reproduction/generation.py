"""Completion and denoising of MNIST images (Tables 6 and 7, Figures 8 and 9)."""

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mporbm.estimators import MPORBM, RBM, MvRBM, TvRBM
from mporbm.evaluation.images import psnr
from mporbm.evaluation.neighbours import Array
from mporbm.evaluation.run_cache import Outcome
from mporbm.evaluation.statistics import cell
from mporbm.pictures import strips

from . import mnist
from .drawing import save_figure
from .runs import Run
from .scale import Scale
from .settings import PAPER
from .verdicts import Verdict, compare, reaches

REVISION = 1
N_TRAIN = 50
RANK = 40
"""The paper: "The MPO-rank in this experiment is set to 40"."""
MACHINES: dict[str, Callable[[], Any]] = {
    "RBM": lambda: RBM(100, **PAPER),
    "MvRBM": lambda: MvRBM((10, 10), **PAPER),
    "TvRBM": lambda: TvRBM(100, rank=RANK, **PAPER),
    "MPORBM": lambda: MPORBM((10, 10), rank=RANK, **PAPER),
}
DECAYS = (0.03, 0.06, 0.1, 0.15)
"""Weight decays, from which validation images choose."""
OFFLINE_DECAYS = (0.1,)
"""Without a choice it is done four times as fast."""
HALVES = {"right": np.s_[:, 14:], "bottom": np.s_[14:, :]}
"""The half that is given."""
NOISES = (0.10, 0.15, 0.20)
METHODS = {"reconstruct": "one pass", "gibbs": "posterior mean"}
"""One pass up and down, as in the paper, and the mean of p(V | what is known)."""
N_GIBBS = 50
N_PICTURES = 10


class Question(NamedTuple):
    """What is given of some images: a part of them (mask), or all with noise."""

    given: Array
    mask: Array | None = None
    noise: float | None = None


def run(
    machine: str, n_iter: int, n_validation: int, n_test: int, offline: bool, seed: int
) -> dict[str, Any]:
    """The PSNR of one machine's answers, trained on one random choice of 50 images."""
    train, validation, test = mnist.choose(seed, N_TRAIN, n_validation, n_test, offline)
    rng = np.random.default_rng([seed, 1])
    asked, truth = questions(rng, test.binary), test.binary
    if machine == "baselines":
        return {
            "psnr": {
                "mean training image": _psnrs(asked, truth, _mean_image(train.binary)),
                "given as it is": _psnrs(asked, truth, lambda question: question.given),
            }
        }
    trial = questions(np.random.default_rng([seed, 2]), validation.binary)
    best: tuple[float, Any] | None = None
    for decay in OFFLINE_DECAYS if offline else DECAYS:
        model = MACHINES[machine]().set_params(n_iter=n_iter, weight_decay=decay, random_state=seed)
        model.fit(train.binary)
        # Mean-field answers are as good for this choice, and much faster.
        mean = np.mean([*_psnrs(trial, validation.binary, answering(model, "mean-field")).values()])
        if best is None or mean > best[0]:
            best = float(mean), model
    assert best is not None
    model = best[1]
    pictures = {}
    for name, question in asked.items():
        first = question._replace(given=question.given[:N_PICTURES])
        pictures[name] = encode(answering(model, "gibbs")(first))
    return {
        "psnr": {
            label: _psnrs(asked, truth, answering(model, method))
            for method, label in METHODS.items()
        },
        "validation": best[0],
        "weight_decay": model.weight_decay,
        "parameters": int(model.n_parameters_),
        "pictures": pictures,
        "original": encode(truth[:N_PICTURES]),
        "given": {name: encode(question.given[:N_PICTURES]) for name, question in asked.items()},
    }


def machines(scale: Scale) -> list[str]:
    """The names of the machines."""
    return [name for name in MACHINES if scale.full or name != "TvRBM"]


def seeds(scale: Scale) -> range:
    """The random choices of training images."""
    return scale.splits(10 if scale.full else 1)


def run_of(scale: Scale, machine: str, seed: int) -> Run:
    """The run of one machine on one choice of training images."""
    configuration = {
        "machine": machine,
        "n_iter": 500 if scale.full else 200,
        "n_validation": 1000 if scale.full else 200,
        "n_test": 10000 if scale.full else 1000,
        "offline": not scale.full,
        "seed": seed,
    }
    cost = {"baselines": 0.01, "RBM": 1.0, "MvRBM": 1.0, "TvRBM": 2.0, "MPORBM": 2.0}[machine]
    return Run(__name__, configuration, cost * (60 if scale.full else 4))


def runs(scale: Scale) -> list[Run]:
    """All machines on all choices of training images."""
    return [
        run_of(scale, machine, seed)
        for seed in seeds(scale)
        for machine in ("baselines", *machines(scale))
    ]


def questions(rng: np.random.Generator, images: Array) -> dict[str, Question]:
    """Both halves, and the three densities of salt & pepper noise."""
    asked = {}
    for half, where in HALVES.items():
        mask = np.zeros(images.shape[1:], bool)
        mask[where] = True
        asked[half] = Question(images & mask, mask=mask)
    for noise in NOISES:
        hit, value = rng.random(images.shape) < noise, rng.random(images.shape) < 0.5
        asked[f"{noise:.0%}"] = Question(np.where(hit, value, images), noise=noise)
    return asked


def encode(images: Array) -> str:
    """Images of values from 0 to 1 as text, for a file."""
    return base64.b64encode(np.round(255.0 * images).astype(np.uint8).tobytes()).decode()


def decode(text: str, shape: tuple[int, ...] = (28, 28)) -> Array:
    """The images of `encode`."""
    values = np.frombuffer(base64.b64decode(text), np.uint8)
    return values.reshape(-1, *shape) / 255.0


def answering(model: Any, method: str) -> Callable[[Question], Array]:
    """Make a function that asks a machine, by a method of `complete` and `denoise`."""

    def answer(question: Question) -> Array:
        how = {"method": method, "random_state": 0}
        if method == "gibbs":
            how["n_gibbs"] = N_GIBBS
        if question.mask is not None:
            done = model.complete(question.given, question.mask, **how)
        else:
            done = model.denoise(question.given, salt_and_pepper=question.noise, **how)
        return np.asarray(done)

    return answer


def _mean_image(images: Array) -> Callable[[Question], Array]:
    """Unknown pixels as in the mean of the training images, and all of them if there is noise."""

    def answer(question: Question) -> Array:
        known = False if question.mask is None else question.mask
        return np.where(known, question.given, images.mean(axis=0))

    return answer


def _psnrs(
    asked: dict[str, Question], truth: Array, answer: Callable[[Question], Array]
) -> dict[str, float]:
    return {name: psnr(answer(question), truth, peak=1.0) for name, question in asked.items()}


# The report's tables and pictures


def psnrs(
    machine: str, way: str, question: str, scale: Scale, outcome: Callable[[Run], Outcome]
) -> list[float]:
    """The PSNR of all choices of training images."""
    found = [outcome(run_of(scale, machine, seed)) for seed in seeds(scale)]
    return [entry["psnr"][way][question] for entry in found]


def table(
    name: str,
    titles: Mapping[str, str],
    paper: Mapping[str, Mapping[str, float]],
    scale: Scale,
    outcome: Callable[[Run], Outcome],
) -> dict[str, Any]:
    """The PSNR of all machines, both ways, beside the paper's and what needs no machine."""
    rows = []
    for machine in machines(scale):
        for way in METHODS.values():
            cells: list[Any] = []
            for question in titles:
                known = paper.get(machine) if way == METHODS["reconstruct"] else None
                cells.append(None if known is None else {"value": known[question]})
                cells.append(cell(psnrs(machine, way, question, scale, outcome)))
            kind = "ours" if way == METHODS["gibbs"] else "machine"
            rows.append({"label": f"{machine}, {way}", "kind": kind, "cells": cells})
    for way in ("mean training image", "given as it is"):
        cells = []
        for question in titles:
            cells += [None, cell(psnrs("baselines", way, question, scale, outcome))]
        rows.append({"label": way, "kind": "baseline", "cells": cells})
    n_test = run_of(scale, "RBM", 0).configuration["n_test"]
    return {
        "name": name,
        "caption": f"Mean PSNR of {n_test} binary test images",
        "unit": "dB",
        "better": "higher",
        "columns": [f"{title}{also}" for title in titles.values() for also in (", paper", "")],
        "rows": rows,
        "verdicts": [],
        "notes": [f"Means over {len(seeds(scale))} random choices of {N_TRAIN} training images."],
    }


def verdicts(
    titles: Mapping[str, str],
    paper: Mapping[str, Mapping[str, float]],
    scale: Scale,
    outcome: Callable[[Run], Outcome],
) -> list[Verdict]:
    """Compare what the paper says with what was found."""
    found = []
    one_pass, posterior = METHODS["reconstruct"], METHODS["gibbs"]
    for question, title in titles.items():
        ours = psnrs("MPORBM", posterior, question, scale, outcome)
        better: dict[str, Any] = {"lower_is_better": False, "digits": 2}
        target = paper["MPORBM"][question]
        sentence = reaches("MPORBM, posterior mean", ours, target, "dB", "the paper's", **better)
        found.append({**sentence, "text": f"{title}: {sentence['text']}"})
        others = {
            "RBM": psnrs("RBM", posterior, question, scale, outcome),
            "MvRBM": psnrs("MvRBM", posterior, question, scale, outcome),
            "one pass": psnrs("MPORBM", one_pass, question, scale, outcome),
            "the mean training image": psnrs(
                "baselines", "mean training image", question, scale, outcome
            ),
        }
        for name, values in others.items():
            sentence = compare("MPORBM, posterior mean", name, ours, values, "dB", **better)
            found.append({**sentence, "text": f"{title}: {sentence['text']}"})
    return found


def strips_figure(
    name: str,
    question: str,
    caption: str,
    scale: Scale,
    outcome: Callable[[Run], Outcome],
    folder: Path,
) -> dict[str, Any]:
    """Rows of test images as the paper draws them: original, given, and each machine's."""
    first = {machine: outcome(run_of(scale, machine, 0)) for machine in machines(scale)}
    some = first["RBM"]
    rows = {"original": decode(some["original"]), "given": decode(some["given"][question])}
    rows |= {machine: decode(found["pictures"][question]) for machine, found in first.items()}
    mask = None
    if question in HALVES:
        mask = np.zeros((28, 28), bool)
        mask[HALVES[question]] = True
    save_figure(strips(rows, mask=mask), folder / f"{name}.png")
    return {
        "name": name,
        "path": f"{folder.name}/{name}.png",
        "caption": caption,
        "alt": f"Rows of handwritten digits: {', '.join(rows)}.",
    }
