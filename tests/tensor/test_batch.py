"""Batches of MPS are the tensors they stand for."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mporbm.tensor import MPS, MPSBatch
from strategies import full_tensor, mps, seeds, shapes


def full_tensors(batch):
    """All entries of every sample by NumPy alone."""
    cores = [np.asarray(core) for core in batch.cores]
    return np.stack([full_tensor(MPS([core[n] for core in cores])) for n in range(len(batch))])


@st.composite
def batches(draw, shape, n_samples):
    return MPSBatch.from_mps([draw(mps(shape, boundary="open")) for _ in range(n_samples)])


@given(st.data())
@settings(max_examples=5, phases=[Phase.generate])
def test_algebra_is_that_of_tensors(data):
    shape = data.draw(shapes(data.draw(st.integers(1, 4))))
    a, b = data.draw(batches(shape, 3)), data.draw(batches(shape, 3))
    one, other = full_tensors(a), full_tensors(b)
    np.testing.assert_allclose(a.to_tensors(), one, atol=1e-10)
    flat, rows = one.reshape(3, -1), other.reshape(3, -1)
    np.testing.assert_allclose(a.inner(b), flat @ rows.T, atol=1e-10)
    np.testing.assert_allclose(a.squared_norms(), (flat**2).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(full_tensors(a + b), one + other, atol=1e-10)
    np.testing.assert_allclose(full_tensors(a + b[:1]), one + other[:1], atol=1e-10)
    factors = np.array([2.0, -1.0, 0.5])
    scaled = one * factors.reshape(-1, *[1] * len(shape))
    np.testing.assert_allclose(full_tensors(factors * a), scaled, atol=1e-10)
    np.testing.assert_allclose(full_tensors(a.uniform()), one, atol=1e-12)
    np.testing.assert_array_equal(full_tensors(a[[2, 0]]), one[[2, 0]])


@given(seeds, st.integers(1, 4))
@settings(max_examples=8)
def test_tensors_come_back(seed, order):
    tensors = np.random.default_rng(seed).normal(size=(3, *(2, 3, 2, 2)[:order]))
    batch = MPSBatch.from_tensors(tensors)
    assert (batch.shape, batch.dtype) == (tensors.shape, tensors.dtype)
    assert (len(batch), batch.ndim) == (3, tensors.ndim)
    np.testing.assert_allclose(full_tensors(batch), tensors, atol=1e-12)


def test_signals_in_quantics_form():
    x = np.arange(64) / 64
    signals = np.stack([np.exp(-x), np.sin(5 * x), np.ones(64)])
    batch = MPSBatch.from_signals(signals)
    assert batch.shape == (3, *(2,) * 6)
    # Exponentials have rank 1, sines 2; bonds are those of the largest.
    assert set(batch.ranks) == {2}
    np.testing.assert_allclose(np.asarray(batch.to_tensors()).reshape(3, 64), signals, atol=1e-5)
    same = MPSBatch.from_functions([lambda x: np.exp(-x), lambda x: np.sin(5 * x), np.ones_like], 6)
    np.testing.assert_allclose(same.to_tensors(), batch.to_tensors(), atol=1e-5)


def test_two_to_the_forty_points():
    """Inner products of functions on a grid that no memory holds."""
    order = 40
    functions = [lambda x: np.sin(2 * np.pi * x), lambda x: np.cos(2 * np.pi * x), lambda x: x]
    inner = (
        np.asarray(
            MPSBatch.from_functions(functions, order).inner(
                MPSBatch.from_functions(functions, order)
            )
        )
        / 2**order
    )
    expected = [[0.5, 0.0, -0.5 / np.pi], [0.0, 0.5, 0.0], [-0.5 / np.pi, 0.0, 1 / 3]]
    np.testing.assert_allclose(inner, expected, atol=1e-6)


CORES = [np.zeros((2, 1, 3, 2)), np.zeros((2, 2, 3, 1))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MPSBatch([]), "cores: expected a non-empty sequence"),
        (lambda: MPSBatch([CORES[0][0], CORES[1]]), r"cores\[0\]: expected an array of floats"),
        (lambda: MPSBatch([CORES[1], CORES[1]]), r"cores\[0\]: expected first axes \(2, 1\)"),
        (lambda: MPSBatch([CORES[0], CORES[1][:1]]), r"cores\[1\]: expected first axes \(2, 2\)"),
        (lambda: MPSBatch([CORES[0]]), r"cores\[0\]: expected a last axis of 1, got 2"),
        (lambda: MPSBatch(CORES)[0], "expected a slice or an array"),
        (lambda: MPSBatch(CORES) * np.ones(3), r"factor: expected a number or shape \(2,\)"),
        (lambda: MPSBatch(CORES) + MPSBatch([CORES[0][:, :, :, :1]]), "other: expected shape"),
        (lambda: MPSBatch.from_tensors(np.ones(3)), r"tensors: expected shape \(n, I_1..I_d\)"),
        (lambda: MPSBatch.from_signals(np.ones((2, 6))), r"signals: expected shape \(n, 2\^d\)"),
        (lambda: MPSBatch.from_functions([], 3), "functions: expected a non-empty sequence"),
        (lambda: MPSBatch.from_functions([np.sin], 0), "order=0: expected an integer"),
        (
            lambda: MPSBatch.from_mps([MPS([np.ones((2, 3, 2))])]),
            r"trains\[0\]: expected an open MPS of shape \(3,\)",
        ),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises((TypeError, ValueError, IndexError), match=message):
        make()
