"""The look that all pictures share, arrays as images in a grid, and checks of what is given."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.textpath import TextPath
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

M = TypeVar("M")
V = TypeVar("V")
Picture = NDArray[np.float64]

# Okabe & Ito (2008), safe for colour-blind readers; markers are for black and white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
RIM = "#b0b7be"
QUIET = "#5f6b76"
NORMAL, SMALL = 10.0, 8.0  # points
FEW = 50
"""Up to so many places of a curve each has a marker."""
PAGE = 7.0  # inches, the width of a full row
SMALLEST, LARGEST, GAP = 0.7, 1.0, 0.05  # inches, the width of a tile and between tiles
LONGEST = 4.0
"""The largest ratio of the sides of a tile; pixels of longer images are not square."""


class Style(TypedDict, total=False):
    """How a line or its markers look."""

    color: str
    linestyle: str
    linewidth: float
    marker: str
    markersize: float
    markerfacecolor: str
    markeredgecolor: str


def line_style(k: int, n_places: int) -> Style:
    """The style of curve k of several."""
    return {
        "color": COLORS[k % len(COLORS)],
        "linestyle": DASHES[k // len(COLORS) % len(DASHES)],
        "linewidth": 1.2,
        "marker": MARKERS[k % len(MARKERS)] if n_places <= FEW else "",
        "markersize": 3.5,
    }


def tidy(axis: Axes) -> None:
    """Give a chart a faint grid and no box."""
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def add_legend(axis: Axes, n_columns: int = 1, title: str | None = None) -> None:
    """Put a legend beside the chart, where it hides nothing."""
    axis.legend(
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=SMALL,
        ncols=n_columns,
        title=title,
        title_fontsize=SMALL,
        alignment="left",
    )


def text_width(text: str, size: float) -> float:
    """The width in inches of a text of `size` points."""
    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) / 72


def check_fitted(model: M) -> M:
    """The model, which must be fitted if it is an estimator."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return model


def check_mapping(name: str, value: Mapping[str, V], what: str, least: str = "") -> Mapping[str, V]:
    """A dictionary from names to `what`; it must not be empty if `least` says of what."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name}: expected a dictionary from names to {what}, got {type(value).__name__}."
        )
    if least and not value:
        raise ValueError(f"{name}: expected at least one {least}, got none.")
    return value


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


def unfolded(image: np.ndarray) -> np.ndarray:
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


def draw_tile(
    axis: Axes,
    picture: np.ndarray,
    cmap: str | Colormap | None = None,
    limits: tuple[float, float] | None = None,
) -> AxesImage:
    """Draw an image that fills an axis without ticks, within limits of its values."""
    low, high = limits or (None, None)
    # Vector formats then keep the pixels as they are.
    drawn = axis.imshow(picture, cmap, aspect="auto", interpolation="none", vmin=low, vmax=high)
    axis.set_box_aspect(tile_aspect(picture.shape))
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
    height = width * tile_aspect(shape)
    size = (n_columns * (width + GAP) + margins[0], n_rows * (height + GAP) + margins[1])
    figure = Figure(figsize=size, layout="compressed")
    cells = figure.add_gridspec(n_rows, n_columns)
    return figure, [figure.add_subplot(cells[divmod(k, n_columns)]) for k in range(n_tiles)]


def tile_aspect(shape: Sequence[int]) -> float:
    """Height by width of the tile of an image."""
    return min(max(shape[0] / shape[1], 1.0 / LONGEST), LONGEST)
