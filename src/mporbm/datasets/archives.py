"""Files and members of zip archives as bytes in memory: nothing is extracted to a path."""

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .fetch import Remote, fetch, folders

MOST_BYTES = 2**28
"""The largest file that is unpacked into memory; the largest of all data sets has a fifth of it."""


@dataclass(frozen=True)
class Blob:
    """Bytes, and where they are from."""

    label: str
    content: bytes


@contextmanager
def open_zip(source: Path | Blob) -> Iterator[zipfile.ZipFile]:
    """A zip archive, from a file or from memory."""
    label = source.label if isinstance(source, Blob) else str(source)
    file = io.BytesIO(source.content) if isinstance(source, Blob) else source
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ValueError(
            f"{label}: expected a zip archive: {error}; it may be cut off: delete it and get it "
            f"again."
        ) from error
    with archive:
        yield archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, label: str) -> Blob:
    """A member of an open archive called `label`."""
    label = f"{label}: {member.filename}"
    if member.file_size > MOST_BYTES:
        raise ValueError(
            f"{label}: expected at most {MOST_BYTES} bytes, got a member of {member.file_size}."
        )
    try:
        return Blob(label, archive.read(member))
    # RuntimeError is what an encrypted member raises.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"{label}: expected a member that can be read: {error}; delete the archive and get it "
            f"again."
        ) from error


def read_gzip(path: Path) -> Blob:
    """The unpacked bytes of a gzip file."""
    try:
        with gzip.open(path) as file:
            content = file.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path}: expected a gzip file: {error}; it may be cut off: delete it and get it again."
        ) from error
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path}: expected at most {MOST_BYTES} bytes in it, got more.")
    return Blob(str(path), content)


def find_blob(dataset: str, remote: Remote, name: str) -> Blob | None:
    """A file of a data set if it is there: by itself, gzipped, or in its published archive."""
    archives = (remote.name, *remote.aliases)
    for folder in folders(dataset):
        if (path := folder / name).is_file():
            return Blob(str(path), path.read_bytes())
        if (path := folder / f"{name}.gz").is_file():
            return read_gzip(path)
        for archive in archives:
            if (path := folder / archive).is_file() and (blob := _in_archive(path, name, archives)):
                return blob
    return None


def fetch_blob(dataset: str, remote: Remote, name: str) -> Blob:
    """A file of a data set, whose published archive is downloaded if need be."""
    blob = find_blob(dataset, remote, name)
    if blob is None:
        path = fetch(dataset, remote)
        blob = find_blob(dataset, remote, name)
        if blob is None:
            raise ValueError(
                f"{path}: expected a member {name}, but it has none; delete it and get it again "
                f"from {remote.urls[0]}."
            )
    return blob


def _in_archive(source: Path | Blob, name: str, archives: tuple[str, ...]) -> Blob | None:
    """A member by its name, whatever folder it is in; also in an archive inside the archive."""
    label = source.label if isinstance(source, Blob) else str(source)
    with open_zip(source) as archive:
        members = {PurePosixPath(m.filename).name: m for m in archive.infolist()}
        if name in members:
            return read_member(archive, members[name], label)
        inner = next((members[a] for a in archives if a in members), None)
        if inner is None or isinstance(source, Blob):
            return None
        return _in_archive(read_member(archive, inner, label), name, archives)
