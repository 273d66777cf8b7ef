"""MPO as a matrix: products, order of flattening, initial scale, size."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import strategies
from mporbm.tensor import MPO, MPS
from strategies import full_matrix, full_tensor


@given(strategies.mpos(), st.sampled_from([(), (3,), (2, 2)]), strategies.seeds)
def test_products_with_batches_match_the_matrix(mpo, leading, seed):
    rng = np.random.default_rng(seed)
    matrix = full_matrix(mpo)
    columns = rng.normal(size=(*leading, *mpo.column_shape))
    rows = rng.normal(size=(*leading, *mpo.row_shape))
    forward, backward = np.asarray(mpo.apply(columns)), np.asarray(mpo.apply_transpose(rows))
    assert forward.shape == rows.shape
    assert backward.shape == columns.shape
    flat = (*leading, -1)
    assert_allclose(forward.reshape(flat), columns.reshape(flat) @ matrix.T, atol=1e-11)
    assert_allclose(backward.reshape(flat), rows.reshape(flat) @ matrix, atol=1e-11)


@given(strategies.mpos())
def test_fortran_order_flattens_as_the_papers_index_map(mpo):
    rows, columns = mpo.row_shape, mpo.column_shape
    tensor = full_matrix(mpo).reshape(*rows, *columns)
    d = mpo.n_cores
    reverse = [*range(d - 1, -1, -1), *range(2 * d - 1, d - 1, -1)]
    expected = tensor.transpose(reverse).reshape(full_matrix(mpo).shape)
    assert_allclose(mpo.to_matrix(order="F"), expected, atol=1e-12)
    back = MPO.from_matrix(expected, rows, columns, order="F").train
    assert_allclose(full_matrix(back), full_matrix(mpo), atol=1e-11)


def test_entries_are_sums_of_products_of_slices(rng):
    """Eq. (2) entry by entry."""
    mpo = MPO([rng.normal(size=(2, 2, 3, 3)), rng.normal(size=(3, 2, 1, 2))])
    tensor = mpo.to_matrix().reshape(2, 2, 3, 1)
    first, second = mpo.cores
    for i1, i2, j1, j2 in np.ndindex(2, 2, 3, 1):
        expected = np.trace(first[:, i1, j1] @ second[:, i2, j2])
        assert_allclose(tensor[i1, i2, j1, j2], expected)


@given(st.integers(1, 5), strategies.seeds, st.data())
def test_rank_one_is_a_kronecker_product(order, seed, data):
    rows, columns = data.draw(strategies.shapes(order)), data.draw(strategies.shapes(order))
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=size) for size in zip(rows, columns, strict=True)]
    mpo = MPO([factor[None, :, :, None] for factor in factors])
    in_c_order, in_f_order = np.ones((1, 1)), np.ones((1, 1))
    for factor in factors:
        in_c_order, in_f_order = np.kron(in_c_order, factor), np.kron(factor, in_f_order)
    assert_allclose(mpo.to_matrix(), in_c_order, atol=1e-12)
    assert_allclose(mpo.to_matrix(order="F"), in_f_order, atol=1e-12)


@given(strategies.mpos(max_size=12), st.data())
def test_product_with_a_state(mpo, data):
    state = data.draw(strategies.mps(mpo.column_shape))
    product = mpo @ state
    assert isinstance(product, MPS)
    expected = full_matrix(mpo) @ full_tensor(state).reshape(-1)
    assert_allclose(full_tensor(product).reshape(-1), expected, rtol=1e-9, atol=1e-10)
    assert_allclose(full_matrix(mpo.T), full_matrix(mpo).T)


@pytest.mark.parametrize(
    ("rows", "columns", "rank", "boundary"),
    [
        ((28, 28), (10, 10), 1, "open"),
        ((28, 28), (10, 10), 40, "open"),
        ((16, 16, 8), (6, 6, 5), 20, "open"),
        ((16, 16, 8), (6, 6, 5), 5, "periodic"),
    ],
)
def test_initial_entries_have_the_asked_standard_deviation(rows, columns, rank, boundary):
    # Entries of one draw share cores, so the mean square is averaged over draws.
    squares = [
        jnp.mean(MPO.random(key, rows, columns, rank, std=0.01, boundary=boundary).to_matrix() ** 2)
        for key in jax.random.split(jax.random.key(1), 12)
    ]
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.01, rel=0.05)


def test_same_key_same_cores(key):
    a, b = (MPO.random(key, (4, 4), (2, 2), rank=2) for _ in range(2))
    assert all(np.array_equal(x, y) for x, y in zip(a.cores, b.cores, strict=True))
    assert not np.array_equal(a.cores[0].ravel(), a.cores[1].ravel())


def test_ranks_are_kept_exactly(key):
    assert MPO.random(key, (4, 4, 4), (3, 3, 3), rank=(5, 7)).ranks == (5, 7)
    ring = MPO.random(key, (4, 4, 4), (3, 3, 3), rank=(2, 5, 7), boundary="periodic")
    assert (ring.ranks, ring.boundary) == ((2, 5, 7), "periodic")
    assert MPO.random(key, (4,), (3,), rank=7).ranks == ()


def test_size_of_a_large_coupling(key):
    mpo = MPO.random(key, (128, 128, 24), (10, 10, 5), rank=20)
    assert mpo.n_parameters == 128 * 10 * 20 + 20 * 128 * 10 * 20 + 20 * 24 * 5
    assert mpo.compression == 128 * 128 * 24 * 500 / mpo.n_parameters


def test_a_large_coupling_needs_little_memory():
    """Its dense matrix has 196,608,000 entries; the MPO is made in under 100 MiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc/self/status to read the peak memory of a process from")
    script = """
import jax, numpy, pathlib, re
from mporbm.machine import (Machine, MPOCoupling)

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])

jax.random.normal(jax.random.key(0), (2, 2)).block_until_ready()
start = peak()
machine = Machine(MPOCoupling.random(jax.random.key(0), (128, 128, 24), (10, 10, 5), rank=20))
jax.block_until_ready(machine)
made = peak()
numpy.ones(2**24)  # 128 MiB, to see that the measure sees
print((made - start) / 1024, (peak() - made) / 1024)
"""
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    machine, control = map(float, output.stdout.split())
    assert machine < 100
    assert control > 64
