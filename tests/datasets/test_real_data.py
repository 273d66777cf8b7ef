"""The published data sets, where the variable MPORBM_DATA names a folder with them."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mporbm import datasets

FOLDER = os.environ.get("MPORBM_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="MPORBM_DATA is not set: no real data")


@pytest.fixture(autouse=True)
def nothing_is_downloaded(offline):
    yield
    assert offline == []


TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.parametrize(
    ("subset", "counts", "mean"), [("train", TRAIN, 0.1307), ("test", TEST, 0.1325)]
)
def test_mnist(subset, counts, mean):
    bunch = datasets.load_mnist(subset)
    assert bunch.data.shape == (sum(counts), 28, 28)
    assert bunch.data.dtype == np.uint8
    assert_array_equal(np.bincount(bunch.target), counts)
    assert bunch.data.mean() / 255 == pytest.approx(mean, abs=5e-5)
