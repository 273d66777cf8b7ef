"""Samples in place of others that have the same mean and covariance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.training import ArraySource, StreamSource
from mporbm.training.moments import of_same_moments

ROWS = np.random.default_rng(0).normal(3.0, 2.0, (500, 3, 2)) ** 2


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_the_same(weighted):
    weight = np.random.default_rng(1).integers(0, 4, 500).astype(float) if weighted else None
    found = of_same_moments(ArraySource(ROWS, weight)).rows.reshape(-1, 6)
    assert len(found) == 12
    flat = ROWS.reshape(-1, 6)
    assert_allclose(found.mean(axis=0), np.average(flat, axis=0, weights=weight), rtol=1e-6)
    assert_allclose(
        np.cov(found.T, bias=True), np.cov(flat.T, bias=True, aweights=weight), rtol=1e-5
    )


def test_streams_are_summed_up():
    source = StreamSource(lambda: iter(np.array_split(ROWS, 7)), np.asarray)
    found = of_same_moments(source).rows.reshape(-1, 6)
    assert_allclose(np.cov(found.T, bias=True), np.cov(ROWS.reshape(-1, 6).T, bias=True), rtol=1e-9)


def test_few_or_incomplete_samples_stay():
    few = ArraySource(ROWS[:12])
    assert of_same_moments(few) is few
    holes = ArraySource(np.where(ROWS > 50.0, np.nan, ROWS), incomplete=True)
    assert of_same_moments(holes) is holes
    stream = StreamSource(lambda: iter([holes.rows]), np.asarray)
    with pytest.raises(ValueError, match="X: expected a stream of complete samples"):
        of_same_moments(stream)
