"""Files that state more than they hold, or ask for more than anyone has, are refused at once."""

import gzip
import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

import mporbm
from fuzz.arrays import npy, png, zipped
from fuzz.models import checkpoint_parts, encoded, models, read_checkpoint
from mporbm.cli import config, files
from mporbm.datasets import formats
from mporbm.datasets.formats import Blob, open_image, open_zip, read_gzip, read_member
from mporbm.training import FileFormatError
from mporbm.training import safetensors_io as storage
from reproduction.datasets.tables import read_integers
from reproduction.runs import Run
from tables import check_each

# What users without the tests' type checker see.
pytestmark = pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")

LITTLE = 2**24
"""More bytes than any of these files needs to be refused, and far fewer than it asks for."""


@pytest.fixture(autouse=True)
def little_memory():
    """Fail a test that takes more memory than a little, whatever becomes of it."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < LITTLE


@pytest.fixture
def written(tmp_path):
    """Write a file: written(name, content) gives its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def refused(read, path, reason, error=ValueError):
    with pytest.raises(error, match=reason) as caught:
        read(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith(str(path))


# Models and checkpoints


def model(**changes):
    """A model file with the right check sum whose header says something else."""
    arrays, header = models()[0]
    return encoded("model", arrays, {**header, **changes})


def test_a_header_longer_than_any_is_not_read(written):
    path = written("model", struct.pack("<Q", 2**40) + b"{}")
    refused(mporbm.load, path, f"its header has {2**40} bytes", FileFormatError)


@pytest.mark.parametrize("depth", [storage.MOST_DEPTH + 1, 100_000])
def test_a_deeply_nested_header(written, depth):
    text = '{"history": ' + "[" * depth + "]" * depth + "}"
    path = written("model", encoded("model", {}, text))
    refused(mporbm.load, path, "nested levels|its header is corrupted", FileFormatError)


def test_a_header_with_an_integer_of_thousands_of_digits(written):
    path = written("model", encoded("model", {}, '{"n_iter": ' + "9" * 5000 + "}"))
    refused(mporbm.load, path, "its header is corrupted", FileFormatError)


def test_too_many_arrays(written, monkeypatch):
    monkeypatch.setattr(storage, "MOST_ARRAYS", 2)
    path = written("model", encoded("model", {name: np.ones(1) for name in "abc"}, {}))
    refused(mporbm.load, path, "it has 3 arrays, more than 2", FileFormatError)


def test_types_of_arrays_that_numpy_does_not_know(written):
    content = encoded("model", {"a": np.ones(1, np.float16)}, {})
    content = content.replace(b'"F16"', b'"BF16"')
    content = struct.pack("<Q", struct.unpack("<Q", content[:8])[0] + 1) + content[8:]
    path = written("model", content)
    refused(mporbm.load, path, "its array a is of type BF16", FileFormatError)


def test_a_header_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "MOST_HEADER_BYTES", 20)
    with pytest.raises(ValueError, match="expected a header of at most 10 characters, got 11"):
        storage.write(tmp_path / "file", "kind", {}, {"abc": ""})
    assert list(tmp_path.iterdir()) == []


HEADERS = {
    "class of another type": {"class": ["MPORBM"]},
    "parameters that are no table": {"parameters": [1]},
    "unknown parameter": {"parameters": {"evil": 1}},
    "parameter that fit refuses": {"parameters": {"batch_size": "many"}},
    "history of tables": {"history": [{"score": {"a": 1}}]},
    "seed too large": {"seed": 10**30},
    "seed of another type": {"seed": 1.5},
    "random state too large": {"parameters": {"random_state": 10**30}},
    "infinite epochs": {"n_iter": float("inf")},
    "negative epochs": {"n_iter": -1},
    "history of text": {"history": "abc"},
    "history of numbers": {"history": [1]},
    "truncation error too large": {"truncation_error": 10**400},
    "truncation error of NaN": {"truncation_error": float("nan")},
    "too few names": {"feature_names": ["a"]},
    "names that are numbers": {"feature_names": [1, 2, 3, 4, 5, 6]},
    "shapes without numbers": {"visible_shape": 5},
    "shapes of a larger machine": {"hidden_shape": [10**9, 10**9]},
    "machines that are no table": {"machines": [1]},
    "coding that is no table": {"coding": [1]},
    "coding of another class": {"coding": {"class": "os.system"}},
}


def test_models_whose_header_makes_no_sense(written):
    def check(_, changes):
        path = written("model", model(**changes))
        reason = "expected a model of class|corrupted model file"
        refused(mporbm.load, path, reason, FileFormatError)

    check_each(check, HEADERS.items())


def test_parameters_are_not_obeyed_when_a_model_is_loaded(written):
    parameters = {
        "hidden_shape": [10**9, 10**9],
        "rank": 10**9,
        "n_gibbs": 10**9,
        "random_state": 0,
    }
    loaded = mporbm.load(written("model", model(parameters=parameters)))
    assert loaded.rank == 10**9
    assert loaded.machine_.hidden_shape == (2, 2)


CODINGS = {
    "more values than units": {"sample_shape_": [10**9, 10**9]},
    "a number of values that is not theirs": {"n_features_in_": 10**12},
    "sizes of thousands of bits": {"sample_shape_": [2**3000] * 40},
    "more modes than arrays have": {"sample_shape_": [1] * 100_000},
    "a threshold that is none": {"threshold_": None},
    "an infinite level": {"low_": float("inf")},
}


def test_codings_that_fit_no_sample(written):
    coding = models()[0][1]["coding"]

    def check(_, changes):
        changed = {**coding, "fitted": {**coding["fitted"], **changes}}
        path = written("model", model(coding=changed))
        refused(mporbm.load, path, "corrupted model file", FileFormatError)

    check_each(check, CODINGS.items())


def test_codings_of_a_layer_in_mps_form(written):
    """Such a layer may have more units than there is memory for."""
    arrays, header = next(parts for parts in models() if parts[1]["class"] == "MPSRBM")
    path = written("model", encoded("model", arrays, {**header, "coding": {}}))
    refused(mporbm.load, path, "corrupted model file", FileFormatError)


def test_codings_of_types_that_are_no_numbers(written):
    def check(dtype):
        path = written("model", model(coding={**models()[0][1]["coding"], "dtype": dtype}))
        refused(mporbm.load, path, "in place of a type", FileFormatError)

    dtypes = ["S1000000000", "a", "O", "f8,f8", [["a", "f8"]], "V9", None, 5]
    check_each(check, [(dtype,) for dtype in dtypes])


@pytest.mark.parametrize(
    "classes",
    [
        {"labels": ["a", "b", "c"], "dtype": "<U1000000000"},
        {"labels": ["a", "b", "c"], "dtype": "S5"},
        {"labels": [[1], [2], [3]], "dtype": "object"},
        {"labels": [10**30, 1, 2], "dtype": "<i8"},
        {"labels": "abc", "dtype": "object"},
        {"labels": ["a"], "dtype": "<U1"},
        [],
    ],
)
def test_labels_that_are_none(written, classes):
    arrays, header = models()[7]
    assert header["class"] == "MPOClassRBM"
    path = written("model", encoded("model", arrays, {**header, "classes": classes}))
    refused(mporbm.load, path, "corrupted model file", FileFormatError)


def test_more_machines_than_layers(written):
    arrays, header = models()[8]
    assert len(header["machines"]) == 3
    shapes = {f"{k}": [[1], [1]] for k in range(1000)}
    path = written("model", encoded("model", arrays, {**header, "machines": shapes}))
    refused(mporbm.load, path, "1000 machines", FileFormatError)


def test_labels_where_there_are_none(written):
    labelled, _ = models()[7]
    path = written("model", encoded("model", labelled, models()[0][1]))
    refused(mporbm.load, path, "arrays that MPORBM does not have: label_bias", FileFormatError)
    path = written("model", encoded("model", models()[0][0], models()[7][1]))
    refused(mporbm.load, path, "label_weights", FileFormatError)


def test_a_layer_in_mps_form_of_a_machine_that_has_none(written):
    arrays, header = models()[3]
    path = written("model", encoded("model", arrays, {**header, "class": "MvRBM"}))
    refused(mporbm.load, path, "corrupted model file", FileFormatError)


PROGRESS = {
    "epochs in words": {"epoch": "two"},
    "epochs that are true": {"epoch": True},
    "negative epochs": {"epoch": -1},
    "epochs without end": {"epoch": 10**30},
    "a rate that is none": {"rate_factor": float("nan")},
    "a norm that no float holds": {"gradient_norm": 10**400},
    "history of numbers": {"history": [1]},
    "an unknown entry": {"evil": 1},
}


def test_checkpoints_of_trainings_that_cannot_be(written):
    arrays, header = checkpoint_parts()

    def check(_, changes):
        changed = {**header, "progress": {**header["progress"], **changes}}
        path = written("checkpoint", encoded("checkpoint", arrays, changed))
        refused(read_checkpoint, path, "corrupted checkpoint", FileFormatError)

    check_each(check, PROGRESS.items())


def test_checkpoints_that_make_no_sense(written):
    arrays, header = checkpoint_parts()

    def check(changes):
        path = written("checkpoint", encoded("checkpoint", arrays, {**header, **changes}))
        refused(read_checkpoint, path, "corrupted checkpoint", FileFormatError)

    table = [
        {"rates": [0.1]},
        {"rates": ["a", "b"]},
        {"rates": [float("inf"), 0.1]},
        {"identity": [1]},
        {"identity": {"seed": float("inf")}},
        {"identity": {"seed": 10**30}},
        {"present": 1},
        {"present": ["best"]},
    ]
    check_each(check, [(changes,) for changes in table])


# Arrays


def npy_of(shape, kind="'<f8'", length=None):
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = len(header) if length is None else length
    return b"\x93NUMPY\1\0" + struct.pack("<H", length) + header


def read(path):
    return files.read_array(str(path))


def test_arrays_that_are_not_there(written):
    def check(content, reason):
        refused(read, written("x.npy", content), reason)
        refused(read, written("x.npz", zipped([("a.npy", content)])), reason)

    table = [
        (npy_of((10**15, 10)), "it has .* bytes, an array of shape .* needs more"),
        (npy_of((10**9, 10**9, 10**9)), "needs more"),
        (npy_of("(" * 3000 + ")" * 3000), "its header is no table"),
        (npy_of("-" * 9000 + "1"), "its header is no table"),
        (npy_of((-1, 4)), "invalid shape"),
        (npy_of((1,) * 70), "invalid shape"),
        (npy_of("(9" + "9" * 100 + ", 1)"), "invalid shape"),
        (npy_of((0, 10**15)), "at least one of them"),
        (npy_of((2, 2), "[('a', '<f8')]"), "an array of shape"),
        (npy_of((2, 2), "'<f7'"), "its header is no table"),
        (npy_of((2, 2), "'|S9'"), "an array of shape"),
        (npy_of((2, 2), length=65535), "its header is no table"),
        # A header that claims 2 GiB: NumPy by itself takes them.
        (b"\x93NUMPY\2\0" + struct.pack("<I", 2**31), "its header is no table"),
        (b"\x93NUMPY\7\7", "its version is"),
        (b"\x93NUMPY", "reading magic string"),
    ]
    check_each(check, table)


def test_a_compressed_array_that_is_too_large(written, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 1000)
    ones = npy(np.ones((20, 20)))
    refused(read, written("x.npz", zipped([("a.npy", ones)])), "at most 1000 bytes .* as .npy")
    # What is not compressed is as large as the file.
    assert read(written("x.npz", zipped([("a.npy", ones)], zipfile.ZIP_STORED))).shape == (20, 20)


def test_a_member_that_is_no_array(written):
    refused(read, written("x.npz", zipped([("a.txt", b"text")])), "magic string")


def test_two_members_of_a_name(written):
    ones = npy(np.ones((2, 2)))
    content = zipped([("a.npy", b"no array"), ("a.npy", ones)])
    assert read(written("x.npz", content)).shape == (2, 2)


# Images


PNG_SIGN = b"\x89PNG\r\n\x1a\n"


def png_of(width, height, *chunks, n_bytes=9):
    """A grey image of a size with so many bytes of pixels."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), *chunks]
    parts += [(b"IDAT", zlib.compress(bytes(n_bytes))), (b"IEND", b"")]
    return PNG_SIGN + b"".join(
        struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts
    )


def test_images_that_are_not_there(written):
    table = [
        (png_of(2**31, 2**31), "decompression bomb"),
        (png_of(10_000, 10_000), "it states 10000x10000 pixels, expected at most 67108864"),
        (png_of(8192, 8192), "no more than its .* bytes can hold"),
        (png_of(0, 5), "cannot identify"),
        (PNG_SIGN, "cannot identify"),
        (png_of(100, 100), "truncated|cannot|broken"),
    ]
    check_each(lambda content, reason: refused(read, written("x.png", content), reason), table)


@pytest.mark.parametrize("name", [b"zTXt", b"iCCP"])
def test_what_is_not_pixels_is_not_unpacked(written, name):
    packer = zlib.compressobj()
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(32)) + packer.flush()
    content = png_of(2, 2, (name, b"a\0\0" + bomb), n_bytes=6)
    refused(read, written("x.png", content), "Decompressed data too large")


def test_a_palette_with_transparency_is_read_without_a_warning(written):
    image = Image.new("P", (2, 2), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    file = io.BytesIO()
    image.save(file, "PNG", transparency=b"\0\x80")
    assert read(written("x.png", file.getvalue()))[0, 0, 0].tolist() == [10, 20, 30]


def test_a_folder_of_more_pixels_than_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_UNPACKED_BYTES", 20)
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png())
    refused(read, tmp_path, "at most 20 bytes together, got 2 of 12")


# Data sets


def test_a_gzip_bomb(written, monkeypatch):
    monkeypatch.setattr(formats, "MOST_BYTES", 2**20)
    path = written("x.gz", gzip.compress(bytes(2**23)))
    refused(read_gzip, path, "expected at most 1048576 bytes")


def test_a_member_larger_than_it_states():
    """It would be unpacked as a whole to be cut off."""
    content = bytearray(zipped([("inside", bytes(2**23))]))
    for sign, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        struct.pack_into("<I", content, content.index(sign) + place, 10)
    with open_zip(Blob("a", bytes(content))) as archive:
        # All but the archive itself.
        tracemalloc.reset_peak()
        with pytest.raises(ValueError, match=r"^a: inside: expected a member that can be read"):
            read_member(archive, archive.infolist()[0], "a")
    assert tracemalloc.get_traced_memory()[1] < 2**21


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("packed", [2**32 - 2, 200])
def test_a_member_smaller_than_it_states(monkeypatch, method, packed):
    monkeypatch.setattr(formats, "MOST_BYTES", 2**40)
    content = bytearray(zipped([("inside", bytes(range(256)))], method))
    for sign, place in ((b"PK\3\4", 18), (b"PK\1\2", 20)):
        struct.pack_into("<II", content, content.index(sign) + place, packed, 2**32 - 2)
    with (
        open_zip(Blob("a", bytes(content))) as archive,
        pytest.raises(ValueError, match=r"^a: inside: .* it cannot have 4294967294 bytes"),
    ):
        read_member(archive, archive.infolist()[0], "a")


@pytest.mark.parametrize("name", ["", "inside"])
def test_an_encrypted_member_without_a_name(name):
    content = bytearray(zipped([(name, b"content")]))
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    with (
        open_zip(Blob("a", bytes(content))) as archive,
        pytest.raises(ValueError, match=rf"^a: {name}: .* it is encrypted, or has no name"),
    ):
        read_member(archive, archive.infolist()[0], "a")


@pytest.mark.parametrize("method", [12, 14, 99])
def test_methods_of_packing_that_take_memory_as_asked_for(method):
    content = bytearray(zipped([("inside", b"content")]))
    struct.pack_into("<H", content, content.index(b"PK\1\2") + 10, method)
    with (
        open_zip(Blob("a", bytes(content))) as archive,
        pytest.raises(ValueError, match=r"^a: inside: .*it is packed by method"),
    ):
        read_member(archive, archive.infolist()[0], "a")


def test_an_archive_with_more_members_than_any(written, monkeypatch):
    monkeypatch.setattr(formats, "MOST_LIST_BYTES", 100)
    content = zipped([(f"{k}", b"") for k in range(10)])

    def listed(path):
        with open_zip(path):
            pass

    refused(listed, written("a.zip", content), "more than 100 bytes of names")
    refused(listed, written("b.zip", content[:-2] + b"\5\0" + b"extra"), "more than 100 bytes")
    # In zip64, another record says it.
    wide = b"PK\6\6" + bytes(36) + struct.pack("<QQ", 2**40, 0)
    end = content.rindex(b"PK\5\6")
    content = content[:end] + wide + b"PK\6\7" + bytes(16) + content[end:]
    refused(listed, written("c.zip", content), "more than 100 bytes of names|Bad offset")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"1 " * 2**20, "expected 3 integers in each of 2 lines, got 4 in sample 1"),
        (b"1 2 3\n" * 10, "expected 3 integers in each of 2 lines, got more lines"),
        (b"\n" * 2**20, "expected 2 lines of 3 integers, got 0"),
    ],
)
def test_tables_of_another_size(text, reason):
    with pytest.raises(ValueError, match=f"^a: {reason}"):
        read_integers(Blob("a", text), 2, 3)


def test_a_jpeg_of_another_size_takes_no_memory():
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    content = bytearray(file.getvalue())
    start = content.index(b"\xff\xc0")
    struct.pack_into(">HH", content, start + 5, 65500, 65500)
    with pytest.raises(ValueError, match=r"^a: expected a JPEG image of 8x8 pixels"):
        open_image(Blob("a", bytes(content)), "JPEG", (8, 8))


# Configuration and outcomes


def test_configurations_that_ask_for_nonsense(written):
    def check(text, reason):
        path = written("x.toml", text.encode(errors="surrogateescape"))
        refused(config.read_options, path, reason)

    table = [
        ("rank = " + "[" * 20_000, "expected a TOML file"),
        ("n_iter = " + "9" * 5000, "expected a TOML file"),
        ("n_iter = 0x" + "f" * 5000, "expected a TOML file: it has more"),
        ("rank = [0x" + "f" * 5000 + "]", "expected a TOML file: it has more"),
        ("rank = [[0x" + "f" * 5000 + "]]", "expected a TOML file: it has more"),
        ("scheme" + ".a" * 900 + " = 1", "expected a TOML file: it has more"),
        ("scheme" + ".a" * 9000 + " = 1", "1000 of them dots"),
        ("n_iter = nan", 'n_iter=nan: expected "auto" or a whole number'),
        ("n_iter = true", 'n_iter=True: expected "auto" or a whole number'),
        ("momentum = '0.5'", "momentum='0.5': expected a number"),
        ("n_iter = 1\nn_iter = 2", "expected a TOML file"),
        ("# " + "x" * 2**16, "expected a TOML file of at most 65536 bytes"),
        ("\udcff", "expected a TOML file"),
    ]
    check_each(check, table)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"outcome": {}, "seconds": 1' + "0" * 400 + "}", "9" * 5000]
)
def test_outcomes_that_make_no_sense_are_made_again(tmp_path, text):
    run = Run("reproduction.figure7", {"seed": 1})
    # Modules that the run is imported with are not what its file takes.
    path = run.path(tmp_path)
    tracemalloc.clear_traces()
    tracemalloc.reset_peak()
    path.write_text(text)
    assert run.outcome(tmp_path) is None
