"""Diagrams: every index of the network is on the paper, and the pictures are reproducible."""

import io
import subprocess
import sys

import numpy as np
import pytest

import strategies
from mporbm.diagram import FIGURES, draw, save_figures
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


def test_nothing_is_cut_off(rng):
    """Every text lies inside the figure."""
    for figure in [make() for make in FIGURES.values()]:
        figure.canvas.draw()
        box = figure.bbox
        for text in figure.axes[0].texts:
            extent = text.get_window_extent()
            assert extent.x0 >= box.x0
            assert extent.x1 <= box.x1
            assert extent.y0 >= box.y0
            assert extent.y1 <= box.y1


def test_figures_are_the_same_bytes_every_time(tmp_path):
    first = save_figures(tmp_path / "a", formats=("svg",))
    second = save_figures(tmp_path / "b", formats=("svg",))
    assert [path.stem for path in first] == list(FIGURES)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def run_command(*arguments):
    command = [sys.executable, "-m", "mporbm.diagram", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_command_refuses_a_bad_folder(tmp_path):
    (tmp_path / "file").touch()
    result = run_command(tmp_path / "file")
    assert result.returncode == 2
    assert "folder: cannot write to" in result.stderr
    assert "Traceback" not in result.stderr


def test_command_writes_all_formats(tmp_path):
    output = run_command(tmp_path).stdout
    written = sorted(path.name for path in tmp_path.iterdir())
    names = [f"{name}.{extension}" for name in FIGURES for extension in ("pdf", "png", "svg")]
    assert written == sorted(names)
    assert len(output.splitlines()) == len(names)
    assert np.all([path.stat().st_size > 1000 for path in tmp_path.iterdir()])
