"""Work in processes of their own, each of which keeps to its share of the cores."""

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing.queues import SimpleQueue
from typing import TypeVar

Task = TypeVar("Task")
POLL_SECONDS = 0.5
"""How often a process that waits for others looks whether it should end."""


def available_cores() -> list[int]:
    """List the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def share_cores(n_processes: int) -> list[list[int]]:
    """Divide the available cores between processes, evenly; there is at least one for each.

    JAX and BLAS start as many threads as a process has cores.
    """
    cores = available_cores()
    n_shares = min(n_processes, len(cores))
    ends = [number * len(cores) // n_shares for number in range(n_shares + 1)]
    shares = [cores[start:end] for start, end in itertools.pairwise(ends)]
    return [shares[number % n_shares] for number in range(n_processes)]


def pin_to_cores(cores: Sequence[int], process: int = 0) -> None:
    """Keep a process (0: this one) to some cores, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process, cores)


def start_worker(shares: "SimpleQueue[list[int]]") -> None:
    """Prepare a worker process: it takes a share of the cores, and ends with its parent."""
    pin_to_cores(shares.get())
    # The parent decides what an interruption means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def run_in_processes(
    tasks: Sequence[Task],
    work: Callable[[Task], None],
    *,
    n_jobs: int | None = None,
    poll: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Task, Exception | None]]:
    """Do tasks in worker processes, and yield each when it ends, with its error if it failed.

    Parameters
    ----------
    tasks
        What to do, the first ones first.
    work
        Does one task; a function of a module, as another process has to find it.
    n_jobs
        How many processes work at once, each on its share of the cores; by default, and at most,
        one for every core.
    poll
        Is called about twice a second, and may raise an error to end everything: an exception out
        of the blue, such as that of a signal, could leave locks behind which the pool would wait
        for in vain.
    """
    if not tasks:
        return
    n_processes = len(available_cores()[:n_jobs])
    # Processes are started anew: JAX has threads, with which a fork can hang.
    context = multiprocessing.get_context("spawn")
    shares: SimpleQueue[list[int]] = context.SimpleQueue()
    for share in share_cores(n_processes):
        shares.put(share)
    pool = ProcessPoolExecutor(
        min(n_processes, len(tasks)), context, initializer=start_worker, initargs=(shares,)
    )
    try:
        futures = {pool.submit(work, task): task for task in tasks}
        while futures:
            done, _ = wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            poll()
            for future in done:
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield futures.pop(future), error
    finally:
        # Asked to end, a process would go on with the next task.
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
