"""The paper's tensor networks are drawn whole, and with the same bytes every time."""

import subprocess
import sys

import numpy as np

from reproduction.diagrams import FIGURES, save_figures


def test_nothing_is_cut_off():
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
    command = [sys.executable, "-m", "reproduction.diagrams", *map(str, arguments)]
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
