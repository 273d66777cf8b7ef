"""Files are written whole or not at all."""

import os

import pytest

from mporbm.atomic import atomic_path, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("there", [True, False])
def test_writing_leaves_the_old_or_the_new_text(tmp_path, monkeypatch, there):
    path = tmp_path / "a.json"
    if there:
        write_text(path, "old")

    def fail(*args):
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="full"):
            write_text(path, "new")
    assert names(tmp_path) == ["a.json"] * there
    assert not there or path.read_text() == "old"
    write_text(path, "new \N{MINUS SIGN}")
    assert path.read_text(encoding="utf-8") == "new \N{MINUS SIGN}"
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_failure_leaves_nothing(tmp_path, durable):
    def fail(make):
        with atomic_path(tmp_path / "a", durable=durable) as temporary:
            make(temporary)
            raise ValueError("stop")

    for make in (lambda path: path.write_bytes(b"half"), lambda path: path.mkdir()):
        with pytest.raises(ValueError, match="stop"):
            fail(make)
        assert names(tmp_path) == []
    with atomic_path(tmp_path / "a", durable=durable) as temporary:
        temporary.write_bytes(b"all")
        assert names(tmp_path) == [temporary.name]
    assert names(tmp_path) == ["a"]


def test_folders_are_written_whole(tmp_path):
    with atomic_path(tmp_path / "a", durable=True) as temporary:
        temporary.mkdir()
        (temporary / "b").touch()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")] == ["a", "a/b"]
