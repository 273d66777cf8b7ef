"""Runs that do nothing but what the tests of processes ask for."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from mporbm.sweep import Trial


@dataclass(frozen=True)
class Toy(Trial):
    """Leave a trace with the process and its cores, then do what is asked for."""

    place: str = ""

    def run(self, samples):
        does = self.options["does"]
        with Path(self.place, f"{self.seed}.trace").open("a") as file:
            file.write(f"{os.getpid()} {sorted(os.sched_getaffinity(0))}\n")
        if does == "meet":
            wait_for(lambda: len(list(Path(self.place).glob("*.trace"))) > 1)
        elif does == "wait":
            wait_for(Path(self.place, "go").exists)
        elif does == "fail":
            raise ValueError(f"{self.seed} cannot\n be done")
        elif does == "err":
            raise AttributeError("there is no such thing")
        elif does == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"status": "done", "measures": {"reconstruction_error": float(samples.X.sum())}}


def toys(place, *work):
    """Toys that do what is asked for, by their numbers."""
    return {
        seed: Toy({"does": does}, seed, None, None, str(place)) for seed, does in enumerate(work)
    }


def traces(place):
    """For each run the processes and cores that it was begun with."""
    return {
        int(path.stem): [line.split(maxsplit=1) for line in path.read_text().splitlines()]
        for path in Path(place).glob("*.trace")
    }


def wait_for(happened, seconds=120.0):
    """Wait until something has happened."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError("waited in vain")
        time.sleep(0.01)
