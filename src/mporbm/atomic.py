"""Files that are written whole or not at all."""

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its place when the context ends well.

    After a failure nothing is left but what was at `path` before. Two threads or processes that
    write the same path do not disturb each other: the last one to finish wins.

    Parameters
    ----------
    path
        The file to write, or a folder that does not exist yet.
    durable
        Whether to wait until the file and its new name are on the disk, so that the system may
        crash right afterwards. Otherwise only this process may.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield temporary
        if durable:
            _flush(temporary)
        os.replace(temporary, target)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)
    if durable:
        _flush(target.parent)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8: a crash leaves the old one or the new one, never half of one."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
