"""Who trains a dense RBM: CD-1 on binary data, the same batches of the same size."""

from typing import Any

import numpy as np
from contest import Run
from numpy.typing import NDArray

RATE = 0.01


def data(n_batches: int, batch: int, n_visible: int) -> NDArray[np.float32]:
    """Binary samples, 15 % ones, like images of digits."""
    rng = np.random.default_rng(0)
    return (rng.random((n_batches * batch, n_visible)) < 0.15).astype(np.float32)


def ours(n_visible: int, n_hidden: int, batch: int, n_batches: int, n_iter: int) -> Run:
    """Without momentum, as all others."""
    from mporbm import RBM

    rows = data(n_batches, batch, n_visible)
    model = RBM(n_hidden, batch_size=batch, n_iter=n_iter, learning_rate=RATE, random_state=0)
    model.set_params(momentum=0.0, warm_start=True)
    return lambda: model.fit(rows)


def scikit_learn(n_visible: int, n_hidden: int, batch: int, n_batches: int, n_iter: int) -> Run:
    """Persistent chains instead of ones that start at the data: the same work."""
    from sklearn.neural_network import BernoulliRBM

    rows = data(n_batches, batch, n_visible)
    model = BernoulliRBM(n_hidden, learning_rate=RATE, batch_size=batch, n_iter=n_iter)
    return lambda: model.fit(rows)


def learnergy(n_visible: int, n_hidden: int, batch: int, n_batches: int, n_iter: int) -> Run:
    """Its `fit`, which also watches error and pseudo-likelihood of every batch."""
    import logging

    import torch
    from learnergy.models.bernoulli import RBM

    logging.disable(logging.INFO)
    rows = torch.from_numpy(data(n_batches, batch, n_visible))
    dataset = torch.utils.data.TensorDataset(rows, torch.zeros(len(rows)))
    model = RBM(n_visible=n_visible, n_hidden=n_hidden, steps=1, learning_rate=RATE)
    return lambda: model.fit(dataset, batch_size=batch, epochs=n_iter)


def rbms(n_visible: int, n_hidden: int, batch: int, n_batches: int, n_iter: int) -> Run:
    """The loop of its `train` with chains that start at the data, without its files."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM
    from rbms.training.pcd import fit_batch_pcd

    rows = torch.from_numpy(data(n_batches, batch, n_visible))
    weights = torch.ones(batch)
    generator = torch.Generator().manual_seed(0)
    start = 0.01 * torch.randn(n_visible, n_hidden, generator=generator)
    model = BBRBM(start, torch.zeros(n_visible), torch.zeros(n_hidden))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, maximize=True)

    def run() -> None:
        with torch.no_grad():
            for _ in range(n_iter):
                for chosen in torch.randperm(len(rows)).split(batch):
                    visible = rows[chosen]
                    chains = model.init_chains(batch, weights=weights, start_v=visible)
                    optimizer.zero_grad(set_to_none=False)
                    fit_batch_pcd((visible, weights), chains, model, 1, 1.0, centered=False)
                    optimizer.step()

    return run


def products(
    n_visible: int, n_hidden: int, batch: int, n_batches: int, n_iter: int, chosen: bool = True
) -> Run:
    """The limit: the five matrix products of a step and nothing else, compiled by JAX.

    With our choice of the library that multiplies, or with XLA's.
    """
    import jax
    import jax.numpy as jnp

    from mporbm.training.devices import compiled

    rows = jnp.asarray(data(n_batches, batch, n_visible)).reshape(n_batches, batch, n_visible)
    start = 0.01 * jax.random.normal(jax.random.key(0), (n_visible, n_hidden))

    def step(weights: Any, visible: Any) -> tuple[Any, None]:
        up = visible @ weights
        down = up @ weights.T
        again = down @ weights
        return weights + 1e-9 * (visible.T @ up - down.T @ again), None

    def epochs(weights: Any) -> Any:
        return jax.lax.fori_loop(0, n_iter, lambda _, w: jax.lax.scan(step, w, rows)[0], weights)

    run = compiled(epochs, n_visible * n_hidden) if chosen else jax.jit(epochs)
    return lambda: run(start).block_until_ready()
