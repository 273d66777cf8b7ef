"""Draw the paper's tensor network diagrams into a folder."""

import argparse
from pathlib import Path

from .paper import FORMATS, save_figures


def main() -> None:
    """Parse the command line and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m mporbm.diagram", description=__doc__)
    parser.add_argument("folder", help="where to write; made if it does not exist")
    parser.add_argument(
        "--format",
        action="append",
        choices=FORMATS,
        help="may be given several times; all formats if it is not given",
    )
    options = parser.parse_args()
    if not options.folder:
        parser.error("folder: expected a path, got an empty one; pass . for this folder")
    try:
        for path in save_figures(Path(options.folder), options.format or FORMATS):
            print(path)
    except OSError as error:
        parser.error(f"folder: cannot write to {options.folder}: {error.strerror}")


if __name__ == "__main__":
    main()
