import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from mporbm.tensor import linear_index, multi_index


def paper_index(indices, sizes):
    """Eq. (1) as printed: all indices count from 1."""
    return indices[0] + sum((indices[k] - 1) * math.prod(sizes[:k]) for k in range(1, len(indices)))


@given(st.integers(1, 5).flatmap(strategies.shapes), st.data())
def test_fortran_order_is_the_papers_equation(shape, data):
    index = [data.draw(st.integers(0, size - 1)) for size in shape]
    expected = paper_index([i + 1 for i in index], shape) - 1
    assert linear_index(index, shape, order="F") == expected


@given(st.integers(1, 5).flatmap(strategies.shapes), st.sampled_from("CF"))
def test_agrees_with_reshape_and_back(shape, order):
    every = np.arange(math.prod(shape))
    tensor = every.reshape(shape, order=order)
    indices = np.indices(shape)
    np.testing.assert_array_equal(linear_index(indices, shape, order), tensor)
    for there, back in zip(multi_index(tensor, shape, order), indices, strict=True):
        np.testing.assert_array_equal(there, back)


def test_many_modes():
    shape = (2,) * 40
    assert linear_index([1] * 40, shape) == 2**40 - 1
    assert [int(i) for i in multi_index(1, shape, order="F")] == [1] + [0] * 39


def test_indices_broadcast():
    np.testing.assert_array_equal(linear_index((np.arange(3), 1), (3, 2)), [1, 3, 5])


def test_a_map_too_large_for_integers_is_an_error():
    with pytest.raises(ValueError, match="shape"):
        linear_index([0] * 64, (4,) * 64)
