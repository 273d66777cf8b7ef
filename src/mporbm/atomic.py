"""Files that are written whole or not at all, and used by one run at a time."""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
"""What file systems say that have no locks, such as some of clusters."""


@contextlib.contextmanager
def atomic_path(
    path: str | os.PathLike[str], *, durable: bool = False, former: Path | None = None
) -> Iterator[Path]:
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
    former
        Where to keep the file that was there before, if any.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield temporary
        if durable:
            _flush(temporary)
        if former is not None and target.exists():
            _keep(target, former)
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


def _keep(target: Path, former: Path) -> None:
    """Give a file a second name that stays when the first is given to another."""
    former.unlink(missing_ok=True)
    try:
        os.link(target, former)
    except OSError:
        # Some file systems know one name for a file.
        os.replace(target, former)


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
            unfinished = re.compile(rf"\.{re.escape(target.name)}\.\d+-\d+")
            for other in target.parent.iterdir():
                if unfinished.fullmatch(other.name):
                    other.unlink(missing_ok=True)
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
            # Whoever held a lock removes its file: another may have that name now.
            try:
                named = lock.stat()
            except FileNotFoundError:
                continue
            if os.path.samestat(os.fstat(file.fileno()), named):
                file.truncate(0)
                file.write(str(os.getpid()))
                file.flush()
                yield
                return
