"""``python -m mporbm.diagram FOLDER``: write the paper's diagrams to a folder."""

import argparse
from pathlib import Path

from .paper import save_figures


def main() -> None:
    """Parse the folder and write the figures there."""
    parser = argparse.ArgumentParser(prog="python -m mporbm.diagram", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write; made if it does not exist")
    for path in save_figures(parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
