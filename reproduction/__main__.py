"""The command ``python -m reproduction``: repeat the paper's experiments, and write a report."""

import argparse
import importlib.util
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

PROGRAM = "python -m reproduction"
PACKAGES = ("jinja2", "matplotlib", "mlxtend", "mporbm", "PIL", "pooch", "rich")
"""What the experiments, their data sets and their report import, now or later."""
SIGNS = {True: "confirmed", False: "not confirmed", None: "open"}
DESCRIPTION = """\
Repeat the experiments of the paper, and write a report.

The log-likelihood of test samples beside dense machines of equal weights and of equal hidden units
(likelihood). Classification by hidden features (table4), the error against the MPO-rank (figure7),
image completion (table6, figures8-9) and denoising (table7), each beside the paper's numbers and
what needs no machine; then deep machines and machines with labels (beyond). Writes
DIR/report.html, which needs nothing else, DIR/results.json and DIR/figures.

Data sets are looked for in the folder that the environment variable MPORBM_DATA names, then in a
cache, and are else downloaded, but for DrivFace."""


class Parser(argparse.ArgumentParser):
    """A parser of arguments whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        _complain(f"error: {message}; see {self.prog} --help.")
        sys.exit(2)


def arguments() -> Parser:
    """Describe the command's arguments and options."""
    parser = Parser(
        prog=PROGRAM,
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="Which experiments: likelihood, those of the paper by their names, tables1-3, table4, "
        "figure7, table5, table6, figures8-9, table7, or beyond. All of them by default; quick "
        "ones but for beyond, which takes as long as all others.",
    )
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick",
        dest="full",
        action="store_false",
        default=False,
        help="Some minutes, on 5000 MNIST images that come with a Python package. The default.",
    )
    scale.add_argument(
        "--full",
        action="store_true",
        help="The paper's five data sets, sizes and ranks, with 10 random splits; takes hours, and "
        "130 MB of data.",
    )
    parser.add_argument(
        "--seeds", type=_positive, metavar="N", help="Another number of random splits."
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        default=Path("reproduced"),
        metavar="DIR",
        help="The folder of results (%(default)s). What is there already is not done again: start "
        "the same command after an interruption, and it goes on.",
    )
    parser.add_argument(
        "--n-jobs",
        type=_positive,
        metavar="N",
        help="How many processes work at once; one for every core by default.",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="Print nothing but warnings and errors."
    )
    parser.add_argument(
        "--json", action="store_true", help="Print one JSON object instead of text, for scripts."
    )
    return parser


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the command.

    It ends with exit code 0, 1 for bad input, 2 for bad usage, 130 or 143 if interrupted.
    """
    options = arguments().parse_intermixed_args(words)
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        sys.exit(_run(options))


def _run(options: argparse.Namespace) -> int:
    if absent := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        _complain(
            f"error: needs the packages {', '.join(absent)}; install them with pip install -e "
            f"'.[demo]' in the folder of this repository."
        )
        return 1
    try:
        _reproduce(options)
    except KeyboardInterrupt:
        return 130
    except (ValueError, TypeError, OSError, MemoryError) as error:
        _complain(f"error: {_one_line(error)}")
        return 1
    return 0


def _reproduce(options: argparse.Namespace) -> None:
    from . import experiments, report

    for name in options.names:
        if name not in experiments.EXPERIMENTS:
            expected = ", ".join(experiments.EXPERIMENTS)
            raise ValueError(f"NAME={name!r}: expected one of {expected}.")
    options.out.mkdir(parents=True, exist_ok=True)
    command = [PROGRAM, *options.names, "--full" if options.full else "--quick"]
    command += [] if options.seeds is None else ["--seeds", str(options.seeds)]
    silent = options.quiet or options.json
    results = experiments.reproduce(
        options.names or [n for n in experiments.EXPERIMENTS if options.full or n != "beyond"],
        options.out,
        full=options.full,
        seeds=options.seeds,
        command=" ".join(command),
        n_jobs=options.n_jobs,
        shown=not silent and sys.stderr.isatty(),
    )
    page = report.write(results, options.out)
    facts = {"report": str(page), "results": str(options.out / "results.json")}
    if options.json:
        print(json.dumps({**facts, "summary": results["summary"]}))
    elif not options.quiet:
        for verdict in results["summary"]:
            print(f"{SIGNS[verdict['holds']]}: {verdict['text']}")
        print(f"Report: {page}")


def _positive(text: str) -> int:
    """Read an option that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected an integer of at least 1, got {text}")
    return number


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _complain(f"warning: {_one_line(message)}")


def _complain(text: str) -> None:
    print(f"reproduction: {text}", file=sys.stderr)


def _one_line(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"not enough memory. {error}".strip()
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    main()
