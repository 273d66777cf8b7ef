"""Files that others wrote, as bytes and images in memory: nothing is extracted to a path.

What is not of its format, or would take more memory than such files need, is refused by its name.
"""

import gzip
import io
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..extras import extra

if TYPE_CHECKING:
    import PIL.Image

MOST_BYTES = 2**28
"""The largest file that is unpacked into memory; the largest of all data sets has a fifth of it."""
MOST_LIST_BYTES = 2**24
"""The longest list of members of an archive, of some 200,000; COIL-100 has 7200."""
MOST_RATIO = 1032
"""How many bytes one compressed byte can stand for, in the best case of DEFLATE."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How members may be packed: other methods take memory that a file can ask for."""
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError)
"""What broken archives raise; OSError for a place before their beginning."""
MOST_PIXELS = 2**26
"""The largest image, of 8192x8192 pixels."""


@dataclass(frozen=True)
class Blob:
    """Bytes, and where they are from."""

    label: str
    content: bytes


class _BoundedReader(io.BufferedReader):
    """A file of which no more is read at once than the list of members of an archive."""

    is_bounded = True

    def read(self, size: int | None = -1, /) -> bytes:
        if self.is_bounded and size is not None and size > MOST_LIST_BYTES:
            raise ValueError(f"it has more than {MOST_LIST_BYTES} bytes of names")
        return super().read(size)


@contextmanager
def open_zip(source: Path | Blob) -> Iterator[zipfile.ZipFile]:
    """A zip archive, from a file or from memory."""
    label = source.label if isinstance(source, Blob) else str(source)
    raw = io.BytesIO(source.content) if isinstance(source, Blob) else io.FileIO(source)
    with _BoundedReader(raw) as file:
        try:
            archive = zipfile.ZipFile(file)
            file.is_bounded = False
        except BROKEN as error:
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
        if len(content) != member.file_size:
            raise EOFError(f"it has {len(content)} bytes, not {member.file_size}")
    except BROKEN as error:
        raise ValueError(
            f"{label}: expected a member that can be read: {error}; delete the archive and get it "
            f"again."
        ) from error
    return Blob(label, content)


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


def open_image(blob: Blob, kind: str, size: tuple[int, int] | None = None) -> "PIL.Image.Image":
    """Open a PNG or JPEG image with Pillow, of a size (width, height) if one is given.

    What the image states of its size is checked before memory is taken for its pixels.
    """
    with extra("cli", "images"):
        from PIL import Image

    wanted = f"a {kind} image" if size is None else f"a {kind} image of {size[0]}x{size[1]} pixels"
    try:
        with warnings.catch_warnings():
            # About parts that are not needed.
            warnings.simplefilter("ignore", UserWarning)
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(blob.content), formats=[kind])
            n_pixels = image.width * image.height
            if size is not None and image.size != size:
                raise ValueError(f"it is of {image.width}x{image.height} pixels.")
            if n_pixels > MOST_PIXELS or n_pixels > 8 * MOST_RATIO * len(blob.content):
                raise ValueError(
                    f"it states {image.width}x{image.height} pixels, expected at most "
                    f"{MOST_PIXELS}, and no more than its {len(blob.content)} bytes can hold."
                )
            image.load()
            # Converting to RGB would warn of it.
            image.info.pop("transparency", None)
    # All that broken files were seen to raise in Pillow.
    except (Image.DecompressionBombError, LookupError, OSError, SyntaxError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{blob.label}: expected {wanted}: {reason}") from error
    return image
