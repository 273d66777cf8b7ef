"""Fuzz every parser in a process of its own, with its memory bounded, and print what came of it.

``python tests/fuzz/run.py`` runs all; ``python tests/fuzz/run.py model --inputs 1000`` one of them.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOM = 2**29
"""How many bytes more than at the start a process may use."""
N_WARM = 300
"""Files that load what is loaded lazily, before memory is measured."""
SHARED = Path("/dev/shm")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parsers", nargs="*", help="all of them by default")
    parser.add_argument("--inputs", type=int, default=100_000, help="files for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="in this process, as JSON")
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(fuzz(arguments.parsers[0], arguments.inputs, arguments.seed)))
        return
    print("| parser | files | refused | accepted | crashes | memory | CPU seconds |", flush=True)
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    failed = [name for name in arguments.parsers or names() if not fuzzed(name, arguments)]
    sys.exit(f"crashes: {', '.join(failed)}" if failed else 0)


def fuzzed(name, arguments):
    """Fuzz a parser in another process; whether nothing crashed."""
    options = ["--inputs", str(arguments.inputs), "--seed", str(arguments.seed)]
    command = [sys.executable, __file__, "--alone", *options, "--", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"| {name} | ended with exit code {done.returncode} |", flush=True)
        return False
    found = json.loads(done.stdout)
    print(
        f"| {name} | {found['files']} | {found['refused']} | {found['accepted']} | "
        f"{len(found['crashes'])} | +{found['grown'] / 2**20:.0f} MiB | {found['seconds']:.0f} |",
        flush=True,
    )
    for number, text in found["crashes"]:
        print(f"\nfile {number} of {name}, seed {arguments.seed}:\n{text}", file=sys.stderr)
    return not found["crashes"]


def names():
    from fuzz.parsers import PARSERS

    return list(PARSERS)


def fuzz(name, n_files, seed):
    """Fuzz a parser in this process."""
    from fuzz.campaign import run

    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as folder:
        run(name, Path(folder), range(n_files, n_files + N_WARM), seed)
        bound_memory()
        before, start = peak(), time.process_time()
        tally = run(name, Path(folder), range(n_files), seed)
    return {
        "files": n_files,
        "refused": tally.refused,
        "accepted": tally.accepted,
        "crashes": list(tally.crashes.values()),
        "grown": peak() - before,
        "seconds": time.process_time() - start,
    }


def peak():
    """The most memory that this process ever had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def bound_memory():
    """Make larger allocations fail, whether they would be used or not."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmData")]
        most = 1024 * int(line.split()[1]) + ROOM
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    sys.path[:0] = [str(folder) for folder in Path(__file__).parents[1:3]]
    main()
