"""Many random files for a parser: each is read, or refused in the documented way."""

import contextlib
import random
import signal
import traceback
from dataclasses import dataclass, field

from fuzz.parsers import PARSERS
from mporbm.training import FileFormatError

SECONDS = 20
"""The longest that a file of some hundred bytes may keep a core busy."""


class Hang(BaseException):
    """Not an error that a parser could take for one of its own."""


@dataclass
class Tally:
    """What became of the files of a parser."""

    accepted: int = 0
    refused: int = 0
    crashes: dict = field(default_factory=dict)
    """One for each kind of error and place: the number of the file and its traceback."""


def made(name, seed, number):
    """A file by its number: the same one at all times."""
    return PARSERS[name].make(random.Random(f"{name} {seed} {number}"))


def run(name, folder, numbers, seed=0):
    """Read files by their numbers, written into a folder one after the other."""
    parser, tally = PARSERS[name], Tally()
    place = folder / "fuzzed"
    place.mkdir(exist_ok=True)
    path = place / parser.name
    for content in parser.valid():
        path.write_bytes(content)
        with contextlib.suppress(ValueError):
            parser.read(path)
    with hangs():
        for number in numbers:
            path.write_bytes(made(name, seed, number))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                parser.read(path)
            except (Exception, Hang) as error:
                if type(error) in (ValueError, FileFormatError) and str(path) in str(error):
                    tally.refused += 1
                else:
                    last = traceback.extract_tb(error.__traceback__)[-1]
                    text = "".join(traceback.format_exception(error))
                    tally.crashes.setdefault(
                        (type(error), last.filename, last.lineno), (number, text)
                    )
            else:
                tally.accepted += 1
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    return tally


@contextlib.contextmanager
def hangs():
    """An alarm is an error: the clock counts the time of the processor, not that of others."""

    def raise_hang(*_):
        raise Hang(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGPROF, raise_hang)
    try:
        yield
    finally:
        signal.signal(signal.SIGPROF, before)
