"""Real-valued tensor data: machines against what people use, in five splits of each data set.

Everything that is chosen is chosen on validation data. Rows:

* ``serology``: COVID-19 serology (438, 6 antigens, 11 receptors). 20 % of the cells of test samples
  are hidden, and completed; with ``serology, 10 %`` and so on as many are hidden in training, too.
  Errors are in standard deviations of each unit in training; coverage is that of 80 % intervals.
* ``serology, likelihood``: log-probability of test samples, standardised by training, in nats.
* ``kinetic``: fluorescence of catecholamines (64, 12, 10, 60). 20 % of all cells are hidden, and
  what is left is learnt from and completed at once.
* ``pines`` and ``pines, random``: 5x5 patches of 200 bands around the labelled pixels of Indian
  Pines; accuracy of a logistic regression on 64 features. Folds are blocks of pixels, and training
  patches that overlap test patches are left out; or a random fifth of the pixels is learnt from,
  and all others are the test, whose patches overlap theirs.
* ``hole``: the middle 8x8 of 16x16 colour patches of photographs. Each photograph is the test once.
* ``noise``: the same patches with Gaussian noise of 25 of 255, cleaned.

    python benchmarks/real.py serology kinetic --machines --out build/bench/real.json
"""

import argparse
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from real_data import (
    Photographs,
    Pixels,
    UnavailableError,
    load_kinetic,
    load_photographs,
    load_pines,
    load_serology,
    pixel_folds,
)
from real_machines import Chosen, machines
from real_methods import (
    Estimate,
    Rows,
    by_components,
    by_gaussian,
    by_neighbours,
    chosen,
    factors,
    fit_gaussian,
    independent,
    iterative_defaults,
    shrunk,
    soft_impute,
)
from real_scores import Scores, table
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mporbm.evaluation.baselines import (
    BASELINES,
    Baseline,
    choose_cp,
    complete_by_neighbours,
    from_factors,
    masked_cp,
    unit_moments,
)
from mporbm.evaluation.holes import Split, make_splits
from mporbm.evaluation.imputation import completion_by, in_deviations, measure_methods

RANKS = (2, 4, 6, 8, 12, 16, 20, 24)
KINETIC_RANKS = (5, 8, 12)
KINETIC_RIDGE = 3.0  # With less of it, larger ranks are degenerate: some hidden cells are huge.
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0)
ALPHAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
COMPONENTS = (16, 32, 48, 64, 96, 128, 192, 256)
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)
N_FEATURES = 64
SHARE = 0.2
NOISE = 25.0 / 255.0
Task = Callable[[Scores, int, bool], None]
"""Fills in scores, in so many splits, with machines or without."""


# Serology


def serology(scores: Scores, n_splits: int, with_machines: bool, training_share: float = 0) -> None:
    methods: dict[str, Baseline] = {
        "means": BASELINES["mean"],
        "IterativeImputer, its defaults": iterative_defaults,
        "IterativeImputer, 10 rounds": BASELINES["iterative"],
        "KNN": chosen([by_neighbours(k) for k in (3, 5, 10, 20)]),
        "masked CP": BASELINES["cp"],
        "PCA": chosen([by_components(rank) for rank in RANKS]),
        "FactorAnalysis, 20 factors": by_gaussian(factors(20)),
        "FactorAnalysis, chosen": chosen([by_gaussian(factors(rank)) for rank in RANKS]),
        "full Gaussian (LedoitWolf)": by_gaussian(shrunk),
    }
    named = {name: in_deviations(method) for name, method in methods.items()}
    for name, machine in machines("serology").items() if with_machines else ():
        named[name] = completion_by(machine)
    for split in make_splits(
        load_serology(),
        share=SHARE,
        training_share=training_share,
        n_splits=n_splits,
        random_state=0,
    ):
        for name, method in named.items():
            scores.add(name, partial(_completed, name, method, split))


def _completed(name: str, method: Baseline, split: Split) -> dict[str, float]:
    found = measure_methods({name: method}, [split], standardize=True).methods[0].values
    return {key: value for key, (value,) in found.items()}


def serology_likelihood(scores: Scores, n_splits: int, with_machines: bool) -> None:
    for split in make_splits(load_serology(), n_splits=n_splits, random_state=0):
        _likelihoods(scores, split, with_machines)


def _likelihoods(scores: Scores, split: Split, with_machines: bool) -> None:
    mean, scale = unit_moments(split.train)
    train, test = (split.train - mean) / scale, (split.truth - mean) / scale
    inner = make_splits(train, random_state=split.seed)[0]

    def held_out(rank: int) -> float:
        return float(fit_gaussian(inner.train, factors(rank)).log_density(inner.truth).mean())

    def nats(estimate: Estimate) -> dict[str, float]:
        return {"nats": fit_gaussian(train, estimate).log_density(test).mean()}

    scores.add("independent Gaussian", lambda: nats(independent))
    scores.add("full Gaussian (LedoitWolf)", lambda: nats(shrunk))
    scores.add("FactorAnalysis, 20 factors", lambda: nats(factors(20)))
    scores.add("FactorAnalysis, chosen", lambda: nats(factors(max(RANKS, key=held_out))))

    def learnt(machine: Chosen) -> dict[str, float]:
        return {"nats": machine.fit(train).score_samples(test).mean()}

    for name, machine in machines("serology").items() if with_machines else ():
        scores.add(name, partial(learnt, machine))


# Kinetic fluorescence


def kinetic(scores: Scores, n_splits: int, with_machines: bool) -> None:
    tensor = load_kinetic()
    for seed in range(n_splits):
        hidden = np.random.default_rng(seed).random(tensor.shape) < SHARE
        _filled(scores, tensor, hidden, seed, with_machines)


def _filled(scores: Scores, tensor: Rows, hidden: Rows, seed: int, with_machines: bool) -> None:
    """Fill one mask; what is chosen is chosen on a twentieth of the known cells."""
    shown = np.where(hidden, np.nan, tensor)
    held_out = ~hidden & (np.random.default_rng(seed + 1000).random(tensor.shape) < 0.05)
    means, deviations = unit_moments(shown)
    overall = float(np.nanstd(shown))
    by_unit = (shown - means) / deviations

    def errors(filled: Rows) -> dict[str, float]:
        error = (filled - tensor)[hidden]
        scaled = ((filled - tensor) / deviations)[hidden]
        return {
            "RMSE by unit": np.sqrt(np.mean(scaled**2)),
            "RMSE by all": np.sqrt(np.mean(error**2)) / overall,
        }

    def cp(values: Rows, *ranks: int) -> Rows:
        if len(ranks) == 1:
            return from_factors(masked_cp(values, ranks[0]))
        rank, ridge = choose_cp(values, held_out, ranks, (KINETIC_RIDGE,))
        return from_factors(masked_cp(values, rank, ridge=ridge))

    def low_rank(values: Rows) -> Rows:
        rows, chosen_by = values.reshape(len(values), -1), held_out.reshape(len(values), -1)
        trial = np.where(chosen_by, np.nan, rows)

        def error(penalty: float) -> float:
            return float(np.mean((soft_impute(trial, penalty) - rows)[chosen_by] ** 2))

        return soft_impute(rows, min(PENALTIES, key=error)).reshape(values.shape)

    def outwards(filled: Rows) -> dict[str, float]:
        return errors(filled * deviations + means)

    scores.add("means", lambda: errors(np.broadcast_to(means, tensor.shape)))
    scores.add("KNN", lambda: outwards(complete_by_neighbours(by_unit, by_unit)))
    scores.add("soft-impute, 64 x 7200", lambda: outwards(low_rank(by_unit)))
    scores.add("masked CP, rank 5", lambda: outwards(cp(by_unit, 5)))
    scores.add("masked CP, raw cells, rank 5", lambda: errors(cp(shown / overall, 5) * overall))
    scores.add(
        "masked CP, raw cells, chosen",
        lambda: errors(cp(shown / overall, *KINETIC_RANKS) * overall),
    )

    def learnt(machine: Chosen) -> dict[str, float]:
        return errors(completion_by(machine)(shown, shown, seed)[0])

    for name, machine in machines("kinetic").items() if with_machines else ():
        scores.add(name, partial(learnt, machine))


# Indian Pines


def pines(scores: Scores, n_splits: int, with_machines: bool, disjoint: bool = True) -> None:
    pixels = load_pines()
    for train, test in pixel_folds(pixels, n_splits, disjoint):
        _classified(scores, pixels, train, test, with_machines)


def _classified(
    scores: Scores, pixels: Pixels, train: Rows, test: Rows, with_machines: bool
) -> None:
    patches = pixels.patches.reshape(len(pixels.patches), -1)
    mean, scale = unit_moments(patches[train].astype(np.float64))
    standardized = ((patches - mean) / scale).astype(np.float32)

    def accuracy(features: Rows) -> dict[str, float]:
        return {"accuracy": _accuracy(features, pixels.classes, train, test)}

    def components() -> dict[str, float]:
        model = PCA(N_FEATURES, svd_solver="randomized", random_state=0)
        return accuracy(model.fit(standardized[train]).transform(standardized))

    def learnt(machine: Chosen) -> dict[str, float]:
        whole = pixels.patches.astype(np.float64)
        return accuracy(machine.fit(whole[train]).transform(whole))

    scores.add("PCA, 64 components", components)
    scores.add("200 bands of the middle pixel", lambda: accuracy(pixels.patches[:, 2, 2]))
    for name, machine in machines("pines").items() if with_machines else ():
        scores.add(name, partial(learnt, machine))


def _accuracy(features: Rows, classes: Rows, train: Rows, test: Rows) -> float:
    """Classify by logistic regression; its strength is chosen in a fifth of the training pixels."""
    order = np.random.default_rng(0).permutation(train)
    apart, rest = order[: len(order) // 5], order[len(order) // 5 :]

    def fitted(strength: float, rows: Rows, asked: Rows) -> float:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=300))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(features[rows], classes[rows])
        return float(model.score(features[asked], classes[asked]))

    best = max(STRENGTHS, key=lambda strength: fitted(strength, rest, apart))
    return fitted(best, train, test)


# Photographs


def _decibels(answer: Rows, truth: Rows) -> dict[str, float]:
    """Of the mean squared error of all patches, where 1 is the largest value."""
    return {"PSNR": -10.0 * np.log10(np.mean((answer - truth) ** 2))}


def hole(scores: Scores, n_splits: int, with_machines: bool) -> None:
    for data in load_photographs(n_splits):
        _inpainted(scores, data, with_machines)


def _inpainted(scores: Scores, data: Photographs, with_machines: bool) -> None:
    inside = np.zeros(data.test.shape[1:], bool)
    inside[4:12, 4:12] = True
    ring = np.zeros(inside.shape[:2], bool)
    ring[3:13, 3:13] = True
    ring &= ~inside[..., 0]

    def parts(patches: Rows) -> tuple[Rows, Rows]:
        return patches[:, ~inside], patches[:, inside]

    def ridge(alpha: float, asked: Rows, *learnt: Rows) -> Rows:
        around, middle = parts(np.concatenate(learnt))
        return np.asarray(Ridge(alpha).fit(around, middle).predict(parts(asked)[0]))

    def error(alpha: float) -> float:
        answer = ridge(alpha, data.held_out, data.train)
        return float(np.mean((answer - parts(data.held_out)[1]) ** 2))

    known, truth = parts(data.test)[0], parts(data.test)[1]
    border = data.test[:, ring].mean(axis=1)
    scores.add("mean of the known cells", lambda: _decibels(known.mean(axis=1)[:, None], truth))
    scores.add("mean of the border, by colour", lambda: _decibels(np.tile(border, (1, 64)), truth))
    scores.add(
        "ridge regression",
        lambda: _decibels(
            ridge(min(ALPHAS, key=error), data.test, data.train, data.held_out), truth
        ),
    )
    shown = np.where(inside, np.nan, data.test)
    both = np.concatenate([data.train, data.held_out])

    def learnt(machine: Chosen) -> dict[str, float]:
        filled, _ = machine.fit(both).complete(shown, return_std=True, random_state=0)
        return _decibels(filled[:, inside], truth)

    for name, machine in machines("photographs").items() if with_machines else ():
        scores.add(name, partial(learnt, machine))


def noise(scores: Scores, n_splits: int, with_machines: bool) -> None:
    for data in load_photographs(n_splits):
        _denoised(scores, data, with_machines)


def _denoised(scores: Scores, data: Photographs, with_machines: bool) -> None:
    rng = np.random.default_rng(0)
    noisy, trial = (
        patches + NOISE * rng.normal(size=patches.shape) for patches in (data.test, data.held_out)
    )
    whole = np.concatenate([data.train, data.held_out])

    def flat(patches: Rows) -> Rows:
        return patches.reshape(len(patches), -1)

    def projected(patches: Rows, rank: int, learnt: Rows) -> Rows:
        mean = flat(learnt).mean(axis=0)
        _, vectors = np.linalg.eigh(np.cov(flat(learnt).T))
        components = vectors[:, -rank:]
        found = mean + (flat(patches) - mean) @ components @ components.T
        return np.asarray(found.reshape(patches.shape))

    def error(rank: int) -> float:
        return float(np.mean((projected(trial, rank, data.train) - data.held_out) ** 2))

    def wiener() -> Rows:
        mean, covariance = flat(whole).mean(axis=0), np.cov(flat(whole).T)
        total = covariance + NOISE**2 * np.eye(len(covariance))
        found = mean + np.linalg.solve(total, (flat(noisy) - mean).T).T @ covariance
        return np.asarray(found.reshape(noisy.shape))

    scores.add("nothing", lambda: _decibels(noisy, data.test))
    scores.add(
        "PCA", lambda: _decibels(projected(noisy, min(COMPONENTS, key=error), whole), data.test)
    )
    scores.add("full Gaussian (Wiener filter)", lambda: _decibels(wiener(), data.test))

    def learnt(machine: Chosen) -> dict[str, float]:
        return _decibels(machine.fit(whole).denoise(noisy, NOISE, random_state=0), data.test)

    for name, machine in machines("photographs").items() if with_machines else ():
        scores.add(name, partial(learnt, machine))


TASKS: dict[str, Task] = {
    "serology": serology,
    "serology, 10 %": partial(serology, training_share=0.1),
    "serology, 30 %": partial(serology, training_share=0.3),
    "serology, 50 %": partial(serology, training_share=0.5),
    "serology, likelihood": serology_likelihood,
    "kinetic": kinetic,
    "pines": pines,
    "pines, random": partial(pines, disjoint=False),
    "hole": hole,
    "noise": noise,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {'; '.join(TASKS)}")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--machines", action="store_true", help="train machines, too")
    parser.add_argument("--only", help="methods whose name has this in it; others stay as they are")
    parser.add_argument("--out", type=Path, help="a JSON file; other tasks in it are kept")
    asked = parser.parse_args()
    if unknown := [task for task in asked.tasks if task not in TASKS]:
        parser.error(f"TASK: expected one of {'; '.join(TASKS)}, got {unknown[0]}")
    results = {}
    if asked.out is not None and asked.out.exists():
        results = json.loads(asked.out.read_text(encoding="utf-8"))
    for task in asked.tasks or TASKS:
        scores = Scores(asked.only)
        try:
            TASKS[task](scores, asked.splits, asked.machines)
        except UnavailableError as error:
            print(f"{task}: skipped, because {error}.\n", flush=True)
            continue
        print(table(task, scores) + "\n", flush=True)
        known = results.get(task, {"methods": {}, "skipped": {}}) if asked.only else {"methods": {}}
        results[task] = {"methods": known["methods"] | scores, "skipped": scores.skipped}
        if asked.out is not None:
            asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
