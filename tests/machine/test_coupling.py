"""Couplings against their matrices, and their embeddings into an MPO."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import strategies
from mporbm.machine import CPCoupling, DenseCoupling, KroneckerCoupling, Machine, MPOCoupling
from mporbm.tensor import max_ranks


@st.composite
def couplings(draw):
    order = draw(st.integers(1, 5))
    visible, hidden = draw(strategies.shapes(order)), draw(strategies.shapes(order))
    rng = np.random.default_rng(draw(strategies.seeds))
    kind = draw(st.sampled_from(strategies.KINDS))
    return strategies.random_coupling(kind, visible, hidden, draw(st.integers(1, 3)), rng)


@given(couplings(), strategies.seeds)
def test_apply_and_its_transpose_match_the_matrix(coupling, seed):
    rng = np.random.default_rng(seed)
    matrix = np.asarray(coupling.to_matrix())
    hidden = rng.normal(size=(3, *coupling.hidden_shape))
    visible = rng.normal(size=(3, *coupling.visible_shape))
    there = np.asarray(coupling.apply(hidden))
    back = np.asarray(coupling.apply_transpose(visible))
    assert there.shape == visible.shape
    assert back.shape == hidden.shape
    assert_allclose(there.reshape(3, -1), hidden.reshape(3, -1) @ matrix.T, atol=1e-10)
    assert_allclose(back.reshape(3, -1), visible.reshape(3, -1) @ matrix, atol=1e-10)


@given(couplings())
def test_transposed_couplings_have_the_transposed_matrix(coupling):
    transposed = coupling.transposed()
    if not isinstance(coupling, DenseCoupling | MPOCoupling):
        assert transposed is None
        return
    assert type(transposed) is type(coupling)
    assert transposed.visible_shape == coupling.hidden_shape
    assert transposed.hidden_shape == coupling.visible_shape
    np.testing.assert_array_equal(transposed.to_matrix(), np.asarray(coupling.to_matrix()).T)


@given(couplings())
def test_embedding_into_an_mpo_is_exact(coupling):
    embedded = coupling.to_mpo()
    assert isinstance(embedded, MPOCoupling)
    assert_allclose(embedded.to_matrix(), coupling.to_matrix(), rtol=1e-11, atol=1e-11)


@given(st.integers(1, 4), st.integers(1, 4), strategies.seeds, st.data())
def test_dense_embedding_has_the_largest_useful_ranks_and_compiles(n_visible, n_hidden, seed, data):
    visible, hidden = (
        data.draw(strategies.shapes(n_visible)),
        data.draw(strategies.shapes(n_hidden)),
    )
    weights = np.random.default_rng(seed).normal(size=(*visible, *hidden))
    coupling = DenseCoupling(weights, n_visible)
    embedded = jax.jit(lambda c: c.to_mpo())(coupling)
    sizes = [i * j for i, j in zip(embedded.visible_shape, embedded.hidden_shape, strict=True)]
    assert embedded.mpo.ranks == max_ranks(sizes)
    # Identities only pass numbers on: not even a rounding error.
    np.testing.assert_array_equal(embedded.to_matrix(), coupling.to_matrix())


def test_matrices_entry_by_entry(rng):
    dense = DenseCoupling(rng.normal(size=(2, 3, 4)), n_visible_modes=2)
    assert_allclose(dense.to_matrix(), dense.weights.reshape(6, 4))
    factors = [rng.normal(size=(2, 3)), rng.normal(size=(4, 2))]
    kronecker = KroneckerCoupling(factors)
    assert_allclose(kronecker.to_matrix(), np.kron(*factors))
    a, b, c = (rng.normal(size=(size, 5)) for size in (2, 3, 4))
    cp = CPCoupling([a, b], c)
    assert_allclose(cp.to_matrix(), np.einsum("ir,jr,kr->ijk", a, b, c).reshape(6, 4))


def test_embedded_ranks_are_the_papers():
    key = jax.random.key(0)
    assert KroneckerCoupling.random(key, (3, 3, 3), (2, 2, 2)).to_mpo().mpo.ranks == (1, 1)
    cp = CPCoupling.random(key, (3, 3, 3), (2,), rank=4).to_mpo()
    assert (cp.mpo.ranks, cp.hidden_shape) == ((4, 4), (2, 1, 1))
    dense = DenseCoupling.random(key, (3, 3, 3), (2, 2)).to_mpo()
    assert (dense.mpo.ranks, dense.hidden_shape) == ((6, 3), (2, 2, 1))


def test_parameters_are_counted_as_in_the_paper():
    key = jax.random.key(0)
    assert DenseCoupling.random(key, (784,), (100,)).n_parameters == 78400
    assert KroneckerCoupling.random(key, (28, 28), (10, 10)).n_parameters == 560
    assert MPOCoupling.random(key, (28, 28), (10, 10), rank=40).n_parameters == 22400
    assert CPCoupling.random(key, (28, 28), (100,), rank=40).n_parameters == 40 * (28 + 28 + 100)


@pytest.mark.parametrize(
    "draw",
    [
        lambda key: DenseCoupling.random(key, (20, 16), (10, 8), std=0.02),
        lambda key: KroneckerCoupling.random(key, (20, 16), (10, 8), std=0.02),
        lambda key: CPCoupling.random(key, (20, 16), (80,), rank=30, std=0.02),
        lambda key: MPOCoupling.random(key, (20, 16), (10, 8), rank=30, std=0.02),
    ],
    ids=["dense", "kronecker", "cp", "mpo"],
)
def test_initial_weights_have_the_asked_standard_deviation(draw):
    # Entries of one draw share factors, so the mean square is averaged over draws.
    keys = jax.random.split(jax.random.key(3), 16)
    squares = [jnp.mean(draw(key).to_matrix() ** 2) for key in keys]
    assert np.sqrt(np.mean(squares)) == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("kind", strategies.KINDS)
def test_a_planned_coupling_is_the_same(kind, rng):
    coupling = strategies.random_coupling(kind, (3, 2), (2, 2), 2, rng)
    machine = Machine(coupling).planned(7)
    assert machine.planned(3) is machine
    planned, own = machine.coupling, machine.unplanned().coupling
    assert type(own) is type(coupling)
    assert all(a is b for a, b in zip(planned.factors, own.factors, strict=True))
    assert (planned.visible_shape, planned.hidden_shape, planned.dtype, planned.n_parameters) == (
        *(coupling.visible_shape, coupling.hidden_shape, coupling.dtype, coupling.n_parameters),
    )
    np.testing.assert_array_equal(planned.to_matrix(), coupling.to_matrix())
    np.testing.assert_array_equal(planned.to_mpo().to_matrix(), coupling.to_mpo().to_matrix())
    # For any number of rows, also none.
    for leading in ((7,), (2, 3), (), (0,)):
        visible = rng.normal(size=(*leading, *coupling.visible_shape))
        hidden = rng.normal(size=(*leading, *coupling.hidden_shape))
        there, back = planned.apply(hidden), planned.apply_transpose(visible)
        assert_allclose(there, coupling.apply(hidden), atol=1e-12)
        assert_allclose(back, coupling.apply_transpose(visible), atol=1e-12)
