"""Files and members of zip archives as bytes in memory: nothing is extracted to a path."""

import gzip
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from .fetch import Remote, fetch, folders

MOST_BYTES = 2**28
"""The largest file that is unpacked into memory; the largest of all data sets has a fifth of it."""
MOST_LIST_BYTES = 2**24
"""The longest list of members of an archive, of some 200,000; COIL-100 has 7200."""
END_BYTES, END_BYTES_64 = 22, 76
LONGEST_END = END_BYTES_64 + END_BYTES + 2**16
"""The end of an archive, with the end of a larger one before it and a comment behind."""
MOST_RATIO = 1032
"""How many bytes one compressed byte can stand for, in the best case of DEFLATE."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How members may be packed: other methods take memory that a file can ask for."""


@dataclass(frozen=True)
class Blob:
    """Bytes, and where they are from."""

    label: str
    content: bytes


@contextmanager
def open_zip(source: Path | Blob) -> Iterator[zipfile.ZipFile]:
    """A zip archive, from a file or from memory."""
    label = source.label if isinstance(source, Blob) else str(source)
    with io.BytesIO(source.content) if isinstance(source, Blob) else open(source, "rb") as file:
        try:
            if _list_bytes(file) > MOST_LIST_BYTES:
                raise ValueError(f"it has more than {MOST_LIST_BYTES} bytes of names")
            archive = zipfile.ZipFile(file)
        # OSError is what a place before the beginning of the file raises.
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise ValueError(
                f"{label}: expected a zip archive: {error}; it may be cut off: delete it and get "
                f"it again."
            ) from error
        with archive:
            yield archive


def read_member(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    label: str,
    most_bytes: int | None = None,
) -> Blob:
    """A member of an open archive called `label`, by default of at most `MOST_BYTES`."""
    label = f"{label}: {member.filename}"
    most_bytes = MOST_BYTES if most_bytes is None else most_bytes
    if member.file_size > most_bytes:
        raise ValueError(
            f"{label}: expected at most {most_bytes} bytes, got a member of {member.file_size}."
        )
    try:
        if member.compress_type not in METHODS:
            raise NotImplementedError(f"it is packed by method {member.compress_type}")
        # Python fails in another way where both are so.
        if not member.filename or member.flag_bits & 1:
            raise zipfile.BadZipFile("it is encrypted, or has no name")
        # Memory is taken by these sizes; members stand before the list of them.
        if (
            member.compress_size > archive.start_dir
            or member.file_size > MOST_RATIO * member.compress_size
        ):
            raise zipfile.BadZipFile(f"it cannot have {member.file_size} bytes")
        with archive.open(member) as file:
            # Not all that is there: more may be packed than the size that it states.
            content = file.read(member.file_size)
    # OSError is what a member raises in a place that is none.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        ValueError,
        OSError,
    ) as error:
        raise ValueError(
            f"{label}: expected a member that can be read: {error}; delete the archive and get it "
            f"again."
        ) from error
    if len(content) != member.file_size:
        raise ValueError(
            f"{label}: expected {member.file_size} bytes, got {len(content)}; delete the archive "
            f"and get it again."
        )
    return Blob(label, content)


def _list_bytes(file: io.BufferedIOBase) -> int:
    """Read the length of the list of members at the end of an archive, or before that in zip64."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(length - LONGEST_END, 0))
    tail = file.read()
    end = len(tail) - END_BYTES
    if not (tail.startswith(b"PK\5\6", max(end, 0)) and tail.endswith(b"\0\0")):
        end = tail.rfind(b"PK\5\6")
    if not 0 <= end <= len(tail) - END_BYTES:
        return 0
    (n_bytes,) = struct.unpack_from("<I", tail, end + 12)
    wide = end - END_BYTES_64
    if wide >= 0 and tail.startswith(b"PK\6\6", wide):
        (wide_bytes,) = struct.unpack_from("<Q", tail, wide + 40)
        return int(wide_bytes if n_bytes == 2**32 - 1 else max(n_bytes, wide_bytes))
    return int(n_bytes)


def read_gzip(path: Path) -> Blob:
    """The unpacked bytes of a gzip file."""
    try:
        with gzip.open(path) as file:
            # As much memory is taken, even if there is less.
            content = file.read(min(MOST_BYTES, MOST_RATIO * path.stat().st_size) + 1)
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
