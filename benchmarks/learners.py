"""Who learns MNIST, each by the loop of its own library, cut into pieces with a clock beside it.

A learner learns from rows in the order given (learnergy shuffles them again), all with as many
chains as rows in a batch and one Gibbs step for each update, unless its defaults are asked for.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets import load_mnist

N_HIDDEN, BATCH = 500, 100
Rows = NDArray[Any]


class Parameters(NamedTuple):
    """W, visible by hidden units, and both biases, flat."""

    weights: Rows
    visible_bias: Rows
    hidden_bias: Rows


class Stand(NamedTuple):
    """Where a training stands."""

    seconds: float
    """Spent with learning so far, without what the first calls take longer."""
    first: float
    """What the first calls of the process took longer: compiling, above all."""
    n_updates: int
    parameters: Parameters


class Learner(NamedTuple):
    """A training that goes on with every call."""

    learn: Callable[[Rows], object]
    """Pass once over rows, in batches."""
    parameters: Callable[[], Parameters]
    """Give what was learnt so far."""


@dataclass(frozen=True)
class Kind:
    """How a learner is made, from all its rows, a seed and its options, and how it is fed."""

    start: Callable[..., Learner]
    dtype: type = np.float32
    batch: int = BATCH
    n_batches: int = 50
    """Batches of a piece, the least that the clock can see."""


def prepare(
    learner: str, n_images: int, seed: int, options: Mapping[str, Any]
) -> Callable[[float], Stand]:
    """Start a training on the first images, thresholded, that goes on to any second asked for."""
    kind = KINDS[learner]
    rows: Rows = images("train")[:n_images].astype(kind.dtype)
    size = kind.batch * kind.n_batches

    def pieces() -> Iterator[Rows]:
        rng = np.random.default_rng(seed)
        while True:
            order = rng.permutation(len(rows))
            for start in range(0, len(rows) - size + 1, size):
                yield order[start : start + size]

    def timed(training: Learner, chosen: Rows) -> float:
        started = time.perf_counter()
        training.learn(rows[chosen])
        return time.perf_counter() - started

    trial = kind.start(rows, seed, **options)
    calls = [timed(trial, chosen) for chosen, _ in zip(pieces(), range(3), strict=False)]
    first = max(sum(calls[:2]) - 2.0 * calls[2], 0.0)
    training, turn = kind.start(rows, seed, **options), pieces()
    spent, n_updates = 0.0, 0

    def train_until(seconds: float) -> Stand:
        nonlocal spent, n_updates
        while spent < seconds:
            spent += timed(training, next(turn))
            n_updates += kind.n_batches
        found = (np.asarray(part, np.float32) for part in training.parameters())
        return Stand(spent, first, n_updates, Parameters(*found))

    return train_until


def images(subset: str) -> Rows:
    """MNIST, thresholded in the middle."""
    return np.asarray(load_mnist(subset).data.reshape(-1, 784) > 127)


def ours(rows: Rows, seed: int, learning_rate: float, **machine: Any) -> Learner:
    """Centred steps of persistent chains at a constant rate; what is learnt is their average."""
    from mporbm import MPORBM, RBM

    common: dict[str, Any] = {"rule": "centred", "negative_phase": "pcd", "momentum": 0.0}
    common |= {"batch_size": BATCH, "learning_rate": learning_rate, "random_state": seed}
    shape = (28, 28) if machine else (784,)
    model: Any = MPORBM(**machine, **common) if machine else RBM(N_HIDDEN, **common)

    def parameters() -> Parameters:
        biases = model.visible_bias_.reshape(-1), model.hidden_bias_.reshape(-1)
        return Parameters(model.weight_matrix(), *biases)

    return Learner(lambda rows: model.partial_fit(rows.reshape(-1, *shape)), parameters)


def scikit_learn(rows: Rows, seed: int, learning_rate: float) -> Learner:
    """What `fit` does for every batch; `partial_fit` would be in double precision, and slower."""
    from sklearn.neural_network import BernoulliRBM

    model = BernoulliRBM(
        N_HIDDEN, learning_rate=learning_rate, batch_size=BATCH, n_iter=0, random_state=seed
    ).fit(rows[:BATCH])
    rng = np.random.RandomState(seed)

    def learn(rows: Rows) -> None:
        for start in range(0, len(rows), BATCH):
            model._fit(rows[start : start + BATCH], rng)

    def parameters() -> Parameters:
        found = model.components_.T, model.intercept_visible_, model.intercept_hidden_
        return Parameters(*(array.copy() for array in found))

    return Learner(learn, parameters)


def learnergy(rows: Rows, seed: int, learning_rate: float) -> Learner:
    """Its `fit`: chains that start at the data, and measures of every batch."""
    import logging

    import torch
    from learnergy.models.bernoulli import RBM

    logging.disable(logging.INFO)
    torch.manual_seed(seed)
    model = RBM(n_visible=784, n_hidden=N_HIDDEN, steps=1, learning_rate=learning_rate)

    def learn(rows: Rows) -> None:
        dataset = torch.utils.data.TensorDataset(torch.from_numpy(rows), torch.zeros(len(rows)))
        model.fit(dataset, batch_size=BATCH, epochs=1)

    def parameters() -> Parameters:
        return Parameters(*(p.detach().numpy().copy() for p in (model.W, model.a, model.b)))

    return Learner(learn, parameters)


def rbms(
    rows: Rows,
    seed: int,
    learning_rate: float,
    n_updates: int | None = None,
    n_gibbs: int = 1,
    batch: int = BATCH,
) -> Learner:
    """The loop of its `train`, centred with normalised gradients, without its files.

    Batches are those of a shuffled epoch: `train` shuffles all rows for each of them. Its rate is
    constant, or falls linearly to 0 within `n_updates`, which `train` leaves to an optimizer.
    """
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.bernoulli_bernoulli.implement import _init_parameters
    from rbms.training.pcd import fit_batch_pcd

    torch.manual_seed(seed)
    visible_bias, hidden_bias, start = _init_parameters(
        N_HIDDEN, torch.from_numpy(rows), torch.device("cpu"), torch.float32
    )
    model = BBRBM(start, visible_bias, hidden_bias)
    model.init_grad()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, maximize=True)
    chains, weights, n_done = model.init_chains(batch), torch.ones(batch), 0

    def learn(rows: Rows) -> None:
        nonlocal chains, n_done
        with torch.no_grad():
            for visible in torch.from_numpy(rows).split(batch):
                left = 1.0 if n_updates is None else max(1.0 - n_done / n_updates, 0.0)
                optimizer.param_groups[0]["lr"] = learning_rate * left
                optimizer.zero_grad(set_to_none=False)
                chains, _ = fit_batch_pcd(
                    (visible, weights), chains, model, n_gibbs, 1.0, centered=True
                )
                optimizer.step()
                n_done += 1

    return Learner(
        learn, lambda: Parameters(*(array.numpy().copy() for array in model.parameters()))
    )


KINDS = {
    "ours": Kind(ours, bool),
    "rbms": Kind(rbms),
    "rbms, defaults": Kind(rbms, batch=2000, n_batches=1),
    "scikit-learn": Kind(scikit_learn),
    "learnergy": Kind(learnergy),
}
