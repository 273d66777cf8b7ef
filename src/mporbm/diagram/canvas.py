"""Drawing tensor networks: shapes for tensors, lines for indices, joined lines for sums.

Mode k of a layer with n modes is drawn at height ``(n + 1) / 2 - k``, so that layers of different
order stay centred on each other. Open (unsummed) indices are red.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch
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
        self._axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self._axes.set_axis_off()
        self._x = self._y = self._right = 0.0
        self._top = self._bottom = 0.0

    def finish(self) -> Figure:
        """The figure, sized to what was drawn."""
        left, right = -GAP, max(self._x, self._right) + GAP
        bottom, top = self._bottom - GAP, self._top + GAP
        self.figure.set_size_inches(INCHES * (right - left), INCHES * (top - bottom))
        self._axes.set(xlim=(left, right), ylim=(bottom, top))
        return self.figure

    def text(self, text: str) -> None:
        """Text between pictures: ``=``, ``+``, ``sigma(``."""
        self._x += GAP
        self._label(self._x, 0.0, text, size=15, ha="left")
        self._x += _text_width(text, 15) + GAP

    def space(self) -> float:
        """Leave room before the next picture, and tell where it begins."""
        self._x += 4 * GAP if self._x else 0.0
        return self._x

    def new_row(self, n_modes: int) -> None:
        """Go on below everything drawn, with room for pictures of up to `n_modes` modes."""
        self._right = max(self._right, self._x)
        self._x = 0.0
        self._y = self._bottom - 3 * GAP - RADIUS - (n_modes - 1) / 2

    def caption(self, text: str, start: float, y: float) -> None:
        """A line of text at height `y` of the row, under the pictures drawn since `start`."""
        width = _text_width(text, 11)
        self._x = max(self._x, start + width)
        self._label((start + self._x) / 2, y, text, size=11)
        self._grow(y - 0.1)

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
        x = self._x
        if has_visible:
            x += (2 * RADIUS if visible else 0.0) + LEG
        left = right = x + RADIUS
        on_right = [has_visible and all(i[0] != "i" for i in glyph.indices) for glyph in glyphs]
        if any(on_right):
            right += _hub_distance(glyphs) + RADIUS + LEG
        places = [
            _Place(right if away else left, *_span(glyph, heights))
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
                self._line((places[k].x, heights[index]), (end, heights[index]), color)
                self._label(middle, heights[index] + 0.05, _math(index), va="bottom")
        self._bonds(glyphs, places, without)
        for k, (glyph, place) in enumerate(zip(glyphs, places, strict=True)):
            self._shape(place, glyph.name, kind, hollow=k == without)

        self._x = right + RADIUS
        if visible and has_visible:
            place = _Place(left - 2 * RADIUS - LEG, *_extent(heights, "i"))
            self._shape(place, visible, "layer")
        if has_hidden:
            self._x += LEG
        if hidden and has_hidden:
            self._shape(_Place(self._x + RADIUS, *_extent(heights, "j")), hidden, "layer")
            self._x += 2 * RADIUS

    def tensor(self, name: str, legs: Sequence[tuple[str, float]]) -> None:
        """One tensor with a labelled open leg in each direction, given in degrees."""
        reach = RADIUS + LEG + 0.2
        xs = [reach * math.cos(math.radians(degrees)) for _, degrees in legs]
        x = self._x + max([RADIUS, *(0.2 - dx for dx in xs)])
        for index, degrees in legs:
            dx, dy = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            length = RADIUS + LEG
            self._line((x, 0.0), (x + length * dx, length * dy), OPEN)
            self._label(x + reach * dx, reach * dy, _math(index))
            self._grow(reach * dy + math.copysign(0.2, dy))
        self._shape(_Place(x, 0.0, 0.0), name, "tensor")
        self._x = x + max([RADIUS, *(0.2 + dx for dx in xs)])

    def pair(self, left: Glyph, right: Glyph) -> None:
        """Two tensors side by side, joined by the indices that both have."""
        summed = [i for i in left.indices if i in right.indices]
        half = (len(summed) - 1) / 2
        x_left = self._x + LEG + RADIUS
        x_right = x_left + LEG + 2 * RADIUS
        ends = [
            (x_left, x_left - RADIUS - LEG, [i for i in left.indices if i not in summed], OPEN),
            (x_left, x_right, summed, INK),
            (x_right, x_right + RADIUS + LEG, [i for i in right.indices if i not in summed], OPEN),
        ]
        for start, end, indices, color in ends:
            middle = (start + end + math.copysign(RADIUS, end - start) * (color == OPEN)) / 2
            for row, index in enumerate(indices):
                y = (len(indices) - 1) / 2 - row
                self._line((start, y), (end, y), color)
                self._label(middle, y + 0.05, _math(index), va="bottom")
        self._shape(_Place(x_left, -half, half), left.name, "tensor")
        self._shape(_Place(x_right, -half, half), right.name, "tensor")
        self._x = x_right + RADIUS + LEG

    # Strokes

    def _bonds(
        self, glyphs: Sequence[Glyph], places: Sequence["_Place"], without: int | None
    ) -> None:
        for index in dict.fromkeys(i for glyph in glyphs for i in glyph.indices if i[0] == "r"):
            ends = [k for k, glyph in enumerate(glyphs) for i in glyph.indices if i == index]
            color = OPEN if without in ends else INK
            centers = [(places[k].x, places[k].y) for k in ends]
            if len(ends) > 2:  # one index on many tensors meets in a dot
                dot = (places[0].x + _hub_distance(glyphs), 0.0)
                for k, center in zip(ends, centers, strict=True):
                    self._line(center, dot, OPEN if k == without else INK)
                self._axes.add_patch(Circle((dot[0], dot[1] + self._y), 0.07, color=INK, zorder=3))
                self._label(dot[0] + 0.1, dot[1] + 0.05, _math(index), ha="left", va="bottom")
            elif index == "r1":
                self._ring(centers, color)
            else:
                (x0, y0), (x1, y1) = centers
                self._line(centers[0], centers[1], color)
                vertical = x0 == x1
                self._label(
                    (x0 + x1) / 2 + 0.08 * vertical,
                    (y0 + y1) / 2 + 0.05 * (not vertical),
                    _math(index),
                    ha="left" if vertical else "center",
                    va="center" if vertical else "bottom",
                )

    def _ring(self, centers: Sequence[tuple[float, float]], color: str) -> None:
        """The bond that closes a ring: from the top around the left side to the bottom."""
        x = centers[0][0]
        top = max(y for _, y in centers) + RADIUS + 0.5
        bottom = min(y for _, y in centers) - RADIUS - 0.5
        side, middle = x - RADIUS - 0.25 * LEG, (top + bottom) / 2
        above, below = (x, max(y for _, y in centers)), (x, min(y for _, y in centers))
        points = [above, (x, top), (side, top), (side, middle)]
        points += [(side, bottom), (x, bottom), below]
        codes = [Path.MOVETO, *[Path.CURVE4] * 6]
        path = Path([(px, py + self._y) for px, py in points], codes)
        outline = PathPatch(path, facecolor="none", edgecolor=color, lw=1.5)
        # The white rim lets it pass over the legs without seeming to join them.
        outline.set_path_effects([withStroke(linewidth=5.0, foreground="white")])
        outline.set_zorder(1.5)
        self._axes.add_patch(outline)
        self._label(x - RADIUS, top - 0.35, _math("r1"), ha="right", va="bottom")
        self._grow(top - 0.1)
        self._grow(bottom + 0.1)

    def _shape(self, place: "_Place", label: str, kind: str, hollow: bool = False) -> None:
        style: dict[str, Any] = {
            "facecolor": "white" if hollow else FILL[kind],
            "edgecolor": OPEN if hollow else INK,
            "linestyle": (0, (3, 2)) if hollow else "solid",
            "lw": 1.3,
            "zorder": 2,
        }
        low, high = place.low + self._y, place.high + self._y
        if low == high:
            self._axes.add_patch(Circle((place.x, low), RADIUS, **style))
        else:
            box = f"round,pad=0,rounding_size={RADIUS}"
            corner, height = (place.x - RADIUS, low - RADIUS), high - low + 2 * RADIUS
            patch = FancyBboxPatch(corner, 2 * RADIUS, height, boxstyle=box, **style)
            self._axes.add_patch(patch)
        if not hollow:
            size = 9.5 if "^" in label else 12
            self._label(place.x, place.y, f"${symbol(label)}$", size=size)
        self._grow(place.low - RADIUS)
        self._grow(place.high + RADIUS)

    def _line(self, start: tuple[float, float], end: tuple[float, float], color: str) -> None:
        xs = [start[0], end[0]]
        ys = [start[1] + self._y, end[1] + self._y]
        self._axes.plot(xs, ys, color=color, lw=1.5, solid_capstyle="round", zorder=1)

    def _label(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 10,
        ha: str = "center",
        va: str = "center",
    ) -> None:
        self._axes.text(x, y + self._y, text, ha=ha, va=va, fontsize=size, color=INK, zorder=4)

    def _grow(self, y: float) -> None:
        self._top = max(self._top, y + self._y)
        self._bottom = min(self._bottom, y + self._y)


class _Place:
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


def _extent(heights: dict[str, float], letter: str) -> tuple[float, float]:
    ys = [y for index, y in heights.items() if index[0] == letter]
    return min(ys), max(ys)


def _span(glyph: Glyph, heights: dict[str, float]) -> tuple[float, float]:
    ys = [heights[i] for i in glyph.indices if i in heights]
    return min(ys), max(ys)


def _math(index: str) -> str:
    return f"${index[0]}_{{{index[1:]}}}$" if index[1:] else f"${index}$"


def _text_width(text: str, size: float) -> float:
    width = TextPath((0.0, 0.0), text, size=size).get_extents().width
    return float(width) / 72 / INCHES
