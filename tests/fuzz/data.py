"""Files of data sets: JPEG, IDX, gzip, tables in text and archives."""

import functools
import gzip
import io
import os
import struct
from unittest import mock

from PIL import Image

from fuzz import mutation
from fuzz.arrays import changed_zip, zipped
from mporbm.datasets import formats
from mporbm.datasets.fetch import Remote
from mporbm.datasets.formats import Blob
from reproduction.datasets import drivface
from reproduction.datasets.archives import find_blob


def jpeg():
    file = io.BytesIO()
    Image.new("RGB", (4, 3), (10, 20, 30)).save(file, "JPEG")
    return file.getvalue()


@functools.cache
def valid_jpeg():
    return [jpeg()]


def changed_jpeg(rng):
    """A field of a segment changed: its length, the size of the image, tables."""
    content = valid_jpeg()[0]
    places = [
        k for k in range(len(content) - 1) if content[k] == 255 and content[k + 1] not in (0, 255)
    ]
    start = rng.choice(places)
    fields = [(start + 1, ">B"), *((start + k, ">H") for k in (2, 5, 7)), (start + 4, ">B")]
    content = mutation.change_fields(rng, content, fields)
    if rng.randrange(3) == 0:
        name = rng.choice((b"\xff\xe1", b"\xff\xe2", b"\xff\xed", b"\xff\xfe", b"\xff\xe0"))
        data = rng.choice((b"Exif\0\0", b"MPF\0", b"JFIF\0", b"")) + rng.randbytes(20)
        content = content[:2] + name + struct.pack(">H", len(data) + 2) + data + content[2:]
    return content


@functools.cache
def valid_idx():
    header = struct.pack(">IIII", 0x803, 2, 3, 4)
    return [header + bytes(range(24))]


def changed_idx(rng):
    content = mutation.change_fields(rng, valid_idx()[0], [(k, ">I") for k in (0, 4, 8, 12)])
    return content + bytes(rng.choice((0, 0, 1, 24)))


def changed_gzip(rng):
    content = gzip.compress(changed_idx(rng), 1, mtime=0)
    return mutation.change_bytes(rng, content, content) if rng.randrange(3) == 0 else content


def changed_text(rng):
    words = [
        "1",
        "-2",
        "30",
        "0",
        "999",
        "1.5",
        "x",
        "9" * 30,
        "",
        "\u00e9",
        "1_0",
        "nan",
        "0x1",
        "\0",
    ]
    lines = [
        " ".join(
            rng.choices(words[:5] if rng.randrange(4) else words, k=rng.choice((4, 4, 4, 4, 3, 50)))
        )
        for _ in range(rng.choice((3, 3, 3, 2, 4, 100)))
    ]
    return rng.choice(("\n", "\n", "\r\n", "\r", "\n\n")).join(lines).encode()


def changed_binary_text(rng):
    words = [b"0", b"1", b"2", b"-1", b"", b" 1", b"9" * 30, b"x", b"\0", b"1 0"]
    lines = [
        b",".join(
            rng.choices(words[:2] if rng.randrange(4) else words, k=rng.choice((6, 6, 6, 5, 50)))
        )
        for _ in range(rng.choice((2, 2, 2, 1, 100)))
    ]
    return rng.choice((b"\n", b"\r\n", b"\n\n")).join(lines)


CSV = b"fileName,subject,imgNum,label,ang,xF,yF,wF,hF\n" + b"a,1,1,2,0,1,2,3,4\n" * 3


def changed_csv(rng):
    lines = [line.split(b",") for line in CSV.splitlines()]
    for _ in range(rng.choice((0, 1, 2, 3))):
        line = rng.choice(lines)
        words = (
            b"",
            b'"',
            b"9" * 30,
            b"x",
            b"\0",
            b"\xff",
            b"1.5",
            b"-1",
            b'"a,b"',
            b"a" * 200_000,
        )
        line[rng.randrange(len(line))] = rng.choice(words)
    return b"\n".join(b",".join(line) for line in lines)


def read_csv(path):
    blob = Blob(str(path), path.read_bytes())
    with mock.patch.dict(drivface.N_EACH, {"gaze": (1, 1, 1)}):
        rows = drivface._read_points(blob)
    for name in ("label", "subject", "xF"):
        drivface._column(blob, rows, name)


REMOTE = Remote("a.zip", ("https://nowhere.test/a.zip",), aliases=("b.zip",))


@functools.cache
def valid_archive():
    inner = zipped([("in/wanted.txt", b"content")])
    return [
        inner,
        zipped([("b.zip", inner), ("c", b"other")]),
        zipped([("../wanted.txt", b"content")]),
    ]


def changed_archive(rng):
    names = (
        "wanted.txt",
        "in/wanted.txt",
        "/wanted.txt",
        "../../wanted.txt",
        "wanted.txt/",
        "b.zip",
        "x",
    )
    members = [
        (rng.choice(names), b"content" * rng.randrange(9)) for _ in range(rng.choice((1, 2, 3)))
    ]
    content = changed_zip(rng, members)
    if rng.randrange(3) == 0:
        content = changed_zip(rng, [(rng.choice(("b.zip", "a.zip", "wanted.txt")), content)])
    return content


def read_archive(path):
    before = sorted(path.parent.rglob("*"))
    with mock.patch.dict(os.environ, {"MPORBM_DATA": str(path.parent.parent)}):
        blob = find_blob(path.parent.name, REMOTE, "wanted.txt")
    assert blob is None or len(blob.content) <= formats.MOST_BYTES
    # Nothing is ever written, whatever members are called.
    assert sorted(path.parent.rglob("*")) == before
    if blob is None:
        raise ValueError(f"{path}: no such member")


def of_bytes(read, *arguments):
    """A reader of bytes as one of a path."""
    return lambda path: read(Blob(str(path), path.read_bytes()), *arguments)
