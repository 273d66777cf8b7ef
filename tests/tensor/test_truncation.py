"""From matrices and tensors to trains: exactness, ranks and the guaranteed bound."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from mporbm.tensor import MPO, MPS, max_ranks
from strategies import full_matrix, full_tensor


@given(strategies.matrices(), strategies.boundaries, st.sampled_from("CF"))
def test_full_rank_reproduces_the_matrix(case, boundary, order):
    matrix, rows, columns = case
    mpo, bound = MPO.from_matrix(matrix, rows, columns, boundary=boundary, order=order)
    assert (mpo.row_shape, mpo.column_shape) == (rows, columns)
    error = np.linalg.norm(np.asarray(mpo.to_matrix(order)) - matrix)
    assert error <= bound <= 1e-11 * np.linalg.norm(matrix)


@given(strategies.matrices(), strategies.boundaries, st.integers(1, 4), st.floats(0.0, 0.9))
def test_truncation_error_is_bounded_tightly(case, boundary, max_rank, tolerance):
    matrix, rows, columns = case
    mpo, bound = MPO.from_matrix(
        matrix, rows, columns, max_rank=max_rank, tolerance=tolerance, boundary=boundary
    )
    error, norm = np.linalg.norm(full_matrix(mpo) - matrix), np.linalg.norm(matrix)
    assert max(mpo.ranks, default=1) <= max_rank
    assert error <= bound
    if boundary == "open":  # a ring may lose less than its splits do
        assert bound <= error + 1e-7 * norm


@given(strategies.matrices(), strategies.boundaries, st.floats(0.01, 0.9))
def test_tolerance_is_kept(case, boundary, tolerance):
    matrix, rows, columns = case
    _, bound = MPO.from_matrix(matrix, rows, columns, tolerance=tolerance, boundary=boundary)
    assert bound <= tolerance * np.linalg.norm(matrix) * (1 + 1e-9)


@given(strategies.matrices(), st.integers(1, 4))
def test_bound_holds_in_single_precision(case, max_rank):
    matrix, rows, columns = case
    mpo, bound = MPO.from_matrix(matrix.astype(np.float32), rows, columns, max_rank=max_rank)
    assert mpo.dtype == jnp.float32
    assert np.linalg.norm(full_matrix(mpo) - matrix.astype(np.float32)) <= bound


def test_two_cores_are_the_best_sum_of_kronecker_products(rng):
    """For d = 2 the truncation is optimal (Van Loan & Pitsianis 1993)."""
    matrix = rng.normal(size=(6, 8))
    rearranged = matrix.reshape(2, 3, 4, 2).transpose(0, 2, 1, 3).reshape(8, 6)
    tail = np.linalg.svd(rearranged, compute_uv=False)[2:]
    _, bound = MPO.from_matrix(matrix, (2, 3), (4, 2), max_rank=2)
    assert bound == pytest.approx(np.linalg.norm(tail), rel=1e-9)


def test_rank_one_matrix_is_found(rng):
    factors = [rng.normal(size=shape) for shape in [(2, 3), (3, 2), (2, 2)]]
    matrix = np.kron(np.kron(factors[0], factors[1]), factors[2])
    mpo, _ = MPO.from_matrix(matrix, (2, 3, 2), (3, 2, 2), tolerance=1e-12)
    assert mpo.ranks == (1, 1)


@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_entries_whose_squares_leave_the_range(scale, rng):
    matrix = scale * rng.normal(size=(4, 4))
    mpo, bound = MPO.from_matrix(matrix, (2, 2), (2, 2), tolerance=0.1)
    once = MPO.from_matrix(matrix / scale, (2, 2), (2, 2), tolerance=0.1)
    assert mpo.ranks == once.train.ranks
    assert bound == pytest.approx(scale * once.error_bound)
    _, bound = mpo.round(max_rank=1)
    assert bound == pytest.approx(scale * once.train.round(max_rank=1).error_bound)


def test_zero_matrix():
    mpo, bound = MPO.from_matrix(np.zeros((4, 4)), (2, 2), (2, 2), tolerance=0.1)
    assert (mpo.ranks, bound) == ((1,), 0.0)
    assert not np.any(mpo.to_matrix())


@given(st.integers(1, 5), strategies.seeds, st.data())
def test_full_ranks_are_the_largest_useful_ones(order, seed, data):
    rows, columns = data.draw(strategies.shapes(order)), data.draw(strategies.shapes(order))
    matrix = np.random.default_rng(seed).normal(size=(math.prod(rows), math.prod(columns)))
    sizes = [i * j for i, j in zip(rows, columns, strict=True)]
    mpo = MPO.from_matrix(matrix, rows, columns).train
    assert mpo.ranks == max_ranks(sizes)
    # A ring never needs more than the best cut of it would.
    assert all(r <= m for r, m in zip(mpo.ranks, max_ranks(sizes, "periodic")[1:], strict=True))


def test_max_ranks_of_the_paper():
    assert max_ranks([28 * 10, 28 * 10]) == (280,)
    assert max_ranks([80 * 10, 80 * 10, 8 * 5]) == (800, 40)
    # Cut at any bond, the ring has the two others left.
    assert max_ranks([2, 3, 4], "periodic") == (4, 3, 4)
    assert max_ranks([5], "periodic") == (1,)


@given(st.integers(1, 5).flatmap(strategies.shapes), strategies.boundaries, strategies.seeds)
def test_full_rank_mps_reproduces_the_tensor(shape, boundary, seed):
    tensor = np.random.default_rng(seed).normal(size=shape)
    mps, bound = MPS.from_tensor(tensor, boundary=boundary)
    error = np.linalg.norm(full_tensor(mps) - tensor)
    assert error <= bound <= 1e-11 * np.linalg.norm(tensor)
    mps, bound = MPS.from_tensor(tensor, boundary=boundary, max_rank=2)
    assert np.linalg.norm(full_tensor(mps) - tensor) <= bound
    assert max(mps.ranks, default=1) <= 2


def test_real_digits(mnist_images):
    """Handwritten digits as one order-3 tensor: few ranks, and the bound holds on real data."""
    digits = mnist_images[:200] / 255.0
    mps, bound = MPS.from_tensor(digits, tolerance=0.2)
    error = np.linalg.norm(full_tensor(mps) - digits)
    assert error <= bound <= 0.2 * np.linalg.norm(digits) * (1 + 1e-9)
    assert mps.compression > 2


def test_rings_with_two_bonds_at_the_first_core_are_exact(rng):
    """A first mode of 6 is shared out over the bonds to both of its neighbours."""
    tensor = rng.normal(size=(6, 3, 4))
    truncated = MPS.from_tensor(tensor, boundary="periodic")
    first, second = truncated.train.cores[0].shape[::2]
    assert min(first, second) > 1
    assert first != second
    np.testing.assert_allclose(truncated.train.to_tensor(), tensor, atol=1e-12)
