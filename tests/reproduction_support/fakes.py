"""Outcomes of the form that runs have, made up in no time: numbers that differ, but not by chance.

`form` of them is that of real outcomes, which the tests of each experiment compare.
"""

import hashlib
import json
import math

import numpy as np

from reproduction import classification, generation
from reproduction.tasks import TASKS

N_WEIGHTS = {"RBM": 78400, "MvRBM": 560, "TvRBM": 6240, "MPORBM": 22400}


def number(*what):
    """A number from 1 to 31 with two decimals, for each thing another one."""
    digest = hashlib.sha256(repr(what).encode()).hexdigest()
    return int(digest, 16) % 3000 / 100 + 1


def tables1_3(task):
    size = [int(n) for n in TASKS[task].value_shape]
    return {
        "shape": size,
        "range": [0, 2 ** TASKS[task].n_bits - 1],
        "n_samples": 1200,
        "n_classes": 10,
        "parts": [340, 430, 430],
        "source": f"where {task} is from",
    }


def classification_run(task, machine, seed):
    def errors(*way):
        return {measure: number(task, machine, seed, way, measure) for measure in MEASURES}

    if machine == "baselines":
        coded = ("bits", "gray") if TASKS[task].n_bits > 1 else ("bits",)
        if TASKS[task].n_bits == 1 and TASKS[task].threshold is None:
            coded = ()
        ways = ["raw values", *(coding for coding in coded if coding in TASKS[task].codings)]
        names = [
            f"1-NN on {way}, {distance}" for way in ways for distance in classification.DISTANCES
        ]
        return {"baselines": {name: errors(name) for name in (*names, "majority class")}}
    large = machine == "RBM" and TASKS[task].n_dense_weights > classification.LARGEST_DENSE
    (settings, *_) = classification.SETTINGS.get(machine, [{"learning_rate": TASKS[task].rates[0]}])

    def tested(coding, feature, distance):
        choice = {"coding": coding, "feature": feature, "distance": distance}
        choice |= {"settings": settings, "n_iter": 3, "stopped": False}
        validation = [number(task, machine, seed, part) for part in ("validation", "train")]
        return {**errors((feature, distance)), "validation": validation, "choice": choice}

    columns = {
        f"{feature}, {distance}": None if large else tested("bits", feature, distance)
        for feature, distance in classification.COLUMNS
    }
    chosen = tested("values" if large else "bits", "field", "cosine")
    chosen |= errors("chosen")
    return {"columns": columns, "chosen": chosen, "parameters": 0 if large else 1000 + seed}


MEASURES = ("error", "balanced")


def figure7_run(rule, rank, n_train, n_asked, n_iter, offline, seed):
    what = (rule, rank, n_train, seed)
    if rule == "baselines":
        return {name: number(*what, name) for name in ("raw values", "binary images")}
    ways = ("probability, euclidean", "field, euclidean", "field, cosine")
    columns = {
        way: {
            "error": number(*what, way),
            "validation": number(*what, way, "validation"),
            "rate": 0.02 if rule == "plain" else "auto",
            "stopped": False,
        }
        for way in ways
    }
    return {"columns": columns, "parameters": 1000 + rank}


QUESTIONS = ("right", "bottom", "10%", "15%", "20%")


def generation_run(machine, n_iter, n_validation, n_test, offline, seed):
    machines = machine != "baselines"
    ways = ("one pass", "posterior mean") if machines else ("mean training image", "given as it is")
    psnr = {way: {q: number(machine, seed, way, q) for q in QUESTIONS} for way in ways}
    if not machines:
        return {"psnr": psnr}
    rng = np.random.default_rng(len(machine))

    def picture():
        # Two instead of ten: drawing takes its time.
        return generation.encode(rng.random((2, 28, 28)))

    return {
        "psnr": psnr,
        "validation": number(machine, seed),
        "weight_decay": 0.1,
        "parameters": N_WEIGHTS[machine],
        "pictures": {question: picture() for question in QUESTIONS},
        "original": picture(),
        "given": {question: picture() for question in QUESTIONS},
    }


def beyond_run(machine, n_train, n_iter, n_validation, n_test, offline, seed):
    def errors(*ways):
        return {way: number(machine, seed, way) for way in ways}

    if machine in ("MPOClassRBM", "ClassRBM"):
        return {"error": errors("own"), "parameters": 2000}
    if machine == "baselines":
        return {"error": errors("1-NN", "linear"), "parameters": 7840}
    rng = np.random.default_rng(len(machine))
    asked = ("right", "bottom", "20%")

    def picture():
        return generation.encode(rng.random((2, 28, 28)))

    return {
        "error": errors("1-NN", "linear"),
        "psnr": errors(*asked),
        "parameters": 3000,
        "pictures": {name: picture() for name in asked},
        "samples": picture(),
        "original": picture(),
        "given": {name: picture() for name in asked},
    }


VISIBLE = {"bars": (5, 4), "ocr-letters": (16, 8), "connect-four": (7, 6, 3)}
VISIBLE |= {"alphadigits": (20, 16)}
"""Shapes of samples whose likelihood is compared, if they are not 28x28."""


def n_weights(kind, visible, hidden, rank):
    """The number of weights of a machine, from its sizes."""
    if kind == "RBM":
        return math.prod(visible) * math.prod(hidden)
    if kind == "TvRBM":
        return rank * (sum(visible) + sum(hidden))
    sizes = [i * j for i, j in zip(visible, hidden, strict=True)]
    if kind == "MvRBM":
        return sum(sizes)
    bonds = [min(rank, math.prod(sizes[:k]), math.prod(sizes[k:])) for k in range(1, len(sizes))]
    ends = [1, *bonds, 1]
    return sum(ends[k] * size * ends[k + 1] for k, size in enumerate(sizes))


def likelihood_run(
    data, kind, hidden_shape, rank, scheme, n_iter, n_temperatures, pictures, seed, effective=40.0
):
    what = (data, kind, *hidden_shape, rank, scheme, seed)
    visible, nats = VISIBLE.get(data, (28, 28)), -80.0 - number(*what)
    rng = np.random.default_rng(len(kind))
    shape = (6, 7, 3) if len(visible) == 3 else visible
    shown = ("samples", "test") if len(visible) == 3 else ("samples", "test", "completed")
    drawn = {name: generation.encode(rng.random((2, *shape))) for name in shown}
    return {
        "nats": nats,
        "forward": nats + 0.125,
        "reverse": nats - 0.25,
        "exact": nats - 0.125 if math.prod(hidden_shape) <= 20 else None,
        "training": nats + 2.0,
        "effective_sample_size": effective,
        "standard_error": 0.1,
        "independent": -200.0,
        "parameters": n_weights(kind, visible, hidden_shape, rank),
        "epochs": n_iter[-1],
        "training_seconds": number(*what, "seconds"),
        "cores": 1,
        "sizes": [4000, 1000],
        "pictures": {"shape": list(shape), **drawn} if pictures else None,
    }


RUNS = {
    "likelihood": likelihood_run,
    "tables1_3": tables1_3,
    "classification": classification_run,
    "figure7": figure7_run,
    "generation": generation_run,
    "beyond": beyond_run,
}


def run_here(tasks, work, *, n_jobs=None, poll=None):
    """Do tasks as `run_in_processes` does, without other processes."""
    for task in tasks:
        try:
            work(task)
        except Exception as error:
            yield task, error
        else:
            yield task, None


def form(value):
    """Which entries of which types there are."""
    if isinstance(value, dict):
        return {key: form(entry) for key, entry in value.items()}
    return [*map(form, value)] if isinstance(value, list | tuple) else type(value)


def as_kept(outcome):
    """An outcome as a file keeps it, which must be strict JSON."""
    return json.loads(json.dumps(outcome, allow_nan=False))


def plain_psnr(answer, truth):
    """The PSNR, image by image and pixel by pixel; the peak is 1."""
    found = []
    for image, original in zip(answer, truth, strict=True):
        pixels = zip(image.ravel().tolist(), original.ravel().tolist(), strict=True)
        mean = sum((a - b) ** 2 for a, b in pixels) / original.size
        found.append(10 * math.log10(1 / mean) if mean > 1e-6 else 60.0)
    return sum(found) / len(found)
