"""The published data sets, where the variable MPORBM_DATA names a folder with them."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from reproduction import datasets
from reproduction.datasets import drivface

FOLDER = os.environ.get("MPORBM_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="MPORBM_DATA is not set: no real data")


@pytest.fixture(autouse=True)
def folder(offline):
    """The folder of the real data; nothing was downloaded from it at the end."""
    yield Path(FOLDER)
    assert offline == []


def test_alphadigits():
    bunch = datasets.load_alphadigits()
    assert bunch.data.shape == (1404, 20, 16)
    assert bunch.data.sum() == 185346
    assert_array_equal(np.bincount(bunch.target), [39] * 36)
    assert bunch.target_names == list("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    # A 1 is a stroke from the top to the bottom.
    assert bunch.data[bunch.target == 1].any(axis=2).mean() > 0.9


def test_arcene():
    bunch = datasets.load_arcene()
    assert bunch.data.shape == (200, 10000)
    assert bunch.data.dtype == np.uint16
    assert (bunch.data[:100].sum(), bunch.data[100:].sum()) == (70726744, 71410108)
    assert (bunch.data[:100].max(), bunch.data[100:].max()) == (924, 999)
    assert_array_equal(np.bincount(bunch.target[:100]), [56, 44])
    assert_array_equal(np.bincount(bunch.target[100:]), [56, 44])


def test_drivface(folder, monkeypatch):
    gaze = datasets.load_drivface()
    assert gaze.data.shape == (606, 80, 80)
    assert gaze.data.dtype == np.uint8
    assert_array_equal(np.bincount(gaze.target), [27, 546, 33])
    # Once is enough.
    monkeypatch.setattr(drivface, "_crop_faces", lambda *files: gaze.data)
    assert_array_equal(np.bincount(datasets.load_drivface("subject").target), [179, 170, 167, 90])
    derived = folder / "drivface" / "drivface_faces_80x80.npz"
    if derived.exists() and "drivPoints.txt" in gaze.source:
        with np.load(derived) as arrays:
            assert_array_equal(gaze.data, arrays["images"])
            assert_array_equal(gaze.target, arrays["gaze"] - 1)


def test_coil():
    bunch = datasets.load_coil100([41, 80])
    assert bunch.data.shape == (144, 128, 128, 3)
    assert bunch.target_names == ["obj41", "obj80"]
    assert_array_equal(bunch.angle, [*range(0, 360, 5)] * 2)
    # Neighbouring poses are more alike than opposite ones.
    images = bunch.data[:72].astype(float)
    near, far = (np.abs(images - np.roll(images, step, axis=0)).mean() for step in (1, 36))
    assert near < far


def test_objects_of_coil():
    with pytest.raises(ValueError, match=r"objects: expected some of .*41-80.*, got also 101;"):
        datasets.load_coil100([41, 101])


def test_ocr_letters():
    valid, test = datasets.load_ocr_letters("valid").data, datasets.load_ocr_letters("test").data
    assert valid.shape == test.shape == (10000, 16, 8)
    # Neighbouring pixels are alike along both modes, which they would not be in another shape.
    for axis in (1, 2):
        assert (np.diff(test.astype(int), axis=axis) == 0).mean() > 0.75


def test_connect_four():
    train, valid = (datasets.load_connect_four(part).data for part in ("train", "valid"))
    assert (train.shape, valid.shape) == ((16000, 7, 6, 3), (4000, 7, 6, 3))
    for boards in (train, valid):
        first, empty, second = np.moveaxis(boards, -1, 0).astype(int)
        # Four pieces of either player, and no piece above an empty square.
        assert {*first.sum((1, 2))} == {*second.sum((1, 2))} == {4}
        assert (np.diff(empty, axis=2) >= 0).all()
