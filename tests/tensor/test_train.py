"""Algebra, gauges and rounding of trains against their full matrices."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import strategies
from mporbm.tensor import MPO
from strategies import full_matrix


def distance(a, b):
    return np.linalg.norm(full_matrix(a) - full_matrix(b))


@given(st.data())
def test_sum_multiple_and_inner_product(data):
    a = data.draw(strategies.mpos())
    b = data.draw(strategies.mpos(like=a))
    full_a, full_b = full_matrix(a), full_matrix(b)
    assert_allclose(a.to_matrix(), full_a, atol=1e-12)
    assert_allclose(full_matrix(a + b), full_a + full_b, atol=1e-12)
    assert_allclose(full_matrix(2.0 * a - b), 2.0 * full_a - full_b, atol=1e-12)
    scale = 1e-12 * np.linalg.norm(full_a) * np.linalg.norm(full_b)
    assert_allclose(a.inner(b), np.sum(full_a * full_b), rtol=1e-10, atol=scale)
    assert_allclose(a.norm(), np.linalg.norm(full_a), rtol=1e-12)


def test_ranks_of_a_sum_add_up(key):
    a = MPO.random(key, (3, 3, 3), (3, 3, 3), rank=(2, 3))
    ring = MPO.random(key, (3, 3, 3), (3, 3, 3), rank=2, boundary="periodic")
    assert (a + a).ranks == (4, 6)
    assert (ring + ring).ranks == (4, 4, 4)
    assert (a + ring).ranks == (3, 4, 5)


def test_norm_of_a_difference_keeps_full_precision(key):
    a = MPO.random(key, (3, 3, 3), (3, 3, 3), rank=3, std=1.0)
    # sqrt(inner) would be wrong by about 1e-8.
    assert (a - (1.0 + 1e-12) * a).norm() < 1e-11 * a.norm()


@given(strategies.mpos(boundary="open"), st.data())
def test_canonical_form_keeps_the_matrix_and_is_orthogonal(mpo, data):
    center = data.draw(st.integers(0, mpo.n_cores - 1))
    canonical = mpo.canonical(center)
    matrix = full_matrix(mpo)
    assert_allclose(full_matrix(canonical), matrix, atol=1e-12 * np.linalg.norm(matrix))
    for k, core in enumerate(map(np.asarray, canonical.cores)):
        if k < center:
            gram = np.einsum("rijs,rijt->st", core, core)
        elif k > center:
            gram = np.einsum("rijs,qijs->rq", core, core)
        else:
            continue
        assert_allclose(gram, np.eye(len(gram)), atol=1e-12)
    assert_allclose(full_matrix(mpo.canonical(center - mpo.n_cores)), full_matrix(canonical))


@given(strategies.mpos())
def test_environment_gram_gives_the_norm_at_every_core(mpo):
    square = np.sum(full_matrix(mpo) ** 2)
    for k, core in enumerate(map(np.asarray, mpo.cores)):
        gram = np.asarray(mpo.environment_gram(k))
        value = np.einsum("rsqt,rijs,qijt->", gram, core, core)
        assert_allclose(value, square, rtol=1e-9, atol=1e-12)
        matrix = gram.reshape(core.shape[0] * core.shape[3], -1)
        assert np.linalg.eigvalsh(matrix).min() >= -1e-10 * np.linalg.norm(matrix)


@given(strategies.mpos(boundary="open"))
def test_gram_matrices_are_those_of_the_two_parts(mpo):
    left, right = mpo.left_grams(), mpo.right_grams()
    cores = [np.asarray(core) for core in mpo.cores]
    for k in range(mpo.n_cores):
        before, after = np.ones((1, 1)), np.ones((1, 1))
        for core in cores[:k]:
            before = np.einsum("nr,rijs->nijs", before, core).reshape(-1, core.shape[3])
        for core in cores[:k:-1]:
            after = np.einsum("rijs,ns->nijr", core, after).reshape(-1, core.shape[0])
        assert_allclose(left[k], before.T @ before, rtol=1e-10, atol=1e-12)
        assert_allclose(right[k], after.T @ after, rtol=1e-10, atol=1e-12)
        expected = np.einsum("rq,st->rsqt", left[k], right[k])
        assert_allclose(mpo.environment_gram(k), expected, rtol=1e-9, atol=1e-12)


@given(strategies.mpos(boundary="periodic"))
def test_cutting_the_ring_open_keeps_the_matrix(mpo):
    cut = mpo.to_open()
    assert cut.boundary == "open"
    assert_allclose(full_matrix(cut), full_matrix(mpo), rtol=1e-10, atol=1e-12)


@given(strategies.mpos(boundary="open"), st.integers(1, 3), st.floats(0.0, 0.9))
def test_rounding_error_is_bounded(mpo, max_rank, tolerance):
    rounded, bound = mpo.round(max_rank=max_rank, tolerance=tolerance)
    error = distance(rounded, mpo)
    assert max(rounded.ranks, default=1) <= max_rank
    assert error <= bound <= error + 1e-7 * np.linalg.norm(full_matrix(mpo))


@given(strategies.mpos(boundary="open"), strategies.seeds, st.integers(1, 3))
def test_rounding_bound_holds_in_single_precision_and_a_bad_gauge(mpo, seed, max_rank):
    """Insert G G^-1 with entries of very different size on every bond."""
    rng = np.random.default_rng(seed)
    cores = [np.asarray(core) for core in mpo.cores]
    for k in range(1, mpo.n_cores):
        rank = cores[k].shape[0]
        gauge = rng.normal(size=(rank, rank)) * 10.0 ** rng.uniform(-2, 2, size=rank)
        cores[k - 1] = np.einsum("rijs,st->rijt", cores[k - 1], gauge)
        cores[k] = np.einsum("st,tijr->sijr", np.linalg.inv(gauge), cores[k])
    single = MPO([core.astype(np.float32) for core in cores])
    rounded, bound = single.round(max_rank=max_rank)
    assert rounded.dtype == jnp.float32
    assert distance(single, rounded) <= bound


@given(strategies.mpos(boundary="open"))
def test_rounding_a_sum_finds_the_ranks_of_its_terms(mpo):
    doubled, bound = (mpo + mpo).round(tolerance=1e-10)
    once = mpo.round(tolerance=1e-10).train
    norm = np.linalg.norm(full_matrix(mpo))
    assert doubled.ranks == once.ranks
    assert bound <= 1e-9 * norm
    assert_allclose(full_matrix(doubled), 2.0 * full_matrix(mpo), atol=1e-9 * norm)


def cut_matrices(mpo):
    """The tensor of an MPO cut in two at every bond, rows the modes of the cores before it."""
    tensor = strategies.full_tensor(mpo)
    rows = [math.prod(mpo.row_shape[:k] + mpo.column_shape[:k]) for k in range(1, mpo.n_cores)]
    return [tensor.reshape(n_rows, -1) for n_rows in rows]


@given(strategies.mpos(boundary="open"))
def test_singular_values_are_those_of_the_cut_tensor(mpo):
    values, matrices = mpo.singular_values(), cut_matrices(mpo)
    assert len(values) == len(matrices) == mpo.n_cores - 1
    norm = np.linalg.norm(full_matrix(mpo))
    for found, rank, matrix in zip(values, mpo.ranks, matrices, strict=True):
        assert len(found) <= min(rank, *matrix.shape)
        expected = np.linalg.svd(matrix, compute_uv=False)
        padded = np.pad(found, (0, len(expected) - len(found)))
        assert_allclose(padded, expected, atol=1e-12 * norm)


def test_singular_values_of_single_precision_are_computed_in_double(key):
    mpo = MPO.random(key, (3, 3, 3), (2, 2, 2), rank=3, std=1.0, dtype=jnp.float32)
    for ours, matrix in zip(mpo.singular_values(), cut_matrices(mpo), strict=True):
        assert ours.dtype == np.float64
        assert_allclose(ours, np.linalg.svd(matrix, compute_uv=False)[: len(ours)], rtol=1e-12)


def test_singular_values_need_an_open_concrete_train(key):
    ring = MPO.random(key, (2, 2), (2, 2), rank=2, boundary="periodic")
    with pytest.raises(ValueError, match=r"singular_values: .*R_1 = 2; call .to_open\(\) first"):
        ring.singular_values()
    with pytest.raises(TypeError, match="singular_values: expected concrete cores"):
        jax.jit(lambda train: train.singular_values())(ring.to_open())


def test_norm_has_a_gradient_on_redundant_bonds(key):
    mpo = MPO.random(key, (2, 2, 2), (2, 2, 2), rank=2, std=1.0)
    gradient = jax.grad(lambda train: (train + train).norm())(mpo)
    expected = jax.grad(lambda train: 2.0 * jnp.sqrt(train.inner(train)))(mpo)
    for ours, theirs in zip(gradient.cores, expected.cores, strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_trains_are_pytrees_under_jit_grad_and_vmap(key):
    mpo = MPO.random(key, (3, 2), (2, 2), rank=2, std=1.0)
    gradient = jax.grad(lambda train: 0.5 * train.inner(train))(mpo)
    # d(<A,A>/2)/d(core) contracts the environment's Gram tensor with the core itself.
    expected = jnp.einsum("rsqt,qijt->rijs", mpo.environment_gram(0), mpo.cores[0])
    assert_allclose(gradient.cores[0], expected, rtol=1e-12)
    batch = jax.random.normal(key, (4, 2, 2))
    jitted = jax.jit(lambda train, x: train.apply(x))(mpo, batch)
    assert_allclose(jitted, jax.vmap(mpo.apply)(batch), rtol=1e-12)
    stacked = jax.tree.map(lambda core: jnp.stack([core, 2.0 * core]), mpo)
    norms = jax.vmap(lambda train: train.norm())(stacked)
    assert_allclose(norms, [mpo.norm(), 4.0 * mpo.norm()], rtol=1e-12)
