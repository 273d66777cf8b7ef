"""Log-likelihood of test samples: machines of equal weights and of equal hidden units, in nats."""

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from sklearn.base import clone

from mporbm.estimators.likelihood import LikelihoodWarning
from mporbm.evaluation.neighbours import Array
from mporbm.evaluation.processes import available_cores
from mporbm.evaluation.run_cache import Outcome
from mporbm.machine import UNITS
from mporbm.sampling import LogPartition

from . import likelihood_tables
from .densities import DENSITIES, Density, Design, as_images
from .generation import N_PICTURES, Question, answering, encode
from .likelihood_figures import completed_figure, nats_figure, samples_figure
from .runs import Run
from .scale import Scale

REVISION = 2
TRAINING: dict[str, Any] = {
    "rule": "centred",
    "negative_phase": "pcd",
    "n_gibbs": 1,
    "schedule": "linear",
    "momentum": 0.0,
    "learning_rate": "auto",
    "weight_decay": 0.0,
    "init": "data",
    "batch_size": 100,
}
"""How all machines learn."""
QUICK_TEMPERATURES, FULL_TEMPERATURES = 1000, 2000
"""Those of annealing."""
MOST_EXACT = 20
"""Up to so many hidden units log Z is enumerated as well, to see how good annealing is."""
N_GIBBS_SAMPLES = 1000


class Fitted(NamedTuple):
    """A machine that has learnt, the seconds that this took, and its log Z."""

    model: Any
    seconds: float
    log_z: LogPartition

    def density(self, samples: Array) -> float:
        """The mean of ``-F(V)``."""
        return -float(self.model.free_energy(samples).mean(dtype=np.float64))

    def nats(self, samples: Array) -> float:
        """The mean of ``-F(V) - log Z``."""
        return self.density(samples) - self.log_z.value


def run(
    data: str,
    kind: str,
    hidden_shape: Sequence[int],
    rank: int | None,
    scheme: str,
    n_iter: Sequence[int],
    n_temperatures: int,
    pictures: bool,
    seed: int,
) -> dict[str, Any]:
    """Train one machine, and estimate the log-likelihood of test and training samples.

    Of several numbers of epochs the one is taken with the best of validation samples.
    """
    density, design = DENSITIES[data], Design(kind, tuple(hidden_shape), rank, scheme)
    train, test, validation = density.load()
    model = design.build().set_params(
        **TRAINING, visible_units=density.visible_units, random_state=seed
    )
    fits = [_fit(clone(model).set_params(n_iter=n), train, n_temperatures) for n in n_iter]
    best = fits[0] if validation is None else max(fits, key=lambda fit: fit.nats(validation))
    model, log_z, weight = best.model, best.log_z, best.density(test)
    few = design.n_hidden <= MOST_EXACT
    return {
        "nats": weight - log_z.value,
        "forward": weight - log_z.forward,
        "reverse": weight - log_z.reverse,
        "exact": weight - model.log_partition("exact").value if few else None,
        "training": best.nats(train),
        "effective_sample_size": log_z.effective_sample_size,
        "standard_error": log_z.standard_error,
        "independent": independent(train, test, density.visible_units),
        "parameters": int(model.n_parameters_),
        "epochs": int(model.n_iter_),
        "training_seconds": best.seconds,
        "cores": len(available_cores()),
        "sizes": [len(train), len(test)],
        "pictures": _pictures(model, test) if pictures else None,
    }


def _fit(model: Any, train: Array, n_temperatures: int) -> Fitted:
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    with warnings.catch_warnings():
        # Tables tell of it.
        warnings.simplefilter("ignore", LikelihoodWarning)
        return Fitted(model, seconds, model.log_partition("ais", n_temperatures=n_temperatures))


def independent(train: Array, test: Array, visible_units: str) -> float:
    """The log-likelihood of independent units at the rates of the training samples.

    ``log p(V) = <V, B_0> - log Z_0`` with the base bias B_0 of these units.
    """
    units = UNITS[visible_units]()
    bias = units.base_bias(train)
    log_z = np.asarray(units.log_partition(jnp.asarray(bias)), np.float64).sum()
    return float((test.mean(axis=0, dtype=np.float64) * bias).sum() - log_z)


def _pictures(model: Any, test: Array) -> dict[str, Any]:
    """Samples and, of images, completions from the right half, as text."""
    samples = as_images(model.sample(N_PICTURES, n_gibbs=N_GIBBS_SAMPLES, random_state=0))
    first = test[:N_PICTURES]
    shown = {"samples": encode(samples), "test": encode(as_images(first))}
    if first.ndim == 3:
        mask = right_half(first.shape[1:])
        answer = answering(model, "gibbs")(Question(np.where(mask, first, 0), mask=mask))
        shown["completed"] = encode(answer)
    return {"shape": list(samples.shape[1:]), **shown}


def right_half(shape: Sequence[int]) -> Array:
    """What is given of an image that is to be completed."""
    mask = np.zeros(shape, bool)
    mask[:, shape[1] // 2 :] = True
    return mask


# What is run


def data_sets(scale: Scale) -> list[str]:
    """The names of the data sets: digits of a Python package, or all others."""
    return [name for name in DENSITIES if (name == "digits") != scale.full]


def seeds(scale: Scale) -> range:
    """The seeds of the trainings."""
    return scale.splits(3 if scale.full else 1)


def run_of(scale: Scale, data: str, design: Design, seed: int) -> Run:
    """The run of one machine on one data set."""
    density = DENSITIES[data]
    configuration = {
        "data": data,
        "kind": design.kind,
        "hidden_shape": list(design.hidden_shape),
        "rank": design.rank,
        "scheme": design.scheme,
        "n_iter": list(density.n_iter),
        "n_temperatures": FULL_TEMPERATURES if scale.full else QUICK_TEMPERATURES,
        "pictures": seed == 0 and design in density.shown,
        "seed": seed,
    }
    return Run(__name__, configuration, _cost(data, design))


def _cost(data: str, design: Design) -> float:
    """About how many seconds a run takes, on one core."""
    whole = {"mnist": 500.0, "mnist-stochastic": 500.0, "alphadigits": 300.0}.get(data, 150.0)
    share = {"RBM": design.n_hidden / 500, "MvRBM": 0.3, "TvRBM": 0.8}.get(design.kind)
    if share is None:
        share = design.n_hidden / 500 * (0.5 + (design.rank or 0) / 80)
    return whole * (0.05 + share)


def runs(scale: Scale) -> list[Run]:
    """All machines on all data sets, seed by seed."""
    return [
        run_of(scale, data, design, seed)
        for seed in seeds(scale)
        for data in data_sets(scale)
        for design in DENSITIES[data].designs
    ]


# The report


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """A table for each data set with what it tells, and pictures."""
    tables, figures, summary = [], [], []
    cores: set[int] = set()
    for data in data_sets(scale):
        density = DENSITIES[data]
        found = {
            design: [outcome(run_of(scale, data, design, seed)) for seed in seeds(scale)]
            for design in density.designs
        }
        cores |= {entry["cores"] for outcomes in found.values() for entry in outcomes}
        table, findings = likelihood_tables.table(f"likelihood-{data}", density, found)
        tables.append(table)
        summary += [{**entry, "text": f"{density.title}: {entry['text']}"} for entry in findings]
        figures += _figures(f"likelihood-{data}", density, found, folder)
    return {
        "name": "likelihood",
        "title": "Log-likelihood. Machines of equal weights, and of equal hidden units",
        "text": [*_TEXT, _about_time(sorted(cores), scale)],
        "tables": tables,
        "figures": figures,
        "verdicts": [],
        "summary": summary,
    }


def _figures(
    name: str, density: Density, found: likelihood_tables.Found, folder: Path
) -> list[dict[str, Any]]:
    """Curves, samples and completions of one data set."""
    kept = {design.label: found[design][0]["pictures"] for design in density.shown}
    figures = [samples_figure(f"{name}-samples", density.title, kept, folder)]
    if all("completed" in pictures for pictures in kept.values()):
        mask = right_half(next(iter(kept.values()))["shape"])
        figures.append(completed_figure(f"{name}-completed", density.title, kept, mask, folder))
    if len(density.designs) > 2:
        figures = [nats_figure(f"{name}-curves", density.title, found, folder), *figures]
    return figures


def _about_time(cores: Sequence[int], scale: Scale) -> str:
    several = " or ".join(map(str, cores))
    n_seeds = len(seeds(scale))
    chance = (
        f"Everything is a mean over {n_seeds} seeds, which settle the start, the batches and the "
        f"chains, and the intervals tell what is left to them: samples to learn from and to test "
        f"with are always the same."
        if n_seeds > 1
        else "One seed settles the start, the batches and the chains."
    )
    return (
        f"{chance} Seconds are those of training alone, compilation included, in a process with "
        f"{several} core{'s' if cores != [1] else ''}. Per second of training the dense machine "
        f"is hard to beat: its updates are plain matrix products, which processors do best."
    )


_TEXT = [
    "How probable test samples are to a machine: the mean of log p(V) = \N{MINUS SIGN}F(V) "
    "\N{MINUS SIGN} log Z, in nats. log Z is estimated by annealed importance sampling with 256 "
    "chains from independent units at the rates of the training samples to the machine "
    "(forwards), and as many back from states of the persistent chains of the training "
    "(backwards). Forwards the estimate of log Z is too low on average, so that likelihoods are "
    "too high; backwards it is the other way round. The test column has the estimate by both "
    "together (Bennett 1976), which varies far less than either. A likelihood with an "
    "effective sample size (ESS) below 10 is not to be trusted, is marked so, and decides nothing.",
    "All machines learn alike: centred gradients, persistent chains (PCD-1), batches of 100, steps "
    "whose length falls linearly to 0, neither momentum nor weight decay, and rates that the "
    "library chooses. Nothing is tuned, and nothing chosen where a table does not say so. Equal "
    "weights are within 3 % of each other, biases not counted.",
]
