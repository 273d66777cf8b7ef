"""Make one small mistake after the other, and see whether the default tier of the tests notices.

python tests/mutations/run.py [--only TEXT] [--jobs N] [--check] [--quick]

Each mistake is made in a copy of the package. The tests of its module come first, then those of its
folder, then the whole default tier, until one fails. A table of what was caught, and where, comes
last; the exit code tells whether everything was.
"""

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mporbm"
TESTS_OF = {
    "tensor/balance.py": ["learning/test_gauge.py", "learning/test_gradient.py"],
    "tensor/train.py": ["tensor/test_train.py", "tensor/test_mpo.py"],
    "tensor/mps.py": ["tensor/test_batch.py", "tensor/test_train.py"],
    "tensor/network.py": ["learning/test_gauge.py"],
    "tensor/random.py": ["tensor/test_train.py", "machine/test_coupling.py"],
    "tensor/ranks.py": ["tensor/test_truncation.py", "tensor/test_mpo.py"],
    "machine/couplings/": ["machine/test_coupling.py", "machine/test_machine.py"],
    "machine/units/categorical.py": ["machine/test_units.py", "learning/test_zero_sum.py"],
    "machine/units/": ["machine/test_units.py", "machine/test_hidden_units.py"],
    "machine/hash_rng.py": ["machine/test_bits.py"],
    "sampling/gibbs.py": ["sampling/test_kernel.py", "sampling/test_sampling.py"],
    "sampling/tempering.py": ["sampling/test_sampling.py"],
    "learning/algorithm.py": [
        "learning/test_algorithm_1.py",
        "learning/test_gauge.py",
        "learning/test_zero_sum.py",
    ],
    "learning/schemes.py": ["learning/test_algorithm_1.py"],
    "learning/two_site.py": [
        "learning/test_gradient.py",
        "learning/test_likelihood.py",
        "learning/test_zero_sum.py",
    ],
    "learning/rule.py": ["learning/test_algorithm_1.py", "learning/test_gauge.py"],
    "learning/negative_phases.py": ["learning/test_negative.py"],
    "learning/rates.py": ["learning/test_rates.py", "training/test_loop.py"],
    "learning/start.py": ["training/test_loop.py"],
}
"""Tests that know a module, or those of a folder, best, if they are not called like it."""
FURTHER = {
    "machine": ["learning/test_deep.py", "learning/test_classification.py"],
    "learning": ["training", "estimators/test_chains.py", "estimators/test_estimators.py", "mps"],
}
"""What tests a folder beside the folder of the same name."""
SECONDS = 1800.0


def stages(mutation: Mutation) -> Iterator[tuple[str, list[str]]]:
    """Which tests to run, the likeliest to notice first."""
    tests = ROOT / "tests"
    folder, *_, module = mutation.file.split("/")
    known = [paths for place, paths in TESTS_OF.items() if mutation.file.startswith(place)]
    own = [tests / path for path in (known[0] if known else [f"{folder}/test_{module}"])]
    if found := [str(path) for path in own if path.exists()]:
        yield "its module", found
    yield "its folder", [str(tests / path) for path in (folder, *FURTHER.get(folder, []))]
    yield "default tier", []


def applied(mutation: Mutation, package: Path) -> str | None:
    """Make the mistake in a copy of the package; else, why it cannot be made."""
    path = package / mutation.file
    if not path.exists():
        return "no such file"
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return f"its text is there {text.count(mutation.old)} times"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return None


def run_tests(source: Path, arguments: list[str]) -> tuple[int | None, str]:
    """The exit code of the tests of a package, None if they took too long, and their last line."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "--no-header", "--tb=no"]
    paths = [str(source), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    try:
        ended = subprocess.run(
            [*command, *(arguments or [str(ROOT / "tests")])],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, "took too long"
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    last = failed[:1] or ended.stdout.splitlines()[-1:] or ended.stderr.splitlines()[-1:]
    return ended.returncode, last[0] if last else ""


@functools.cache
def fails_without(arguments: tuple[str, ...]) -> str:
    """What fails of these tests without any mutation; nothing, if they are to be trusted."""
    code, last = run_tests(PACKAGE.parent, list(arguments))
    return "" if code == 0 else last or f"exit code {code}"


def tried(mutation: Mutation, quick: bool) -> tuple[str, str]:
    """What became of a mistake (caught, survived, timeout, stale or error), and where."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(PACKAGE, source / "mporbm", ignore=shutil.ignore_patterns("__pycache__"))
        if reason := applied(mutation, source / "mporbm"):
            return "stale", reason
        for number, (where, arguments) in enumerate(stages(mutation)):
            if quick and number == 2:
                break
            code, last = run_tests(source, arguments)
            if code is None:
                return "timeout", where
            if code == 0:
                continue
            # Tests that fail anyway, or cannot be collected, catch nothing.
            if failure := fails_without(tuple(arguments)):
                return "error", f"{where}: fails without the mutation: {failure}"
            # 1: tests failed; 2: a module could not be imported.
            return "caught" if code in (1, 2) else "error", f"{where}: {last}"
        return "survived", ""


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="mutations whose name holds this text")
    parser.add_argument("--jobs", type=int, default=1, help="how many at the same time")
    parser.add_argument("--check", action="store_true", help="only see that all can be made")
    parser.add_argument("--quick", action="store_true", help="leave out the whole default tier")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.only in mutation.name]

    if options.check:
        texts = [(m, PACKAGE / m.file) for m in chosen]
        stale = [m for m, path in texts if not path.exists() or path.read_text().count(m.old) != 1]
        for mutation in stale:
            print(f"stale: {mutation.name}")
        print(f"{len(chosen)} mutations, {len(stale)} of them stale")
        return bool(stale)

    counts: dict[str, int] = {}
    start = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda mutation: tried(mutation, options.quick), chosen)
        for mutation, (outcome, where) in zip(chosen, outcomes, strict=True):
            counts[outcome] = counts.get(outcome, 0) + 1
            print(f"{outcome:8}  {mutation.name!r}\n          {where}", flush=True)
    summary = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    print(f"{len(chosen)} mutations in {time.monotonic() - start:.0f} s: {summary}")
    return int(counts.keys() != {"caught"})


if __name__ == "__main__":
    sys.exit(main())
