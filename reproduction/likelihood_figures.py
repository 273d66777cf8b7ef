"""Pictures of log-likelihoods against sizes and times, and of what machines draw and complete."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mporbm.evaluation.neighbours import Array
from mporbm.evaluation.run_cache import Outcome
from mporbm.pictures import strips
from mporbm.pictures.style import SMALL, Style, add_legend, line_style, tidy

from .densities import Design
from .drawing import save_figure
from .generation import decode
from .likelihood_tables import Found, mean, trusted, values

AXES = {"parameters": "weights", "training_seconds": "seconds of training"}
"""What goes along the axes of both charts."""
COUPLINGS = ("RBM", "MvRBM", "TvRBM", "MPORBM")
"""Couplings in the order of their colours."""


def nats_figure(name: str, title: str, found: Found, folder: Path) -> dict[str, Any]:
    """Log-likelihood against weights and against seconds, a colour for each coupling."""
    save_figure(draw_nats(found), folder / f"{name}.svg")
    return {
        "name": name,
        "path": f"{folder.name}/{name}.svg",
        "caption": f"{title}: log-likelihood of test samples against the number of weights and "
        f"the seconds of training, means over seeds with bars of one standard deviation. Numbers "
        f"beside points are hidden units of dense machines and ranks of others; a hollow point is "
        f"not to be trusted.",
        "alt": f"Two charts of curves of nats, against weights and against seconds, for "
        f"{', '.join(curves(found))}.",
    }


def curves(found: Found) -> dict[str, list[Design]]:
    """Machines that are joined by a line, by its name."""
    joined: dict[str, list[Design]] = {}
    for design in found:
        joined.setdefault(design.curve, []).append(design)
    return joined


def draw_nats(found: Found) -> Figure:
    """Draw both charts, on one scale of nats."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (measure, label) in zip(axes, AXES.items(), strict=True):
        drawn: dict[str, int] = {}
        for curve, designs in curves(found).items():
            kind = designs[0].kind
            dashes = ("-", "--", ":")[drawn.setdefault(kind, 0) % 3]
            drawn[kind] += 1
            _draw_curve(axis, found, designs, measure, curve, dashes)
        axis.set_xscale("log")
        axis.set_xlabel(label)
        axis.margins(x=0.08, y=0.1)
        tidy(axis)
    axes[0].set_ylabel("log-likelihood (nats)")
    add_legend(axes[1])
    return figure


def _draw_curve(
    axis: Axes, found: Found, designs: list[Design], measure: str, label: str, dashes: str
) -> None:
    designs = sorted(designs, key=lambda design: mean(found[design], measure))
    places = [mean(found[design], measure) for design in designs]
    nats = [mean(found[design], "nats") for design in designs]
    bars = [float(np.std(values(found[d], "nats"), ddof=len(found[d]) > 1)) for d in designs]
    color = line_style(COUPLINGS.index(designs[0].kind), len(designs))
    style: Style = {**color, "linestyle": dashes}
    axis.errorbar(places, nats, bars, capsize=2.5, elinewidth=0.8, label=label, **style)
    hollow: Style = {**style, "markerfacecolor": "white", "markersize": 5.0}
    for design, place, value in zip(designs, places, nats, strict=True):
        if not trusted(found[design]):
            axis.plot(place, value, zorder=3, **hollow)
        size = design.n_hidden if design.kind == "RBM" else design.rank
        if size is not None:
            axis.annotate(
                str(size),
                (place, value),
                (4, -9),
                textcoords="offset points",
                fontsize=SMALL - 1.5,
                color=style["color"],
            )


Kept = Mapping[str, Outcome]
"""Pictures of machines as runs keep them, by the labels of the machines."""


def samples_figure(name: str, title: str, kept: Kept, folder: Path) -> dict[str, Any]:
    """Rows of test samples, and of samples of the machines."""
    rows = {"test samples": _decoded(next(iter(kept.values())), "test")}
    rows |= {label: _decoded(pictures, "samples") for label, pictures in kept.items()}
    save_figure(strips(rows), folder / f"{name}.png")
    return {
        "name": name,
        "path": f"{folder.name}/{name}.png",
        "caption": f"{title}: test samples, and samples of machines with equally many weights, "
        f"from the chains of the training. None was picked by hand.",
        "alt": f"Rows of samples: {', '.join(rows)}.",
    }


def completed_figure(
    name: str, title: str, kept: Kept, mask: Array, folder: Path
) -> dict[str, Any]:
    """Rows of test images: as they are, what is given of them, and completed by the machines."""
    original = _decoded(next(iter(kept.values())), "test")
    rows = {"original": original, "given": original}
    rows |= {label: _decoded(pictures, "completed") for label, pictures in kept.items()}
    save_figure(strips(rows, mask=mask), folder / f"{name}.png")
    return {
        "name": name,
        "path": f"{folder.name}/{name}.png",
        "caption": f"{title}: the first test images, completed from their right half (posterior "
        f"mean).",
        "alt": f"Rows of images: {', '.join(rows)}.",
    }


def _decoded(pictures: Outcome, name: str) -> Array:
    return decode(pictures[name], tuple(pictures["shape"]))
