"""Arrays and images as files: read whole or not at all, written whole or not at all."""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAY_HINT = "an array (.npy, or .npz:NAME), or a PNG image or a folder of them"


def read_array(path: str) -> NDArray[Any]:
    """An array of samples: ``.npy`` as a memory map, ``.npz``, a PNG image or a folder of them."""
    file, _, name = path.partition(".npz:")
    if name:
        return _read_npz(Path(f"{file}.npz"), name)
    source = Path(path)
    if source.is_dir():
        return _read_images(sorted(p for p in source.iterdir() if p.suffix.lower() == ".png"), path)
    if not source.exists():
        raise FileNotFoundError(f"{path}: expected {ARRAY_HINT}, but there is no such file.")
    suffix = source.suffix.lower()
    if suffix == ".npz":
        return _read_npz(source, None)
    if suffix == ".png":
        return _read_images([source], path)
    if suffix != ".npy":
        raise ValueError(f"{path}: expected {ARRAY_HINT}, got a file of another kind.")
    try:
        array: NDArray[Any] = np.load(source, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path}: expected a .npy file of numbers: {_line(error)}") from error
    return _checked(array, path)


def _read_npz(path: Path, name: str | None) -> NDArray[Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: expected {ARRAY_HINT}, but there is no such file.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive.files)
            if name is None and len(names) == 1:
                name = names[0]
            if name not in names:
                raise ValueError(
                    f"expected the name of one of its arrays, as in {path}:{names[0]}, got "
                    f"{name!r}; it holds {', '.join(names)}."
                )
            return _checked(archive[name], str(path))
    except (ValueError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {_line(error)}") from error


def _read_images(paths: list[Path], given: str) -> NDArray[Any]:
    """Images of one size: grey (n, height, width), or coloured (n, height, width, 3)."""
    from PIL import Image, UnidentifiedImageError

    if not paths:
        raise FileNotFoundError(f"{given}: expected PNG images in this folder, but it has none.")
    images: list[NDArray[Any]] = []
    for path in paths:
        try:
            with Image.open(path, formats=["PNG"]) as image:
                grey = image.mode in ("1", "L", "I", "I;16")
                pixels = np.asarray(image if grey else image.convert("RGB"))
        except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
            raise ValueError(f"{path}: expected a PNG image: {_line(error)}") from error
        if images and (pixels.shape, pixels.dtype) != (images[0].shape, images[0].dtype):
            raise ValueError(
                f"{path}: expected an image of shape {images[0].shape} and type {images[0].dtype}, "
                f"like the first one, got {pixels.shape} and {pixels.dtype}."
            )
        images.append(pixels)
    return np.stack(images)


def _checked(array: NDArray[Any], path: str) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{path}: expected an array of real numbers, got dtype {array.dtype}.")
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{path}: expected samples in the first axis and at least one of them, got shape "
            f"{array.shape}."
        )
    return array


def read_model(path: Path, verbose: bool) -> Any:
    """A fitted estimator."""
    import mporbm

    if not path.exists():
        raise FileNotFoundError(f"{path}: expected a model file, but there is no such file.")
    return mporbm.load(path).set_params(verbose=int(verbose))


def read_mask(path: str) -> NDArray[np.bool_]:
    """A mask, True (or not 0) where a value is known."""
    source = Path(path)
    if source.suffix.lower() == ".npy" and source.exists():
        try:
            return np.asarray(np.load(source, allow_pickle=False), bool)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path}: expected a .npy file of bool: {_line(error)}") from error
    mask: NDArray[np.bool_] = np.asarray(read_array(path), bool)
    return np.asarray(mask[0]) if len(mask) == 1 else mask


def check_output(path: Path | None, force: bool, *suffixes: str) -> None:
    """Refuse, before any work is done, what could not be written after it."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        known = ", ".join(suffix or "a folder" for suffix in suffixes)
        raise ValueError(f"{path}: expected an output of one of the kinds {known}.")
    if path.exists() and not force:
        raise FileExistsError(f"{path}: exists already; pass --force to overwrite it.")
    if path.is_dir() and path.suffix:
        raise IsADirectoryError(f"{path}: expected a file to write, got a folder.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path}: expected an existing folder, but {folder} is none.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: expected a folder that can be written to: {folder}.")


ARRAY_SUFFIXES = (".npy", "")
"""Arrays are written as .npy files, or as folders of PNG images."""


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write samples as one ``.npy`` file, or without a suffix as a folder of PNG images."""
    if path.suffix.lower() == ".npy":
        with _whole(path) as temporary, open(temporary, "wb") as file:
            np.save(file, array, allow_pickle=False)
    else:
        with _whole(path) as temporary:
            _write_images(temporary, array)


def _write_images(folder: Path, array: NDArray[Any]) -> None:
    from PIL import Image

    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[-1] not in (3, 4)):
        raise ValueError(
            f"{folder.name}: expected images (n, height, width) or (n, height, width, 3) to write "
            f"as PNG, got an array of shape {array.shape}; write a .npy file instead."
        )
    folder.mkdir()
    digits = len(str(len(array) - 1))
    for number, image in enumerate(array):
        Image.fromarray(as_bytes(image)).save(folder / f"{number:0{digits}}.png")


def as_bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels from 0 to 255: those of bool and of values up to 1 are spread over the range."""
    spread = image.dtype == bool or (image.dtype.kind == "f" and image.max() <= 1.0)
    return np.clip(np.rint(image * (255.0 if spread else 1.0)), 0, 255).astype(np.uint8)


def write_figure(path: Path, figure: Any) -> None:
    """Write a figure in the format of its suffix."""
    with _whole(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], dpi=150)


FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A temporary file or folder that becomes `path` at the end, and vanishes after a failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        if temporary.is_dir() and path.exists():
            for item in temporary.iterdir():
                os.replace(item, path / item.name)
        else:
            os.replace(temporary, path)
    finally:
        remove: Callable[..., Any] = shutil.rmtree if temporary.is_dir() else Path.unlink
        if temporary.exists():
            remove(temporary)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
