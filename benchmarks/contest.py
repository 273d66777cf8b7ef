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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Of every contender."""
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
Run = Callable[[], object]
"""What is measured."""
Answer = Callable[[Any], Any]
"""What a contender says when it is asked."""


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
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    peaks = dict.fromkeys(contenders, 0)
    with staged(contenders, _timed) as ask:
        for _ in range(rounds):
            for name in contenders:
                taken, peaks[name] = ask(name, True)
                seconds[name].append(taken)
    return {name: Result(seconds[name], peaks[name]) for name in contenders}


@contextmanager
def staged(
    contenders: Mapping[str, Contender], wrap: Callable[[Any], Answer] | None = None
) -> Iterator[Callable[[str, Any], Any]]:
    """Let each contender wait in a process of its own; what comes asks one of them by its name.

    A question is anything but None, and goes to what ``prepare`` gave, or to what `wrap` makes of
    it.
    """
    # BLAS and OpenMP read these when they are loaded.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(THREADS)
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        ends = {}
        for name, contender in contenders.items():
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, contender, wrap), daemon=True)
            process.start()
            # Then the end of the process is the end of the pipe.
            there.close()
            stack.callback(process.join)
            stack.callback(_dismiss, here)
            ends[name] = here
            # One after the other, so that nothing is measured while another one is prepared.
            _answer(here, name)

        def ask(name: str, question: Any) -> Any:
            ends[name].send(question)
            return _answer(ends[name], name)

        yield ask


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


def _timed(run: Run) -> Answer:
    """Measure `run` whenever asked, but for its first call."""
    run()

    def answer(_: Any) -> tuple[float, int]:
        taken = _seconds(run)
        return taken, RSS_UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    return answer


def _dismiss(end: Any) -> None:
    with suppress(OSError):
        end.send(None)


def _answer(end: Any, name: str) -> Any:
    try:
        return end.recv()
    except EOFError:
        raise SystemExit(f"{name} failed; what it said stands above.") from None


def _serve(end: Any, contender: Contender, wrap: Callable[[Any], Answer] | None) -> None:
    prepared = getattr(importlib.import_module(contender.module), contender.prepare)(
        **contender.arguments
    )
    answer = prepared if wrap is None else wrap(prepared)
    end.send(None)
    while (question := end.recv()) is not None:
        end.send(answer(question))
