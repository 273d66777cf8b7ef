"""Files of named arrays and JSON metadata (safetensors): written atomically, never executed."""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..atomic import atomic_path

FORMAT = "mporbm"
FORMAT_VERSION = 1
MOST_HEADER_BYTES = 2**26
"""The longest header: the histories of some 100,000 epochs."""
MOST_ARRAYS = 2**14
"""The most arrays of a file; a machine of 1000 cores has some thousands in a checkpoint."""
MOST_DEPTH = 32
"""How deep lists and tables of a header may be nested; ours are at 5."""
REAL_TYPES = {
    *("BOOL", "F16", "F32", "F64"),
    *(f"{kind}{n}" for kind in "IU" for n in (8, 16, 32, 64)),
}
"""Of arrays; safetensors has others, not all of which NumPy knows."""


class FileFormatError(ValueError):
    """A file that is not what it should be: truncated, corrupted, foreign or from the future."""


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, ArrayLike],
    header: Mapping[str, object],
    *,
    former: Path | None = None,
) -> None:
    """Write a file of one kind; a crash leaves the old file or the new one, never half of one.

    The old one is kept under the name `former`, if there is one.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"{target}: expected an existing folder to write to.")
    contents = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(header)
    if len(text) > MOST_HEADER_BYTES // 2:
        raise ValueError(
            f"{target}: expected a header of at most {MOST_HEADER_BYTES // 2} characters, got "
            f"{len(text)}; it has too long a history."
        )
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "header": text,
        "checksum": str(_checksum(contents, text)),
    }
    with atomic_path(target, durable=True, former=former) as temporary:
        temporary.touch()
        mode = temporary.stat().st_mode
        try:
            save_file(contents, temporary, metadata)
        except SafetensorError as error:
            raise OSError(f"{target}: cannot be written: {error}") from error
        # save_file lets nobody else read its files; these are as readable as any other.
        temporary.chmod(mode)


def read(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    """The arrays and the header of a file of one kind.

    Both take memory in proportion to the length of the file, whatever it says of itself.
    """
    if os.path.isdir(path):
        raise FileFormatError(f"{os.fspath(path)}: expected a {kind} file, got a folder.")
    try:
        with open(path, "rb") as start:
            (n_bytes,) = struct.unpack("<Q", start.read(8).ljust(8, b"\0"))
        if n_bytes > MOST_HEADER_BYTES:
            raise SafetensorError(f"its header has {n_bytes} bytes, more than {MOST_HEADER_BYTES}")
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = _check_header(path, kind, metadata)
            if len(names := file.keys()) > MOST_ARRAYS:
                raise SafetensorError(f"it has {len(names)} arrays, more than {MOST_ARRAYS}")
            for name in names:
                if (dtype := file.get_slice(name).get_dtype()) not in REAL_TYPES:
                    raise SafetensorError(f"its array {name} is of type {dtype}")
            arrays: dict[str, np.ndarray] = {name: file.get_tensor(name) for name in names}
            if metadata.get("checksum") != str(_checksum(arrays, metadata["header"])):
                raise SafetensorError("its check sum is wrong")
    except (FileNotFoundError, FileFormatError):
        raise
    except OSError as error:
        raise FileFormatError(f"{os.fspath(path)}: cannot be read: {error}") from error
    # ValueError is what NumPy says of a shape that it refuses.
    except (SafetensorError, ValueError) as error:
        raise FileFormatError(
            f"{os.fspath(path)}: expected a {kind} file of mporbm, got one that is truncated, "
            f"corrupted or of another program ({error})."
        ) from error
    return arrays, header


def _checksum(arrays: Mapping[str, np.ndarray], header: str) -> int:
    checksum = zlib.crc32(header.encode())
    for name in sorted(arrays):
        checksum = zlib.crc32(arrays[name].tobytes(), zlib.crc32(name.encode(), checksum))
    return checksum


def _check_header(
    path: str | os.PathLike[str], kind: str, metadata: Mapping[str, str]
) -> dict[str, object]:
    name, version = os.fspath(path), metadata.get("format_version")
    if metadata.get("format") != FORMAT:
        raise FileFormatError(
            f"{name}: expected a {kind} file of mporbm, got a safetensors file of another program."
        )
    if version != str(FORMAT_VERSION):
        raise FileFormatError(
            f"{name}: expected format version {FORMAT_VERSION}, got {version!r}; install a newer "
            f"version of mporbm to read it."
        )
    if metadata.get("kind") != kind:
        raise FileFormatError(f"{name}: expected a {kind} file, got a {metadata.get('kind')} file.")
    try:
        header = json.loads(metadata.get("header", ""))
        depth = _depth(header)
    # Integers of thousands of digits are no JSONDecodeError.
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name}: its header is corrupted ({error}).") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{name}: its header is not a table of names and values.")
    if depth > MOST_DEPTH:
        raise FileFormatError(
            f"{name}: expected a header of at most {MOST_DEPTH} nested levels, got {depth}."
        )
    return header


def _depth(value: object) -> int:
    """How deep lists and tables are nested."""
    if not isinstance(value, dict | list):
        return 0
    items = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, items), default=0)
