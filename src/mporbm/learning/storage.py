"""Files of named arrays and JSON metadata (safetensors): written atomically, never executed."""

import json
import os
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

FORMAT = "mporbm"
FORMAT_VERSION = 1


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
    """The arrays and the header of a file of one kind."""
    if os.path.isdir(path):
        raise FileFormatError(f"{os.fspath(path)}: expected a {kind} file, got a folder.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = _check_header(path, kind, metadata)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if metadata.get("checksum") != str(_checksum(arrays, metadata["header"])):
                raise SafetensorError("its check sum is wrong")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileFormatError(f"{os.fspath(path)}: cannot be read: {error}") from error
    except (SafetensorError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{os.fspath(path)}: expected a {kind} file of mporbm, got one that is truncated, "
            f"corrupted or of another program ({error})."
        ) from error
    return arrays, header


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
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{name}: its header is corrupted ({error}).") from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{name}: its header is not a table of names and values.")
    return header
