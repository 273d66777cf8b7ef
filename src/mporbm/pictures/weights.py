"""Pictures of the weight tensor W, of whatever form."""

import math

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter
from sklearn.base import BaseEstimator

from ..machine import Coupling, Machine
from ..machine.singular_values import singular_values_by_cut
from ..tensor.check import check_integer
from . import style

BAR = (2.5, 0.12)
"""The largest length of a colour bar, and its width, in inches."""


def receptive_fields(
    model: BaseEstimator | Machine | Coupling, n_units: int | None = None, n_columns: int = 10
) -> Figure:
    """Draw what each hidden unit looks at: its weights as an image of the visible shape.

    Units stand in the order of decreasing norm of their weights, each under its index in the
    hidden layer, all on one scale: red weights turn the unit on, blue ones off. Colour channels
    stand side by side.

    Parameters
    ----------
    model
        A fitted estimator, a machine or a coupling.
    n_units
        How many units to draw, those of the largest norms; by default all.

    Examples
    --------
    >>> import jax
    >>> from mporbm.machine import MPOCoupling
    >>> from mporbm.pictures import receptive_fields
    >>> coupling = MPOCoupling.random(jax.random.key(0), (8, 8), (3, 3), rank=4)
    >>> figure = receptive_fields(coupling, n_units=6, n_columns=3)
    """
    coupling = _coupling(model)
    n_columns = check_integer("n_columns", n_columns)
    n_hidden = math.prod(coupling.hidden_shape)
    n_drawn = n_hidden if n_units is None else check_integer("n_units", n_units)
    if n_drawn > n_hidden:
        raise ValueError(
            f"n_units={n_units}: expected at most {n_hidden}, the number of hidden units."
        )
    columns = np.asarray(coupling.to_matrix(), np.float64).T
    # Stable: units of equal norms keep their order.
    chosen = np.argsort(-np.linalg.norm(columns, axis=1), kind="stable")[:n_drawn]
    fields = [_field(columns[unit].reshape(coupling.visible_shape)) for unit in chosen]
    limit = float(np.abs(columns[chosen]).max()) or 1.0
    n_rows = -(-n_drawn // n_columns)
    figure, axes = style.grid(n_drawn, n_columns, fields[0].shape, (0.9, 0.15 * n_rows))
    for axis, unit, field in zip(axes, chosen, fields, strict=True):
        drawn = style.draw_tile(axis, field, "RdBu_r", (-limit, limit))
        index = np.unravel_index(unit, coupling.hidden_shape)
        axis.set_title(", ".join(map(str, index)), fontsize=style.SMALL, color=style.QUIET, pad=2.0)
    height = figure.get_figheight()
    length = min(height, BAR[0])
    shrink, aspect = length / height, length / BAR[1]
    bar = figure.colorbar(drawn, ax=axes, label="weight", shrink=shrink, aspect=aspect, pad=0.02)
    bar.outline.set_linewidth(0.0)
    return figure


def singular_values(model: BaseEstimator | Machine | Coupling) -> Figure:
    """Draw the singular values of W relative to the largest: how much each rank would carry.

    There is one curve for every cut of W between its modes (`singular_values_by_cut`). Values that
    the precision of W cannot tell from 0 lie below the axis.

    Parameters
    ----------
    model
        A fitted estimator, a machine or a coupling.
    """
    coupling = _coupling(model)
    figure = Figure(figsize=(5.5, 3.2), layout="constrained")
    axis = figure.add_subplot()
    cuts = singular_values_by_cut(coupling)
    most = max(map(len, cuts.values()))
    smallest, resolution = 1.0, float(np.spacing(np.ones((), coupling.dtype)))
    for k, (cut, values) in enumerate(cuts.items()):
        if values[0] == 0.0:
            raise ValueError("model: expected weights that are not all 0, got a W of zeros.")
        relative = values / values[0]
        axis.plot(np.arange(1, len(values) + 1), relative, label=cut, **style.line_style(k, most))
        smallest = min(smallest, float(relative[relative > resolution].min()))
    axis.set(xlabel="index", ylabel="singular value / largest", yscale="log")
    axis.set(xlim=(0.5, most + 0.5), ylim=(smallest / 1.5, 1.5))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if smallest > 1e-3:
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_locator(NullLocator())
    style.add_legend(axis, title="cut between")
    style.tidy(axis)
    return figure


def _field(weights: style.Picture) -> style.Picture:
    """The weights of one unit as a matrix."""
    if style.is_color(weights.shape):
        weights = np.moveaxis(weights, 2, 1)
    return style.unfolded(weights)


def _coupling(model: object) -> Coupling:
    """The coupling of a fitted estimator or of a machine, or a coupling as it is."""
    machine = getattr(style.check_fitted(model), "machine_", model)
    coupling = machine.coupling if isinstance(machine, Machine) else machine
    if not isinstance(coupling, Coupling):
        raise TypeError(
            f"model: expected a fitted estimator of mporbm, a Machine or a Coupling, got "
            f"{type(model).__name__}."
        )
    return coupling
