"""How fast and how long to learn: automatic rates and epochs, and schedules."""

import math
from typing import Literal

import numpy as np

from ..machine import Model
from ..tensor import MPSBatch
from ..tensor.arrays import Samples
from .rule import Rates

Schedule = Literal["constant", "linear", "cosine"]

LEAST_GROWTH, MOST_GROWTH, TOTAL_GROWTH = 0.06, 0.5, 40.0
BIAS_RATE = 0.05
CENTRED_STEP = 0.085
DISCRIMINATIVE = 10.0
FEWEST_EPOCHS, MOST_EPOCHS, FEWEST_BATCHES = 10, 400, 2000


def automatic_rates(rows: Samples | MPSBatch, n_updates: int | None = None) -> Rates:
    """Rates from the scale of the data and the number of updates.

    While the weights are still small, an update multiplies their strongest pattern by
    ``1 + rate v / 4``, with v the largest variance of the data in any direction. The rate of the
    coupling is set so that this growth g is 0.06 for long trainings and larger for short ones,
    ``g = 40 / n_updates``, but at most 0.5:

    ``rate = 4 g / v``, and at most 1. If the mean square of the data exceeds 1, the rate is divided
    by it.

    Biases feel single units, whatever their number: their rate is 0.05.
    """
    growth = _growth(n_updates)
    # Constant data say nothing about a scale: any rate will do.
    variance = largest_variance(rows) or 1.0
    if not isinstance(rows, MPSBatch):
        variance *= max(float(np.mean(np.square(rows, dtype=np.float64))), 1.0)
    return Rates(min(4.0 * growth / variance, 1.0), BIAS_RATE)


def share_of_binary(machine: Model) -> float:
    """Say what share of the rates for binary hidden units is right for those of a machine.

    Hidden units that vary more make patterns grow as much faster, and visible units feel them more.
    """
    return 0.25 / machine.undirected.hidden_units.rest_variance


def centred_rates(machine: Model, n_updates: int | None = None) -> Rates:
    """The length of a centred step by the size of the hidden layer and the number of updates.

    The weights of a hidden unit, as a vector, move by 0.085 in a long training, in the root mean
    square, and by more in a short one, as weights grow with `automatic_rates`: its field is of the
    same size, whatever the number of visible units that share it.
    """
    n_hidden = math.prod(machine.hidden_shape)
    step = CENTRED_STEP * math.sqrt(share_of_binary(machine))
    length = step * _growth(n_updates) / LEAST_GROWTH * math.sqrt(n_hidden)
    return Rates(length, length)


def automatic_epochs(n_batches: int | None) -> int:
    """Choose how often to pass over data of so many batches, which a stream does not know.

    10 times is enough for large data; small ones are passed until there were 2000 batches, but at
    most 400 times: fifty images are learnt by heart long before (``benchmarks/defaults.py``).
    """
    wanted = math.ceil(FEWEST_BATCHES / (n_batches or FEWEST_BATCHES))
    return min(max(FEWEST_EPOCHS, wanted), MOST_EPOCHS)


def label_rates(rows: Samples, generative_weight: float | None) -> Rates:
    """Rates for ``log p(y | V)``, perhaps with a generative part of the objective.

    They are 10 times the automatic ones of a long training: gradients fall as labels are told
    better, and there is no noise of samples in them. A generative part lowers them, if it is above
    a tenth, to what it bears itself.
    """
    most = math.inf if generative_weight is None else 1.0 / generative_weight
    return automatic_rates(rows) * min(DISCRIMINATIVE, most)


def _growth(n_updates: int | None) -> float:
    """By how much an update may multiply small weights."""
    if n_updates is None:
        return LEAST_GROWTH
    return min(max(TOTAL_GROWTH / max(n_updates, 1), LEAST_GROWTH), MOST_GROWTH)


def largest_variance(rows: Samples | MPSBatch) -> float:
    """The variance of the data along their first principal axis."""
    if isinstance(rows, MPSBatch):
        inner = np.asarray(rows.inner(rows), np.float64)
        centred = inner - inner.mean(axis=0) - inner.mean(axis=1)[:, None] + inner.mean()
        return max(float(np.linalg.eigvalsh(centred / len(rows))[-1]), 0.0)
    flat = np.asarray(rows, np.float32).reshape(len(rows), -1)
    flat = flat - flat.mean(axis=0)
    smaller = flat @ flat.T if len(flat) <= flat.shape[1] else flat.T @ flat
    return float(np.linalg.eigvalsh(smaller / len(flat))[-1])


def schedule_factor(schedule: Schedule, progress: float) -> float:
    """What a schedule multiplies the rate with after a share of the training.

    ``"linear"`` and ``"cosine"`` fall from 1 to 0.
    """
    if schedule == "linear":
        return 1.0 - progress
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    return 1.0
