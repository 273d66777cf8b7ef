"""Who trains an MPORBM by CD-AOP (Algorithm 1): sweeps over all cores, one for every batch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import opt_einsum
from numpy.typing import NDArray

Run = Callable[[], object]
Shape = tuple[int, ...]
RATE, MOMENTUM = 1e-4, 0.5


def data(n_batches: int, batch: int, visible: Shape) -> NDArray[np.bool_]:
    """Binary samples."""
    return np.random.default_rng(0).random((n_batches * batch, *visible)) < 0.3


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


class Transcription:
    """Algorithm 1 line by line: a contraction with the best order for every formula.

    `numpy` and `torch` differ in how they draw and in nothing else.
    """

    def __init__(self, rows: Any, cores: list[Any], biases: list[Any], batch: int, backend: Any):
        self.rows, self.cores, self.biases, self.batch = rows, cores, biases, batch
        self.zeros, self.uniform, self.sigmoid = backend
        self.core_steps = [self.zeros(core) for core in cores]
        self.bias_steps = [self.zeros(bias) for bias in biases]
        d = len(cores)
        i, j, r = (
            [opt_einsum.get_symbol(3 * k + offset) for k in range(d + 1)] for offset in range(3)
        )
        n = opt_einsum.get_symbol(3 * d + 5)
        v, h = n + "".join(i[:d]), n + "".join(j[:d])
        # The first and the last core of an open chain have one bond.
        bonds = ["", *r[1:d], ""]
        names = [bonds[k] + i[k] + j[k] + bonds[k + 1] for k in range(d)]
        shapes = [tuple(core.shape) for core in cores]
        size = {
            s: n
            for name, shape in zip(names, shapes, strict=True)
            for s, n in zip(name, shape, strict=True)
        }
        v_shape, h_shape = ((batch, *(size[s] for s in layer[:d])) for layer in (i, j))
        chain = ",".join(names)
        self.up = opt_einsum.contract_expression(f"{v},{chain}->{h}", v_shape, *shapes)
        self.down = opt_einsum.contract_expression(f"{h},{chain}->{v}", h_shape, *shapes)
        self.gradients = []
        for k in range(d):
            others = [q for q in range(d) if q != k]
            formula = ",".join([v, h, *(names[q] for q in others)]) + "->" + names[k]
            shape_list = [v_shape, h_shape, *(shapes[q] for q in others)]
            self.gradients.append(opt_einsum.contract_expression(formula, *shape_list))

    def epoch(self) -> None:
        """A sweep for every batch."""
        for start in range(0, len(self.rows), self.batch):
            visible = self.rows[start : start + self.batch]
            for k in range(len(self.cores)):
                self.update(visible, k)

    def update(self, visible: Any, k: int) -> None:
        """Lines 4 to 14: Gibbs sampling, then the steps of a core and both biases."""
        hidden = self.sigmoid(self.up(visible, *self.cores) + self.biases[1])
        state = self.draw(hidden)
        other = self.draw(self.sigmoid(self.down(state, *self.cores) + self.biases[0]))
        other_hidden = self.sigmoid(self.up(other, *self.cores) + self.biases[1])
        rest = [core for q, core in enumerate(self.cores) if q != k]
        n = self.batch
        core = self.gradients[k](visible, hidden, *rest) - self.gradients[k](
            other, other_hidden, *rest
        )
        self.core_steps[k] = MOMENTUM * self.core_steps[k] + (RATE / n) * core
        self.cores[k] = self.cores[k] + self.core_steps[k]
        for number, (data, model) in enumerate(((visible, other), (hidden, other_hidden))):
            step = (RATE / n) * (data.sum(0) - model.sum(0))
            self.bias_steps[number] = MOMENTUM * self.bias_steps[number] + step
            self.biases[number] = self.biases[number] + self.bias_steps[number]

    def draw(self, probability: Any) -> Any:
        """Zeros and ones."""
        return (self.uniform(probability.shape) < probability) * 1.0


def _start(visible: Shape, hidden: Shape, rank: int) -> list[NDArray[np.float32]]:
    rng = np.random.default_rng(1)
    d = len(visible)
    ranks = [1, *[rank] * (d - 1), 1]
    std = (0.01 / math.sqrt(rank ** (d - 1))) ** (1 / d)
    shapes = [(ranks[k], visible[k], hidden[k], ranks[k + 1]) for k in range(d)]
    shapes[0], shapes[-1] = shapes[0][1:], shapes[-1][:-1]  # type: ignore[call-overload]
    return [(std * rng.normal(size=shape)).astype(np.float32) for shape in shapes]


def numpy(visible: Shape, hidden: Shape, rank: int, batch: int, n_batches: int) -> Run:
    """What the paper's MATLAB does, with NumPy."""
    rng = np.random.default_rng(2)
    one = np.float32(1)
    backend = (
        np.zeros_like,
        lambda shape: rng.random(shape, dtype=np.float32),
        lambda x: one / (one + np.exp(-x)),
    )
    rows = data(n_batches, batch, visible).astype(np.float32)
    biases = [np.zeros(shape, np.float32) for shape in (visible, hidden)]
    cores: list[Any] = _start(visible, hidden, rank)
    machine = Transcription(rows, cores, biases, batch, backend)
    machine.draw = lambda p: (backend[1](p.shape) < p).astype(np.float32)  # type: ignore[method-assign]
    return machine.epoch


def torch(visible: Shape, hidden: Shape, rank: int, batch: int, n_batches: int) -> Run:
    """The same with torch, without gradients of its own."""
    import torch

    backend = torch.zeros_like, torch.rand, torch.sigmoid
    rows = torch.from_numpy(data(n_batches, batch, visible)).float()
    cores = [torch.from_numpy(core) for core in _start(visible, hidden, rank)]
    biases = [torch.zeros(shape) for shape in (visible, hidden)]
    machine = Transcription(rows, cores, biases, batch, backend)
    machine.draw = torch.bernoulli  # type: ignore[method-assign]

    def run() -> None:
        with torch.no_grad():
            machine.epoch()

    return run
