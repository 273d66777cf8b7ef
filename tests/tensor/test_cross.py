"""Interpolated functions are the functions, wherever one looks."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mporbm.tensor import interpolate
from strategies import full_tensor, mps, shapes


@given(st.data())
@settings(max_examples=20, phases=[Phase.generate])
def test_a_tensor_of_low_rank_is_found_exactly(data):
    train = data.draw(mps(data.draw(shapes(data.draw(st.integers(1, 5)))), boundary="open"))
    tensor = full_tensor(train)
    found = interpolate(lambda index: tensor[tuple(index.T)], tensor.shape, tolerance=1e-12)
    np.testing.assert_allclose(full_tensor(found), tensor, atol=1e-8 * np.abs(tensor).max())
    assert all(r <= s for r, s in zip(found.ranks, train.ranks, strict=True))


def test_the_tolerance_decides_on_ranks():
    def function(index):
        return 1.0 / (1.0 + index.sum(axis=1))

    shape = (6, 6, 6, 6)
    full = function(np.indices(shape).reshape(4, -1).T).reshape(shape)
    ranks = []
    for tolerance in (1e-1, 1e-3, 1e-6):
        found = interpolate(function, shape, tolerance=tolerance)
        assert np.abs(full_tensor(found) - full).max() <= 10 * tolerance
        ranks.append(max(found.ranks))
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1]


def test_ranks_are_capped_and_few_values_are_asked_for():
    asked = []

    def function(index):
        asked.append(len(index))
        return np.sin(0.1 * (index @ 2.0 ** np.arange(20)[::-1]) ** 0.5)

    found = interpolate(function, (2,) * 20, max_rank=5, tolerance=1e-9)
    assert max(found.ranks) == 5
    assert sum(asked) < 2**20 / 20


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda index: index, {}, r"function: expected real values of shape \(256,\)"),
        (lambda index: np.full(len(index), np.nan), {}, "function: expected finite values"),
        (lambda index: np.full(len(index), "a"), {}, "function: expected real values"),
        (len, {"shape": (2, 0)}, r"shape\[1\]=0"),
        (len, {"max_rank": 0}, "max_rank=0"),
        (len, {"tolerance": 2.0}, "tolerance=2.0"),
    ],
)
def test_bad_input_is_refused(function, options, message):
    with pytest.raises(ValueError, match=message):
        interpolate(function, **{"shape": (2, 2), **options})
