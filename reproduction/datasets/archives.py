"""Files of a data set out of its published archive, wherever that is."""

from pathlib import Path, PurePosixPath

from mporbm.datasets.fetch import Remote, fetch, folders
from mporbm.datasets.formats import Blob, open_zip, read_gzip, read_member


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
