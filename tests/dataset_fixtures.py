"""Fixtures of tests that load data sets: a folder for files that they write, and no network."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No test downloads anything: it fails as it does without a network. The calls are kept."""
    calls = []

    def refuse(url, known_hash, **options):
        calls.append(url)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("pooch.retrieve", refuse)
    return calls


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder that MPORBM_DATA names; the cache is the folder beside it."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("MPORBM_DATA", str(folder))
    monkeypatch.setenv("MPORBM_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def put(home):
    """Write a file of a data set: put(dataset, name, content) gives its path."""

    def write(dataset, name, content):
        path = home / dataset / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def check_bunch(bunch, load):
    """A Bunch is complete, and `return_X_y` gives a part of it."""
    assert bunch.target.dtype == np.int64
    assert bunch.target.shape == bunch.data.shape[:1]
    assert bunch.data.flags.writeable
    assert set(bunch.target) == set(range(len(bunch.target_names)))
    assert all(isinstance(name, str) for name in bunch.target_names)
    assert "Terms of use: " in bunch.DESCR
    assert bunch.source.endswith(".")
    data, target = load(return_X_y=True)
    assert_array_equal(data, bunch.data)
    assert_array_equal(target, bunch.target)
