"""Curves over the epochs of a training, and over ranks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator, StrMethodFormatter
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ..machine import Bernoulli
from ..tensor.check import check_integer, check_sequence, host_array
from .style import NORMAL, Style, add_legend, check_fitted, check_mapping, line_style, tidy

Places = Float[np.ndarray, " ranks"]
Errors = Float[np.ndarray, "ranks seeds"]


class Panel(NamedTuple):
    """Curves over the same epochs with one axis."""

    title: str
    lines: dict[str, Float[np.ndarray, " epochs"]]
    from_zero: bool = True


def training_curves(model: BaseEstimator) -> Figure:
    """Draw what was watched while an estimator learnt, over the epochs.

    These are the reconstruction error, the scores and the log-likelihoods of training and
    validation samples, the gradient norm, and the ranks if they changed, as far as `history_` has
    them.

    Parameters
    ----------
    model
        A fitted estimator.
    """
    epochs, panels = _panels(model)
    figure = Figure(figsize=(5.5, 0.5 + 1.3 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        for k, (label, values) in enumerate(panel.lines.items()):
            there = np.isfinite(values)
            axis.plot(epochs[there], values[there], label=label, **line_style(k, int(there.sum())))
        axis.set_title(panel.title, loc="left", fontsize=NORMAL)
        if panel.from_zero:
            axis.set_ylim(0.0, 1.05 * axis.get_ylim()[1])
        if len(panel.lines) > 1:
            add_legend(axis, n_columns=-(-len(panel.lines) // 6))
        tidy(axis)
    axes[-1].set(xlim=(min(epochs) - 0.5, max(epochs) + 0.5), xlabel="epoch")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    return figure


def rank_error_curve(
    ranks: Sequence[int] | Int[np.ndarray, " ranks"],
    errors: Mapping[str, ArrayLike],
    baseline: Mapping[str, ArrayLike] | None = None,
    *,
    xlabel: str = "MPO-rank",
    ylabel: str = "classification error (%)",
) -> Figure:
    """Draw errors in per cent against the rank, as in the paper's Fig. 6.

    Parameters
    ----------
    ranks
        The ranks, in any order.
    errors
        For the name of each curve its errors, (n_ranks,) or (n_ranks, n_seeds): the mean over the
        seeds is drawn within a band of their standard deviation.
    baseline
        For the name of each horizontal line its error, or those of several seeds.

    Examples
    --------
    >>> from mporbm.pictures import rank_error_curve
    >>> errors = {"3000 samples": [[8.1, 7.5], [6.9, 7.1], [6.4, 6.6]]}
    >>> figure = rank_error_curve([1, 10, 40], errors, {"RBM": [6.9, 6.6]})
    """
    return rank_error_panels(ranks, {"": (errors, baseline)}, xlabel=xlabel, ylabel=ylabel)


def rank_error_panels(
    ranks: Sequence[int] | Int[np.ndarray, " ranks"],
    panels: Mapping[str, tuple[Mapping[str, ArrayLike], Mapping[str, ArrayLike] | None]],
    *,
    xlabel: str = "MPO-rank",
    ylabel: str = "classification error (%)",
) -> Figure:
    """Draw charts of `rank_error_curve` side by side, on one scale.

    Parameters
    ----------
    ranks
        The ranks of all curves, in any order.
    panels
        For the title of each chart its errors and its baseline, as for `rank_error_curve`. The
        last chart has the legend, so all should have the same names.
    """
    places, order = _sorted_ranks(ranks)
    check_mapping("panels", panels, "errors", least="chart")
    figure = Figure(figsize=(2.3 + 3.2 * len(panels), 3.2), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, (errors, baseline)) in zip(axes, panels.items(), strict=True):
        curves = {
            name: _check_errors(f"errors[{name!r}]", values, len(places))[order]
            for name, values in check_mapping("errors", errors, "errors", least="curve").items()
        }
        given = check_mapping("baseline", {} if baseline is None else baseline, "errors")
        levels = {
            name: _check_level(f"baseline[{name!r}]", values) for name, values in given.items()
        }
        _draw_ranks(axis, places, curves, levels)
        axis.set_xlabel(xlabel)
        if title:
            axis.set_title(title, loc="left", fontsize=NORMAL)
    axes[0].set_ylabel(ylabel)
    axes[0].set_ylim(0.0, None)
    add_legend(axes[-1])
    return figure


def _draw_ranks(
    axis: Axes, places: Places, curves: Mapping[str, Errors], levels: Mapping[str, Errors]
) -> None:
    """Draw curves over the ranks, and horizontal lines."""
    for k, (name, values) in enumerate(curves.items()):
        _draw_mean(axis, places, values, name, line_style(k, len(places)))
    axis.set_xscale("log")
    # Baselines go from frame to frame.
    ends = np.asarray(axis.get_xlim())
    for k, (name, values) in enumerate(levels.items(), start=len(curves)):
        level: Style = {**line_style(k, 2), "marker": "", "linestyle": "--"}
        _draw_mean(axis, ends, np.repeat(values, 2, axis=0), name, level)
    axis.set_xlim(*ends)
    axis.xaxis.set_major_locator(FixedLocator(_ticks(places)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    tidy(axis)


def _panels(model: BaseEstimator) -> tuple[Float[np.ndarray, " epochs"], list[Panel]]:
    """The epochs of a training, and what there is to draw of its history."""
    history = getattr(check_fitted(model), "history_", None)
    if history is None:
        raise TypeError(
            f"model: expected a fitted estimator of mporbm, got {type(model).__name__}."
        )
    if not history:
        raise ValueError(
            f"model: expected an estimator that has learnt for an epoch or more, got "
            f"{type(model).__name__} with an empty history_; call fit or partial_fit (a machine "
            f"that was compressed starts a new history)."
        )

    def line(name: str) -> Float[np.ndarray, " epochs"]:
        return np.array([entry.get(name, np.nan) for entry in history], np.float64)

    binary = isinstance(model.machine_.visible_units, Bernoulli)
    score = "pseudo-log-likelihood (nats)" if binary else "score (\N{MINUS SIGN}mean square error)"

    def lines(name: str) -> dict[str, Float[np.ndarray, " epochs"]]:
        names = {"training": name, "validation": f"validation_{name}"}
        return {k: line(n) for k, n in names.items() if any(n in entry for entry in history)}

    panels = [
        Panel("reconstruction error (mean square)", {"": line("reconstruction_error")}),
        Panel(score, lines("score"), from_zero=False),
    ]
    # A single value, that of the last epoch of a short training, is no curve.
    if sum("log_likelihood" in entry for entry in history) > 1:
        panels.append(Panel("log-likelihood (nats)", lines("log_likelihood"), from_zero=False))
    panels.append(Panel("gradient norm", {"": line("gradient_norm")}))
    ranks = np.array([entry["ranks"] for entry in history if "ranks" in entry], np.float64)
    if (ranks != ranks[:1]).any():
        # (R_2..R_d), or (R_1..R_d) of a ring.
        first = len(model.visible_shape_) - ranks.shape[1] + 1
        panels.append(
            Panel("ranks", {f"$R_{{{k}}}$": r for k, r in enumerate(ranks.T, start=first)})
        )
    return line("epoch"), panels


def _draw_mean(axis: Axes, places: Places, values: Errors, label: str, style: Style) -> None:
    """Draw the mean of each row, in a band of one standard deviation if there are several seeds."""
    mean = values.mean(axis=1)
    axis.plot(places, mean, label=label, **style)
    if values.shape[1] > 1:
        spread = values.std(axis=1, ddof=1)
        low, high = mean - spread, mean + spread
        axis.fill_between(places, low, high, color=style["color"], alpha=0.15, linewidth=0.0)


def _ticks(places: Places) -> list[float]:
    """The ranks that have room for their number."""
    room = 0.07 * np.log(places[-1] / places[0])
    chosen = [float(places[-1])]
    for place in places[-2::-1]:
        if np.log(chosen[-1] / place) >= room:
            chosen.append(float(place))
    return chosen


def _sorted_ranks(ranks: object) -> tuple[Places, Int[np.ndarray, " ranks"]]:
    """The ranks in increasing order, and the positions where they were."""
    given = ranks.tolist() if isinstance(ranks, np.ndarray) else ranks
    given = check_sequence("ranks", given, "ranks, such as (1, 2, 5, 10)")
    numbers = [check_integer(f"ranks[{k}]", rank) for k, rank in enumerate(given)]
    order = np.argsort(numbers)
    return np.asarray(numbers, np.float64)[order], order


def _check_errors(name: str, value: ArrayLike, n_ranks: int) -> Errors:
    """Errors (n_ranks, n_seeds)."""
    array, _ = host_array(name, value)
    if array.ndim not in (1, 2) or len(array) != n_ranks or 0 in array.shape:
        raise ValueError(
            f"{name}: expected shape ({n_ranks},) or ({n_ranks}, n_seeds), got {array.shape}."
        )
    return array.reshape(n_ranks, -1)


def _check_level(name: str, value: ArrayLike) -> Errors:
    """The error of a baseline for each seed, (1, n_seeds)."""
    array, _ = host_array(name, value)
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"{name}: expected a number, or one for each seed, got shape {array.shape}."
        )
    return array.reshape(1, -1)
