"""DrivFace: faces of drivers."""

import csv
import io
import itertools
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.fetch import Remote, fetch
from mporbm.datasets.formats import Blob, open_image, open_zip, read_member
from mporbm.datasets.loaders import as_bunch
from mporbm.tensor.check import check_choice

from .archives import fetch_blob, find_blob
from .matlab import read_struct

REMOTE = Remote(
    "drivface.zip",
    ("https://archive.ics.uci.edu/static/public/378/drivface.zip",),
    aliases=("DrivFace.zip",),
    members=("DrivFace.mat", "DrivImages.zip", "drivPoints.txt"),
)
SIZE, PHOTOGRAPH = 80, (640, 480)
N_EACH = {"gaze": (27, 546, 33), "subject": (179, 170, 167, 90)}
"""How many samples each class has, in the order of the labels."""
NAMES = {
    "gaze": ["looking right", "frontal", "looking left"],
    "subject": ["subject 1", "subject 2", "subject 3", "subject 4"],
}
COLUMNS = {"gaze": "label", "subject": "subject"}
DESCRIPTION = """\
DrivFace: faces of four drivers in a car, 606 grey images of 80x80 pixels (uint8, 0 to 255). Classes
are the direction of the gaze (looking right 27, frontal 546, looking left 33) or the subject (179,
170, 167, 90). The publisher's DrivFace.mat holds images of that size; without it they are made from
the photographs (640x480): grey, cropped to the annotated face, resized with bilinear interpolation.
The two are not the same images: `source` says which these are.

K. Diaz-Chito, A. Hernandez-Sabate, A. M. Lopez: A reduced feature set for driver head pose
estimation. Applied Soft Computing 45 (2016) 98-107, doi 10.1016/j.asoc.2016.04.027.

Terms of use: "This database is free for academic usage. For other purposes, please contact PhD.
Katerine Diaz (kdiaz@cvc.uab.es)." The faces are those of identifiable people.
"""

COMPARED = 30
"""One in how many images is compared with its photograph."""

Rows = list[dict[str, str]]


def load_drivface(task: str = "gaze", *, return_X_y: bool = False) -> Any:
    """DrivFace, faces of drivers: grey images (606, 80, 80) of 3 gaze directions or 4 subjects.

    Parameters
    ----------
    task
        What the classes are: "gaze", 3 directions, or "subject", 4 people.
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8), target, target_names, DESCR and source
    """
    check_choice("task", task, tuple(N_EACH))
    published, photographs = _find("DrivFace.mat"), _find("DrivImages.zip")
    if published is None and photographs is None:
        fetch("drivface", REMOTE)
        published = _find("DrivFace.mat")
    if published is not None:
        data, gaze, source = _read_published(published)
        labels = gaze if task == "gaze" else _subjects_of(gaze)
    else:
        points = _need("drivPoints.txt")
        rows = _read_points(points)
        labels = _column(points, rows, COLUMNS[task])
        _check_counts(points.label, task, labels)
        data = _crop_faces(photographs or _need("DrivImages.zip"), points, rows)
        source = (
            "Faces cut out of the photographs of DrivImages.zip by the boxes of drivPoints.txt: "
            "grey, cropped, resized to 80x80 with bilinear interpolation; not the images of "
            "DrivFace.mat."
        )
    return as_bunch(
        data,
        labels - 1,
        list(NAMES[task]),
        description=DESCRIPTION,
        source=source,
        return_X_y=return_X_y,
    )


def _find(name: str) -> Blob | None:
    return find_blob("drivface", REMOTE, name)


def _need(name: str) -> Blob:
    return fetch_blob("drivface", REMOTE, name)


def _read_published(blob: Blob) -> tuple[NDArray[np.uint8], NDArray[np.int64], str]:
    """The images of DrivFace.mat, the gaze labels, and what was done."""
    values, gaze = read_struct(blob, "drivFaceD", "data", "nlab").values()
    n_samples, n_pixels = sum(N_EACH["gaze"]), SIZE * SIZE
    if values.shape == (n_pixels, n_samples):
        values = values.T
    if values.shape != (n_samples, n_pixels) or any(
        array.dtype.kind not in "buif" for array in (values, gaze)
    ):
        raise ValueError(
            f"{blob.label}: expected numbers drivFaceD.data of shape {(n_samples, n_pixels)} and "
            f"drivFaceD.nlab, got {values.dtype} of shape {values.shape} and {gaze.dtype}."
        )
    _check_counts(blob.label, "gaze", gaze)
    pixels, scaling = _as_pixels(blob, values.astype(np.float64))
    images, order = _oriented(pixels.reshape(-1, SIZE, SIZE))
    source = f"The images of the publisher's DrivFace.mat, {scaling}, read {order}."
    return images, gaze.ravel().astype(np.int64), source


def _oriented(images: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], str]:
    """Images upright, whichever way their pixels were put in a row, and which that was.

    It is down the columns in MATLAB, unless the photographs, where they are there, are more like
    the images as they are.
    """
    upright = np.ascontiguousarray(images.transpose(0, 2, 1))
    photographs, points = _find("DrivImages.zip"), _find("drivPoints.txt")
    if photographs is None or points is None:
        return upright, "down the columns, as is usual in MATLAB"
    some = slice(None, None, COMPARED)
    faces = _crop_faces(photographs, points, _read_points(points)[some])
    if _likeness(images[some], faces) > _likeness(upright[some], faces):
        return images, "along the rows, as a comparison with the photographs shows"
    return upright, "down the columns, as a comparison with the photographs shows"


def _likeness(images: NDArray[np.uint8], others: NDArray[np.uint8]) -> float:
    """The mean correlation of images with others."""
    one, other = (a.reshape(len(a), -1).astype(np.float64) for a in (images, others))
    one, other = (a - a.mean(axis=1, keepdims=True) for a in (one, other))
    scale = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean((one * other).sum(axis=1) / np.maximum(scale, 1.0)))


def _as_pixels(blob: Blob, values: NDArray[np.float64]) -> tuple[NDArray[np.uint8], str]:
    """Values as grey levels, and how they were made of them."""
    low, high = float(values.min()), float(values.max())
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise ValueError(
            f"{blob.label}: expected finite pixels that differ, got {low:g} to {high:g}."
        )
    pixels = np.rint(values)
    if low >= 0 and high <= 255 and (pixels == values).all():
        return pixels.astype(np.uint8), "as published"
    scaled = (values - low) * (255.0 / (high - low))
    return np.rint(scaled).astype(np.uint8), f"scaled from {low:g}..{high:g} to 0..255"


def _subjects_of(gaze: NDArray[np.int64]) -> NDArray[np.int64]:
    """The subjects in the order of DrivFace.mat, which has gaze labels only."""
    points = _need("drivPoints.txt")
    rows = _read_points(points)
    if not np.array_equal(_column(points, rows, COLUMNS["gaze"]), gaze):
        raise ValueError(
            f"{points.label}: expected the gaze labels of DrivFace.mat in the same order, got "
            f"others: its subjects may not be those of the images."
        )
    subjects = _column(points, rows, COLUMNS["subject"])
    _check_counts(points.label, "subject", subjects)
    return subjects


def _read_points(blob: Blob) -> Rows:
    n_samples = sum(N_EACH["gaze"])
    try:
        text = blob.content.decode("ascii")
        reader = csv.DictReader(io.StringIO(text), strict=True)
        rows = list(itertools.islice(reader, n_samples + 1))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{blob.label}: expected a table in text: {error}.") from error
    if len(rows) != n_samples:
        got = f"{len(rows)}; it may be cut off" if len(rows) < n_samples else "more"
        raise ValueError(f"{blob.label}: expected {n_samples} rows after the header, got {got}.")
    return rows


def _column(blob: Blob, rows: Rows, name: str) -> NDArray[np.int64]:
    """The integers of a column."""
    try:
        return np.array([int(row[name]) for row in rows], np.int64)
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{blob.label}: expected integers in a column {name}: {error}.") from error


def _check_counts(label: str, task: str, labels: NDArray[Any]) -> None:
    """Refuse labels whose classes have not the published numbers of samples."""
    values, counts = np.unique(labels, return_counts=True)
    expected = N_EACH[task]
    if values.tolist() != list(range(1, len(expected) + 1)) or tuple(counts) != expected:
        raise ValueError(
            f"{label}: expected {expected} samples of the labels 1 to {len(expected)} of the "
            f"{task}, got {counts.tolist()} of {values.tolist()}."
        )


def _crop_faces(photographs: Blob, points: Blob, rows: Rows) -> NDArray[np.uint8]:
    """The faces in grey, each from its annotated box."""
    from PIL import Image

    boxes = np.stack([_column(points, rows, name) for name in ("xF", "yF", "wF", "hF")], axis=1)
    faces = np.empty((len(rows), SIZE, SIZE), np.uint8)
    with open_zip(photographs) as archive:
        # Some names have a blank before .jpg.
        members = {PurePosixPath(m.filename).stem.strip(): m for m in archive.infolist()}
        for face, row, (x, y, width, height) in zip(faces, rows, boxes.tolist(), strict=True):
            name = str(row.get("fileName")).strip()
            if name not in members:
                raise ValueError(f"{photographs.label}: expected a photograph {name}.jpg.")
            blob = read_member(archive, members[name], photographs.label)
            grey = open_image(blob, "JPEG", PHOTOGRAPH).convert("L")
            box = (x, y, x + width, y + height)
            if not (0 <= x < box[2] <= grey.width and 0 <= y < box[3] <= grey.height):
                raise ValueError(
                    f"{points.label}: expected a box inside the {grey.width}x{grey.height} pixels "
                    f"of {name}, got {box}."
                )
            cropped = grey.crop(box).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
            face[...] = np.asarray(cropped)
    return faces
