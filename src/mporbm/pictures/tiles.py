"""Arrays as images, and images in a grid of small axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from .style import RIM

Picture = NDArray[np.float64]

PAGE = 7.0  # inches, the width of a full row
SMALLEST, LARGEST, GAP = 0.7, 1.0, 0.05  # inches, the width of a tile and between tiles
LONGEST = 4.0
"""The largest ratio of the sides of a tile; pixels of longer images are not square."""


def check_images(name: str, value: ArrayLike) -> Picture:
    """A batch of images (n, ...) of real numbers; NaN is an unknown pixel."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: expected an array of images of one shape; {error}") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name}: expected an array of real numbers, got {type(value).__name__} of dtype "
            f"{array.dtype}."
        )
    if array.ndim < 2 or 0 in array.shape:
        raise ValueError(
            f"{name}: expected shape (n_images, ...) with at least one image and no empty mode, "
            f"got {array.shape}."
        )
    images = array.astype(np.float64)
    if np.isinf(images).any():
        raise ValueError(f"{name}: expected finite numbers, or NaN where unknown, got infinite.")
    return images


def is_color(shape: Sequence[int]) -> bool:
    """Whether arrays of a shape are colour images, of red, green, blue and perhaps opacity."""
    return len(shape) == 3 and shape[-1] in (3, 4)


def unfolded(image: NDArray[Any]) -> NDArray[Any]:
    """Any array as a matrix: a vector as one row, else the first mode by all others."""
    return image.reshape(1 if image.ndim == 1 else len(image), -1)


def grey_limits(images: Picture) -> tuple[float, float]:
    """The values that the ends of the scale stand for: 0..1, 0..255, or the range of the data."""
    known = images[~np.isnan(images)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if low >= 0.0 and high <= 1.0:
        return 0.0, 1.0
    if low >= 0.0 and high <= 255.0 and (known == np.round(known)).all():
        return 0.0, 255.0
    return low, high if high > low else low + 1.0


def draw_tile(axis: Axes, picture: NDArray[Any], **how: Any) -> Any:
    """Draw an image that fills an axis without ticks; `how` is for `imshow`."""
    # Vector formats then keep the pixels as they are.
    drawn = axis.imshow(picture, aspect="auto", interpolation="none", **how)
    axis.set_box_aspect(_aspect(picture.shape))
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set(color=RIM, linewidth=0.5)
    return drawn


def grid(
    n_tiles: int, n_columns: int, shape: Sequence[int], margins: tuple[float, float] = (0.0, 0.0)
) -> tuple[Figure, list[Axes]]:
    """A figure with an axis for each tile, row by row.

    `shape` is the shape of the images in pixels; `margins` are the inches that labels need
    beside and above them.
    """
    n_columns = min(n_columns, n_tiles)
    n_rows = -(-n_tiles // n_columns)
    width = min(max(PAGE / n_columns, SMALLEST), LARGEST)
    height = width * _aspect(shape)
    size = (n_columns * (width + GAP) + margins[0], n_rows * (height + GAP) + margins[1])
    figure = Figure(figsize=size, layout="compressed")
    cells = figure.add_gridspec(n_rows, n_columns)
    return figure, [figure.add_subplot(cells[divmod(k, n_columns)]) for k in range(n_tiles)]


def _aspect(shape: Sequence[int]) -> float:
    """Height by width of the tile of an image."""
    return min(max(shape[0] / shape[1], 1.0 / LONGEST), LONGEST)
