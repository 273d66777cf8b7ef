"""Arrays and images as files: read whole or not at all, written whole or not at all.

But for a folder of images that is overwritten: its images are replaced one by one.
"""

import io
import math
import os
import textwrap
import tokenize
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from zipfile import ZIP_STORED

import numpy as np
from numpy.lib import format as npy_format

from ..atomic import atomic_path
from ..datasets.formats import Blob, open_image, open_zip, read_member
from ..extras import extra

if TYPE_CHECKING:
    import matplotlib.figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
ARRAY_SUFFIXES = (".npy", "")
"""Arrays are written as .npy files, or as folders of PNG images."""
ARRAY_HINT = "an array (.npy, .npz:NAME or .zarr), or a PNG image or a folder of them"
MOST_UNPACKED_BYTES = 2**32
"""The largest array that is unpacked into memory; one as ``.npy`` is mapped, whatever its size."""
MOST_HEADER_BYTES, MOST_AXES = 2**14, 64
HEADER_READERS = {
    (1, 0): npy_format.read_array_header_1_0,
    (2, 0): npy_format.read_array_header_2_0,
}
"""By version of the ``.npy`` format; version 3.0 is for tables with named columns."""

# What is read


def read_array(path: str) -> Any:
    """Read samples: ``.npy`` as a memory map, ``.npz``, a zarr store, a PNG image or several."""
    return _checked(_open(path), path)


def read_whole(path: str) -> np.ndarray:
    """Read samples as a NumPy array; a zarr store is read as a whole."""
    return np.asarray(read_array(path))


def read_labels(path: str, n_samples: int) -> np.ndarray:
    """Read the label of each sample: numbers or strings, as ``.npy`` or ``.npz``."""
    source, _ = _split(path)
    if not source.is_file() or source.suffix.lower() not in (".npy", ".npz"):
        raise FileNotFoundError(f"{path}: expected a file of labels (.npy, or .npz:NAME).")
    labels: np.ndarray = _open(path)
    if labels.shape != (n_samples,) or labels.dtype.kind not in "biufU":
        raise ValueError(
            f"{path}: expected a number or a string for each of {n_samples} samples, got shape "
            f"{labels.shape} and dtype {labels.dtype}."
        )
    return labels


def read_mask(path: str) -> np.ndarray:
    """Read a mask, True (or not 0) where a value is known."""
    is_npy = Path(path).suffix.lower() == ".npy"
    mask = np.asarray(_checked(_open(path), path, least_axes=1 if is_npy else 2), bool)
    return mask if is_npy or len(mask) > 1 else mask[0]


def _split(path: str) -> tuple[Path, str]:
    """Return a file, and the name of the array in it if there is one."""
    file, _, name = path.partition(".npz:")
    return Path(f"{file}.npz" if name else path), name


def _checked(array: Any, path: str, least_axes: int = 2) -> Any:
    """Return an array if it can be samples."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path}: expected an array of real numbers, got dtype {array.dtype}.")
    if len(array.shape) < least_axes or 0 in array.shape:
        raise ValueError(
            f"{path}: expected samples in the first axis and at least one of them, got shape "
            f"{array.shape}."
        )
    return array


def _open(path: str) -> Any:
    """Return an array of any kind of file."""
    source, name = _split(path)
    suffix = source.suffix.lower()
    if not source.exists():
        raise FileNotFoundError(f"{source}: expected {ARRAY_HINT}, but there is no such file.")
    if suffix == ".zarr":
        return _open_zarr(source)
    if source.is_dir():
        # Files that begin with a dot are those of systems, not of users.
        names = [p.name for p in source.iterdir() if not p.name.startswith(".")]
        return _read_images([source / n for n in sorted(names) if n.lower().endswith(".png")], path)
    if suffix == ".npz":
        return _read_npz(source, name)
    if suffix == ".png":
        return _read_images([source], path)
    if suffix != ".npy":
        raise ValueError(f"{path}: expected {ARRAY_HINT}, got a file of another kind.")
    with expected(path, "a .npy file of numbers"), open(path, "rb") as opened:
        layout = _read_layout(opened.read(MOST_HEADER_BYTES), source.stat().st_size)
        return np.memmap(path, layout.dtype, "r", layout.start, layout.shape, layout.order)


@contextmanager
def expected(
    path: str | Path, kind: str, errors: tuple[type[Exception], ...] = (ValueError,)
) -> Iterator[None]:
    """Tell errors of reading a file with its name and what it should have been."""
    try:
        yield
    except errors as error:
        reason = one_line(error).removeprefix(f"{path}: ")
        raise ValueError(f"{path}: expected {kind}: {reason}") from error


def _open_zarr(path: Path) -> Any:
    """Open an array that is read as it is used."""
    with extra("zarr", str(path)):
        import zarr
        from zarr.errors import BaseZarrError
    # Its readers take metadata to be of the right types.
    errors = (BaseZarrError, OSError, ValueError, LookupError, TypeError, AttributeError)
    with expected(path, "a zarr array of numbers", errors):
        return zarr.open_array(path, mode="r")


def _read_npz(path: Path, name: str) -> np.ndarray:
    """Return an array of an archive; without a name the only one."""
    with expected(path, "a .npz file of arrays"), open_zip(path) as archive:
        members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
        chosen = next(iter(members)) if not name and len(members) == 1 else name
        if chosen in members:
            member = members[chosen]
            # What is not packed has no limit but the length of the file.
            packed = member.compress_type != ZIP_STORED
            most_bytes = MOST_UNPACKED_BYTES if packed else member.compress_size
            if packed and member.file_size > most_bytes:
                raise ValueError(
                    f"{chosen}: expected at most {most_bytes} bytes in a compressed array, got "
                    f"{member.file_size}; write it with numpy.save, as .npy."
                )
            content = read_member(archive, member, chosen, most_bytes).content
            layout = _read_layout(content[:MOST_HEADER_BYTES], len(content))
            flat = np.frombuffer(content, layout.dtype, math.prod(layout.shape), layout.start)
            return flat.reshape(layout.shape, order=layout.order)
    held = textwrap.shorten(", ".join(members), 1000) or "none"
    raise ValueError(
        f"{path}: expected the name of one of its arrays, as in {path}:NAME; it holds {held}."
    )


class _Layout(NamedTuple):
    """Where in a ``.npy`` file the entries of an array are, and what they are."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    start: int


def _read_layout(head: bytes, n_bytes: int) -> _Layout:
    """Parse the header of an `n_bytes`-long ``.npy`` file that begins with `head`.

    Sizes are checked before memory is taken for them: by itself, NumPy's reader takes 2 GiB for a
    file of 100 bytes whose header claims to be so long, and inside of archives it takes the memory
    of any array that a header states, however short the file.
    """
    file = io.BytesIO(head)
    version = npy_format.read_magic(file)
    if version not in HEADER_READERS:
        raise ValueError(f"its version is {version}, expected 1.0 or 2.0.")
    try:
        with warnings.catch_warnings():
            # Files of Python 2 are as good as others.
            warnings.simplefilter("ignore")
            shape, is_fortran, dtype = HEADER_READERS[version](file)
    # NumPy takes the header for an expression of Python, which can be anything.
    except (
        *(ValueError, TypeError, SyntaxError, tokenize.TokenError),
        *(MemoryError, RecursionError, OverflowError),
    ) as error:
        raise ValueError("its header is no table of descr, fortran_order and shape.") from error
    if dtype.hasobject:
        raise ValueError("it has Python objects, which are not read.")
    if len(shape) > MOST_AXES or not all(0 <= size < 2**63 for size in shape):
        raise ValueError("its header states an invalid shape.")
    if file.tell() + dtype.itemsize * math.prod(shape) > n_bytes:
        raise ValueError(f"it has {n_bytes} bytes, an array of shape {shape} needs more.")
    # NumPy multiplies all sizes, also beside one of 0.
    if max(dtype.itemsize, 1) * math.prod(max(size, 1) for size in shape) >= 2**63:
        raise ValueError("its header states an invalid shape.")
    return _Layout(dtype, shape, "F" if is_fortran else "C", file.tell())


def _read_images(paths: list[Path], given: str) -> np.ndarray:
    """Images of one size: grey (n, height, width), or coloured (n, height, width, 3)."""
    if not paths:
        raise FileNotFoundError(f"{given}: expected PNG images in this folder, but it has none.")
    images: list[np.ndarray] = []
    for path in paths:
        image = open_image(Blob(str(path), path.read_bytes()), "PNG")
        grey = image.mode in ("1", "L", "I", "I;16")
        pixels = np.asarray(image if grey else image.convert("RGB"))
        if images and (pixels.shape, pixels.dtype) != (images[0].shape, images[0].dtype):
            raise ValueError(
                f"{path}: expected an image of shape {images[0].shape} and type {images[0].dtype}, "
                f"like the first one, got {pixels.shape} and {pixels.dtype}."
            )
        if len(paths) * pixels.nbytes > MOST_UNPACKED_BYTES:
            raise ValueError(
                f"{given}: expected images of at most {MOST_UNPACKED_BYTES} bytes together, got "
                f"{len(paths)} of {pixels.nbytes}; write them as one array, as .npy."
            )
        images.append(pixels)
    return np.stack(images)


def read_model(path: Path, verbose: bool) -> Any:
    """Read a fitted estimator; JAX is told where to keep what it compiles."""
    import mporbm

    if not path.is_file():
        found = "it is a folder" if path.is_dir() else "there is no such file"
        raise FileNotFoundError(f"{path}: expected a model file, but {found}.")
    mporbm.enable_compilation_cache()
    estimator = mporbm.load(path)
    if hasattr(estimator, "classes_"):
        raise ValueError(
            f"{path}: expected a model without labels, got {type(estimator).__name__}; use it in "
            f"Python, with mporbm.load."
        )
    return estimator.set_params(verbose=int(verbose))


@contextmanager
def blamed(**sources: str | None) -> Iterator[None]:
    """Tell errors about arguments, such as X, as errors about the files that they came from."""
    try:
        yield
    except (ValueError, TypeError) as error:
        for name, source in sources.items():
            if str(error).startswith(f"{name}: "):
                reason = str(error).removeprefix(f"{name}: ").removeprefix("X: ")
                raise ValueError(f"{source}: {reason}") from error
        raise


def one_line(error: BaseException | str) -> str:
    """Return what an error says as one line."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split()) or type(error).__name__


# What is written


def check_output(path: Path | None, force: bool, *suffixes: str) -> None:
    """Refuse, before any work is done, what could not be written after it.

    A name without a suffix is that of a folder.
    """
    if path is None:
        return
    if not path.name or path.suffix.lower() not in suffixes:
        endings = " or ".join(suffix for suffix in suffixes if suffix)
        choices = [f"a name that ends in {endings}"] if endings else []
        choices += ["the name of a folder, without a suffix"] if "" in suffixes else []
        raise ValueError(f"{path}: expected {', or '.join(choices)}.")
    if path.exists() and not force:
        raise FileExistsError(f"{path}: exists already; pass --force to overwrite it.")
    if path.exists() and path.is_dir() == bool(path.suffix):
        wanted, found = ("file", "folder") if path.suffix else ("folder", "file")
        raise FileExistsError(f"{path}: expected a {wanted} to overwrite, but it is a {found}.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: expected an existing folder, but {folder} is none.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: expected a folder that can be written to: {folder}.")


def check_figure(path: Path | None, force: bool) -> None:
    """Refuse a figure that could not be written, also for want of matplotlib."""
    check_output(path, force, *FIGURE_SUFFIXES)
    if path is not None:
        with extra("pictures", str(path)):
            import matplotlib  # noqa: F401


def write_array(path: Path, array: np.ndarray, *, scaled: bool = True) -> None:
    """Write samples as one ``.npy`` file, or without a suffix as a folder of PNG images.

    Images of real numbers up to 1 are spread over the range of pixels if they are `scaled`.
    """
    with _whole(path) as temporary:
        if path.suffix:
            with open(temporary, "wb") as file:
                np.save(file, array, allow_pickle=False)
            return
        with extra("cli", str(path)):
            from PIL import Image
        pixels = _as_pixels(path, array, scaled)
        temporary.mkdir()
        digits = len(str(len(array) - 1))
        for number, image in enumerate(pixels):
            Image.fromarray(image).save(temporary / f"{number:0{digits}}.png")


def _as_pixels(path: Path, array: np.ndarray, scaled: bool) -> np.ndarray:
    """Pixels as a PNG image holds them: grey ones of one, 8 or 16 bits, coloured ones of 8."""
    color = is_color(array.shape[1:])
    if array.dtype == bool and not color:
        return array
    low, high = float(array.min()), float(array.max())
    if array.dtype == bool or (scaled and array.dtype.kind == "f" and high <= 1.0):
        array, high = array * 255.0, 255.0 * high
    most = 255 if color else 65535
    if not (low >= 0.0 and high < most + 0.5):
        raise ValueError(
            f"{path}: expected values from 0 to {most} to write as images, got {low:g} to "
            f"{high:g}; write a .npy file instead."
        )
    return np.asarray(np.rint(array), np.uint8 if high < 255.5 else np.uint16)


def is_color(shape: tuple[int, ...]) -> bool:
    """Whether a sample can be an image of pixels with three colours, or four numbers."""
    return len(shape) == 3 and shape[-1] in (3, 4)


def write_figures(
    path: Path, figures: "matplotlib.figure.Figure | dict[str, matplotlib.figure.Figure]"
) -> None:
    """Write a figure in the format of its suffix, or several as PNG images into a folder."""
    with _whole(path) as temporary:
        if not isinstance(figures, dict):
            figures.savefig(temporary, format=path.suffix[1:], dpi=150)
            return
        temporary.mkdir()
        for name, figure in figures.items():
            figure.savefig(temporary / f"{name}.png", dpi=150)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell whatever keeps a file from being written as an error that says which file."""
    from safetensors import SafetensorError

    try:
        yield
    except BlockingIOError:
        # Another run has it, and the error says so.
        raise
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise OSError(
            f"{path}: cannot be written: {reason}; make room, or write elsewhere."
        ) from error


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` at the end, and vanishes after a failure."""
    with writing(path), ExitStack() as stack:
        if not path.is_dir():
            yield stack.enter_context(atomic_path(path))
            return
        # A folder cannot take the place of another one: its images do, one by one.
        temporary = Path(stack.enter_context(TemporaryDirectory(dir=path.parent))) / path.name
        yield temporary
        items = list(temporary.iterdir())
        if any(item.stem.isdecimal() for item in items):
            # Numbered ones would mix with others that are there.
            for old in path.glob("*.png"):
                if old.stem.isdecimal():
                    old.unlink()
        for item in items:
            os.replace(item, path / item.name)
