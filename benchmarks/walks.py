"""How far a reader walks: the functions, files and folders that calls pass.

python benchmarks/walks.py [--files] [--functions] [--out FILE.json]

Each way is counted from what Python calls in the package, not by hand:

- ``MPORBM(...).fit(X)`` without the compiled step, which a fit before has compiled already;
- one update of a core by AOP, as JAX traces it;
- ``complete(X, mask)``, with and without the compiled chain.

A crossing is a function, met for the first time, in another folder than the one met before it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mporbm
from mporbm import MPORBM

PACKAGE = Path(mporbm.__file__).parent
X = np.random.default_rng(0).random((20, 4, 3)) < 0.4
MASK = np.arange(12).reshape(4, 3) % 2 == 0


class Walk(NamedTuple):
    """What a call passed, each function once, in the order in which it was met."""

    functions: list[tuple[str, str]]
    """Files, from the package's folder, and names."""

    @property
    def files(self) -> list[str]:
        """Files in the order in which they were met."""
        return list(dict.fromkeys(file for file, _ in self.functions))

    @property
    def n_crossings(self) -> int:
        """How often the next function was in another folder."""
        folders = [str(Path(file).parent) for file, _ in self.functions]
        return sum(a != b for a, b in pairwise(folders))


def walked(call: Callable[[], Any]) -> Walk:
    """Call a function, and note every function of the package that Python enters."""
    met: dict[tuple[str, str], None] = {}
    prefix = f"{PACKAGE}/"

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # Lambdas and comprehensions belong to the function around them.
        if event == "call" and code.co_filename.startswith(prefix) and code.co_name[0] != "<":
            met[code.co_filename.removeprefix(prefix), code.co_qualname] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(list(met))


def estimator() -> MPORBM:
    """The estimator of the README, smaller."""
    return MPORBM((2, 2), rank=2, n_iter=2, batch_size=10, momentum=0.5, random_state=0)


def fit_walk() -> Walk:
    """The way of a second `fit`."""
    estimator().fit(X)
    return walked(lambda: estimator().fit(X))


def update_walk() -> Walk:
    """The way of one update of core 0.

    The only part that knows names of `mporbm.learning`.
    """
    from mporbm.learning import (
        Algorithm,
        Alternating,
        Batch,
        ContrastiveDivergence,
        Rates,
        UpdateRule,
    )
    from mporbm.machine import Machine, MPOCoupling

    key = jax.random.key(0)
    machine = Machine(MPOCoupling.random(key, (4, 3), (2, 2), rank=2))
    algorithm = Algorithm(Alternating(), ContrastiveDivergence(1), UpdateRule())
    state = algorithm.init(key, machine, 10)
    data = Batch(X[:10].astype(machine.coupling.dtype), jnp.full(10, 0.1))
    rates = Rates(0.1, 0.1)
    return walked(lambda: jax.eval_shape(lambda: algorithm.update(key, state, data, rates, (0,))))


def complete_walk(warm: bool) -> Walk:
    """The way of a completion; a warm one is compiled already."""
    fitted = estimator().fit(X)
    call = partial(fitted.complete, X, MASK, n_gibbs=2, random_state=0)
    if warm:
        call()
    return walked(call)


def ancestors() -> list[str]:
    """The classes of the package that `MPORBM` inherits from."""
    return [
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in MPORBM.__mro__[1:]
        if kind.__module__.startswith("mporbm.")
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true", help="list the files of every way")
    parser.add_argument("--functions", action="store_true", help="list the functions, too")
    parser.add_argument("--out", help="write the numbers to this JSON file")
    options = parser.parse_args()
    ways = {
        "MPORBM(...).fit(X) without the compiled step": fit_walk(),
        "one AOP core update": update_walk(),
        "complete(X, mask)": complete_walk(warm=False),
        "complete(X, mask) without the compiled chain": complete_walk(warm=True),
    }
    print("| way | functions | files | folder crossings |\n|---|---:|---:|---:|")
    for name, walk in ways.items():
        print(f"| {name} | {len(walk.functions)} | {len(walk.files)} | {walk.n_crossings} |")
    print(f"\nMPORBM has {len(ancestors())} ancestors of ours: {', '.join(ancestors())}")
    for name, walk in ways.items():
        if options.files or options.functions:
            print(f"\n{name}:")
        for file in walk.files if options.files or options.functions else ():
            functions = [function for place, function in walk.functions if place == file]
            print(f"  {file}: {', '.join(functions)}" if options.functions else f"  {file}")
    if options.out:
        numbers = {
            name: {
                "functions": len(walk.functions),
                "files": walk.files,
                "crossings": walk.n_crossings,
            }
            for name, walk in ways.items()
        }
        text = json.dumps({"ways": numbers, "ancestors": ancestors()}, indent=2)
        Path(options.out).write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
