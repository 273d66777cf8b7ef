"""Files of each format are read, and broken ones are refused by their names."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from mporbm.datasets import formats
from mporbm.datasets.formats import Blob, open_image, open_zip, read_gzip, read_member
from mporbm.datasets.loaders import read_idx
from reproduction.datasets.arcene import read_integers


def idx(array, magic=None):
    """An array of bytes as an IDX file."""
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return struct.pack(">I", magic or 0x800 + array.ndim) + sizes + array.tobytes()


def image(kind, size=(4, 3)):
    file = io.BytesIO()
    Image.new("RGB", size, (10, 20, 30)).save(file, kind)
    return file.getvalue()


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_idx():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    read = read_idx(Blob("a", idx(array)), 3)
    assert_array_equal(read, array)
    read[:] = 0  # As users may want to.


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "expected an IDX file .* got an empty file"),
        (b"\0\0", "expected an IDX file"),
        (idx(np.zeros((2, 3, 4), np.uint8), 0x801), "begins with 0x00000803, got 00000801"),
        (idx(np.zeros((2, 3, 4), np.uint8))[:-1], "expected 24 bytes .* got 23; it may be cut off"),
        (idx(np.zeros((2, 3, 4), np.uint8)) + b"\0", "expected 24 bytes .* got 25"),
    ],
)
def test_broken_idx(content, reason):
    with pytest.raises(ValueError, match=f"^a: .*{reason}"):
        read_idx(Blob("a", content), 3)


def test_gzip(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"content"))
    assert read_gzip(path) == Blob(str(path), b"content")


def damaged(content, at):
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(b"content" * 100)[:-9],
        b"no gzip file",
        damaged(gzip.compress(b"content" * 100), 14),
        damaged(gzip.compress(b"content" * 100), -6),
    ],
    ids=["cut off", "another kind", "damaged", "wrong checksum"],
)
def test_broken_gzip(tmp_path, content):
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected a gzip file: .*get it again") as e:
        read_gzip(path)
    assert str(e.value).startswith(f"{path}: ")


def test_nothing_huge_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MOST_BYTES", 10)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(11)))
    with pytest.raises(ValueError, match="expected at most 10 bytes"):
        read_gzip(path)
    with (
        open_zip(Blob("a.zip", zipped(inside=bytes(11)))) as archive,
        pytest.raises(ValueError, match=r"a\.zip: inside: expected at most 10 bytes, .* of 11"),
    ):
        read_member(archive, archive.infolist()[0], "a.zip")


def test_zip(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(inside=b"content"))
    for source in (path, Blob("a", path.read_bytes())):
        with open_zip(source) as archive:
            blob = read_member(archive, archive.infolist()[0], "a")
        assert blob == Blob("a: inside", b"content")


@pytest.mark.parametrize(
    "content",
    [b"no zip file", zipped(inside=b"content")[:-30], b""],
    ids=["foreign", "cut off", "empty"],
)
def test_broken_zip(content):
    with (
        pytest.raises(
            ValueError, match=r"^a: expected a zip archive: .*delete it and get it again"
        ),
        open_zip(Blob("a", content)),
    ):
        pass


def test_broken_member():
    content = zipped(inside=b"content" * 100)
    content = damaged(content, content.index(b"inside") + len(b"inside") + 2)
    with (
        open_zip(Blob("a", content)) as archive,
        pytest.raises(ValueError, match=r"^a: inside: expected a member that can be read"),
    ):
        read_member(archive, archive.infolist()[0], "a")


def test_encrypted_member():
    # The first bit of the flags, which stand before the method, time, CRC, sizes and lengths.
    content = bytearray(zipped(inside=b"content"))
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    with (
        open_zip(Blob("a", bytes(content))) as archive,
        pytest.raises(ValueError, match=r"^a: inside: expected a member that can be read"),
    ):
        read_member(archive, archive.infolist()[0], "a")


def test_integers():
    text = b"\n1 -2 3 \r\n4 5 6\n\n"
    assert_array_equal(read_integers(Blob("a", text), 2, 3), [[1, -2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"1 2 3\n4 5", "expected 3 integers in each of 2 lines, got 2 in sample 2; it may be cut"),
        (b"1 2 3\n", "expected 2 lines of 3 integers, got 1; it may be cut off"),
        (b"1 2 x", "expected integers in text"),
        (b"1 2 0.5", "expected integers in text"),
        (b"1 2 \xff", "expected integers in text"),
        (b"1 2 " + b"9" * 30, "expected integers in text"),
    ],
)
def test_broken_integers(text, reason):
    with pytest.raises(ValueError, match=f"^a: {reason}"):
        read_integers(Blob("a", text), 2, 3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_image(kind):
    assert np.asarray(open_image(Blob("a", image(kind)), kind, (4, 3))).shape == (3, 4, 3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: b"no image",
        lambda content: image("GIF"),
    ],
    ids=["empty", "cut off", "another kind", "another format"],
)
def test_broken_image(kind, change):
    with pytest.raises(ValueError, match=f"^a: expected a {kind} image of 4x3 pixels: "):
        open_image(Blob("a", change(image(kind))), kind, (4, 3))


def test_image_of_another_size():
    with pytest.raises(
        ValueError, match=r"expected a PNG image of 3x4 pixels: it is of 4x3 pixels"
    ):
        open_image(Blob("a", image("PNG")), "PNG", (3, 4))


def test_no_file_is_written(tmp_path, monkeypatch):
    """Members of archives may be called anything."""
    monkeypatch.chdir(tmp_path)
    content = zipped(**{"../evil/inside": b"content"})
    with open_zip(Blob("a", content)) as archive:
        read_member(archive, archive.infolist()[0], "a")
    assert list(Path(tmp_path).rglob("*")) == []
