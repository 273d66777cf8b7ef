"""COIL-100: objects on a turntable."""

import operator
import re
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.fetch import Remote, fetch, folders
from mporbm.datasets.formats import open_image, open_zip, read_member
from mporbm.datasets.loaders import as_bunch

REMOTE = Remote(
    "coil-100.zip",
    ("http://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-100/coil-100.zip",),
    "fcb4b8b01c0778f416d8d7a09f45082c4f7075cc74743dcddd5c44307bd4afe7",
)
ANGLES = tuple(range(0, 360, 5))
SHAPE = (128, 128, 3)
MEMBER = re.compile(r"coil-100/obj(100|[1-9]\d?)__(0|[1-9]\d{0,2})\.png")
DESCRIPTION = """\
COIL-100: 100 objects on a turntable, each from 72 angles (0, 5, .. 355 degrees), 7200 colour images
of 128x128 pixels (uint8, 0 to 255), 100 classes.

S. A. Nene, S. K. Nayar, H. Murase: Columbia Object Image Library (COIL-100). Technical Report
CUCS-006-96, Columbia University, 1996.

Terms of use: Columbia University, for research purposes.
"""

Member = tuple[zipfile.ZipFile, zipfile.ZipInfo]


def load_coil100(
    objects: Iterable[SupportsIndex] | None = None, *, return_X_y: bool = False
) -> Any:
    """COIL-100, objects on a turntable: colour images (n, 128, 128, 3), 72 of each object.

    Reads the official archive ``coil-100.zip`` or any number of parts ``coil-100*.zip`` of it.

    Parameters
    ----------
    objects
        The numbers (1 to 100) of the objects to read, in any order; by default all that are there.
    return_X_y
        Whether to give `(data, target)` only.

    Returns
    -------
    Bunch of data (uint8), target, target_names, angle (in degrees), DESCR and source; ordered by
    object, then angle
    """
    paths = _archives()
    with ExitStack() as stack:
        members = _members([stack.enter_context(open_zip(path)) for path in paths])
        chosen = _chosen(objects, members, paths)
        data = np.empty((len(chosen), len(ANGLES), *SHAPE), np.uint8)
        for images, number in zip(data, chosen, strict=True):
            _read_object(images, number, members[number])
    return as_bunch(
        data.reshape(-1, *SHAPE),
        np.repeat(np.arange(len(chosen)), len(ANGLES)),
        [f"obj{number}" for number in chosen],
        description=DESCRIPTION,
        source=(
            f"{len(chosen)} of the 100 objects, from {', '.join(path.name for path in paths)}."
        ),
        return_X_y=return_X_y,
        angle=np.tile(np.array(ANGLES), len(chosen)),
    )


def _archives() -> list[Path]:
    for folder in folders("coil100"):
        if paths := sorted(folder.glob("coil-100*.zip")):
            return [fetch("coil100", REMOTE) if p.name == REMOTE.name else p for p in paths]
    return [fetch("coil100", REMOTE)]


def _members(archives: list[zipfile.ZipFile]) -> dict[int, dict[int, Member]]:
    """The images of all archives, by object and angle."""
    found: dict[int, dict[int, Member]] = {}
    for archive in archives:
        for member in archive.infolist():
            if match := MEMBER.fullmatch(member.filename):
                number, angle = int(match[1]), int(match[2])
                found.setdefault(number, {}).setdefault(angle, (archive, member))
    return found


def _chosen(objects: Any, members: dict[int, Any], paths: list[Path]) -> list[int]:
    """The numbers of the objects to read, in order."""
    there = sorted(members)
    if not there:
        raise ValueError(
            f"{paths[0]}: expected members such as coil-100/obj1__0.png, but it has none."
        )
    if objects is None:
        return there
    try:
        numbers = sorted({operator.index(number) for number in objects})
    except TypeError as error:
        raise TypeError(
            f"objects={objects!r}: expected the numbers of objects, such as [41, 42]: {error}."
        ) from error
    if not numbers:
        raise ValueError(f"objects={objects!r}: expected at least one of {_ranges(there)}.")
    if absent := [number for number in numbers if number not in members]:
        raise ValueError(
            f"objects: expected some of {_ranges(there)}, which are in {paths[0].parent}, got also "
            f"{_ranges(absent)}; all 100 are in {REMOTE.urls[0]}."
        )
    return numbers


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers in words, such as 1-3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _read_object(images: NDArray[np.uint8], number: int, members: dict[int, Member]) -> None:
    """Fill in the images of an object."""
    for image, angle in zip(images, ANGLES, strict=True):
        if angle not in members:
            raise ValueError(
                f"coil100: expected {len(ANGLES)} images of object {number}, but "
                f"coil-100/obj{number}__{angle}.png is in no archive; get it from {REMOTE.urls[0]}."
            )
        archive, member = members[angle]
        blob = read_member(archive, member, str(archive.filename))
        image[...] = np.asarray(open_image(blob, "PNG", (SHAPE[1], SHAPE[0])).convert("RGB"))
