"""Runs of Table 4: a machine learns a split of a data set, and 1-NN classifies its features."""

import math
from typing import Any

import numpy as np
from scipy.special import expit

from mporbm.estimators import MPORBM, RBM, MvRBM, TvRBM
from mporbm.evaluation import neighbours
from mporbm.evaluation.neighbours import DISTANCES

from .runs import Run
from .scale import Scale
from .settings import PAPER
from .tasks import TASKS, Array, Split, Task, coded, samples, split

REVISION = 1
PLAIN: dict[str, Any] = {**PAPER, "gauge": None, "init": "random"}
"""The paper's rule: Algorithm 1 as it is written, from small random cores."""
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "untrained": [{}],
    "RBM": [{"learning_rate": "auto"}],
    "gauge": [{"learning_rate": "auto", "init": init} for init in ("data", "random")],
}
"""What validation chooses from, if not from the learning rates of the paper's rule."""
MACHINES = {
    "RBM": "RBM",
    "MvRBM": "MvRBM",
    "TvRBM": "TvRBM",
    "CD-SU": "MPORBM, CD-SU",
    "CD-AOP": "MPORBM, CD-AOP",
    "gauge": "MPORBM, ours (gauge)",
    "untrained": "MPORBM, random cores, untrained",
}
FEATURES = ("probability", "field")
CHOICE = ("coding", "feature", "distance", "settings", "n_iter", "stopped")
"""What validation chose; stopped: the training diverged, and the parameters before were kept."""
COLUMNS = {
    ("probability", "euclidean"): "probabilities, Euclidean",
    ("field", "euclidean"): "fields, Euclidean",
    ("field", "cosine"): "fields, cosine",
}
"""The features and distances that have a column of their own, with the paper's bits."""
LARGEST_DENSE = 60_000_000
"""An RBM of more weights is not trained: weights, velocity and gradient are of this size each."""


def run(task: str, machine: str, seed: int) -> dict[str, Any]:
    """The test errors of one machine on one split; everything is chosen on validation samples."""
    values, labels = samples(task)
    parts = split(labels, seed, TASKS[task].train_share)
    if machine == "baselines":
        return _baselines(TASKS[task], values, labels, parts)
    candidates: list[dict[str, Any]] = []
    for coding in _codings(TASKS[task], machine):
        rows = coded(TASKS[task], values, coding, parts.train)
        candidates += _candidates(TASKS[task], machine, coding, rows, labels, parts, seed)
    columns = {}
    for feature, distance in COLUMNS:
        chosen = [c for c in candidates if (c["coding"], c["feature"]) == ("bits", feature)]
        chosen = [c for c in chosen if c["distance"] == distance]
        columns[f"{feature}, {distance}"] = _tested(chosen, labels, parts)
    return {
        "columns": columns,
        "chosen": _tested(candidates, labels, parts),
        "parameters": max(
            (c["parameters"] for c in candidates if c["coding"] == "bits"), default=0
        ),
    }


def _codings(task: Task, machine: str) -> tuple[str, ...]:
    if machine == "RBM" and task.n_dense_weights > LARGEST_DENSE:
        return ("values",)
    # Gray code is for those that are compared in the end.
    plain = machine in ("untrained", "TvRBM", "CD-SU", "CD-AOP")
    return tuple(coding for coding in task.codings if not (plain and coding == "gray"))


def _candidates(
    task: Task, machine: str, coding: str, rows: Any, labels: Array, parts: Split, seed: int
) -> list[dict[str, Any]]:
    """Features of all samples, by all settings of a machine, with their errors of validation."""
    found = []
    if machine == "MvRBM":
        rows = rows.reshape(len(rows), -1)
    plain = [{"learning_rate": rate} for rate in task.rates]
    for settings in SETTINGS.get(machine, plain):
        model = _estimator(task, machine, coding)
        model.set_params(**settings, random_state=seed, warm_start=True)
        done = 0
        for n_iter in _epochs(task, machine):
            model.set_params(n_iter=n_iter - done).fit(rows[parts.train])
            stopped, done = model.n_iter_ < n_iter - done, n_iter
            field = model.set_params(feature="field").transform(rows)
            for feature in FEATURES:
                features = field if feature == "field" else expit(field)
                for distance in DISTANCES:
                    found.append(
                        {
                            "coding": coding,
                            "settings": settings,
                            "n_iter": n_iter,
                            "stopped": stopped,
                            "feature": feature,
                            "distance": distance,
                            "features": features,
                            "errors": _validation_errors(features, labels, parts, distance),
                            "parameters": int(model.n_parameters_),
                        }
                    )
    return found


def _estimator(task: Task, machine: str, coding: str) -> Any:
    """A machine with the layers of Tables 2 and 3."""
    units: dict[str, Any] = {"visible_units": "bernoulli"}
    if coding == "values":
        units = {"visible_units": "gaussian", "hidden_units": "bernoulli", "standardize": False}
    hidden = task.hidden_shape
    if machine == "RBM":
        return RBM(math.prod(hidden), **PAPER, **units)
    if machine == "MvRBM":
        rows = task.matrix_shapes[0][0]
        n_values = math.prod(task.value_shape if coding == "values" else task.visible_shape)
        return MvRBM(
            task.matrix_shapes[1],
            visible_shape=(rows, n_values // rows),
            scheme="su",
            **PLAIN,
            **units,
        )
    if machine == "TvRBM":
        return TvRBM(math.prod(hidden), rank=task.rank, scheme="su", **PLAIN, **units)
    # A mode of size 1 instead of the bits keeps the hidden layer of three modes.
    rule = PAPER if machine == "gauge" else PLAIN
    scheme = "su" if machine == "CD-SU" else "aop"
    return MPORBM(hidden, rank=task.rank, scheme=scheme, **rule, **units)


def _epochs(task: Task, machine: str) -> tuple[int, ...]:
    """After how many epochs a machine is looked at.

    All machines make the same number of updates with a Gibbs step each: where all factors move at
    once, there are as many epochs more as the alternating scheme has updates in one.
    """
    if machine == "untrained":
        return (0,)
    factors = 1 if machine in ("CD-AOP", "gauge") else len(task.visible_shape)
    return tuple(sorted({max(task.n_iter // 4, 1) * factors, task.n_iter * factors}))


def _validation_errors(
    features: Array, labels: Array, parts: Split, distance: Any
) -> tuple[float, float]:
    """The error on validation samples; training samples, each left out, break ties."""
    train, y = features[parts.train], labels[parts.train]
    predicted = neighbours.classify(train, y, features[parts.validation], distance)
    error = neighbours.error_rate(predicted, labels[parts.validation])
    return error, neighbours.leave_one_out_error_rate(train, y, distance)


def _tested(candidates: list[dict[str, Any]], labels: Array, parts: Split) -> dict[str, Any] | None:
    """The test errors of the best candidate on validation samples."""
    if not candidates:
        return None
    best = min(candidates, key=lambda candidate: candidate["errors"])
    features, y = best["features"], labels[parts.train]
    predicted = neighbours.classify(
        features[parts.train], y, features[parts.test], best["distance"]
    )
    truth = labels[parts.test]
    return {
        "error": neighbours.error_rate(predicted, truth),
        "balanced": neighbours.balanced_error_rate(predicted, truth),
        "validation": best["errors"],
        "choice": {name: best[name] for name in CHOICE},
    }


def _baselines(task: Task, values: Array, labels: Array, parts: Split) -> dict[str, Any]:
    """Errors without any machine."""
    y, truth = labels[parts.train], labels[parts.test]

    def errors(X: Any, distance: Any) -> dict[str, float]:
        predicted = neighbours.classify(X[parts.train], y, X[parts.test], distance)
        return {
            "error": neighbours.error_rate(predicted, truth),
            "balanced": neighbours.balanced_error_rate(predicted, truth),
        }

    found = {f"1-NN on raw values, {distance}": errors(values, distance) for distance in DISTANCES}
    for coding in ("bits", "gray"):
        if coding in task.codings and (task.n_bits > 1 or task.threshold is not None):
            bits = np.asarray(coded(task, values, coding, parts.train))
            for distance in DISTANCES:
                found[f"1-NN on {coding}, {distance}"] = errors(bits, distance)
    commonest = neighbours.majority_label(y)
    predicted = np.full_like(truth, commonest)
    found["majority class"] = {
        "error": neighbours.error_rate(predicted, truth),
        "balanced": neighbours.balanced_error_rate(predicted, truth),
    }
    return {"baselines": found}


def tasks(scale: Scale) -> dict[str, Task]:
    """The data sets of the paper, or one that needs no network."""
    return {name: task for name, task in TASKS.items() if (name == "mnist") != scale.full}


def runs(scale: Scale) -> list[Run]:
    """All machines on all splits of all data sets."""
    return [
        run_of(name, machine, seed)
        for name, task in tasks(scale).items()
        for seed in scale.splits(task.n_splits)
        for machine in ("baselines", *machines(scale))
    ]


def machines(scale: Scale) -> list[str]:
    """The names of the machines."""
    return [name for name in MACHINES if scale.full or name != "TvRBM"]


def run_of(task: str, machine: str, seed: int) -> Run:
    """One machine on one split."""
    # Relative times of the data sets, and of machines of one factor, of few and of many weights.
    size = {"alphadigits": 8, "drivface": 20, "arcene": 40, "coil100": 200, "mnist": 3}[task]
    effort = {"baselines": 0.01, "untrained": 0.1, "RBM": 0.5, "MvRBM": 0.3}.get(machine, 1.0)
    return Run(__name__, {"task": task, "machine": machine, "seed": seed}, size * effort)
