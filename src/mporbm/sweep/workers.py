"""Who does the runs of a sweep: processes of this computer (joblib), or the workers of Dask."""

import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ..evaluation.processes import available_cores
from ..evaluation.run_cache import Outcome
from ..training import DivergenceWarning
from .samples import Samples
from .trial import Trial

FAILURES: tuple[type[Exception], ...] = (
    ArithmeticError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What settings, samples and computers cause; anything else is a mistake in here, to be seen."""
KILLED = "its process was killed, perhaps for want of memory"
WAIT = 30.0
"""Seconds to wait for Dask and its workers."""


class Done(NamedTuple):
    """How a run has ended: with an outcome, or a reason why there is none."""

    number: int
    outcome: Outcome | None
    seconds: float = 0.0
    reason: str = ""


def attempt(number: int, trial: Trial, samples: Samples) -> Done:
    """Do a run, which may fail."""
    start = time.perf_counter()
    try:
        outcome = trial.run(samples)
    except FAILURES as error:
        return Done(number, None, reason=_told(error))
    return Done(number, outcome, time.perf_counter() - start)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def locally(trials: Mapping[int, Trial], samples: Samples, n_jobs: int | None) -> Iterator[Done]:
    """Each run when it is done, by `n_jobs` processes that share the cores, or one for each core.

    A single one is this one. The death of another ends all of them; whose run it was shows when
    those that were going are done alone.
    """
    n_jobs = n_jobs or len(available_cores())
    if n_jobs == 1:
        for number, trial in trials.items():
            yield attempt(number, trial, samples)
        return
    rest, alone = dict(trials), list[int]()
    while rest:
        numbers = [alone.pop(0)] if alone else list(rest)
        n_processes = min(n_jobs, len(numbers))
        begun: list[int] = []
        try:
            for done in _pool(numbers, trials, samples, n_processes, begun):
                del rest[done.number]
                yield done
        except BrokenProcessPool:
            alone = [number for number in begun if number in rest] + alone
            if len(numbers) == 1 or len(alone) == 1:
                number = alone.pop(0)
                del rest[number]
                yield Done(number, None, reason=KILLED)


def _pool(
    numbers: list[int],
    trials: Mapping[int, Trial],
    samples: Samples,
    n_processes: int,
    begun: list[int],
) -> Iterator[Done]:
    """Runs in processes of their own; `begun` are those that were given to one of them."""

    def tasks() -> Iterator[Any]:
        for number in numbers:
            begun.append(number)
            yield delayed(attempt)(number, trials[number], samples)

    with tempfile.NamedTemporaryFile() as cores, warnings.catch_warnings():
        # JAX keeps what it has compiled: joblib takes that for a leak, and starts a new process.
        warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
        parallel = Parallel(
            # A single run would else be done in this process, which must outlive it.
            n_jobs=max(n_processes, 2),
            pre_dispatch=n_processes,
            batch_size=1,
            backend="loky",
            return_as="generator_unordered",
            initializer=_start,
            initargs=(os.getpid(), cores.name, n_processes),
        )
        yield from parallel(tasks())


def _start(parent: int, path: str, n_processes: int) -> None:
    """Prepare a process that does runs."""
    _take_cores(path, n_processes)
    # Outcomes tell of it.
    warnings.simplefilter("ignore", DivergenceWarning)
    # The process that waits decides what an interruption means, and is not outlived.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _take_cores(path: str, n_processes: int) -> None:
    """Keep to a share of the cores that no other process has; JAX then starts as many threads.

    The share is that of the first byte of a file which is not locked. A lock ends with its process,
    however that ends.
    """
    if n_processes == 1 or not hasattr(os, "sched_setaffinity"):
        return
    import fcntl

    cores = available_cores()
    shares = np.array_split(cores, min(n_processes, len(cores)))
    file = os.open(path, os.O_RDWR)
    for number in range(n_processes):
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):
            continue
        os.sched_setaffinity(0, shares[number % len(shares)].tolist())
        return


def _end_with(parent: int) -> None:
    """End this process with its parent."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def on_dask(trials: Mapping[int, Trial], samples: Samples, address: str) -> Iterator[Done]:
    """Each run when it is done, by the workers of a Dask scheduler, which are sent the samples."""
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError as error:
        raise ValueError(
            f"dask={address}: expected the package distributed; pip install 'mporbm[dask]'."
        ) from error
    try:
        client = Client(address, timeout=WAIT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"dask={address}: expected the address of a Dask scheduler, such as host:8786, but "
            f"none answers there."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError as error:
            raise ConnectionError(
                f"dask={address}: expected workers at this scheduler, but there are none; start "
                f"some by dask worker {address} --nthreads 1."
            ) from error
        # Files are not where the workers are.
        everywhere = client.scatter(samples.in_memory(), broadcast=True, hash=False)
        futures = {
            client.submit(attempt, number, trial, everywhere, pure=False): number
            for number, trial in trials.items()
        }
        for future in as_completed(futures, loop=client.loop):
            if future.status == "finished":
                yield future.result()
                continue
            # Samples that are lost with their last worker cancel what waits for them.
            reason = _told(future.exception()) if future.status == "error" else KILLED
            yield Done(futures[future], None, reason=reason)
