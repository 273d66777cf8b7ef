"""Drawing tensor networks: shapes for tensors, lines for indices, joined lines for sums.

Mode k of a layer with n modes is drawn at height ``(n + 1) / 2 - k``, so that layers of different
order stay centred on each other. Open (unsummed) indices are red.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Patch, PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath

INCHES = 0.62  # of paper for one unit of drawing
RADIUS = 0.32
LEG = 0.8
GAP = 0.25
INK = "#1f2933"
OPEN = "#c0392b"
FILL = {"coupling": "#f2c14e", "layer": "#9cc5e8", "bias": "#d5d8dc", "tensor": "#ffffff"}


class Glyph(NamedTuple):
    """What is drawn of a tensor: its name, such as ``W^{(1)}``, and the names of its indices."""

    name: str
    indices: tuple[str, ...]


class Canvas:
    """Rows of pictures: each call draws to the right of what is there."""

    def __init__(self) -> None:
        self.figure = Figure()
        self.axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set_axis_off()
        self.x = self.y = self.right = 0.0
        self.top = self.bottom = 0.0

    def finish(self) -> Figure:
        """The figure, sized to what was drawn."""
        left, right = -GAP, max(self.x, self.right) + GAP
        bottom, top = self.bottom - GAP, self.top + GAP
        self.figure.set_size_inches(INCHES * (right - left), INCHES * (top - bottom))
        self.axes.set(xlim=(left, right), ylim=(bottom, top))
        return self.figure

    def text(self, text: str) -> None:
        """Text between pictures: ``=``, ``+``, ``sigma(``."""
        self.x += GAP
        self.label(self.x, 0.0, text, size=15, ha="left")
        self.x += text_width(text, 15) + GAP

    def network(
        self,
        glyphs: Sequence[Glyph],
        *,
        visible: str | None = None,
        hidden: str | None = None,
        without: int | None = None,
        kind: str = "coupling",
    ) -> None:
        """A network with indices ``i..`` to the left, ``j..`` to the right, bonds ``r..`` between.

        Parameters
        ----------
        visible, hidden
            Labels of the layers that close the legs on either side; None leaves them open.
        without
            A tensor to take out: its outline is dashed and the legs that it leaves are open.
        """
        heights = _heights(glyphs)
        has_visible, has_hidden = (any(i[0] == s for i in heights) for s in "ij")
        x = self.x
        if has_visible:
            x += (2 * RADIUS if visible else 0.0) + LEG
        left = right = x + RADIUS
        on_right = [has_visible and all(i[0] != "i" for i in glyph.indices) for glyph in glyphs]
        if any(on_right):
            right += _hub_distance(glyphs) + RADIUS + LEG
        places = [
            Place(right if away else left, *_span(glyph.indices, heights))
            for glyph, away in zip(glyphs, on_right, strict=True)
        ]

        for k, glyph in enumerate(glyphs):
            for index in glyph.indices:
                if index[0] == "i":
                    end, closed = left - RADIUS - LEG, visible
                elif index[0] == "j":
                    end, closed = right + RADIUS + LEG, hidden
                else:
                    continue
                middle = end + math.copysign(LEG / 2, places[k].x - end)
                color = INK if closed and k != without else OPEN
                self.line((places[k].x, heights[index]), (end, heights[index]), color)
                self.label(middle, heights[index] + 0.05, math_text(index), va="bottom")
        self._bonds(glyphs, places, without)
        for k, (glyph, place) in enumerate(zip(glyphs, places, strict=True)):
            self.shape(place, glyph.name, kind, hollow=k == without)

        self.x = right + RADIUS
        if visible and has_visible:
            legs = [i for i in heights if i[0] == "i"]
            self.shape(Place(left - 2 * RADIUS - LEG, *_span(legs, heights)), visible, "layer")
        if has_hidden:
            self.x += LEG
        if hidden and has_hidden:
            legs = [i for i in heights if i[0] == "j"]
            self.shape(Place(self.x + RADIUS, *_span(legs, heights)), hidden, "layer")
            self.x += 2 * RADIUS

    # Strokes

    def _bonds(
        self, glyphs: Sequence[Glyph], places: Sequence["Place"], without: int | None
    ) -> None:
        for index in dict.fromkeys(i for glyph in glyphs for i in glyph.indices if i[0] == "r"):
            ends = [k for k, glyph in enumerate(glyphs) for i in glyph.indices if i == index]
            color = OPEN if without in ends else INK
            centers = [(places[k].x, places[k].y) for k in ends]
            if len(ends) > 2:  # one index on many tensors meets in a dot
                dot = (places[0].x + _hub_distance(glyphs), 0.0)
                for k, center in zip(ends, centers, strict=True):
                    self.line(center, dot, OPEN if k == without else INK)
                self.axes.add_patch(Circle((dot[0], dot[1] + self.y), 0.07, color=INK, zorder=3))
                self.label(dot[0] + 0.1, dot[1] + 0.05, math_text(index), ha="left", va="bottom")
            elif index == "r1":
                self._ring(centers, color)
            else:
                (x0, y0), (x1, y1) = centers
                self.line(centers[0], centers[1], color)
                vertical = x0 == x1
                self.label(
                    (x0 + x1) / 2 + 0.08 * vertical,
                    (y0 + y1) / 2 + 0.05 * (not vertical),
                    math_text(index),
                    ha="left" if vertical else "center",
                    va="center" if vertical else "bottom",
                )

    def _ring(self, centers: Sequence[tuple[float, float]], color: str) -> None:
        """The bond that closes a ring: from the top around the left side to the bottom."""
        x, highest, lowest = centers[0][0], max(y for _, y in centers), min(y for _, y in centers)
        top, bottom = highest + RADIUS + 0.5, lowest - RADIUS - 0.5
        side, middle = x - RADIUS - 0.25 * LEG, (top + bottom) / 2
        points = [(x, highest), (x, top), (side, top), (side, middle)]
        points += [(side, bottom), (x, bottom), (x, lowest)]
        codes = [Path.MOVETO, *[Path.CURVE4] * 6]
        path = Path([(px, py + self.y) for px, py in points], codes)
        # The white rim lets it pass over the legs without seeming to join them.
        rim = [withStroke(linewidth=5.0, foreground="white")]
        style = {"facecolor": "none", "edgecolor": color, "lw": 1.5, "zorder": 1.5}
        self.axes.add_patch(PathPatch(path, path_effects=rim, **style))
        self.label(x - RADIUS, top - 0.35, math_text("r1"), ha="right", va="bottom")
        self.grow(top - 0.1)
        self.grow(bottom + 0.1)

    def shape(self, place: "Place", label: str, kind: str, hollow: bool = False) -> None:
        """A tensor with its name, or the dashed outline of one that was taken out."""
        low, high = place.low + self.y, place.high + self.y
        patch: Patch = Circle((place.x, low), RADIUS)
        if low != high:
            box = f"round,pad=0,rounding_size={RADIUS}"
            corner, height = (place.x - RADIUS, low - RADIUS), high - low + 2 * RADIUS
            patch = FancyBboxPatch(corner, 2 * RADIUS, height, boxstyle=box)
        if hollow:
            patch.set(facecolor="white", edgecolor=OPEN, linestyle=(0, (3, 2)))
        else:
            patch.set(facecolor=FILL[kind], edgecolor=INK)
        patch.set(lw=1.3, zorder=2)
        self.axes.add_patch(patch)
        if not hollow:
            size = 9.5 if "^" in label else 12
            self.label(place.x, place.y, f"${symbol(label)}$", size=size)
        self.grow(place.low - RADIUS)
        self.grow(place.high + RADIUS)

    def line(self, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
        """An index between two places."""
        xs, ys = [start[0], end[0]], [start[1] + self.y, end[1] + self.y]
        self.axes.plot(xs, ys, color=color, lw=1.5, solid_capstyle="round", zorder=1)

    def label(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 10,
        ha: str = "center",
        va: str = "center",
    ) -> None:
        """A short text."""
        self.axes.text(x, y + self.y, text, ha=ha, va=va, fontsize=size, color=INK, zorder=4)

    def grow(self, y: float) -> None:
        """Make room for something at a height of the row."""
        self.top = max(self.top, y + self.y)
        self.bottom = min(self.bottom, y + self.y)


class Place:
    """Where a shape stands: its column and the heights of its first and last leg."""

    def __init__(self, x: float, low: float, high: float) -> None:
        self.x, self.low, self.high = x, low, high
        self.y = (low + high) / 2


def symbol(name: str) -> str:
    """A tensor's name in TeX: calligraphic if it is a capital, as in the paper."""
    base, hat, superscript = name.partition("^")
    return (rf"\mathcal{{{base}}}" if base.isupper() else base) + hat + superscript


def _heights(glyphs: Sequence[Glyph]) -> dict[str, float]:
    legs = [i for letter in "ij" for glyph in glyphs for i in glyph.indices if i[0] == letter]
    orders = {letter: sum(i[0] == letter for i in legs) for letter in "ij"}
    return {i: (orders[i[0]] + 1) / 2 - int(i[1:]) for i in legs}


def _hub_distance(glyphs: Sequence[Glyph]) -> float:
    """Far enough for the lines of a shared index to pass between the tensors that they leave."""
    return max(LEG + RADIUS, 0.4 * len(glyphs))


def _span(indices: Sequence[str], heights: dict[str, float]) -> tuple[float, float]:
    ys = [heights[i] for i in indices if i in heights]
    return min(ys), max(ys)


def math_text(index: str) -> str:
    """The name of an index in TeX."""
    return f"${index[0]}_{{{index[1:]}}}$" if index[1:] else f"${index}$"


def text_width(text: str, size: float) -> float:
    """The width of a text of `size` points in units of drawing."""
    width = TextPath((0.0, 0.0), text, size=size).get_extents().width
    return float(width) / 72 / INCHES
