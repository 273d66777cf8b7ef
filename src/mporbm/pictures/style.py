"""The look that all pictures share, and the checks of what they are given."""

from collections.abc import Mapping
from typing import Any, TypeVar

from matplotlib.axes import Axes
from matplotlib.textpath import TextPath
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

M = TypeVar("M")

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


def add_legend(axis: Axes, **how: Any) -> None:
    """Put a legend beside the chart, where it hides nothing."""
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=SMALL, **how)


def text_width(text: str, size: float) -> float:
    """The width in inches of a text of `size` points."""
    return float(TextPath((0.0, 0.0), text, size=size).get_extents().width) / 72


def check_fitted(model: M) -> M:
    """The model, which must be fitted if it is an estimator."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    return model


def check_mapping(name: str, value: object, what: str, least: str = "") -> Mapping[str, Any]:
    """A dictionary from names to `what`; it must not be empty if `least` says of what."""
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name}: expected a dictionary from names to {what}, got {type(value).__name__}."
        )
    if least and not value:
        raise ValueError(f"{name}: expected at least one {least}, got none.")
    return value
