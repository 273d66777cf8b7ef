"""Commands on several processes: how they find each other, and how to start some here."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Annotated, Any

import typer

GRACE = 5.0
"""Seconds between asking a process to end and ending it."""
HEARTBEAT = 30
"""Seconds of silence after which a process is taken for dead."""


@contextlib.contextmanager
def joined_processes(
    distributed: bool,
    coordinator: str | None,
    num_processes: int | None,
    process_id: int | None,
) -> Iterator[bool]:
    """Let processes know each other within this context; tell whether this one writes files."""
    given = {
        "coordinator": coordinator,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    if not distributed:
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"{name}={value}: expected --distributed, too.")
        yield True
        return
    import jax
    from jax.errors import JaxRuntimeError

    try:
        jax.distributed.initialize(
            coordinator, num_processes, process_id, heartbeat_timeout_seconds=HEARTBEAT
        )
    except (ValueError, RuntimeError) as error:
        said = ", ".join(f"{name}={value}" for name, value in given.items() if value is not None)
        raise ConnectionError(
            f"distributed: the processes did not find each other ({said or 'nothing given'}): "
            f"{' '.join(str(error).split())} Outside of SLURM, Open MPI and Kubernetes pass "
            f"--coordinator HOST:PORT, --num-processes and --process-id to each of them."
        ) from error
    try:
        yield jax.process_index() == 0
        jax.distributed.shutdown()  # type: ignore[no-untyped-call]
    except JaxRuntimeError as error:
        if "out of memory" in str(error).lower():
            raise
        raise ConnectionError(
            "distributed: another process of this run has ended, or cannot be reached; the same "
            "command goes on from the last checkpoint "
            f"({' '.join(str(error).split())[:200]})."
        ) from error


def launch(
    command: Annotated[
        list[str], typer.Argument(metavar="fit ...", help="The command and its arguments.")
    ],
    n_processes: Annotated[
        int, typer.Option("-n", "--num-processes", min=1, help="How many processes.")
    ],
) -> None:
    """Start a command as several processes of this computer, which train together.

    As in `mporbm launch -n 2 fit images.npy -o model.safetensors`. Every process has its share of
    the cores. If one of them fails the others are stopped; the same command goes on from the last
    checkpoint.
    """
    if command[:1] != ["fit"]:
        raise ValueError(
            f"launch: expected the command fit and its arguments, got {' '.join(command)!r}."
        )
    raise typer.Exit(_run(command, n_processes))


def _run(command: Sequence[str], n_processes: int) -> int:
    """Run the processes of a command until all have ended, or one has failed. The exit code."""
    program = [sys.executable, "-m", "mporbm", *command, "--distributed"]
    program += ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", str(n_processes)]
    with contextlib.ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(end_processes, processes)
        # What the others say would say the same again; it matters if they fail alone.
        kept = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, n_processes)]
        for number, output in enumerate((None, *kept)):
            process = subprocess.Popen(
                [*program, "--process-id", str(number)],
                stdout=None if output is None else subprocess.DEVNULL,
                stderr=output,
            )
            processes.append(process)
            pin_to_cores(process.pid, number, n_processes)
        with _forwarded(processes):
            failed = _wait(processes)
        if failed is None:
            return 0
        _explain(failed, processes[failed].returncode, n_processes, kept)
        code = processes[failed].returncode
        return code if code in (2, 130, 143) else 1


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all processes, or for one to fail: the number of that one."""
    while True:
        codes = [process.poll() for process in processes]
        failed = [(code > 0, number) for number, code in enumerate(codes) if code]
        if failed:
            # One that was killed is the cause; others fail because it is gone.
            return min(failed)[1]
        if all(code == 0 for code in codes):
            return None
        time.sleep(0.1)


def _explain(number: int, code: int, n_processes: int, kept: Sequence[IO[bytes]]) -> None:
    if number > 0:
        kept[number - 1].seek(0)
        sys.stderr.write(kept[number - 1].read().decode(errors="replace"))
    reason = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"has ended with {code}"
    others = "; the others are stopped" if n_processes > 1 else ""
    print(f"mporbm: launch: process {number} {reason}{others}.", file=sys.stderr)


def end_processes(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End what still runs: who waits for one that is gone hears no signal but the last."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE
    for process in processes:
        try:
            process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _forwarded(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Pass signals on to all processes, which know what to do, within this context."""

    def forward(number: int, frame: Any) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    # A terminal sends its interrupt to all processes by itself.
    previous = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, forward),
        signal.SIGINT: signal.signal(signal.SIGINT, lambda number, frame: None),
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def pin_to_cores(process: int, number: int, n_processes: int) -> None:
    """Give a process its share of the cores, if there are enough."""
    cores = available_cores()
    share = len(cores) // n_processes
    if share and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(process, cores[number * share : (number + 1) * share])


def available_cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def end_with_parent(parent: int) -> None:
    """End this process when its parent is gone, which also decides about interrupts."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


def free_port() -> int:
    """Find a port of this computer that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
