"""Contractions of two trains are the same between any pair of cores, and those of full tensors."""

import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.tensor import MPO, MPSBatch
from mporbm.tensor.environments import FIELD_CONTRACTION, OVERLAP_CONTRACTION, next_gram

ROWS, COLUMNS = (3, 2, 2, 2), (2, 3, 2, 1)


def random_mpo(rng, columns, boundary):
    end = 2 if boundary == "periodic" else 1
    bonds = [end, 3, 2, 3, end]
    return MPO(
        [
            rng.normal(size=(bonds[k], ROWS[k], columns[k], bonds[k + 1]))
            for k in range(len(columns))
        ]
    )


def at_every_pair(contraction, first, second):
    """The contraction from the environments on both sides of each pair of cores."""
    rights = contraction.right_environments(first, second)
    left = contraction.boundary(first, second)
    for a, b, right in zip(first, second, rights, strict=True):
        yield contraction.contract_between(left, a, b, right)
        left = contraction.next_left(left, a, b)


@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_fields(boundary, rng):
    mpo = random_mpo(rng, COLUMNS, boundary)
    bonds = [1, 2, 3, 2, 1]
    batch = MPSBatch([rng.normal(size=(5, bonds[k], ROWS[k], bonds[k + 1])) for k in range(4)])
    expected = np.asarray(batch.to_tensors()).reshape(5, -1) @ np.asarray(mpo.to_matrix())
    found = FIELD_CONTRACTION.contract(batch.cores, mpo.cores)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    for field in at_every_pair(FIELD_CONTRACTION, batch.cores, mpo.cores):
        np.testing.assert_allclose(field, expected, atol=1e-12)


@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_overlaps(boundary, rng):
    """``A^T B`` for two operators with different columns."""
    first = random_mpo(rng, (2, 1, 3, 2), boundary)
    second = random_mpo(rng, COLUMNS, boundary)
    expected = np.asarray(first.to_matrix()).T @ np.asarray(second.to_matrix())
    found = OVERLAP_CONTRACTION.contract(first.cores, second.cores)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    for overlap in at_every_pair(OVERLAP_CONTRACTION, first.cores, second.cores):
        np.testing.assert_allclose(overlap, expected, atol=1e-12)


def test_gram_matrices_grow_by_a_core(rng):
    part = rng.normal(size=(12, 3))
    core = rng.normal(size=(3, 2, 2, 4))
    whole = np.tensordot(part, core, axes=1).reshape(-1, 4)
    found = next_gram(jnp.asarray(part.T @ part), jnp.asarray(core))
    np.testing.assert_allclose(found, whole.T @ whole, rtol=1e-12)
