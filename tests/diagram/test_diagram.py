"""Diagrams: every index of the network is on the paper, and open legs are those of the result."""

import io

import pytest

import strategies
from mporbm.diagram import draw
from mporbm.diagram.canvas import OPEN

QUANTITIES = ["coupling", "energy", "hidden_mean", "visible_mean", "gradient"]


def labels(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def open_legs(figure):
    return sum(line.get_color() == OPEN for line in figure.axes[0].lines)


@pytest.mark.parametrize("what", QUANTITIES)
@pytest.mark.parametrize("kind", strategies.KINDS)
def test_all_names_and_indices_are_drawn(kind, what, rng):
    coupling = strategies.random_coupling(kind, (2, 3, 2), (2, 2, 2), 2, rng)
    figure = draw(coupling, what)
    figure.savefig(io.BytesIO(), format="png")
    shown = " ".join(labels(figure))
    for node in coupling.nodes()[1 if what == "gradient" else 0 :]:
        base, hat, superscript = node.name.partition("^")
        assert rf"\mathcal{{{base}}}{hat}{superscript}" in shown
        for index in node.indices:
            assert (f"${index[0]}_{{{index[1:]}}}$" if index[1:] else f"${index}$") in shown


@pytest.mark.parametrize(
    ("what", "expected"),
    # Open legs are the order of the result: 2d modes, a number, d modes twice (with the bias),
    # and for a gradient the four legs of an inner core (two here at the end), in both terms.
    [("coupling", 6), ("energy", 0), ("hidden_mean", 6), ("visible_mean", 6), ("gradient", 6)],
)
def test_open_legs_are_the_order_of_the_result(what, expected, rng):
    coupling = strategies.random_coupling("mpo", (2, 2, 2), (2, 2, 2), 2, rng)
    assert open_legs(draw(coupling, what)) == expected
    if what == "gradient":
        assert open_legs(draw(coupling, what, core=1)) == 8


def test_a_machine_is_drawn_as_its_coupling(rng):
    coupling = strategies.random_coupling("cp", (2, 2), (2, 2), 2, rng)
    machine = strategies.random_machine(coupling, rng)
    assert labels(draw(machine, "energy")) == labels(draw(coupling, "energy"))


def test_gaussian_units_have_their_own_formulas(rng):
    coupling = strategies.random_coupling("mpo", (2, 2), (2, 2), 2, rng)
    gaussian = strategies.random_machine(coupling, rng, gaussian=True)
    assert "2s" in " ".join(labels(draw(gaussian, "energy")))
    assert "mathbb{E}" in " ".join(labels(draw(gaussian, "visible_mean")))
    assert labels(draw(gaussian, "hidden_mean")) == labels(draw(coupling, "hidden_mean"))
