"""The paper's tensor networks are drawn whole, and with the same bytes every time."""

import pytest

from reproduction.diagrams import FIGURES, main, save_figures


@pytest.mark.slow
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


@pytest.mark.slow
def test_figures_are_the_same_bytes_every_time(tmp_path):
    first = save_figures(tmp_path / "a", formats=("svg",))
    second = save_figures(tmp_path / "b", formats=("svg",))
    assert [path.stem for path in first] == list(FIGURES)
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_command_refuses_a_bad_folder(tmp_path, capsys):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "file")])
    assert ended.value.code == 2
    assert "folder: cannot write to" in capsys.readouterr().err


def test_command_writes_the_formats_that_are_asked_for(tmp_path, capsys):
    main([str(tmp_path), "--format", "png", "--format", "pdf"])
    names = sorted(f"{name}.{extension}" for name in FIGURES for extension in ("pdf", "png"))
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert len(capsys.readouterr().out.splitlines()) == len(names)
    assert all(path.stat().st_size > 1000 for path in tmp_path.iterdir())
