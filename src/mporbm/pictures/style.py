"""The look that all pictures share."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.textpath import TextPath

# Okabe & Ito (2008), safe for colour-blind readers; markers are for black and white.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", ":", "-.")
RIM = "#b0b7be"
QUIET = "#5f6b76"
NORMAL, SMALL = 10.0, 8.0  # points
FEW = 50
"""Up to so many places of a curve each has a marker."""


def line_style(k: int, n_places: int) -> dict[str, Any]:
    """How to plot curve k of several."""
    return {
        "color": COLORS[k % len(COLORS)],
        "linestyle": DASHES[k // len(COLORS) % len(DASHES)],
        "linewidth": 1.2,
        "marker": MARKERS[k % len(MARKERS)] if n_places <= FEW else "",
        "markersize": 3.5,
    }


def tidy(axis: Axes) -> None:
    """A chart without a box, on a faint grid."""
    axis.grid(alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def add_legend(axis: Axes, **how: Any) -> None:
    """A legend beside the chart, where it hides nothing."""
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL, **how)


def text_width(text: str, size: float) -> float:
    """The width in inches of a text of `size` points."""
    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) / 72
