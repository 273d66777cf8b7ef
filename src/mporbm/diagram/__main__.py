"""``python -m mporbm.diagram FOLDER``: write the paper's diagrams to a folder."""

import argparse
from pathlib import Path

from .paper import FORMATS, save_figures


def main() -> None:
    """Parse the folder and write the figures there."""
    parser = argparse.ArgumentParser(prog="python -m mporbm.diagram", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write; made if it does not exist")
    parser.add_argument(
        "--formats", nargs="+", choices=FORMATS, default=FORMATS, help="default: all"
    )
    options = parser.parse_args()
    for path in save_figures(options.folder, options.formats):
        print(path)


if __name__ == "__main__":
    main()
