"""The paper's figures in the graphical language of tensor networks (Figs. 1 to 5).

``python -m reproduction.diagrams FOLDER`` writes them as PDF, PNG and SVG.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
from matplotlib import rc_context
from matplotlib.figure import Figure

from mporbm.diagram.canvas import (
    GAP,
    INK,
    LEG,
    OPEN,
    RADIUS,
    Canvas,
    Glyph,
    Place,
    math_text,
    text_width,
)
from mporbm.diagram.machine import draw_on
from mporbm.machine import Coupling, CPCoupling, DenseCoupling, KroneckerCoupling, MPOCoupling


class Page(Canvas):
    """Rows of pictures with captions, and tensors that are no part of a machine."""

    def space(self) -> float:
        """Leave room before the next picture, and tell where it begins."""
        self.x += 4 * GAP if self.x else 0.0
        return self.x

    def new_row(self, n_modes: int) -> None:
        """Go on below everything drawn, with room for pictures of up to `n_modes` modes."""
        self.right = max(self.right, self.x)
        self.x = 0.0
        self.y = self.bottom - 3 * GAP - RADIUS - (n_modes - 1) / 2

    def caption(self, text: str, start: float, y: float) -> None:
        """A line of text at height `y` of the row, under the pictures drawn since `start`."""
        width = text_width(text, 11)
        self.x = max(self.x, start + width)
        self.label((start + self.x) / 2, y, text, size=11)
        self.grow(y - 0.1)

    def tensor(self, name: str, legs: Sequence[tuple[str, float]]) -> None:
        """One tensor with a labelled open leg in each direction, given in degrees."""
        reach = RADIUS + LEG + 0.2
        xs = [reach * math.cos(math.radians(degrees)) for _, degrees in legs]
        x = self.x + max([RADIUS, *(0.2 - dx for dx in xs)])
        for index, degrees in legs:
            dx, dy = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            length = RADIUS + LEG
            self.line((x, 0.0), (x + length * dx, length * dy), OPEN)
            self.label(x + reach * dx, reach * dy, math_text(index))
            self.grow(reach * dy + math.copysign(0.2, dy))
        self.shape(Place(x, 0.0, 0.0), name, "tensor")
        self.x = x + max([RADIUS, *(0.2 + dx for dx in xs)])

    def pair(self, left: Glyph, right: Glyph) -> None:
        """Two tensors side by side, joined by the indices that both have."""
        summed = [i for i in left.indices if i in right.indices]
        half = (len(summed) - 1) / 2
        x_left = self.x + LEG + RADIUS
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
                self.line((start, y), (end, y), color)
                self.label(middle, y + 0.05, math_text(index), va="bottom")
        self.shape(Place(x_left, -half, half), left.name, "tensor")
        self.shape(Place(x_right, -half, half), right.name, "tensor")
        self.x = x_right + RADIUS + LEG


def draw_tensors() -> Figure:
    """Fig. 1: a scalar, a vector, a matrix and a third-order tensor."""
    canvas = Page()
    legs = [[], [("i1", 270.0)], [("i1", 180.0), ("i2", 0.0)]]
    legs.append([("i1", 180.0), ("i2", 270.0), ("i3", 0.0)])
    names = [("a", "scalar"), (r"\mathbf{a}", "vector"), (r"\mathbf{A}", "matrix")]
    names.append(("A", "third-order tensor"))
    for (name, words), directions in zip(names, legs, strict=True):
        start = canvas.space()
        canvas.tensor(name, directions)
        canvas.caption(words, start, y=-2.0)
    return canvas.finish()


def draw_contraction() -> Figure:
    """Fig. 2: ``C(i1, i4, i5) = sum over i2, i3 of A(i1, i2, i3) B(i2, i3, i4, i5)``."""
    canvas = Page()
    canvas.tensor("C", [("i1", 180.0), ("i4", 30.0), ("i5", 330.0)])
    canvas.text("$=$")
    canvas.pair(Glyph("A", ("i1", "i2", "i3")), Glyph("B", ("i2", "i3", "i4", "i5")))
    return canvas.finish()


def draw_mpo() -> Figure:
    """Fig. 3: a tensor with 2d modes as a matrix product operator."""
    canvas = Page()
    coupling = _couplings()["MPORBM"]
    modes = ("i1", "i2", "i3", "j1", "j2", "j3")
    canvas.network([Glyph("A", modes)])
    canvas.text("$=$")
    canvas.network([Glyph(n.name.replace("W", "A"), n.indices) for n in coupling.nodes()])
    return canvas.finish()


def draw_energies() -> Figure:
    """Fig. 4 (a)-(d): the negative energies of RBM, TvRBM, MvRBM and MPORBM."""
    canvas = Page()
    for k, (name, coupling) in enumerate(_couplings().items()):
        if k:
            canvas.new_row(len(coupling.visible_shape))
        canvas.text(f"({'abcd'[k]}) $-E_{{\\mathrm{{{name}}}}}\\;=$")
        draw_on(canvas, coupling, "energy")
    return canvas.finish()


def draw_conditionals() -> Figure:
    """Fig. 4 (e)-(f): the conditional probabilities of an MPORBM."""
    canvas = Page()
    coupling = _couplings()["MPORBM"]
    canvas.text("(e)")
    draw_on(canvas, coupling, "visible_mean")
    canvas.new_row(3)
    canvas.text("(f)")
    draw_on(canvas, coupling, "hidden_mean")
    return canvas.finish()


def draw_gradient() -> Figure:
    """Fig. 5: the derivative of the log-likelihood with respect to an MPO core."""
    canvas = Page()
    draw_on(canvas, _couplings()["MPORBM"], "gradient", core=1)
    return canvas.finish()


FIGURES: dict[str, Callable[[], Figure]] = {
    "tensors": draw_tensors,
    "contraction": draw_contraction,
    "mpo": draw_mpo,
    "energies": draw_energies,
    "conditionals": draw_conditionals,
    "gradient": draw_gradient,
}
FORMATS = ("pdf", "png", "svg")


def save_figures(folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure of the paper to a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    # A fixed salt and no date: the same drawing gives the same bytes.
    with rc_context({"svg.hashsalt": "mporbm"}):
        for name, draw_figure in FIGURES.items():
            figure = draw_figure()
            for extension in formats:
                paths.append(folder / f"{name}.{extension}")
                dated = {"svg": "Date", "pdf": "CreationDate"}.get(extension)
                metadata = {dated: None} if dated else None
                figure.savefig(paths[-1], dpi=200, metadata=metadata)
    return paths


def _couplings() -> dict[str, Coupling]:
    """Make the four machines of the paper: vectors in (a), matrices in (c), otherwise d = 3."""
    key, visible, hidden = jax.random.key(0), (2, 2, 2), (2, 2, 2)
    return {
        "RBM": DenseCoupling.random(key, (2,), (2,)),
        "TvRBM": CPCoupling.random(key, visible, (2,), rank=2),
        "MvRBM": KroneckerCoupling.random(key, visible[:2], hidden[:2]),
        "MPORBM": MPOCoupling.random(key, visible, hidden, rank=2),
    }


def main(words: Sequence[str] | None = None) -> None:
    """Parse the command line and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.diagrams", description="Draw the paper's tensor networks."
    )
    parser.add_argument("folder", help="where to write; made if it does not exist")
    parser.add_argument(
        "--format",
        action="append",
        choices=FORMATS,
        help="may be given several times; all formats if it is not given",
    )
    options = parser.parse_args(words)
    if not options.folder:
        parser.error("folder: expected a path, got an empty one; pass . for this folder")
    try:
        for path in save_figures(Path(options.folder), options.format or FORMATS):
            print(path)
    except OSError as error:
        parser.error(f"folder: cannot write to {options.folder}: {error.strerror}")


if __name__ == "__main__":
    main()
