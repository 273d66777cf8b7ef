"""A folder for files that tests write, and no network."""

import pytest


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
