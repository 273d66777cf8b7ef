"""quimb and TensorLy as oracles of the whole tensor layer."""

import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import strategies
from mporbm.tensor import MPO, MPS
from mporbm.tensor.convert import from_quimb, from_tensorly, to_quimb, to_tensorly
from strategies import full_matrix, full_tensor

qtn = pytest.importorskip("quimb.tensor")
tl = pytest.importorskip("tensorly")


def quimb_matrix(operator):
    sites = range(operator.L)
    return operator.to_dense([f"k{k}" for k in sites], [f"b{k}" for k in sites])


def same_cores(a, b):
    return type(a) is type(b) and all(
        np.array_equal(x, y) for x, y in zip(a.cores, b.cores, strict=True)
    )


@given(strategies.mpos())
def test_quimb_operator(mpo):
    assume(mpo.n_cores > 2 or mpo.boundary == "open")
    operator = to_quimb(mpo)
    assert_allclose(quimb_matrix(operator), full_matrix(mpo), atol=1e-11)
    assert same_cores(from_quimb(operator), mpo)


@pytest.mark.slow
@given(st.data())
def test_quimb_agrees_on_sum_inner_product_norm_and_products(data):
    a = data.draw(strategies.mpos(boundary="open", max_size=12))
    b = data.draw(strategies.mpos(boundary="open", like=a))
    x = data.draw(strategies.mps(a.column_shape, boundary="open"))
    scale = 1e-11 * float(a.norm()) * float(b.norm())
    assert_allclose(quimb_matrix(to_quimb(a).add_MPO(to_quimb(b))), full_matrix(a + b), atol=1e-11)
    assert_allclose(to_quimb(a).H @ to_quimb(b), a.inner(b), rtol=1e-9, atol=scale)
    assert_allclose(to_quimb(a).norm(), a.norm(), rtol=1e-10)
    expected = quimb_matrix(to_quimb(a)) @ to_quimb(x).to_dense().reshape(-1)
    assert_allclose(full_tensor(a @ x).reshape(-1), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@given(strategies.mpos(boundary="open"))
def test_quimb_agrees_on_canonical_form_and_rounding(mpo):
    assume(mpo.n_cores > 1)
    operator = to_quimb(mpo)
    operator.canonize(0)
    ours = mpo.canonical(0)
    assert_allclose(np.linalg.norm(ours.cores[0]), np.linalg.norm(operator[0].data), rtol=1e-10)
    # Singular values on a bond do not depend on the gauge: the same error at the same rank.
    operator = to_quimb(mpo)
    operator.compress(form="right", max_bond=1, cutoff=0.0)
    theirs = np.linalg.norm(quimb_matrix(operator) - full_matrix(mpo))
    _, bound = mpo.round(max_rank=1)
    if mpo.n_cores == 2:
        assert_allclose(bound, theirs, rtol=1e-6, atol=1e-9)
    else:  # sweeps in opposite directions are both within sqrt(d - 1) of the best
        factor = np.sqrt(mpo.n_cores - 1) * (1 + 1e-9)
        assert bound <= factor * theirs + 1e-9
        assert theirs <= factor * bound + 1e-9


@given(strategies.mpos(boundary="open"))
def test_tensorly_matrix(mpo):
    factors = to_tensorly(mpo)
    assert_allclose(factors.to_matrix(), full_matrix(mpo), atol=1e-11)
    assert same_cores(from_tensorly(factors), mpo)


@given(st.integers(2, 5).flatmap(strategies.shapes).flatmap(strategies.mps))
def test_states(mps):
    factors = to_tensorly(mps)
    assert_allclose(factors.to_tensor(), full_tensor(mps), atol=1e-11)
    assert same_cores(from_tensorly(factors), mps)
    assume(mps.n_cores > 2 or mps.boundary == "open")
    state = to_quimb(mps)
    sites = [f"k{k}" for k in range(mps.n_cores)]
    assert_allclose(state.contract(output_inds=sites).data, full_tensor(mps), atol=1e-11)
    assert same_cores(from_quimb(state), mps)
    assert_allclose(np.sqrt(abs(state.H @ state)), mps.norm(), rtol=1e-7)


@pytest.mark.slow
@given(strategies.matrices(), st.integers(1, 3))
def test_tensorly_decomposes_alike(case, rank):
    matrix, rows, columns = case
    assume(len(rows) > 1)
    ours, _ = MPO.from_matrix(matrix, rows, columns, max_rank=rank)
    tensor = tl.tensor(matrix.reshape(*rows, *columns))
    theirs = tl.decomposition.tensor_train_matrix(tensor, [1, *[rank] * (len(rows) - 1), 1])
    assert theirs.rank[1:-1] == ours.ranks
    assert_allclose(theirs.to_matrix(), full_matrix(ours), atol=1e-9)


def test_rings_too_small_for_the_others(rng):
    one = MPS([rng.normal(size=(2, 3, 2))])
    assert_allclose(to_tensorly(one).to_tensor(), one.to_tensor())
    assert from_quimb(qtn.MPS_rand_state(3, bond_dim=2, cyclic=True)).boundary == "periodic"
    with pytest.raises(ValueError, match=r"network: .*at least 3 cores, got a ring of 2"):
        from_quimb(qtn.MatrixProductState([rng.normal(size=(2, 2, 3)) for _ in range(2)]))
    with pytest.raises(ValueError, match=r"train: .*at least 3 cores, got a ring of 1"):
        to_quimb(one)


def test_a_missing_library_is_named(monkeypatch, rng):
    monkeypatch.setitem(sys.modules, "tensorly.tt_tensor", None)
    with pytest.raises(ImportError, match=r'to_tensorly: expected tensorly.*"mporbm\[quimb\]"'):
        to_tensorly(MPS([rng.normal(size=(1, 2, 1))]))
