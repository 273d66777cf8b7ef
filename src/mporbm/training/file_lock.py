"""Locks: two runs never use one file or folder."""

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What file systems say that have no locks, such as some of clusters."""


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within this context no other run uses a file or a folder: it is refused.

    The system gives the lock back when a process ends, however it ends. What a killed one has left
    half written is removed. Where the file system has no locks, nobody is refused.
    """
    target = Path(path)
    is_folder = target.is_dir()
    lock = target / ".lock" if is_folder else target.with_name(f".{target.name}.lock")
    with _held(lock, target):
        if not is_folder:
            _remove_unfinished(target)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextlib.contextmanager
def _held(lock: Path, target: Path) -> Iterator[None]:
    while True:
        with open(lock, "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise BlockingIOError(
                    f"{target}: is used by another run (process {file.read() or 'unknown'}); wait "
                    f"for it to end, or choose another name."
                ) from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            if _is_named(file, lock):
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
                yield
                return


def _is_named(file: IO[str], path: Path) -> bool:
    """Whether a file is still the one of that name: whoever held a lock removes its file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _remove_unfinished(target: Path) -> None:
    unfinished = re.compile(rf"\.{re.escape(target.name)}\.\d+-\d+")
    for other in target.parent.iterdir():
        if unfinished.fullmatch(other.name):
            other.unlink(missing_ok=True)
