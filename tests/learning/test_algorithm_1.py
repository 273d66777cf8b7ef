"""CD-AOP against a plain NumPy transcription of Algorithm 1, at the same random numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.learning import (
    Algorithm,
    Alternating,
    Batch,
    ContrastiveDivergence,
    Rates,
    UpdateRule,
)
from mporbm.machine import Machine, MPOCoupling
from mporbm.machine.hash_rng import hash_bits, hash_split
from mporbm.tensor import MPO


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def bernoulli(key, field):
    """Zeros and ones from the random bits that the machine draws with this key."""
    uniform = (np.asarray(hash_bits(key, field.shape)) + 0.5) / 2.0**32
    unlikely = uniform < sigmoid(-np.abs(field))
    return np.where(unlikely, field <= 0, field > 0).astype(float)


def full_tensor(cores):
    """W(i_1, j_1, i_2, j_2, ...)."""
    w = cores[0]
    for core in cores[1:]:
        w = np.tensordot(w, core, axes=1)
    return w[0, ..., 0]


def fields(cores, batch, to_hidden):
    """W^T(V) or W(H) for every sample of a batch."""
    d = len(cores)
    w = full_tensor(cores)
    source = [2 * k + (0 if to_hidden else 1) for k in range(d)]
    return np.tensordot(batch, w, axes=(list(range(1, d + 1)), source))


def core_derivative(cores, c, v, h):
    """Fig. 5: the network of <V, W(H)> without core c, summed over a batch."""
    d = len(cores)
    total = np.zeros_like(cores[c])
    for sample_v, sample_h in zip(v, h, strict=True):
        # V and H as one array (1, i_1, j_1, i_2, j_2, ..., 1) with the open ends of the train.
        outer = np.multiply.outer(sample_v, sample_h)
        rest = outer.transpose([axis for k in range(d) for axis in (k, d + k)])[None, ..., None]
        for core in cores[:c]:
            rest = np.tensordot(core, rest, axes=([0, 1, 2], [0, 1, 2]))
        for core in cores[:c:-1]:
            rest = np.tensordot(rest, core, axes=([-3, -2, -1], [1, 2, 3]))
        total += rest
    return total


def algorithm_1(key, cores, batches, rate, momentum, n_gibbs):
    """Lines 2-17, with H as means in the derivatives."""
    d = len(cores)
    b = np.zeros([core.shape[1] for core in cores])
    c_bias = np.zeros([core.shape[2] for core in cores])
    delta = [np.zeros_like(core) for core in cores]
    delta_b, delta_c = np.zeros_like(b), np.zeros_like(c_bias)
    for m, batch in enumerate(batches):
        batch_key = jax.random.fold_in(key, m)
        # A single update has the key of the batch.
        for c, core_key in enumerate(hash_split(batch_key, d) if d > 1 else [batch_key]):
            first, rest = hash_split(core_key)
            keys = [first, *hash_split(rest, n_gibbs - 1)] if n_gibbs > 1 else [first]
            v = batch
            for gibbs_key in keys:
                up, down = hash_split(gibbs_key)
                h = bernoulli(up, fields(cores, v, True) + c_bias)
                v = bernoulli(down, fields(cores, h, False) + b)
            h_0 = sigmoid(fields(cores, batch, True) + c_bias)
            h_k = sigmoid(fields(cores, v, True) + c_bias)
            size = len(batch)
            gradient = core_derivative(cores, c, batch, h_0) - core_derivative(cores, c, v, h_k)
            delta[c] = momentum * delta[c] + rate * gradient / size
            delta_b = momentum * delta_b + rate * (batch - v).sum(axis=0) / size
            delta_c = momentum * delta_c + rate * (h_0 - h_k).sum(axis=0) / size
            cores = [core + delta[c] if k == c else core for k, core in enumerate(cores)]
            b, c_bias = b + delta_b, c_bias + delta_c
    return cores, b, c_bias


@pytest.mark.parametrize(
    ("visible", "hidden", "ranks", "n_gibbs", "momentum"),
    [
        ((6,), (4,), (), 1, 0.5),
        ((3, 2), (2, 2), (2,), 2, 0.5),
        ((3, 2), (2, 2), (2,), 1, 0.0),
        ((2, 3, 2), (2, 1, 2), (2, 3), 1, 0.5),
    ],
    ids=["d=1", "d=2, K=2", "d=2, no momentum", "d=3"],
)
def test_cd_aop_is_algorithm_1_step_by_step(visible, hidden, ranks, n_gibbs, momentum, key, rng):
    bonds = (1, *ranks, 1)
    cores = [
        rng.normal(size=(left, i, j, right))
        for left, i, j, right in zip(bonds, visible, hidden, bonds[1:], strict=False)
    ]
    batches = (rng.random((3, 5, *visible)) < 0.4).astype(float)
    rate = 0.3
    scheme = Alternating()
    rule = (ContrastiveDivergence(n_gibbs), UpdateRule(gauge=False, momentum=momentum))
    state = Algorithm(scheme, *rule).init(key, Machine(MPOCoupling(MPO(cores))), 5)
    step = eqx.filter_jit(Algorithm(scheme, *rule).step)
    for m, batch in enumerate(batches):
        data = Batch(jnp.asarray(batch), jnp.full(5, 0.2))
        batch_key = jax.random.fold_in(key, m)
        state, _ = step(batch_key, state, data, Rates(rate, rate))
        expected, b, c_bias = algorithm_1(key, cores, batches[: m + 1], rate, momentum, n_gibbs)
        for ours, theirs in zip(state.machine.coupling.mpo.cores, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.machine.visible_bias, b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.machine.hidden_bias, c_bias, rtol=1e-9, atol=1e-12)
