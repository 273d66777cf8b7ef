"""Every loader on small files of the published formats, and what it says of wrong ones."""

import dataclasses
import gzip
import hashlib
import io
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image
from scipy.io import loadmat, savemat

from dataset_fixtures import check_bunch
from mporbm.datasets import DatasetNotFoundError
from reproduction import datasets
from reproduction.datasets import alphadigits, arcene, coil100, density, drivface, matlab


def mat(**variables):
    file = io.BytesIO()
    savemat(file, variables)
    return file.getvalue()


def encoded(pixels, kind):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


# Binary Alphadigits


@pytest.fixture
def small_alphadigits(put, rng, monkeypatch):
    """Two classes of three images, and their file."""
    monkeypatch.setattr(alphadigits, "N_CLASSES", 2)
    monkeypatch.setattr(alphadigits, "N_EACH", 3)
    dat = np.empty((2, 3), object)
    for k in range(dat.size):
        dat.flat[k] = rng.integers(2, size=(20, 16), dtype=np.uint8)
    content = mat(dat=dat, classlabels=np.array([["0", "A"]], object))
    remote = dataclasses.replace(alphadigits.REMOTE, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(alphadigits, "REMOTE", remote)
    return dat, put("alphadigits", "binaryalphadigs.mat", content)


def test_alphadigits(small_alphadigits):
    dat, path = small_alphadigits
    bunch = datasets.load_alphadigits()
    assert_array_equal(bunch.data, np.stack(list(dat.flat)))
    assert bunch.data.dtype == np.uint8
    assert_array_equal(bunch.target, [0, 0, 0, 1, 1, 1])
    assert bunch.target_names == ["0", "A"]
    check_bunch(bunch, datasets.load_alphadigits)
    # SciPy does not get to see other bytes.
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"binaryalphadigs\.mat: expected the file as it is publ"):
        datasets.load_alphadigits()


# Arcene


@pytest.fixture
def arcene_files(rng, monkeypatch):
    """The files of four samples of five features in each part, and the values."""
    monkeypatch.setattr(arcene, "N_EACH", 4)
    monkeypatch.setattr(arcene, "N_FEATURES", 5)
    monkeypatch.setattr(arcene, "N_POSITIVE", 1)
    values = rng.integers(1000, size=(8, 5))
    files = {}
    for part, rows in (("train", values[:4]), ("valid", values[4:])):
        published = rows.astype("<u2").tobytes() + bytes([0, 0, 1, 0])
        monkeypatch.setitem(arcene.SHA256, part, hashlib.sha256(published).hexdigest())
        lines = [" ".join(map(str, row)) + " \n" for row in rows]
        files[f"arcene_{part}.data"] = "".join(lines).encode()
        files[f"arcene_{part}.labels"] = b"-1\n-1\n1\n-1\n"
    return files, values


def check_arcene(values):
    bunch = datasets.load_arcene()
    assert_array_equal(bunch.data, values)
    assert bunch.data.dtype == np.uint16
    assert_array_equal(bunch.target, [0, 0, 1, 0, 0, 0, 1, 0])
    assert bunch.target_names == ["normal", "cancer"]
    check_bunch(bunch, datasets.load_arcene)


@pytest.mark.parametrize("packed", [False, True])
def test_arcene(arcene_files, put, packed):
    files, values = arcene_files
    for name, content in files.items():
        if packed and name.endswith(".data"):
            put("arcene", f"{name}.gz", gzip.compress(content))
        else:
            put("arcene", name, content)
    check_arcene(values)


@pytest.mark.parametrize("name", ["arcene.zip", "ARCENE.zip"])
def test_arcene_in_its_archive(arcene_files, put, name):
    """In it, one file is beside the folder of the others."""
    files, values = arcene_files
    beside = "arcene_valid.labels"
    put(
        "arcene",
        name,
        zipped(
            {member if member == beside else f"ARCENE/{member}": files[member] for member in files}
        ),
    )
    check_arcene(values)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("arcene_train.data", lambda c: c[:-9], r"expected 5 integers in each of 4 lines"),
        (
            "arcene_train.data",
            lambda c: c[: c.index(b"\n")],
            r"expected 4 lines of 5 integers, got 1",
        ),
        ("arcene_valid.data", lambda c: b"", r"expected 4 lines of 5 integers, got 0"),
        ("arcene_valid.data", lambda c: b"-" + c, r"expected values from 0 to 999, got -"),
        ("arcene_valid.data", lambda c: b"0 0 0 0 1\n" * 4, r"expected values and labels as they"),
        ("arcene_train.labels", lambda c: c[:-4], r"expected 4 lines of 1 integers, got"),
        ("arcene_train.labels", lambda c: b"1\n" * 4, r"expected 4 labels, 1 of them 1"),
        ("arcene_train.labels", lambda c: b"1\n0\n0\n0\n", r"expected 4 labels, 1 of them 1"),
        ("arcene_train.labels", lambda c: b"cancer\n", r"expected integers in text"),
    ],
)
def test_other_arcene(arcene_files, put, name, change, reason):
    for file, content in arcene_files[0].items():
        path = put("arcene", file, change(content) if file == name else content)
    with pytest.raises(ValueError, match=reason) as e:
        datasets.load_arcene()
    assert str(e.value).startswith(f"{path.parent / name}: ")


def test_labels_of_arcene_are_checked_with_its_values(arcene_files, put):
    for file, content in arcene_files[0].items():
        put("arcene", file, b"1\n-1\n-1\n-1\n" if file == "arcene_train.labels" else content)
    with pytest.raises(ValueError, match=r"expected values and labels as they are published"):
        datasets.load_arcene()


def test_an_archive_without_a_member(arcene_files, put):
    path = put("arcene", "arcene.zip", zipped({"readme": b""}))
    with pytest.raises(ValueError, match=r"expected a member arcene_train\.data") as e:
        datasets.load_arcene()
    assert str(e.value).startswith(f"{path}: ")


# Binary data of density estimators

DENSITIES = {
    "ocr_letters.test.data": (datasets.load_ocr_letters, "test", density.OCR_LETTERS, (16, 8)),
    "connect4.valid.data": (datasets.load_connect_four, "valid", density.CONNECT_FOUR, (7, 6, 3)),
}


@pytest.fixture(params=DENSITIES)
def small_density(request, rng, monkeypatch):
    """The name of a file of five samples, its content, the samples, and what loads them."""
    load, subset, parts, shape = DENSITIES[request.param]
    samples = rng.integers(2, size=(5, *shape), dtype=np.uint8)
    if len(shape) == 3:
        samples = np.eye(3, dtype=np.uint8)[rng.integers(3, size=(5, *shape[:-1]))]
    part = density.Part(5, hashlib.sha256(samples.tobytes()).hexdigest())
    monkeypatch.setitem(parts, subset, part)
    lines = [",".join(map(str, sample.ravel())) for sample in samples]
    content = "\n".join(lines).encode() + b"\n"
    return request.param, content, samples, lambda: load(subset)


@pytest.mark.parametrize("packed", [False, True])
def test_densities(small_density, put, packed):
    name, content, samples, load = small_density
    if packed:
        put("density", f"{name}.gz", gzip.compress(content))
    else:
        put("density", name, content.replace(b"\n", b"\r\n"))
    bunch = load()
    assert_array_equal(bunch.data, samples)
    assert bunch.data.dtype == np.uint8
    assert "Terms of use: " in bunch.DESCR
    assert name in bunch.source


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c[:-9], r"expected \d+ integers in each of 5 lines, got \d+ in sample 5"),
        (lambda c: c[: c.index(b"\n")], r"expected 5 lines of \d+ integers, got 1; it may be cut"),
        (lambda c: c + c, r"expected \d+ integers in each of 5 lines, got more lines"),
        (lambda c: b"", r"expected 5 lines of \d+ integers, got 0"),
        (lambda c: c.replace(b",", b" "), r"expected \d+ integers in each of 5 lines, got 1 in"),
        (lambda c: b"2" + c[1:], r"expected values 0 and 1 only, got also 2\."),
        (lambda c: b"-1" + c[1:], r"expected values 0 and 1 only, got also -1\."),
        (lambda c: b"x" + c[1:], r"expected integers in text"),
        (lambda c: c[2:-1] + b"," + c[:1], r"expected \d+ integers"),
    ],
)
def test_other_densities(small_density, put, change, reason):
    name, content, _, load = small_density
    path = put("density", name, change(content))
    with pytest.raises(ValueError, match=reason) as e:
        load()
    assert str(e.value).startswith(f"{path}: ")


def test_other_values_of_densities(small_density, put):
    name, content, _, load = small_density
    lines = content.splitlines(keepends=True)
    path = put("density", name, b"".join(lines[::-1]))
    with pytest.raises(ValueError, match="expected values as they are published, of SHA-256") as e:
        load()
    assert str(e.value).startswith(f"{path}: ")
    assert f"/{name}." in str(e.value)


def test_squares_in_two_states(put, monkeypatch):
    monkeypatch.setitem(density.CONNECT_FOUR, "valid", density.Part(1, ""))
    squares = [b"0,1,0"] * 42
    squares[7] = b"1,1,0"
    put("density", "connect4.valid.data", b",".join(squares))
    match = r"expected exactly one 1 of 3 along the last mode, got 2 in sample 1 at \(1, 1\)\."
    with pytest.raises(ValueError, match=match):
        datasets.load_connect_four("valid")


@pytest.mark.usefixtures("home")
def test_densities_that_are_not_there(offline):
    with pytest.raises(DatasetNotFoundError, match=r"ocr_letters\.test\.data is not on this comp"):
        datasets.load_ocr_letters("test")
    (address,) = offline
    assert address.endswith("/datasets/ocr_letters/ocr_letters.test.data")
    with pytest.raises(ValueError, match=r"subset='train': expected 'valid' or 'test'\."):
        datasets.load_ocr_letters("train")


# DrivFace


@pytest.fixture
def faces(rng, monkeypatch):
    """Four photographs with boxes, as files, and the faces that the recipe makes of them."""
    monkeypatch.setitem(drivface.N_EACH, "gaze", (1, 2, 1))
    monkeypatch.setitem(drivface.N_EACH, "subject", (1, 1, 1, 1))
    header = "fileName,subject,imgNum,label,ang,xF,yF,wF,hF\n"
    boxes = [(0, 0, 640, 480), (10, 20, 100, 112), (600, 400, 40, 80), (5, 5, 80, 80)]
    lines, photographs, images = [], {}, []
    for k, (x, y, width, height) in enumerate(boxes):
        # Names of frontal images have a blank at their end.
        name = f"2013_{k + 1}_f " if k in (1, 2) else f"2013_{k + 1}_lr"
        lines.append(f"{name},{4 - k},1,{(1, 2, 2, 3)[k]},0,{x},{y},{width},{height}\n")
        coarse = rng.integers(256, size=(12, 16, 3), dtype=np.uint8)
        content = encoded(coarse.repeat(40, 0).repeat(40, 1), "JPEG")
        photographs[f"DrivImages/{name}.jpg"] = content
        grey = Image.open(io.BytesIO(content)).convert("L").crop((x, y, x + width, y + height))
        images.append(np.asarray(grey.resize((80, 80), Image.Resampling.BILINEAR)))
    files = {
        "drivPoints.txt": (header + "".join(lines)).encode(),
        "DrivImages.zip": zipped(photographs),
    }
    return files, np.stack(images)


@pytest.fixture
def read_here(monkeypatch):
    """DrivFace.mat is read in this process, which is faster."""

    def read(blob, variable, *fields):
        struct = loadmat(io.BytesIO(blob.content))[variable]
        return {name: struct[name].item() for name in fields}

    monkeypatch.setattr(drivface, "read_struct", read)


def published(images, nlab=(1, 2, 2, 3), **changes):
    """DrivFace.mat of images, pixels down the columns."""
    data = np.stack([image.ravel(order="F") for image in images]).astype(float)
    fields = {"data": data, "nlab": np.reshape(nlab, (-1, 1)), **changes}
    return mat(drivFaceD=fields)


def test_drivface_by_the_recipe(faces, put):
    files, images = faces
    for name, content in files.items():
        put("drivface", name, content)
    gaze, subject = datasets.load_drivface(), datasets.load_drivface(task="subject")
    assert_array_equal(gaze.data, images)
    assert_array_equal(subject.data, images)
    assert_array_equal(gaze.target, [0, 1, 1, 2])
    assert_array_equal(subject.target, [3, 2, 1, 0])
    assert gaze.target_names == ["looking right", "frontal", "looking left"]
    assert subject.target_names == ["subject 1", "subject 2", "subject 3", "subject 4"]
    assert "DrivImages.zip by the boxes of drivPoints.txt" in gaze.source
    check_bunch(gaze, datasets.load_drivface)


def test_drivface_as_published(faces, put):
    """The publisher's images are preferred; subjects are in the other file."""
    files, images = faces
    images = 255 - images
    put("drivface", "DrivFace.mat", published(images))
    bunch = datasets.load_drivface()
    assert_array_equal(bunch.data, images)
    assert bunch.data.dtype == np.uint8
    assert_array_equal(bunch.target, [0, 1, 1, 2])
    assert "DrivFace.mat, as published, read down the columns, as is usual" in bunch.source
    check_bunch(bunch, datasets.load_drivface)
    with pytest.raises(DatasetNotFoundError, match=r"or .*drivPoints\.txt out of it"):
        datasets.load_drivface("subject")
    put("drivface", "drivPoints.txt", files["drivPoints.txt"])
    assert_array_equal(datasets.load_drivface("subject").target, [3, 2, 1, 0])


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize("nested", [False, True])
def test_drivface_in_its_archive(faces, put, nested):
    files, images = faces
    members = {**files, "DrivFace.mat": published(images)}
    content = zipped({f"DrivFace/{name}": content for name, content in members.items()})
    put("drivface", "drivface.zip", zipped({"DrivFace.zip": content}) if nested else content)
    for task, target in (("gaze", [0, 1, 1, 2]), ("subject", [3, 2, 1, 0])):
        bunch = datasets.load_drivface(task)
        assert_array_equal(bunch.data, images)
        assert_array_equal(bunch.target, target)
        assert "DrivFace.mat" in bunch.source


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize("order", ["C", "F"])
def test_drivface_is_upright(faces, put, monkeypatch, order):
    """The photographs decide which way the pixels go."""
    monkeypatch.setattr(drivface, "COMPARED", 2)
    files, images = faces
    for name, content in files.items():
        put("drivface", name, content)
    data = np.stack([image.ravel(order=order) for image in images // 2])
    put("drivface", "DrivFace.mat", published(images, data=data))
    bunch = datasets.load_drivface()
    assert_array_equal(bunch.data, images // 2)
    assert {"C": "along the rows", "F": "down the columns"}[order] in bunch.source
    assert "comparison with the photographs" in bunch.source


@pytest.mark.usefixtures("read_here")
def test_drivface_that_is_scaled(faces, put):
    images = faces[1]
    put("drivface", "DrivFace.mat", published(images / 255.0 - 0.5))
    bunch = datasets.load_drivface()
    low, high = int(images.min()), int(images.max())
    expected = (images - float(low)) * 255.0 / (high - low)
    assert np.abs(bunch.data - expected).max() <= 0.5 + 1e-9
    assert (bunch.data.min(), bunch.data.max()) == (0, 255)
    assert f"scaled from {low / 255 - 0.5:g}..{high / 255 - 0.5:g} to 0..255" in bunch.source


@pytest.mark.usefixtures("read_here")
def test_drivface_with_samples_in_columns(faces, put):
    images = faces[1]
    data = np.stack([image.ravel(order="F") for image in images]).T
    put("drivface", "DrivFace.mat", published(images, data=data))
    assert_array_equal(datasets.load_drivface().data, images)


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"data": np.zeros((4, 100))}, r"expected numbers drivFaceD.data of shape \(4, 6400\)"),
        ({"data": np.array("faces")}, "expected numbers drivFaceD.data of shape"),
        ({"data": np.zeros((4, 6400))}, "expected finite pixels that differ"),
        ({"data": np.full((4, 6400), np.nan)}, "expected finite pixels that differ"),
        ({"nlab": np.array([1, 2, 2, 2])}, r"expected \(1, 2, 1\) samples of the labels 1 to 3"),
        ({"nlab": np.array([1, np.nan, 2, 3])}, r"expected \(1, 2, 1\) samples of the labels"),
        ({"nlab": np.array("left")}, "expected numbers drivFaceD.data of shape"),
    ],
)
def test_other_drivface(faces, put, change, reason):
    path = put("drivface", "DrivFace.mat", published(faces[1], **change))
    with pytest.raises(ValueError, match=reason) as e:
        datasets.load_drivface()
    assert str(e.value).startswith(f"{path}: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no MATLAB file", "appears to be truncated"),
        (mat(drivFaceD=np.eye(3))[:200], ""),
        (mat(drivFaceD=np.eye(3)), "IndexError"),
        (mat(drivFaceD={"nlab": 1}), "data"),
        (mat(faces=np.eye(3)), "KeyError: 'drivFaceD'"),
        (mat(drivFaceD={"data": np.array([[1], [2, 3]], object), "nlab": 1}), "Object arrays"),
        (mat(drivFaceD=np.eye(7)).replace(b"\7\0\0\0", b"\xff\xff\xff\x7f"), ""),
    ],
    ids=["other", "cut off", "no struct", "no field", "no variable", "cells", "huge"],
)
def test_drivface_of_other_files(put, content, reason):
    path = put("drivface", "DrivFace.mat", content)
    with pytest.raises(ValueError, match=rf"expected a MATLAB 5 file.*{reason}") as e:
        datasets.load_drivface()
    assert str(e.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("reader", "reason"),
    [("import os; os.abort()", "its reader ended by 6"), ("while True: pass", "timed out")],
)
def test_a_file_that_ends_or_stops_its_reader(put, monkeypatch, reader, reason):
    """Some files end the process in which SciPy reads them, but not this one."""
    monkeypatch.setattr(matlab, "READER", reader)
    monkeypatch.setattr(matlab, "MOST_SECONDS", 1.0)
    put("drivface", "DrivFace.mat", mat(drivFaceD={"data": np.eye(3), "nlab": np.eye(3)}))
    with pytest.raises(ValueError, match=rf"DrivFace\.mat: expected a MATLAB 5 file.*{reason}"):
        datasets.load_drivface()


@pytest.mark.usefixtures("read_here")
def test_subjects_in_another_order(faces, put):
    files, images = faces
    put("drivface", "DrivFace.mat", published(images, nlab=(2, 1, 2, 3)))
    put("drivface", "drivPoints.txt", files["drivPoints.txt"])
    with pytest.raises(ValueError, match=r"drivPoints\.txt: expected the gaze labels of DrivFace"):
        datasets.load_drivface("subject")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"2013_4_lr,1,1,3,0,5,5,80,80\n", b"", "expected 4 rows after the header, got 3"),
        (b"2013_1_lr,4,1,1,", b"2013_1_lr,4,1,2,", r"expected \(1, 2, 1\) samples of the labels"),
        (b",label,", b",class,", "expected integers in a column label"),
        (b",5,5,80,80", b",5,5,80", "expected integers in a column hF"),
        (b",5,5,80,80", b",5,5,80,8o", "expected integers in a column hF"),
        (b",5,5,80,80", b",5,5,80,480", "expected a box inside the 640x480 pixels of 2013_4_lr"),
        (b",5,5,80,80", b",5,5,0,80", "expected a box inside"),
        (b",5,5,80,80", b",-5,5,80,80", "expected a box inside"),
        (b"2013_4_lr", b"2013_\xff_lr", "expected a table in text"),
    ],
)
def test_other_points(faces, put, old, new, reason):
    files = faces[0]
    assert old in files["drivPoints.txt"]
    put("drivface", "DrivImages.zip", files["DrivImages.zip"])
    path = put("drivface", "drivPoints.txt", files["drivPoints.txt"].replace(old, new))
    with pytest.raises(ValueError, match=reason) as e:
        datasets.load_drivface()
    assert str(e.value).startswith(f"{path}: ")


def test_other_photographs(faces, put):
    put("drivface", "drivPoints.txt", faces[0]["drivPoints.txt"])
    for content, reason in [
        (b"no zip file", r"DrivImages\.zip: expected a zip archive"),
        (zipped({}), r"DrivImages\.zip: expected a photograph 2013_1_lr\.jpg"),
        (zipped({"2013_1_lr.jpg": b""}), r"2013_1_lr\.jpg: expected a JPEG image of 640x480"),
    ]:
        put("drivface", "DrivImages.zip", content)
        with pytest.raises(ValueError, match=reason):
            datasets.load_drivface()


# COIL-100


@pytest.fixture
def coil(rng, monkeypatch):
    """Members of archives for the objects 3, 7 and 12, and their images by object and angle."""
    monkeypatch.setattr(coil100, "ANGLES", (0, 5, 10))
    members, images = {}, {}
    for number in (12, 3, 7):
        for angle in (10, 0, 5):
            pixels = rng.integers(256, size=(128, 128, 3), dtype=np.uint8)
            members[f"coil-100/obj{number}__{angle}.png"] = encoded(pixels, "PNG")
            images[number, angle] = pixels
    return members, images


def expected_coil(images, *numbers):
    return np.stack([images[number, angle] for number in numbers for angle in (0, 5, 10)])


def test_coil(coil, put):
    """Any number of parts, which may hold other things too."""
    members, images = coil
    parts = {"a": {"coil-100/readme.txt": b""}, "b": {}}
    for name, content in members.items():
        parts["a" if "obj3_" in name else "b"][name] = content
    for part, content in parts.items():
        put("coil100", f"coil-100_{part}.zip", zipped(content))
    bunch = datasets.load_coil100()
    assert_array_equal(bunch.data, expected_coil(images, 3, 7, 12))
    assert_array_equal(bunch.target, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    assert_array_equal(bunch.angle, [0, 5, 10] * 3)
    assert bunch.target_names == ["obj3", "obj7", "obj12"]
    assert bunch.source == "3 of the 100 objects, from coil-100_a.zip, coil-100_b.zip."
    check_bunch(bunch, datasets.load_coil100)


@pytest.mark.parametrize("objects", [[12, 3], (3, 12), range(3, 13, 9), np.array([3, 12, 3])])
def test_some_objects(coil, put, objects):
    put("coil100", "coil-100_all.zip", zipped(coil[0]))
    bunch = datasets.load_coil100(objects)
    assert_array_equal(bunch.data, expected_coil(coil[1], 3, 12))
    assert bunch.target_names == ["obj3", "obj12"]
    assert_array_equal(bunch.target, [0, 0, 0, 1, 1, 1])


def test_only_the_chosen_objects_are_read(coil, put):
    broken = {name: content if "obj3_" in name else b"" for name, content in coil[0].items()}
    put("coil100", "coil-100_all.zip", zipped(broken))
    assert len(datasets.load_coil100([3]).data) == 3
    with pytest.raises(ValueError, match=r"coil-100/obj7__0\.png: expected a PNG image of 128x128"):
        datasets.load_coil100([7])


def test_the_official_archive(coil, put, monkeypatch):
    put("coil100", "coil-100.zip", zipped(coil[0]))
    with pytest.raises(ValueError, match=r"coil-100\.zip: expected the file as it is published"):
        datasets.load_coil100()
    monkeypatch.setattr(coil100, "REMOTE", dataclasses.replace(coil100.REMOTE, sha256=None))
    assert len(datasets.load_coil100().data) == 9


def test_objects_that_are_not_there(coil, put):
    put("coil100", "coil-100_all.zip", zipped(coil[0]))
    match = r"objects: expected some of 3, 7, 12, which are in .*, got also 1-2, 99; all 100 are in"
    with pytest.raises(ValueError, match=match):
        datasets.load_coil100([1, 2, 3, 99])
    with pytest.raises(ValueError, match="expected at least one of 3, 7, 12"):
        datasets.load_coil100([])


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
@pytest.mark.parametrize("objects", [3, [3.5], ["3"], "3"])
def test_objects_that_are_no_numbers(coil, put, objects):
    put("coil100", "coil-100_all.zip", zipped(coil[0]))
    with pytest.raises(TypeError, match=r"objects=.*: expected the numbers of objects, such as"):
        datasets.load_coil100(objects)


def test_an_object_without_all_angles(coil, put):
    del coil[0]["coil-100/obj7__5.png"]
    put("coil100", "coil-100_all.zip", zipped(coil[0]))
    with pytest.raises(ValueError, match=r"expected 3 images of object 7.*obj7__5\.png is in no"):
        datasets.load_coil100()
    assert len(datasets.load_coil100([3]).data) == 3


def test_other_archives(put):
    path = put("coil100", "coil-100_a.zip", b"no zip file")
    with pytest.raises(ValueError, match="expected a zip archive"):
        datasets.load_coil100()
    path.write_bytes(zipped({"obj1__0.png": b""}))
    with pytest.raises(ValueError, match=r"expected members such as coil-100/obj1__0\.png"):
        datasets.load_coil100()
