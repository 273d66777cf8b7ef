"""Files of named arrays and JSON metadata (safetensors): written atomically, never executed."""

import json
import os
import struct
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

FORMAT = "mporbm"
FORMAT_VERSION = 1
MOST_HEADER_BYTES = 2**26
"""The longest header: the histories of some 100,000 epochs."""
MOST_ARRAYS = 2**14
"""The most arrays of a file; a machine of 1000 cores has some thousands in a checkpoint."""
MOST_DEPTH = 32
"""How deep lists and tables of a header may be nested; ours are at 5."""
REAL_TYPES = {
    "BOOL",
    *(f"{kind}{n}" for kind in "IU" for n in (8, 16, 32, 64)),
    "F16",
    "F32",
    "F64",
}
"""Of arrays; safetensors has others, not all of which NumPy knows."""


class FileFormatError(ValueError):
    """A file that is not what it should be: truncated, corrupted, foreign or from the future."""


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, Any],
    header: Mapping[str, Any],
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
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with open(temporary, "wb") as file:
            mode = os.fstat(file.fileno()).st_mode
        save_file(contents, temporary, metadata)
        # save_file lets nobody else read its files; these are as readable as any other.
        os.chmod(temporary, mode)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        if former is not None and target.exists():
            _keep(target, former)
        os.replace(temporary, target)
    except SafetensorError as error:
        raise OSError(f"{target}: cannot be written: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep(target: Path, former: Path) -> None:
    """Give a file a second name that stays when the first is given to another."""
    former.unlink(missing_ok=True)
    try:
        os.link(target, former)
    except OSError:
        # Some file systems know one name for a file.
        os.replace(target, former)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the header of a file of one kind.

    Both take memory in proportion to the length of the file, whatever it says of itself.
    """
    if os.path.isdir(path):
        raise FileFormatError(f"{os.fspath(path)}: expected a {kind} file, got a folder.")
    try:
        _check_length(path)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = _check_header(path, kind, metadata)
            names = file.keys()
            if len(names) > MOST_ARRAYS:
                raise SafetensorError(f"it has {len(names)} arrays, more than {MOST_ARRAYS}")
            arrays = {name: _array(file, name) for name in names}
            if metadata.get("checksum") != str(_checksum(arrays, metadata["header"])):
                raise SafetensorError("its check sum is wrong")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileFormatError(f"{os.fspath(path)}: cannot be read: {error}") from error
    except (SafetensorError, UnicodeError) as error:
        raise FileFormatError(
            f"{os.fspath(path)}: expected a {kind} file of mporbm, got one that is truncated, "
            f"corrupted or of another program ({error})."
        ) from error
    return arrays, header


def _check_length(path: str | os.PathLike[str]) -> None:
    """Refuse a file by the length of its header, which stands first, before that is read."""
    with open(path, "rb") as file:
        (n_bytes,) = struct.unpack("<Q", file.read(8).ljust(8, b"\0"))
    if n_bytes > MOST_HEADER_BYTES:
        raise SafetensorError(f"its header has {n_bytes} bytes, more than {MOST_HEADER_BYTES}")


def _array(file: Any, name: str) -> NDArray[Any]:
    if (kind := file.get_slice(name).get_dtype()) not in REAL_TYPES:
        raise SafetensorError(f"its array {name} is of type {kind}")
    try:
        array: NDArray[Any] = file.get_tensor(name)
    except ValueError as error:
        raise SafetensorError(f"its array {name} has a shape that NumPy refuses") from error
    return array


def _checksum(arrays: Mapping[str, NDArray[Any]], header: str) -> int:
    checksum = zlib.crc32(header.encode())
    for name in sorted(arrays):
        checksum = zlib.crc32(arrays[name].tobytes(), zlib.crc32(name.encode(), checksum))
    return checksum


def _check_header(path: str | os.PathLike[str], kind: str, metadata: dict[str, str]) -> Any:
    name = os.fspath(path)
    if metadata.get("format") != FORMAT:
        raise FileFormatError(
            f"{name}: expected a {kind} file of mporbm, got a safetensors file of another program."
        )
    version = metadata.get("format_version")
    if version != str(FORMAT_VERSION):
        raise FileFormatError(
            f"{name}: expected format version {FORMAT_VERSION}, got {version!r}; install a newer "
            f"version of mporbm to read it."
        )
    if metadata.get("kind") != kind:
        raise FileFormatError(f"{name}: expected a {kind} file, got a {metadata.get('kind')} file.")
    try:
        header = json.loads(metadata.get("header", ""))
    # Integers of thousands of digits are no JSONDecodeError.
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{name}: its header is corrupted ({error}).") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{name}: its header is not a table of names and values.")
    if _depth(header) > MOST_DEPTH:
        raise FileFormatError(
            f"{name}: expected a header of at most {MOST_DEPTH} nested levels, got "
            f"{_depth(header)}."
        )
    return header


def _depth(value: Any) -> int:
    """How deep lists and tables are nested."""
    level, depth = [value], 0
    while level := [item for outer in level for item in _items(outer)]:
        depth += 1
    return depth


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
