"""Samples of a model beside data: moments of units, shares of classes, nearest neighbours."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ..evaluation.neighbours import nearest
from ..evaluation.samples import Agreement, ClassCoverage, SampleMeasures
from . import style
from .images import draw_images, pixel_shape

N_DRAWN = 12
"""How many samples are drawn above their neighbours."""
CHART = (3.1, 3.45)  # inches, the width and the height of a chart
MOST_NAMES = 30
"""Up to so many classes each has its name below it."""
ROWS = ("samples", "nearest")


def sample_comparison(data: ArrayLike, samples: ArrayLike, measures: SampleMeasures) -> Figure:
    """Draw what `measure_samples` found, and samples above their nearest neighbours in the data.

    The means of units and the covariances of pairs lie on the dashed line if samples have those of
    the data; where there are many, dark places have more of them, by the logarithm of the number.

    Parameters
    ----------
    data, samples
        What was compared, (n, ...) and (m, ...); the first samples are drawn.
    measures
        What `mporbm.evaluation.samples.measure_samples` gave.
    """
    known, drawn = np.asarray(data), style.check_images("samples", np.asarray(samples)[:N_DRAWN])
    if drawn.shape[1:] != known.shape[1:]:
        raise ValueError(
            f"samples: expected images of shape {known.shape[1:]}, as data has, got "
            f"{drawn.shape[1:]}."
        )
    numbers, _ = nearest(known, drawn)
    neighbours = style.check_images("data", known[numbers[:, 0]])
    n_charts = 2 if measures.classes is None else 3
    tall_charts = CHART[1] + (_upright_height(measures.classes) if measures.classes else 0.0)
    margin = max(style.text_width(name, style.NORMAL) for name in ROWS) + 0.15
    width = CHART[0] * n_charts
    tile = min((width - margin) / N_DRAWN, style.LARGEST)
    tall = tile * style.tile_aspect(pixel_shape(drawn.shape[1:]))
    below = len(ROWS) * (tall + style.GAP) + 0.1
    figure = Figure(figsize=(width, tall_charts + below), layout="constrained")
    halves = figure.subfigures(2, 1, squeeze=False, height_ratios=(tall_charts, below))[:, 0]
    charts = halves[0].subplots(1, n_charts, squeeze=False)[0]
    _draw_agreement(charts[0], measures.means, "means of units")
    _draw_agreement(charts[1], measures.covariances, "covariances of pairs")
    if measures.classes is not None:
        _draw_classes(charts[2], measures.classes)
    # Places for as many tiles as fit, so that few samples are not drawn larger.
    axes = halves[1].subplots(len(ROWS), N_DRAWN, squeeze=False)
    limits = style.grey_limits(np.concatenate([drawn, neighbours]))
    for line, name, batch in zip(axes, ROWS, (drawn, neighbours), strict=True):
        draw_images(list(line[: len(batch)]), batch, np.isnan(batch), limits, "gray_r")
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for axis in line[len(batch) :]:
            axis.set_axis_off()
    return figure


def _draw_agreement(axis: Axes, found: Agreement, title: str) -> None:
    """Draw statistics of samples over those of the data, on one scale."""
    both = np.concatenate([found.data, found.samples])
    low, high = (float(both.min()), float(both.max())) if len(both) else (0.0, 0.0)
    room = 0.04 * (high - low) or 0.5
    ends = (low - room, high + room)
    axis.plot(ends, ends, color=style.QUIET, linewidth=0.8, linestyle="--", zorder=3)
    if len(found.data) > 0:
        axis.hexbin(
            *(found.data, found.samples),
            gridsize=55,
            # A place with a single one is not white.
            norm=LogNorm(vmin=0.2),
            extent=(*ends, *ends),
            mincnt=1,
            cmap="Blues",
            linewidths=0.2,
            rasterized=True,
        )
    axis.set(xlim=ends, ylim=ends, xlabel="data", ylabel="samples")
    numbers = f"correlation {found.correlation:.3f}, slope {found.slope:.3f}"
    axis.set_title(f"{title}\n{numbers}", loc="left", fontsize=style.NORMAL)
    style.tidy(axis)


def _draw_classes(axis: Axes, found: ClassCoverage) -> None:
    """Draw the shares of classes in the data and in the samples, side by side."""
    places = np.arange(len(found.classes))
    for side, name, shares in (
        (-0.2, "data", found.data_shares),
        (0.2, "samples", found.sample_shares),
    ):
        color = style.COLORS[0 if side < 0 else 1]
        axis.bar(places + side, 100.0 * shares, 0.4, color=color, label=name)
    if len(places) <= MOST_NAMES:
        rotation = 90 if _upright_height(found) else 0
        axis.set_xticks(places, [str(name) for name in found.classes], rotation=rotation)
    top = 100.0 * float(max(found.data_shares.max(), found.sample_shares.max()))
    axis.set(ylim=(0.0, 1.25 * top), xlabel="class", ylabel="share (%)")
    numbers = f"distance {found.distance:.3f}, by chance {found.expected_distance:.3f}"
    axis.set_title(f"shares of classes\n{numbers}", loc="left", fontsize=style.NORMAL)
    axis.legend(loc="upper right", frameon=False, fontsize=style.SMALL, ncols=2)
    style.tidy(axis)
    axis.grid(visible=False, axis="x")


def _upright_height(found: ClassCoverage) -> float:
    """The inches that names of classes take below a chart; 0 if they have room side by side."""
    longest = max(style.text_width(str(name), style.NORMAL) for name in found.classes)
    is_wide = longest > 0.7 * CHART[0] / len(found.classes)
    return longest if is_wide and len(found.classes) <= MOST_NAMES else 0.0
