"""An experiment whose runs do nothing but what the tests of processes ask for."""

import os
import signal
import time
from pathlib import Path

from reproduction.runs import Run

REVISION = 1
PLACE = "TOY_PLACE"
"""The environment variable with the folder where runs leave traces."""


def run(name, place, does="end"):
    """Leave a trace with the process and its cores, then end, fail, be killed, or wait."""
    trace = Path(place, f"{name}.trace")
    with trace.open("a") as file:
        file.write(f"{os.getpid()} {sorted(os.sched_getaffinity(0))}\n")
    if does == "meet":
        # Two of them end together, so two processes work at once.
        wait_for(lambda: len(list(Path(place).glob("meet-*.trace"))) == 2)
    elif does == "nap":
        time.sleep(0.3)
    elif does == "wait":
        wait_for(Path(place, f"{name}.go").exists)
    elif does == "fail" and not Path(place, "repaired").exists():
        raise ValueError(f"{name} cannot be done")
    elif does in ("kill", "kill after all") and not Path(place, "repaired").exists():
        # After all: the other process has begun the last run, so it has kept what it did before.
        if does == "kill after all":
            wait_for(Path(place, "last.trace").exists)
        os.kill(os.getpid(), signal.SIGKILL)
    return {"name": name, "number": float("nan") if does == "nan" else 0.1}


def runs(scale):
    """The first ends, the others wait to be let go; in this order."""
    place = os.environ[PLACE]
    work = {"first": "end", "second": "wait", "third": "wait"}
    return [
        Run(__name__, {"name": name, "place": place, "does": does}, cost)
        for cost, (name, does) in zip((3, 2, 1), work.items(), strict=True)
    ]


def traces(place):
    """How often each run was begun."""
    return {path.stem: len(path.read_text().splitlines()) for path in Path(place).glob("*.trace")}


def processes(place):
    """The number and the cores of the process that did each run last."""
    found = {}
    for path in Path(place).glob("*.trace"):
        number, cores = path.read_text().splitlines()[-1].split(maxsplit=1)
        found[path.stem] = int(number), cores
    return found


def wait_for(happened, seconds=120.0):
    """Wait until something has happened."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.01)
