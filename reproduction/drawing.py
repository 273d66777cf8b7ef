"""Pictures for the report: the same bytes for the same picture."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture without the date and random names that files otherwise carry."""
    with mpl.rc_context({"svg.hashsalt": "mporbm"}):
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
