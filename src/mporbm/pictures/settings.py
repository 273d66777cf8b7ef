"""A measure of the settings of a sweep, along the values of each option."""

import itertools
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from .style import NORMAL, QUIET, Style, add_legend, line_style, tidy

COLUMNS = 3
"""The most panels side by side."""
BEST = "best"
LIKE_THE_BEST = "not told apart from it"
WITHOUT = "failed or diverged"


def setting_curves(
    swept: Mapping[str, Sequence[str]],
    values: Mapping[tuple[str, ...], Sequence[float]],
    *,
    best: tuple[str, ...] | None = None,
    like_the_best: Sequence[tuple[str, ...]] = (),
    ylabel: str = "",
) -> Figure:
    """Draw a measure of all settings of a grid, as means over seeds.

    The first option goes along the axis, value by value at equal distances; each value of the
    second has a curve, with bars of one standard deviation; those of the others have panels.

    Parameters
    ----------
    swept
        For the name of each option its values, in order.
    values
        For each setting, a value of every option, what was measured for each seed. Settings that
        are left out have failed or diverged, and are marked as such.
    best
        The setting to mark as the best.
    like_the_best
        Settings to mark as those that cannot be told apart from it.

    Examples
    --------
    >>> from mporbm.pictures import setting_curves
    >>> swept = {"rank": ["2", "5"], "learning_rate": ["0.01", "0.1"]}
    >>> values = {("2", "0.01"): [-5.1, -5.0], ("5", "0.01"): [-4.1, -4.3], ("2", "0.1"): [-4, -6]}
    >>> figure = setting_curves(swept, values, best=("5", "0.01"), ylabel="score")
    """
    names = list(swept)
    if not names or not all(swept.values()):
        raise ValueError(f"swept: expected options with values, got {dict(swept)}.")
    settings = set(itertools.product(*swept.values()))
    if unknown := [setting for setting in values if setting not in settings]:
        raise ValueError(f"values: expected values of the options, got {unknown[0]}.")
    marks = {
        BEST: settings & {best},
        LIKE_THE_BEST: settings & {*like_the_best},
        WITHOUT: settings - values.keys(),
    }
    panels = list(itertools.product(*(swept[name] for name in names[2:])))
    figure, axes, corner = _charts(len(panels), (2.6, 3.2), ylabel)
    for axis, others in zip(axes, panels, strict=True):
        _draw_panel(axis, swept, others, values, marks)
    for name, marked in marks.items():
        if marked:
            corner.plot([], [], label=name, **_mark(name))
    add_legend(corner)
    return figure


def setting_scatter(
    space: Mapping[str, Sequence[str | float]],
    values: Mapping[tuple[str, ...], Sequence[float]],
    *,
    best: tuple[str, ...] | None = None,
    like_the_best: Sequence[tuple[str, ...]] = (),
    ylabel: str = "",
) -> Figure:
    """A measure of settings that were sampled, as means over seeds, against each option.

    Parameters
    ----------
    space
        For the name of each option its values, or a range with ``log`` that tells whether its
        axis is logarithmic.
    values
        For each setting, a value of every option, what was measured for each seed.
    best, like_the_best
        The setting to mark as the best, and those that cannot be told apart from it.

    Examples
    --------
    >>> from mporbm.pictures import setting_scatter
    >>> values = {("2", "0.01"): [-5.1, -5.0], ("5", "0.031"): [-4.1, -4.3]}
    >>> space = {"rank": ["2", "5"], "learning_rate": (0.01, 0.1)}
    >>> figure = setting_scatter(space, values, best=("5", "0.031"), ylabel="score")
    """
    figure, axes, corner = _charts(len(space), (1.6, 2.6), ylabel)
    marks = {BEST: [] if best is None else [best], LIKE_THE_BEST: list(like_the_best)}
    means = {setting: _mean(measured) for setting, measured in values.items()}
    for number, (axis, (name, chosen)) in enumerate(zip(axes, space.items(), strict=True)):
        listed = isinstance(chosen, list)
        places = {s: chosen.index(s[number]) if listed else float(s[number]) for s in values}
        axis.plot(list(places.values()), list(means.values()), "o", markersize=4)
        for mark, settings in marks.items():
            if settings:
                where = [places[s] for s in settings], [means[s] for s in settings]
                axis.plot(*where, label=mark, **_mark(mark))
        if listed:
            axis.set_xticks(range(len(chosen)), map(str, chosen))
        elif getattr(chosen, "log", False):
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlabel(name)
        axis.margins(x=0.08)
        tidy(axis)
    add_legend(corner)
    return figure


def _charts(n: int, widths: tuple[float, float], ylabel: str) -> tuple[Figure, list[Axes], Axes]:
    """Charts on one scale, `COLUMNS` in a row; the last of the first row is for the legend.

    The widths are those of what is beside them and of each.
    """
    n_rows, n_columns = -(-n // COLUMNS), min(n, COLUMNS)
    size = (widths[0] + widths[1] * n_columns, 0.4 + 2.8 * n_rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    for axis in axes.flat[n:]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel(ylabel)
    return figure, list(axes.flat[:n]), axes[0, -1]


def _draw_panel(
    axis: Axes,
    swept: Mapping[str, Sequence[str]],
    others: tuple[str, ...],
    values: Mapping[tuple[str, ...], Sequence[float]],
    marks: Mapping[str, Collection[tuple[str, ...]]],
) -> None:
    """Draw the settings that have given values of the options from the third on."""
    first, *more = swept
    curves = [(value,) for value in swept[more[0]]] if more else [()]
    for number, curve in enumerate(curves):
        # Side by side, so that bars do not hide each other.
        places = np.arange(len(swept[first])) + 0.05 * (number - (len(curves) - 1) / 2)
        line = [(value, *curve, *others) for value in swept[first]]
        label = f"{more[0]} {curve[0]}" if curve else "mean over seeds"
        means = [_mean(values.get(setting, ())) for setting in line]
        bars = [_deviation(values.get(setting, ())) for setting in line]
        style = line_style(number, len(line))
        axis.errorbar(places, means, bars, capsize=2.5, elinewidth=0.8, label=label, **style)
        for place, mean, setting in zip(places, means, line, strict=True):
            for name in (BEST, LIKE_THE_BEST):
                if setting in marks[name]:
                    axis.plot(place, mean, **_mark(name))
            if setting in marks[WITHOUT]:
                cross: Style = {**_mark(WITHOUT), "markeredgecolor": style["color"]}
                bottom = axis.get_xaxis_transform()
                axis.plot(place, 0.0, transform=bottom, clip_on=False, **cross)
    titles = [f"{name} {value}" for name, value in zip(more[1:], others, strict=True)]
    axis.set_title(", ".join(titles), loc="left", fontsize=NORMAL)
    axis.set_xlabel(first)
    axis.set_xticks(range(len(swept[first])), swept[first])
    axis.margins(x=0.08)
    tidy(axis)


def _mean(values: Sequence[float]) -> float:
    """The mean; NaN, which is not drawn, of no values."""
    return float(np.mean(values)) if len(values) else float("nan")


def _deviation(values: Sequence[float]) -> float:
    """The standard deviation; 0, which is not drawn, for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _mark(name: str) -> Style:
    """How to mark a setting: by a ring, or by a cross where it has no value."""
    how: Style = {"linestyle": "", "markerfacecolor": "none", "markeredgecolor": "black"}
    if name == WITHOUT:
        return {**how, "marker": "x", "markersize": 6, "markeredgecolor": QUIET}
    return {**how, "marker": "o", "markersize": 11 if name == BEST else 7}
