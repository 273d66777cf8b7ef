"""Beyond the paper: deep machines, and machines with labels, on MNIST images."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from mporbm.estimators import DBN, MPODBM, MPODBN, MPORBM, ClassRBM, MPOClassRBM
from mporbm.evaluation.images import psnr
from mporbm.evaluation.neighbours import DISTANCES, Array, classify, error_rate
from mporbm.evaluation.run_cache import Outcome
from mporbm.evaluation.statistics import cell
from mporbm.pictures import strips

from . import mnist
from .drawing import save_figure
from .generation import HALVES, N_PICTURES, answering, decode, encode, questions
from .runs import Run
from .scale import Scale
from .settings import PAPER
from .verdicts import Verdict, compare

REVISION = 1
LAYERS = [(14, 14), (14, 14)]
"""Two hidden layers, of which a machine with one has the first."""
RANK = 40
STAGES = 3
"""Each layer alone, then both together: who has one layer learns it for as many epochs."""
MACHINES: dict[str, Callable[[int], Any]] = {
    "MPORBM": lambda n_iter: MPORBM(LAYERS[0], rank=RANK, n_iter=STAGES * n_iter, **PAPER),
    "MPODBN": lambda n_iter: MPODBN(LAYERS, rank=RANK, n_iter=n_iter, n_iter_fine_tuning=n_iter),
    "MPODBM": lambda n_iter: MPODBM(LAYERS, rank=RANK, n_iter=n_iter, n_iter_fine_tuning=n_iter),
    "DBN": lambda n_iter: DBN(
        [int(np.prod(shape)) for shape in LAYERS], n_iter=n_iter, n_iter_fine_tuning=n_iter
    ),
}
CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "MPOClassRBM": lambda n_iter: MPOClassRBM((20, 20), rank=RANK, n_iter=STAGES * n_iter),
    "ClassRBM": lambda n_iter: ClassRBM(400, n_iter=STAGES * n_iter),
}
N_ITER_NO_CHANGE = 10
"""Classifiers stop after so many epochs in which validation images got no better."""
FEATURES = ("probability", "field")
PENALTIES = (0.01, 0.1, 1.0, 10.0)
"""Inverse strengths of the penalty of linear classifiers, C, to choose from."""
ASKED = {"right": "right half given", "bottom": "bottom half given", "20%": "20 % noise"}
N_GIBBS_SAMPLES = 1000
WAYS = {"1-NN": "1-NN", "linear": "linear classifier"}
"""How features are classified."""
OWN = "own"
"""The way of a machine with labels."""


def run(
    machine: str,
    n_train: int,
    n_iter: int,
    n_validation: int,
    n_test: int,
    offline: bool,
    seed: int,
) -> dict[str, Any]:
    """Train and test one machine, or the baselines, on one random choice of images."""
    train, validation, test = mnist.choose(seed, n_train, n_validation, n_test, offline)
    parts = train, validation, test
    if machine == "baselines":
        pixels = [part.binary.reshape(len(part.labels), -1) for part in parts]
        n_weights = pixels[0].shape[1] * len(np.unique(train.labels))
        return {"error": _errors([pixels], parts), "parameters": n_weights}
    if machine in CLASSIFIERS:
        labelled = CLASSIFIERS[machine](n_iter).set_params(
            early_stopping=True, n_iter_no_change=N_ITER_NO_CHANGE, random_state=seed
        )
        labelled.fit(train.binary, train.labels, X_val=validation.binary, y_val=validation.labels)
        return {
            "error": {OWN: error_rate(labelled.predict(test.binary), test.labels)},
            "parameters": int(labelled.n_parameters_),
        }
    model = MACHINES[machine](n_iter).set_params(random_state=seed).fit(train.binary)
    asked = questions(np.random.default_rng([seed, 1]), test.binary)
    answers = {name: answering(model, "gibbs")(asked[name]) for name in ASKED}
    drawn = model.sample(N_PICTURES, n_gibbs=N_GIBBS_SAMPLES, random_state=0)
    return {
        "error": _errors([_features(model, feature, parts) for feature in FEATURES], parts),
        "psnr": {name: psnr(found, test.binary, peak=1.0) for name, found in answers.items()},
        "parameters": int(model.n_parameters_),
        "pictures": {name: encode(found[:N_PICTURES]) for name, found in answers.items()},
        "samples": encode(drawn),
        "original": encode(test.binary[:N_PICTURES]),
        "given": {name: encode(asked[name].given[:N_PICTURES]) for name in ASKED},
    }


def _features(model: Any, feature: str, parts: Sequence[mnist.Images]) -> list[Array]:
    model.set_params(feature=feature)
    return [model.transform(part.binary) for part in parts]


def _errors(features: Sequence[Sequence[Array]], parts: Sequence[mnist.Images]) -> dict[str, float]:
    """The test error of both classifiers, with the features and options that validation prefers."""
    labels, known, asked = (part.labels for part in parts)
    found: dict[str, list[tuple[float, Callable[[], Array]]]] = {way: [] for way in WAYS}
    for train, validation, test in features:
        for distance in DISTANCES:
            error = error_rate(classify(train, labels, validation, distance), known)
            found["1-NN"].append((error, partial(classify, train, labels, test, distance)))
        for penalty in PENALTIES:
            linear = LogisticRegression(C=penalty, max_iter=1000).fit(train, labels)
            error = error_rate(linear.predict(validation), known)
            found["linear"].append((error, partial(linear.predict, test)))
    return {
        way: error_rate(min(tried, key=lambda entry: entry[0])[1](), asked)
        for way, tried in found.items()
    }


def seeds(scale: Scale) -> range:
    """The random choices of training images."""
    return scale.splits(3 if scale.full else 1)


def run_of(scale: Scale, machine: str, seed: int) -> Run:
    """The run of one machine on one choice of training images."""
    configuration = {
        "machine": machine,
        "n_train": 5000 if scale.full else 500,
        "n_iter": 50 if scale.full else 10,
        "n_validation": 1000 if scale.full else 200,
        "n_test": 10000 if scale.full else 500,
        "offline": not scale.full,
        "seed": seed,
    }
    cost = {"baselines": 0.1, "MPORBM": 1.0, "MPODBM": 3.0}.get(machine, 1.5)
    return Run(__name__, configuration, cost * (60 if scale.full else 8))


def runs(scale: Scale) -> list[Run]:
    """All machines on all choices of training images."""
    return [
        run_of(scale, machine, seed)
        for seed in seeds(scale)
        for machine in (*MACHINES, *CLASSIFIERS, "baselines")
    ]


# The report's tables and pictures


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """Three tables, what they tell, and pictures."""

    def found(machine: str) -> list[Outcome]:
        return [outcome(run_of(scale, machine, seed)) for seed in seeds(scale)]

    asked, n_choices = run_of(scale, "MPORBM", 0).configuration, len(seeds(scale))
    choices = f"{n_choices} random choices" if n_choices > 1 else "one random choice"
    size = (
        f"Everything is a mean over {choices} of {asked['n_train']} training images; "
        f"{asked['n_validation']} others validate, {asked['n_test']} test. A stage of training has "
        f"{asked['n_iter']} epochs."
    )
    errors, answers = _verdicts(found)
    return {
        "name": "beyond",
        "title": "Beyond the paper. Deep machines, and machines with labels",
        "text": [*_TEXT, size],
        "tables": _tables(found),
        "figures": [_completed(found, folder), _samples(found, folder)],
        "verdicts": [*errors, *answers],
        "summary": errors,
    }


Found = Callable[[str], list[Outcome]]


def _tables(found: Found) -> list[dict[str, Any]]:
    def row(machine: str, kind: str, measure: str, names: Sequence[str]) -> dict[str, Any]:
        """Values of a machine, after the number of its weights where it classifies."""
        outcomes = found(machine)
        cells = [cell(_values(outcomes, measure, name)) for name in names]
        if measure == "error":
            cells = [{"count": outcomes[0]["parameters"]}, *cells]
        return {"label": machine, "kind": kind, "cells": cells}

    kinds = {
        machine: "ours" if "MPO" in machine else "machine" for machine in (*MACHINES, *CLASSIFIERS)
    }
    pixels, logistic = (
        row("baselines", "baseline", "error", names) | {"label": label}
        for label, names in {"binary pixels": [*WAYS], "logistic regression": ["linear"]}.items()
    )
    return [
        {
            "name": "beyond-errors",
            "caption": "Classification error on test images by features of the last hidden layer",
            "unit": "%",
            "better": "lower",
            "columns": ["weights", *WAYS.values()],
            "rows": [*(row(m, kinds[m], "error", [*WAYS]) for m in MACHINES), pixels],
            "verdicts": [],
            "notes": [],
        },
        {
            "name": "beyond-psnr",
            "caption": "Completion and denoising of test images: mean PSNR of the posterior mean",
            "unit": "dB",
            "better": "higher",
            "columns": [*ASKED.values()],
            "rows": [row(m, kinds[m], "psnr", [*ASKED]) for m in MACHINES],
            "verdicts": [],
            "notes": [],
        },
        {
            "name": "beyond-labels",
            "caption": "Classification error on test images of machines with labels",
            "unit": "%",
            "better": "lower",
            "columns": ["weights", "error"],
            "rows": [*(row(m, kinds[m], "error", [OWN]) for m in CLASSIFIERS), logistic],
            "verdicts": [],
            "notes": [],
        },
    ]


def _values(outcomes: Sequence[Outcome], measure: str, name: str) -> list[float]:
    return [outcome[measure][name] for outcome in outcomes]


def _verdicts(found: Found) -> tuple[list[Verdict], list[Verdict]]:
    """Deep against one layer and against dense, labels against what is simpler; errors and PSNR."""

    def compared(first: str, second: str, measure: str, name: str, other: str = "") -> Verdict:
        pair = _values(found(first), measure, name), _values(found(second), measure, other or name)
        lower = measure == "error"
        title = {**WAYS, **ASKED, OWN: "labels"}[name]
        second = "logistic regression" if second == "baselines" else second
        sentence = compare(
            first, second, *pair, "points" if lower else "dB", lower_is_better=lower, digits=2
        )
        return {**sentence, "text": f"{'Error' if lower else 'PSNR'}, {title}: {sentence['text']}"}

    pairs = [(deep, other) for deep in ("MPODBN", "MPODBM") for other in ("MPORBM", "DBN")]
    errors = [compared(*pair, "error", way) for pair in pairs for way in WAYS]
    errors.append(compared("MPOClassRBM", "ClassRBM", "error", OWN))
    errors.append(compared("MPOClassRBM", "baselines", "error", OWN, "linear"))
    return errors, [compared(*pair, "psnr", name) for pair in pairs for name in ASKED]


def _completed(found: Found, folder: Path) -> dict[str, Any]:
    first = {machine: found(machine)[0] for machine in MACHINES}
    some = first["MPORBM"]
    rows = {"original": decode(some["original"]), "given": decode(some["given"]["right"])}
    rows |= {machine: decode(entry["pictures"]["right"]) for machine, entry in first.items()}
    mask = np.zeros((28, 28), bool)
    mask[HALVES["right"]] = True
    save_figure(strips(rows, mask=mask), folder / "beyond-completed.png")
    return {
        "name": "beyond-completed",
        "path": f"{folder.name}/beyond-completed.png",
        "caption": "The first test images, completed from their right half (posterior mean).",
        "alt": f"Rows of handwritten digits: {', '.join(rows)}.",
    }


def _samples(found: Found, folder: Path) -> dict[str, Any]:
    rows = {machine: decode(found(machine)[0]["samples"]) for machine in MACHINES}
    save_figure(strips(rows), folder / "beyond-samples.png")
    return {
        "name": "beyond-samples",
        "path": f"{folder.name}/beyond-samples.png",
        "caption": f"Samples of the machines: chains of {N_GIBBS_SAMPLES} steps, none picked by "
        f"hand.",
        "alt": f"Rows of handwritten digits as drawn by {', '.join(rows)}.",
    }


_TEXT = [
    f"Two hidden layers of 14x14 units: a deep belief network and a deep Boltzmann machine with "
    f"matrix product operators of rank {RANK} (MPODBN, MPODBM), and a deep belief network of dense "
    f"layers of the same sizes (DBN), beside one MPORBM with the first of the layers. Each layer "
    f"learns alone, then all learn together; the one MPORBM learns for as many epochs in all. "
    f"Nothing is tuned: learning has the defaults of the library.",
    "A linear classifier is a logistic regression. Its penalty, the distance of 1-NN, and whether "
    "features are probabilities or fields, are those with the least error on validation images. "
    "Machines with labels have 400 hidden units, the hybrid objective, and stop early by "
    "validation images.",
]
