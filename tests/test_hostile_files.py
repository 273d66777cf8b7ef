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
from reproduction.runs import Run
from scipy.io import loadmat, savemat

import mporbm
from fuzz.arrays import npy, png, zipped
from fuzz.models import checkpoint_parts, encoded, models, read_checkpoint
from mporbm.cli import config, files
from mporbm.datasets import archives
from mporbm.datasets import png as png_format
from mporbm.datasets.archives import Blob, open_zip, read_gzip, read_member
from mporbm.datasets.formats import open_image, read_integers, read_mat
from mporbm.training import FileFormatError
from mporbm.training import safetensors_io as storage
from reproduction.datasets import matlab

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


@pytest.mark.parametrize("name", HEADERS)
def test_models_whose_header_makes_no_sense(written, name):
    path = written("model", model(**HEADERS[name]))
    refused(mporbm.load, path, "expected a model of class|corrupted model file", FileFormatError)


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
    "a threshold that is none": {"threshold_": None},
    "an infinite level": {"low_": float("inf")},
}


@pytest.mark.parametrize("name", CODINGS)
def test_codings_that_fit_no_sample(written, name):
    coding = models()[0][1]["coding"]
    changed = {**coding, "fitted": {**coding["fitted"], **CODINGS[name]}}
    path = written("model", model(coding=changed))
    refused(mporbm.load, path, "corrupted model file", FileFormatError)


@pytest.mark.parametrize("dtype", ["S1000000000", "a", "O", "f8,f8", [["a", "f8"]], "V9", None, 5])
def test_codings_of_types_that_are_no_numbers(written, dtype):
    path = written("model", model(coding={**models()[0][1]["coding"], "dtype": dtype}))
    refused(mporbm.load, path, "in place of a type", FileFormatError)


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
    refused(mporbm.load, path, "labels of a machine without them", FileFormatError)
    path = written("model", encoded("model", models()[0][0], models()[7][1]))
    refused(mporbm.load, path, "none of one with them", FileFormatError)


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


@pytest.mark.parametrize("name", PROGRESS)
def test_checkpoints_of_trainings_that_cannot_be(written, name):
    arrays, header = checkpoint_parts()
    changed = {**header, "progress": {**header["progress"], **PROGRESS[name]}}
    path = written("checkpoint", encoded("checkpoint", arrays, changed))
    refused(read_checkpoint, path, "corrupted checkpoint", FileFormatError)


@pytest.mark.parametrize(
    "changes",
    [
        {"rates": [0.1]},
        {"rates": ["a", "b"]},
        {"rates": [float("inf"), 0.1]},
        {"identity": [1]},
        {"identity": {"seed": float("inf")}},
        {"identity": {"seed": 10**30}},
        {"present": 1},
        {"present": ["best"]},
    ],
)
def test_checkpoints_that_make_no_sense(written, changes):
    arrays, header = checkpoint_parts()
    path = written("checkpoint", encoded("checkpoint", arrays, {**header, **changes}))
    refused(read_checkpoint, path, "corrupted checkpoint", FileFormatError)


# Arrays


def npy_of(shape, kind="'<f8'", length=None):
    header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = len(header) if length is None else length
    return b"\x93NUMPY\1\0" + struct.pack("<H", length) + header


def read(path):
    return files.read_array(str(path))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
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
    ],
)
def test_arrays_that_are_not_there(written, content, reason):
    refused(read, written("x.npy", content), reason)
    refused(read, written("x.npz", zipped([("a.npy", content)])), reason)


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


def png_of(width, height, *chunks, n_bytes=9):
    """A grey image of a size with so many bytes of pixels."""
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)), *chunks]
    parts += [(b"IDAT", zlib.compress(bytes(n_bytes))), (b"IEND", b"")]
    return png_format.SIGN + b"".join(
        struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (png_of(2**31, 2**31), "expected at most 67108864"),
        (png_of(10_000, 10_000), "expected at most 67108864"),
        (png_of(8192, 8192), "which its .* bytes cannot hold"),
        (png_of(0, 5), "it is of 0x5 pixels"),
        (png_format.SIGN, "it does not begin with its size"),
        (png_of(100, 100), "truncated|cannot|broken"),
    ],
)
def test_images_that_are_not_there(written, content, reason):
    refused(read, written("x.png", content), reason)


def test_what_is_not_pixels_is_not_unpacked(written):
    packer = zlib.compressobj()
    bomb = b"".join(packer.compress(bytes(2**20)) for _ in range(32)) + packer.flush()
    chunks = [(b"zTXt", b"a\0\0" + bomb), (b"iCCP", b"a\0\0" + bomb), (b"acTL", b"x")]
    path = written("x.png", png_of(2, 2, *chunks, n_bytes=6))
    assert read(path).shape == (1, 2, 2)


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
    monkeypatch.setattr(archives, "MOST_BYTES", 2**20)
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
    monkeypatch.setattr(archives, "MOST_BYTES", 2**40)
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
    monkeypatch.setattr(archives, "MOST_LIST_BYTES", 100)
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
    refused(listed, written("c.zip", content), "more than 100 bytes of names")


def mat_element(kind, content):
    return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)


def mat_array(kind, sizes, *parts, name=b"x"):
    head = mat_element(6, struct.pack("<II", kind, 0))
    head += mat_element(5, struct.pack(f"<{len(sizes)}i", *sizes)) + mat_element(1, name)
    return mat_element(14, head + b"".join(parts))


def mat_file(*variables):
    return b"MATLAB".ljust(124) + b"\0\1IM" + b"".join(variables)


def nested(depth):
    content = mat_array(6, (1, 1), mat_element(9, bytes(8)))
    for _ in range(depth):
        content = mat_array(1, (1, 1), content)
    return content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (mat_file(mat_array(1, (2**31 - 1, 2**31 - 1))), "an array of sizes"),
        (mat_file(mat_array(1, (1000, 1000))), "an array of sizes"),
        (mat_file(mat_array(6, (-1, 1))), "an array of sizes"),
        (mat_file(nested(10_000)), "nested more than 8 levels"),
        (mat_file(mat_array(17, (1, 1))), "an array of class 17"),
        (mat_file(mat_array(6, (1, 1), mat_element(99, bytes(8)))), "numbers of type 99"),
        (mat_file(mat_array(6, (1, 1))), "not enough values"),
        (mat_file(mat_array(4, (1, 1), mat_element(9, bytes(8)))), "text of type 9"),
        (mat_file(mat_array(4, (1, 1), mat_element(16, b"\xff"))), "can't decode"),
        (mat_file(mat_array(1, (1, 1), mat_element(9, bytes(8)))), "a cell of type 9"),
        (mat_file(mat_array(2, (1, 1), mat_element(5, bytes(4)), mat_element(1, b"a"))), "fields"),
        (mat_file(struct.pack("<II", 14, 2**32 - 1)), "it states 4294967295 bytes"),
        (mat_file(struct.pack("<II", 15, 4) + b"none"), "incorrect header check"),
        (mat_file(mat_element(9, bytes(8))), "a variable of type 9"),
        (b"\0\0\0\0" + bytes(200), "it does not begin as one"),
    ],
)
def test_matlab_files_that_state_more_than_they_hold(written, content, reason):
    path = written("x.mat", content)
    refused(lambda path: read_mat(Blob(str(path), content), "x"), path, reason)


def test_too_many_cells(written, monkeypatch):
    monkeypatch.setattr(matlab, "MOST_CELLS", 3)
    content = mat_file(mat_array(1, (2, 2), *[mat_element(14, b"")] * 4))
    path = written("x.mat", content)
    refused(lambda path: read_mat(Blob(str(path), content), "x"), path, "more than 3 cells")


def test_a_packed_matlab_bomb():
    packed = zlib.compress(mat_array(6, (2**17, 1), mat_element(9, bytes(2**20))))
    content = mat_file(struct.pack("<II", 15, len(packed)) + packed)
    tracemalloc.reset_peak()
    with pytest.raises(ValueError, match="it has more than 1000 bytes unpacked"):
        matlab.read_variables(content, ("x",), 1000)
    assert tracemalloc.get_traced_memory()[1] < 2**17
    with pytest.raises(ValueError, match="it has more than 2000000 bytes unpacked"):
        matlab.read_variables(content + content[128:], ("y",), 2_000_000)


@pytest.mark.parametrize("packed", [False, True])
def test_matlab_files_are_read_as_scipy_reads_them(packed):
    cells = np.empty((2, 3), object)
    cells[:] = [[np.arange(3, dtype=np.uint8), "text", np.eye(2)], [1, [], np.array(["ab", "cd"])]]
    struct = {"data": np.ones((2, 3, 4), np.int16), "nlab": np.arange(3.0), "more": {"a": "b"}}
    file = io.BytesIO()
    savemat(file, {"c": cells, "s": struct, "other": 5.0}, do_compression=packed)
    ours = read_mat(Blob("a", file.getvalue()), "c", "s")
    theirs = loadmat(io.BytesIO(file.getvalue()), variable_names=["c", "s"])
    assert ours.keys() == {"c", "s"}
    assert ours["c"].shape == (2, 3)
    for one, other in zip(ours["c"].flat, theirs["c"].flat, strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours["s"].dtype == theirs["s"].dtype
    for name in ("data", "nlab"):
        np.testing.assert_array_equal(ours["s"][name].item(), theirs["s"][name].item())
    assert ours["s"]["more"].item()["a"].item().tolist() == ["b"]


def test_matlab_files_of_the_other_byte_order():
    head = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, 1, 1)
    head += struct.pack(">HHcxxx", 1, 1, b"x") + struct.pack(">IId", 9, 8, 2.5)
    content = b"MATLAB".ljust(124) + b"\1\0MI" + struct.pack(">II", 14, len(head)) + head
    assert read_mat(Blob("a", content), "x")["x"].tolist() == [[2.5]]


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("rank = " + "[" * 20_000, "expected a TOML file"),
        ("n_iter = " + "9" * 5000, "expected a TOML file"),
        ("n_iter = 0x" + "f" * 5000, "n_iter=something huge: expected a whole number, of at most"),
        ("rank = [0x" + "f" * 5000 + "]", "rank=something huge: expected whole numbers"),
        ("rank = [[0x" + "f" * 5000 + "]]", None),
        ("scheme" + ".a" * 900 + " = 1", "scheme=.*: expected one of"),
        ("scheme" + ".a" * 9000 + " = 1", "1000 of them dots"),
        ("n_iter = nan", "n_iter=nan: expected a whole number"),
        ("n_iter = true", "n_iter=True: expected a whole number"),
        ("momentum = '0.5'", "momentum='0.5': expected a number"),
        ("n_iter = 1\nn_iter = 2", "expected a TOML file"),
        ("# " + "x" * 2**16, "expected a TOML file of at most 65536 bytes"),
        ("\udcff", "expected a TOML file"),
    ],
)
def test_configurations_that_ask_for_nonsense(written, text, reason):
    path = written("x.toml", text.encode(errors="surrogateescape"))
    if reason is None:
        with pytest.raises(ValueError, match="rank=something huge: expected integers"):
            config.make_estimator(config.read_options(path), 0)
    else:
        refused(config.read_options, path, reason)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"outcome": {}, "seconds": 1' + "0" * 400 + "}", "9" * 5000]
)
def test_outcomes_that_make_no_sense_are_made_again(tmp_path, text):
    run = Run("reproduction.figure7", {"seed": 1})
    run.path(tmp_path).write_text(text)
    assert run.outcome(tmp_path) is None
