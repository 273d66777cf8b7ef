"""Data files of the command line: .npy, .npz and PNG."""

import functools
import io
import struct
import warnings
import zipfile
import zlib

import numpy as np
from PIL import Image

from fuzz import mutation
from mporbm.cli import files


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


@functools.cache
def valid_npy():
    arrays = (np.ones((4, 3, 2), bool), np.ones((4, 3), "<f4"), np.asfortranarray(np.eye(4)))
    return [npy(array) for array in arrays]


KINDS = (
    "<f8",
    "|b1",
    "|u1",
    ">i4",
    "<f2",
    "<c8",
    "<U3",
    "|S4",
    "|O",
    "|V3",
    "<M8[s]",
    "a5",
    "",
    "f",
)
KINDS = (*KINDS, "<f7", "<U99999999999", "<f8,<i4", "O4", "<i100", "d", "?", "B", "object", "<f16")


def changed_npy(rng):
    shape = tuple(
        rng.choice((*mutation.INTEGERS, -1, 2, 2, 3))
        for _ in range(rng.choice((0, 1, 2, 2, 3, 70)))
    )
    shape = rng.choice(
        (repr(shape), repr(list(shape)), "(2, 3)", "(3,)", "(2L, 2L)", "(" * 5000, "None")
    )
    kind = rng.choice(
        (repr(rng.choice(KINDS)), repr(rng.choice(KINDS)), "'<f8'", "[('a', '<f8')]", "1", "{}")
    )
    order = rng.choice(("True", "False", "False", "False", "0", "None"))
    entries = [f"'descr': {kind}", f"'fortran_order': {order}", f"'shape': {shape}"]
    if rng.randrange(8) == 0:
        entries = rng.choices(entries, k=rng.randrange(5))
    header = rng.choice(("{%s, }", "{%s}", "{%s", "%s")) % ", ".join(entries)
    header = header.encode() + b" " * rng.choice((0, 5, 60, 20_000)) + b"\n"
    version = rng.choice(((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    length = len(header) if rng.randrange(6) else rng.choice(mutation.INTEGERS) % 2**31
    form = "<H" if version == (1, 0) else "<I"
    size = struct.pack(form, length % 256 ** struct.calcsize(form))
    return b"\x93NUMPY" + bytes(version) + size + header + bytes(rng.choice((0, 6, 48, 200)))


def read_whole(path):
    """Read an array and touch all of it."""
    array = files.read_array(str(path))
    assert array.nbytes < 2**24
    assert len(array.tobytes()) == array.nbytes


def zipped(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        # Two of a name are wanted.
        warnings.simplefilter("ignore", UserWarning)
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


@functools.cache
def valid_npz():
    one = valid_npy()
    return [
        zipped([("a.npy", one[0])]),
        zipped([("a.npy", one[1])], zipfile.ZIP_STORED),
        zipped([("a.npy", one[1]), ("b.npy", one[2])]),
    ]


ZIP_FIELDS = (
    (
        b"PK\3\4",
        (
            (4, "<H"),
            (6, "<H"),
            (8, "<H"),
            (14, "<I"),
            (18, "<I"),
            (22, "<I"),
            (26, "<H"),
            (28, "<H"),
        ),
    ),
    (b"PK\1\2", ((6, "<H"), (8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (28, "<H"))),
    (b"PK\1\2", ((30, "<H"), (32, "<H"), (34, "<H"), (42, "<I"))),
    (b"PK\5\6", ((4, "<H"), (8, "<H"), (10, "<H"), (12, "<I"), (16, "<I"), (20, "<H"))),
)


def changed_zip(rng, members):
    """An archive of members, with a few fields of its tables changed."""
    method = rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))
    content = zipped(members, method)
    places = [
        (start + offset, form)
        for sign, fields in ZIP_FIELDS
        for start in [content.find(sign)]
        for offset, form in fields
        if start >= 0
    ]
    return mutation.change_fields(rng, content, places) if rng.randrange(3) else content


def changed_npz(rng):
    member = changed_npy(rng) if rng.randrange(2) else rng.choice(valid_npy())
    name = rng.choice(("a.npy", "a.npy", "a", "../a.npy", "/a.npy", "", "\u00e9.npy"))
    return changed_zip(rng, [(name, member)])


def png(mode="L", size=(4, 3)):
    file = io.BytesIO()
    Image.new(mode, size, 1).save(file, "PNG")
    return file.getvalue()


@functools.cache
def valid_png():
    return [png(mode) for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "I;16")]


CHUNKS = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"pHYs", b"tEXt", b"zTXt", b"iTXt")
CHUNKS = (*CHUNKS, b"iCCP", b"sRGB", b"cHRM", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"abcd", b"ABCD")


def changed_png(rng):
    """Chunks that are changed, left out, added and moved, with right check sums."""
    content, chunks, start = rng.choice(valid_png()), [], 8
    while start < len(content):
        (length,) = struct.unpack(">I", content[start : start + 4])
        chunks.append((content[start + 4 : start + 8], content[start + 8 : start + 8 + length]))
        start += 12 + length
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        place, kind = rng.randrange(len(chunks)), rng.randrange(5)
        name, data = chunks[place]
        if kind == 0 and name == b"IHDR" and len(data) == 13:
            fields = [(0, ">I"), (4, ">I"), (8, ">B"), (9, ">B"), (10, ">B"), (12, ">B")]
            chunks[place] = (name, mutation.change_fields(rng, data, fields))
        elif kind == 1 and len(chunks) > 1:
            del chunks[place]
        elif kind == 2:
            data = rng.choice((rng.randbytes(9), b"a\0\0" + zlib.compress(bytes(99)), data))
            chunks.insert(rng.randrange(1, len(chunks) + 1), (rng.choice(CHUNKS), data))
        elif kind == 3 and name == b"IDAT":
            pixels = mutation.change_bytes(rng, bytes(20), bytes(9))
            chunks[place] = (name, zlib.compress(pixels))
        else:
            chunks[place] = (name, mutation.change_bytes(rng, data, data))
    parts = [content[:8]]
    for name, data in chunks:
        parts += [struct.pack(">I", len(data)), name, data]
        parts.append(struct.pack(">I", zlib.crc32(data, zlib.crc32(name))))
    return b"".join(parts)
