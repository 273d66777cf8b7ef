"""Where the files of a data set are: a folder of the user, the cache, or the publisher."""

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..cache import cache_folder
from ..extras import extra

DATA_VARIABLE = "MPORBM_DATA"
TIMEOUT = 30.0
"""Seconds that a server may be silent."""


class DatasetNotFoundError(OSError):
    """A data set that is neither on this computer nor can be downloaded."""


@dataclass(frozen=True)
class Remote:
    """A file as it is published.

    Parameters
    ----------
    name
        Its name on this computer.
    urls
        Its addresses, in the order to try them.
    sha256
        Its SHA-256; without one it is not downloaded.
    aliases
        Other names under which users have it.
    members
        The files of an archive that may be there by themselves instead.
    checked_inside
        Whether what is read out of it is checked by hashes, so that it needs none itself.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str | None = None
    aliases: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    checked_inside: bool = False


def folders(dataset: str) -> list[Path]:
    """The folders to look for a data set in: that of the user, if there is one, and the cache."""
    value = os.environ.get(DATA_VARIABLE)
    if not value:
        return [cache_folder(dataset)]
    root = Path(value).expanduser()
    if not root.is_dir():
        raise NotADirectoryError(
            f"{DATA_VARIABLE}={value}: expected a folder with one folder for each data set, such "
            f"as {root / dataset}, but there is no such folder; create it, or unset the variable."
        )
    return [root / dataset, cache_folder(dataset)]


def fetch(dataset: str, remote: Remote) -> Path:
    """A published file: one of the user, that of the cache, or a new download."""
    *own, cache = folders(dataset)
    for path in (folder / remote.name for folder in (*own, cache)):
        if path.is_file() and _is_published(path, remote):
            return path
        if path.is_file() and path.parent != cache:
            raise ValueError(
                f"{path}: expected the file as it is published, of SHA-256 {remote.sha256}, got "
                f"other bytes; it may be cut off: get it again from {remote.urls[0]}, or delete it "
                f"to have that done."
            )
    return _download(dataset, remote)


def _is_published(path: Path, remote: Remote) -> bool:
    if remote.sha256 is None:
        return True
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == remote.sha256


def _download(dataset: str, remote: Remote) -> Path:
    if remote.sha256 is None and not remote.checked_inside:
        raise DatasetNotFoundError(
            f"{dataset}: {remote.name} is not on this computer, and is not downloaded, because no "
            f"hash of it is known. {_advice(dataset, remote)}"
        )
    with extra("datasets", f"{dataset}: {remote.name} is not on this computer"):
        import pooch
    server, logger = pooch.HTTPDownloader(timeout=TIMEOUT), pooch.get_logger()
    folder, reasons, level = cache_folder(dataset), [], logger.level
    for url in remote.urls:
        print(f"Downloading {url} to {folder}", file=sys.stderr)
        # Its own messages say less than ours, and more often.
        logger.setLevel("WARNING")
        try:
            options = {"fname": remote.name, "path": folder, "downloader": server}
            return Path(pooch.retrieve(url, remote.sha256, **options))
        # Those of servers and disks, and that of a file with another hash.
        except (OSError, ValueError) as error:
            reasons.append(f"{url}: {' '.join(str(error).split()).rstrip('.')}")
        finally:
            logger.setLevel(level)
    raise DatasetNotFoundError(
        f"{dataset}: {remote.name} is not on this computer and could not be downloaded: "
        f"{'; '.join(reasons)}. {_advice(dataset, remote)}"
    )


def _advice(dataset: str, remote: Remote) -> str:
    """Say how to get a file by hand."""
    *own, cache = folders(dataset)
    variable = f"${DATA_VARIABLE}/{dataset}"
    place = f"{own[0]} ({variable})" if own else f"{cache} or {variable}"
    members = f", or {', '.join(remote.members)} out of it," if remote.members else ""
    return f"Get it from {remote.urls[0]} and put it{members} into {place}."
