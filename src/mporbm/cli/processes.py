"""Commands on several processes: how they find each other, and how to start some here."""

import contextlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from ..evaluation.processes import pin_to_cores, share_cores

GRACE = 5.0
"""Seconds between asking a process to end and ending it."""
HEARTBEAT = 30
"""Seconds of silence after which a process is taken for dead."""
PANEL = "Several processes"


@dataclass(frozen=True)
class Processes:
    """Which processes train together."""

    distributed: Annotated[
        bool,
        typer.Option(
            "--distributed",
            help="Train together with other processes of the same command, which share every "
            "batch. Under SLURM, Open MPI and Kubernetes they find each other; else see below, or "
            "mporbm launch.",
            rich_help_panel=PANEL,
        ),
    ] = False
    coordinator: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where process 0 listens.", rich_help_panel=PANEL),
    ] = None
    num_processes: Annotated[
        int | None, typer.Option(min=1, help="How many processes there are.", rich_help_panel=PANEL)
    ] = None
    process_id: Annotated[
        int | None,
        typer.Option(min=0, help="Which of them this one is, from 0.", rich_help_panel=PANEL),
    ] = None

    @contextlib.contextmanager
    def joined(self) -> Iterator[bool]:
        """Let processes know each other within this context; tell whether this one writes files."""
        names = ("coordinator", "num_processes", "process_id")
        given = [f"{name}={v}" for name in names if (v := getattr(self, name)) is not None]
        if not self.distributed:
            if given:
                raise ValueError(f"{given[0]}: expected --distributed, too.")
            yield True
            return
        import jax
        from jax.errors import JaxRuntimeError

        try:
            jax.distributed.initialize(
                self.coordinator,
                self.num_processes,
                self.process_id,
                heartbeat_timeout_seconds=HEARTBEAT,
            )
        except (ValueError, RuntimeError) as error:
            raise ConnectionError(
                f"distributed: the processes did not find each other "
                f"({', '.join(given) or 'nothing given'}): {' '.join(str(error).split())} Outside "
                f"of SLURM, Open MPI and Kubernetes pass --coordinator HOST:PORT, --num-processes "
                f"and --process-id to each of them."
            ) from error
        try:
            yield jax.process_index() == 0
            jax.distributed.shutdown()  # type: ignore[no-untyped-call]
        except JaxRuntimeError as error:
            if "out of memory" in str(error).lower():
                raise
            raise ConnectionError(
                "distributed: another process of this run has ended, or cannot be reached; the "
                "same command goes on from the last checkpoint "
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
    program = [sys.executable, "-m", "mporbm", *command, "--distributed"]
    program += ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", str(n_processes)]
    with contextlib.ExitStack() as stack:
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, processes)
        # What the others say would say the same again; it matters if they fail alone.
        kept = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1, n_processes)]
        shares = share_cores(n_processes)
        for number, (output, cores) in enumerate(zip((None, *kept), shares, strict=True)):
            process = subprocess.Popen(
                [*program, "--process-id", str(number)],
                stdout=None if output is None else subprocess.DEVNULL,
                stderr=output,
            )
            processes.append(process)
            pin_to_cores(cores, process.pid)
        with _forwarded(processes):
            failed = _wait(processes)
        if failed is None:
            return
        if failed > 0:
            kept[failed - 1].seek(0)
            sys.stderr.write(kept[failed - 1].read().decode(errors="replace"))
        code = processes[failed].returncode
        reason = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        others = "; the others are stopped" if n_processes > 1 else ""
        print(f"mporbm: launch: process {failed} {reason}{others}.", file=sys.stderr)
        raise typer.Exit(code if code in (2, 130, 143) else 1)


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all processes, or for one to fail: the number of that one."""
    while True:
        codes = [process.poll() for process in processes]
        if failed := [(code > 0, number) for number, code in enumerate(codes) if code]:
            # One that was killed is the cause; others fail because it is gone.
            return min(failed)[1]
        if all(code == 0 for code in codes):
            return None
        time.sleep(0.1)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
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

    def forward(number: int, frame: object) -> None:
        # A terminal sends its interrupt to all processes by itself.
        for process in processes if number == signal.SIGTERM else ():
            process.send_signal(number)

    previous = {n: signal.signal(n, forward) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def free_port() -> int:
    """Find a port of this computer that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
