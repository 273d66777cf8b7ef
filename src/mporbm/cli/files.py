"""Arrays and images as files: read whole or not at all, written whole or not at all.

But for a folder of images that is overwritten: its images are replaced one by one.
"""

import os
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from ..atomic import atomic_path
from ..datasets.formats import Blob, open_image, open_zip, read_member
from ..extras import extra
from . import npy

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
ARRAY_HINT = "an array (.npy, .npz:NAME or .zarr), or a PNG image or a folder of them"
MOST_UNPACKED_BYTES = 2**32
"""The largest array that is unpacked into memory; one as ``.npy`` is mapped, whatever its size."""
Check = Callable[[Any, str], None]
"""Refuses an array by its `dtype` and `shape`, before there is one, with the name of its file."""


def read_array(path: str) -> Any:
    """Read samples: ``.npy`` as a memory map, ``.npz``, a zarr store, a PNG image or several."""
    file, _, name = path.partition(".npz:")
    if name:
        return _read_npz(Path(f"{file}.npz"), name)
    source = Path(path)
    if source.suffix.lower() == ".zarr" and source.exists():
        return _read_zarr(source)
    if source.is_dir():
        # Files that begin with a dot are those of systems, not of users.
        names = [p.name for p in source.iterdir() if not p.name.startswith(".")]
        return _read_images([source / n for n in sorted(names) if n.lower().endswith(".png")], path)
    if not source.exists():
        raise FileNotFoundError(f"{path}: expected {ARRAY_HINT}, but there is no such file.")
    suffix = source.suffix.lower()
    if suffix == ".npz":
        return _read_npz(source, None)
    if suffix == ".png":
        return _read_images([source], path)
    if suffix != ".npy":
        raise ValueError(f"{path}: expected {ARRAY_HINT}, got a file of another kind.")
    return _read_npy(source)


def read_labels(path: str, n_samples: int) -> NDArray[Any]:
    """Read the label of each sample: numbers or strings, as ``.npy`` or ``.npz``."""
    file, _, name = path.partition(".npz:")
    source = Path(f"{file}.npz" if name else path)
    if not source.is_file() or source.suffix.lower() not in (".npy", ".npz"):
        raise FileNotFoundError(f"{path}: expected a file of labels (.npy, or .npz:NAME).")

    def check(layout: Any, path: str) -> None:
        if layout.shape != (n_samples,) or layout.dtype.kind not in "biufU":
            raise ValueError(
                f"{path}: expected a number or a string for each of {n_samples} samples, got shape "
                f"{layout.shape} and dtype {layout.dtype}."
            )

    if source.suffix.lower() == ".npz":
        return _read_npz(source, name or None, check)
    return _read_npy(source, check)


def read_whole(path: str) -> NDArray[Any]:
    """Read samples as a NumPy array; a zarr store is read as a whole."""
    array = read_array(path)
    return array if isinstance(array, np.ndarray) else np.asarray(array)


def _check_samples(layout: Any, path: str, least_axes: int = 2) -> None:
    if layout.dtype.kind not in "biuf":
        raise ValueError(f"{path}: expected an array of real numbers, got dtype {layout.dtype}.")
    if len(layout.shape) < least_axes or 0 in layout.shape:
        raise ValueError(
            f"{path}: expected samples in the first axis and at least one of them, got shape "
            f"{layout.shape}."
        )


def _read_npy(path: Path, check: Check = _check_samples) -> NDArray[Any]:
    try:
        with open(path, "rb") as file:
            layout = npy.read_layout(file.read(npy.MOST_HEADER_BYTES), path.stat().st_size)
    except ValueError as error:
        raise ValueError(f"{path}: expected a .npy file of numbers: {_line(error)}") from error
    check(layout, str(path))
    return np.memmap(path, layout.dtype, "r", layout.start, layout.shape, layout.order)


def _read_zarr(path: Path) -> Any:
    """Open an array that is read as it is used."""
    with extra("zarr", str(path)):
        import zarr
        from zarr.errors import BaseZarrError
    try:
        array = zarr.open_array(path, mode="r")
    # Its readers take metadata to be of the right types.
    except (BaseZarrError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected a zarr array of numbers: {_line(error)}") from error
    _check_samples(array, str(path))
    return array


def _read_npz(path: Path, name: str | None, check: Check = _check_samples) -> NDArray[Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected {ARRAY_HINT}, but there is no such file.")
    try:
        with open_zip(path) as archive:
            members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
            chosen = next(iter(members)) if name is None and len(members) == 1 else name
            if chosen in members:
                content = _unpacked(archive, members[chosen], f"{path}:{chosen}")
                layout = npy.read_layout(content[: npy.MOST_HEADER_BYTES], len(content))
    except ValueError as error:
        reason = _line(error).removeprefix(f"{path}: ")
        raise ValueError(f"{path}: expected a .npz file of arrays: {reason}") from error
    if chosen not in members:
        held = textwrap.shorten(", ".join(members), 1000) or "none"
        raise ValueError(
            f"{path}: expected the name of one of its arrays, as in {path}:NAME; it holds {held}."
        )
    check(layout, f"{path}:{chosen}")
    return layout.array(content)


def _unpacked(archive: ZipFile, member: ZipInfo, label: str) -> bytes:
    """The bytes of an array; what is not packed has no limit but the length of the file."""
    packed = member.compress_type != ZIP_STORED
    most_bytes = MOST_UNPACKED_BYTES if packed else member.compress_size
    if packed and member.file_size > most_bytes:
        raise ValueError(
            f"{label}: expected at most {most_bytes} bytes in a compressed array, got "
            f"{member.file_size}; write it with numpy.save, as .npy."
        )
    return read_member(archive, member, label, most_bytes).content


def _read_images(paths: list[Path], given: str) -> NDArray[Any]:
    """Images of one size: grey (n, height, width), or coloured (n, height, width, 3)."""
    if not paths:
        raise FileNotFoundError(f"{given}: expected PNG images in this folder, but it has none.")
    images: list[NDArray[Any]] = []
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


def write_model(path: Path, estimator: Any) -> None:
    """Write a fitted estimator."""
    with writing(path):
        estimator.save(path)


def read_mask(path: str) -> NDArray[np.bool_]:
    """Read a mask, True (or not 0) where a value is known."""
    source = Path(path)
    if source.suffix.lower() != ".npy" or not source.is_file():
        mask: NDArray[np.bool_] = np.asarray(read_array(path), bool)
        return np.asarray(mask[0]) if len(mask) == 1 else mask
    return np.asarray(_read_npy(source, partial(_check_samples, least_axes=1)), bool)


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


def check_images(path: Path, shape: tuple[int, ...]) -> None:
    """Refuse to write samples of a shape that no image has as a folder of images."""
    if not path.suffix and not (len(shape) == 2 or _is_color(shape)):
        raise ValueError(
            f"{path}: expected samples (height, width) or (height, width, 3) to write as images, "
            f"got {shape}; write a .npy file instead."
        )


ARRAY_SUFFIXES = (".npy", "")
"""Arrays are written as .npy files, or as folders of PNG images."""


def write_array(path: Path, array: NDArray[Any], *, scaled: bool = True) -> None:
    """Write samples as one ``.npy`` file, or without a suffix as a folder of PNG images.

    Images of real numbers up to 1 are spread over the range of pixels if they are `scaled`.
    """
    with _whole(path) as temporary:
        if path.suffix:
            with open(temporary, "wb") as file:
                np.save(file, array, allow_pickle=False)
        else:
            _write_images(temporary, path, array, scaled)


def _write_images(folder: Path, path: Path, array: NDArray[Any], scaled: bool) -> None:
    with extra("cli", str(path)):
        from PIL import Image
    check_images(path, array.shape[1:])
    pixels = _as_pixels(path, array, scaled)
    folder.mkdir()
    digits = len(str(len(array) - 1))
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{number:0{digits}}.png")


def _as_pixels(path: Path, array: NDArray[Any], scaled: bool) -> NDArray[Any]:
    """Pixels as a PNG image holds them: grey ones of one, 8 or 16 bits, coloured ones of 8."""
    color = _is_color(array.shape[1:])
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
    pixels: NDArray[Any] = np.rint(array).astype(np.uint8 if high < 255.5 else np.uint16)
    return pixels


def _is_color(shape: tuple[int, ...]) -> bool:
    return len(shape) == 3 and shape[-1] in (3, 4)


def write_figure(path: Path, figure: Any) -> None:
    """Write a figure in the format of its suffix."""
    with _whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=150)


def write_figures(folder: Path, figures: dict[str, Any]) -> None:
    """Write figures as PNG images into a folder, under their names."""
    with _whole(folder) as temporary:
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
        reason = getattr(error, "strerror", None) or _line(error)
        raise OSError(
            f"{path}: cannot be written: {reason}; make room, or write elsewhere."
        ) from error


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a temporary path that becomes `path` at the end, and vanishes after a failure."""
    with writing(path), ExitStack() as stack:
        if path.is_dir():
            # A folder cannot take the place of another one: its images do, one by one.
            temporary = Path(stack.enter_context(TemporaryDirectory(dir=path.parent))) / path.name
            yield temporary
            _replace_images(temporary, path)
        else:
            yield stack.enter_context(atomic_path(path))


def _replace_images(new: Path, folder: Path) -> None:
    """Move new images into a folder; numbered ones would mix with others that are there."""
    items = list(new.iterdir())
    if any(item.stem.isdecimal() for item in items):
        for old in folder.glob("*.png"):
            if old.stem.isdecimal():
                old.unlink()
    for item in items:
        os.replace(item, folder / item.name)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
