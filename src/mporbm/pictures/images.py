"""Images in a grid, and in rows to compare them.

A matrix is drawn in grey, 1 as ink on paper; an array with a last mode of 3 or 4 in colour; a
vector as one row; any other array unfolded into its first mode by all others.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from ..tensor.check import check_integer
from . import style

UNKNOWN = "#b3cde3"
"""The colour of pixels that are not known: blue, which no grey is taken for."""


def sample_grid(
    images: ArrayLike, n_columns: int = 10, title: str | None = None, *, cmap: str = "gray_r"
) -> Figure:
    """Draw images in a grid, row by row.

    Parameters
    ----------
    images
        (n, ...), all drawn on one scale: from 0 to 1 if all values are, else from 0 to 255 if they
        are whole numbers of that range, else from the smallest to the largest. NaN is unknown and
        drawn in pale blue.
    cmap
        The colour map of grey images: ``"gray_r"`` has 1 as ink, ``"gray"`` is for photographs.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm.pictures import sample_grid
    >>> figure = sample_grid(np.random.default_rng(0).random((20, 8, 8)), title="noise")
    >>> figure.savefig("samples.png")  # doctest: +SKIP
    """
    batch = style.check_images("images", images)
    n_columns = check_integer("n_columns", n_columns)
    margin = 0.0 if title is None else 0.35
    figure, axes = style.grid(len(batch), n_columns, pixel_shape(batch.shape[1:]), (0.0, margin))
    draw_images(axes, batch, np.isnan(batch), style.grey_limits(batch), cmap)
    if title is not None:
        figure.suptitle(title)
        figure.set_figwidth(max(figure.get_figwidth(), style.text_width(title, 12.0) + 0.2))
    return figure


def strips(
    rows: Mapping[str, ArrayLike], mask: ArrayLike | None = None, *, cmap: str = "gray_r"
) -> Figure:
    """Draw rows of images with their names, as the paper compares completions (Figs. 7, 8).

    Parameters
    ----------
    rows
        The images (n, ...) of each row by its name, all of one shape. They are drawn on one scale,
        which is that of `sample_grid`, so that values can be compared.
    mask
        True where a value is known, for each image or one for all; what is not is drawn in pale
        blue in the row called ``"given"``, as is NaN in all rows.
    cmap
        The colour map of grey images, as for `sample_grid`.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm.pictures import strips
    >>> images = np.random.default_rng(0).random((6, 8, 8)) < 0.5
    >>> right = np.zeros((8, 8), bool)
    >>> right[:, 4:] = True
    >>> figure = strips({"original": images, "given": images}, mask=right)
    """
    batches = _check_rows(rows)
    unknown = {name: np.isnan(batch) for name, batch in batches.items()}
    if mask is not None:
        if "given" not in batches:
            raise ValueError(
                f"mask: expected a row called 'given' that it is for, got rows {list(batches)}."
            )
        unknown["given"] |= ~_check_mask(mask, batches["given"].shape)
    first = next(iter(batches.values()))
    n_images, limits = len(first), style.grey_limits(np.stack(list(batches.values())))
    margin = max(style.text_width(name, style.NORMAL) for name in batches) + 0.1
    pixels = pixel_shape(first.shape[1:])
    figure, axes = style.grid(len(batches) * n_images, n_images, pixels, (margin, 0.0))
    for k, (name, batch) in enumerate(batches.items()):
        line = axes[k * n_images : (k + 1) * n_images]
        draw_images(line, batch, unknown[name], limits, cmap)
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return figure


def draw_images(
    axes: Sequence[Axes],
    batch: style.Picture,
    unknown: NDArray[np.bool_],
    limits: tuple[float, float],
    cmap: str,
) -> None:
    """Draw one image on each axis."""
    if cmap not in colormaps:
        raise ValueError(
            f"cmap={cmap!r}: expected a colour map of matplotlib, such as 'gray_r' or 'gray'."
        )
    grey = colormaps[cmap].with_extremes(bad=UNKNOWN)
    low, high = limits
    for axis, image, blank in zip(axes, batch, unknown, strict=True):
        if style.is_color(image.shape):
            shown = np.clip((image - low) / (high - low), 0.0, 1.0)
            shown[blank.any(axis=2)] = (*to_rgb(UNKNOWN), 1.0)[: image.shape[2]]
            style.draw_tile(axis, shown)
        else:
            shown = np.ma.masked_array(style.unfolded(image), style.unfolded(blank))
            style.draw_tile(axis, shown, grey, limits)


def pixel_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of an image as it is drawn."""
    if style.is_color(shape):
        return shape[0], shape[1]
    rows, columns = style.unfolded(np.empty(shape)).shape
    return rows, columns


def _check_rows(rows: Mapping[str, ArrayLike]) -> dict[str, style.Picture]:
    """The images of each row, all of one shape."""
    given = style.check_mapping("rows", rows, "images", least="row of images")
    batches = {str(name): style.check_images(f"rows[{name!r}]", given[name]) for name in given}
    first, *others = batches
    shape = batches[first].shape
    for name in others:
        if batches[name].shape != shape:
            raise ValueError(
                f"rows[{name!r}]: expected shape {shape}, as rows[{first!r}] has, got "
                f"{batches[name].shape}."
            )
    return batches


def _check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask for each image, from one of its own or one for all."""
    given = np.asarray(mask)
    if given.dtype != bool:
        raise TypeError(
            f"mask: expected an array of bool, True where a value is known, got dtype "
            f"{given.dtype}; try mask.astype(bool)."
        )
    if given.shape not in (shape, shape[1:], (1, *shape[1:])):
        raise ValueError(
            f"mask: expected shape {shape}, as the images have, or {shape[1:]} for all images, "
            f"got {given.shape}."
        )
    return np.broadcast_to(given, shape)
