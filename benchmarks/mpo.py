"""Who trains an MPORBM by CD-AOP (Algorithm 1): sweeps over all cores, one for every batch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import opt_einsum
from contest import Run
from numpy.typing import NDArray

Shape = tuple[int, ...]
RATE, MOMENTUM = 1e-4, 0.5


def data(n_batches: int, batch: int, visible: Shape) -> NDArray[np.bool_]:
    """Binary samples."""
    return np.random.default_rng(0).random((n_batches * batch, *visible), np.float32) < 0.3


def ours(
    visible: Shape, hidden: Shape, rank: int, batch: int, n_batches: int, gauge: str | None = None
) -> Run:
    """One epoch of CD-AOP; without the gauge it is the paper's rule."""
    from mporbm import MPORBM

    rows = data(n_batches, batch, visible)
    model = MPORBM(hidden, rank=rank, batch_size=batch, n_iter=1, learning_rate=RATE, gauge=gauge)
    model.set_params(momentum=MOMENTUM, init="random", random_state=0, warm_start=True)
    return lambda: model.fit(rows)


def dense(visible: Shape, hidden: Shape, batch: int, n_batches: int) -> Run:
    """One epoch of our RBM with layers of the same size."""
    from mporbm import RBM

    rows = data(n_batches, batch, visible)
    model = RBM(math.prod(hidden), batch_size=batch, n_iter=1, learning_rate=RATE)
    model.set_params(momentum=MOMENTUM, init="random", random_state=0, warm_start=True)
    return lambda: model.fit(rows)


@dataclass(frozen=True)
class Library:
    """What NumPy and torch call differently."""

    zeros_like: Callable[[Any], Any]
    sigmoid: Callable[[Any], Any]
    draw: Callable[[Any], Any]
    """Zeros and ones with given probabilities."""


class Transcription:
    """Algorithm 1 line by line: for every formula a contraction in the best order."""

    def __init__(
        self, library: Library, rows: Any, cores: list[Any], biases: list[Any], batch: int
    ):
        self.library, self.rows, self.batch = library, rows, batch
        self.cores, self.core_steps = cores, [library.zeros_like(core) for core in cores]
        self.biases, self.bias_steps = biases, [library.zeros_like(bias) for bias in biases]
        d = len(cores)
        symbols = [opt_einsum.get_symbol(k) for k in range(3 * d)]
        i, j, r, n = symbols[:d], symbols[d : 2 * d], ["", *symbols[2 * d : -1], ""], symbols[-1]
        names = [r[k] + i[k] + j[k] + r[k + 1] for k in range(d)]
        visible, hidden = n + "".join(i), n + "".join(j)
        size = {n: batch}
        for name, core in zip(names, cores, strict=True):
            size.update(zip(name, core.shape, strict=True))

        def expression(inputs: list[str], output: str) -> Callable[..., Any]:
            shapes = [tuple(size[symbol] for symbol in name) for name in inputs]
            found: Callable[..., Any] = opt_einsum.contract_expression(
                ",".join(inputs) + "->" + output, *shapes
            )
            return found

        self.up = expression([visible, *names], hidden)
        self.down = expression([hidden, *names], visible)
        self.gradients = [
            expression([visible, hidden, *names[:k], *names[k + 1 :]], names[k]) for k in range(d)
        ]

    def epoch(self) -> None:
        """A sweep for every batch."""
        for start in range(0, len(self.rows), self.batch):
            for k in range(len(self.cores)):
                self.update(self.rows[start : start + self.batch], k)

    def update(self, visible: Any, k: int) -> None:
        """Lines 4 to 14: Gibbs sampling, then the steps of a core and both biases."""
        draw, sigmoid = self.library.draw, self.library.sigmoid
        hidden = sigmoid(self.up(visible, *self.cores) + self.biases[1])
        other = draw(sigmoid(self.down(draw(hidden), *self.cores) + self.biases[0]))
        other_hidden = sigmoid(self.up(other, *self.cores) + self.biases[1])
        rest = [*self.cores[:k], *self.cores[k + 1 :]]
        rate, gradient = RATE / self.batch, self.gradients[k]
        ascent = gradient(visible, hidden, *rest) - gradient(other, other_hidden, *rest)
        self.core_steps[k] = MOMENTUM * self.core_steps[k] + rate * ascent
        self.cores[k] = self.cores[k] + self.core_steps[k]
        for number, (data, model) in enumerate(((visible, other), (hidden, other_hidden))):
            step = rate * (data.sum(0) - model.sum(0))
            self.bias_steps[number] = MOMENTUM * self.bias_steps[number] + step
            self.biases[number] = self.biases[number] + self.bias_steps[number]


def _start(
    visible: Shape, hidden: Shape, rank: int, dtype: type[np.floating[Any]] = np.float32
) -> list[NDArray[Any]]:
    """Random cores of an open chain: the first and the last have one bond."""
    rng = np.random.default_rng(1)
    d = len(visible)
    bonds = [[], *[[rank]] * (d - 1), []]
    std = (0.01 / math.sqrt(rank ** (d - 1))) ** (1 / d)
    shapes = [(*bonds[k], visible[k], hidden[k], *bonds[k + 1]) for k in range(d)]
    return [(std * rng.normal(size=shape)).astype(dtype) for shape in shapes]


def numpy(
    visible: Shape, hidden: Shape, rank: int, batch: int, n_batches: int, *, double: bool = False
) -> Run:
    """What the paper's MATLAB does, with NumPy; MATLAB, unless told otherwise, in `double`."""
    dtype = np.float64 if double else np.float32
    rng, one = np.random.default_rng(2), dtype(1)
    library = Library(
        np.zeros_like,
        lambda x: one / (one + np.exp(-x)),
        lambda p: (rng.random(p.shape, dtype=dtype) < p).astype(dtype),
    )
    rows = data(n_batches, batch, visible).astype(dtype)
    biases = [np.zeros(shape, dtype) for shape in (visible, hidden)]
    cores = _start(visible, hidden, rank, dtype)
    return Transcription(library, rows, cores, biases, batch).epoch


def torch(visible: Shape, hidden: Shape, rank: int, batch: int, n_batches: int) -> Run:
    """The same with torch, without gradients of its own."""
    import torch

    library = Library(torch.zeros_like, torch.sigmoid, torch.bernoulli)
    rows = torch.from_numpy(data(n_batches, batch, visible)).float()
    cores = [torch.from_numpy(core) for core in _start(visible, hidden, rank)]
    biases = [torch.zeros(shape) for shape in (visible, hidden)]
    machine = Transcription(library, rows, cores, biases, batch)

    def run() -> None:
        with torch.no_grad():
            machine.epoch()

    return run
