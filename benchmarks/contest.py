"""Contenders take turns: each in a process of its own, all with the same number of threads.

A contender is a function of a module that prepares something and gives a function that does it;
the first call, which compiles, is not measured. While one is measured all others wait.
"""

import importlib
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Of every contender."""
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
Run = Callable[[], object]
"""What is measured."""


@dataclass(frozen=True)
class Contender:
    """``prepare(**arguments)`` of a module, which gives the function to be measured."""

    module: str
    prepare: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """Seconds of each round, and the most memory that the process had, in bytes."""

    seconds: list[float]
    peak_memory: int


def contest(contenders: Mapping[str, Contender], rounds: int) -> dict[str, Result]:
    """The times of all contenders, who take turns `rounds` times."""
    # BLAS and OpenMP read these when they are loaded.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(THREADS)
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        ends = {}
        for name, contender in contenders.items():
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, contender), daemon=True)
            process.start()
            # Then the end of the process is the end of the pipe.
            there.close()
            stack.callback(process.join)
            stack.callback(_dismiss, here)
            ends[name] = here
            # One after the other, so that nothing is measured while another one is prepared.
            _answer(here, name)
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        peaks = dict.fromkeys(contenders, 0)
        for _ in range(rounds):
            for name, end in ends.items():
                end.send(True)
                taken, peaks[name] = _answer(end, name)
                seconds[name].append(taken)
    return {name: Result(seconds[name], peaks[name]) for name in contenders}


def turns(programs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """Seconds of each round of programs that take turns in this process, after a first call."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for program in programs.values():
        program()
    for _ in range(rounds):
        for name, program in programs.items():
            seconds[name].append(_seconds(program))
    return seconds


def quartiles(values: Sequence[float]) -> list[float]:
    """The lower quartile, the median and the upper quartile."""
    return [float(value) for value in np.percentile(values, (25, 50, 75))]


def ratios(slower: Sequence[float], faster: Sequence[float]) -> list[float]:
    """Quartiles of the ratios of times, round by round."""
    return quartiles(np.asarray(slower) / np.asarray(faster))


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _dismiss(end: Any) -> None:
    with suppress(OSError):
        end.send(False)


def _answer(end: Any, name: str) -> Any:
    try:
        return end.recv()
    except EOFError:
        raise SystemExit(f"{name} failed; what it said stands above.") from None


def _serve(end: Any, contender: Contender) -> None:
    prepare = getattr(importlib.import_module(contender.module), contender.prepare)
    run = prepare(**contender.arguments)
    run()
    end.send(None)
    while end.recv():
        taken = _seconds(run)
        end.send((taken, RSS_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
