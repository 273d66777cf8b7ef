"""Diagrams of a machine: its coupling, energy, conditionals and gradient (Figs. 4 and 5)."""

from typing import Literal, get_args

from matplotlib.figure import Figure

from ..machine import Coupling, Gaussian, Machine
from ..tensor.check import check_choice, check_position
from ..tensor.network import index_names
from .canvas import Canvas, Glyph, symbol

What = Literal["coupling", "energy", "hidden_mean", "visible_mean", "gradient"]


def draw(model: Coupling | Machine, what: What = "coupling", *, core: int = 0) -> Figure:
    """Draw the tensor network of a coupling, or of a quantity that follows from it.

    Parameters
    ----------
    model
        Any coupling, or a machine; a coupling is drawn as that of Bernoulli units.
    what
        ``"coupling"``: W by itself. ``"energy"``: ``-E(V, H)``, Fig. 4 (a)-(d).
        ``"hidden_mean"``, ``"visible_mean"``: the conditionals ``p(H = 1 | V)``, Fig. 4 (f), and
        ``p(V = 1 | H)``, Fig. 4 (e), or the mean of Gaussian units. ``"gradient"``: the
        contrastive divergence gradient of one core, Fig. 5.
    core
        The core (or factor) that the gradient is for, counted from 0 or, negative, from the end.

    Examples
    --------
    >>> import jax
    >>> from mporbm.machine import MPOCoupling
    >>> from mporbm.diagram import draw
    >>> coupling = MPOCoupling.random(jax.random.key(0), (4, 4, 4), (2, 2, 2), rank=3)
    >>> figure = draw(coupling, "energy")
    >>> figure.savefig("energy.pdf")  # doctest: +SKIP
    """
    canvas = Canvas()
    draw_on(canvas, model, what, core)
    return canvas.finish()


def draw_on(canvas: Canvas, model: Coupling | Machine, what: What, core: int = 0) -> None:
    """Add a drawing to a canvas; the parameters are those of `draw`."""
    coupling = model.coupling if isinstance(model, Machine) else model
    if not isinstance(coupling, Coupling):
        raise TypeError(f"model: expected a Coupling or a Machine, got {type(model).__name__}.")
    check_choice("what", what, get_args(What))
    gaussian = isinstance(model, Machine) and isinstance(model.visible_units, Gaussian)
    weights = [Glyph(node.name, node.indices) for node in coupling.nodes()]
    visible_bias = [Glyph("B", index_names("i", len(coupling.visible_shape)))]
    hidden_bias = [Glyph("C", index_names("j", len(coupling.hidden_shape)))]
    if what == "coupling":
        canvas.network(weights)
    elif what == "energy":
        canvas.network(weights, visible="V", hidden="H")
        canvas.text("$+$")
        canvas.network(visible_bias, visible="V", kind="bias")
        canvas.text("$+$")
        canvas.network(hidden_bias, hidden="H", kind="bias")
        if gaussian:
            canvas.text(r"$-\;\sum\,\mathcal{V}^2 /\, 2s$")
    elif what == "hidden_mean":
        canvas.text(r"$p(\mathcal{H}=1\,|\,\mathcal{V})\;=\;\sigma\,($")
        canvas.network(weights, visible="V")
        canvas.text("$+$")
        canvas.network(hidden_bias, kind="bias")
        canvas.text("$)$")
    elif what == "visible_mean":
        if gaussian:
            canvas.text(r"$\mathbb{E}[\mathcal{V}\,|\,\mathcal{H}]\;=\;s\,($")
        else:
            canvas.text(r"$p(\mathcal{V}=1\,|\,\mathcal{H})\;=\;\sigma\,($")
        canvas.network(weights, hidden="H")
        canvas.text("$+$")
        canvas.network(visible_bias, kind="bias")
        canvas.text("$)$")
    else:
        core = check_position("core", core, len(weights))
        name = symbol(weights[core].name)
        canvas.text(rf"$\frac{{\partial \log L}}{{\partial {name}}}\;\approx$")
        canvas.network(weights, visible="V^{(0)}", hidden="H^{(0)}", without=core)
        canvas.text("$-$")
        canvas.network(weights, visible="V^{(K)}", hidden="H^{(K)}", without=core)
