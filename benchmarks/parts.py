"""Where the time of a training step goes: products, sampling, gradient, update, host.

Programs that do more and more of a step take turns; a part is the difference of two medians.

    python benchmarks/parts.py --visible 28,28 --hidden 10,10 --rank 40 --batch 100
"""

import argparse
import statistics
from typing import Any

import jax
import numpy as np
from contest import THREADS, turns
from rich.console import Console
from rich.table import Table
from step import Sweep

from mporbm import MPORBM, RBM
from mporbm.machine import DenseCoupling, Machine, MPOCoupling

N_BATCHES = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visible", type=_shape, default=(28, 28), help="such as 80,80,8")
    parser.add_argument("--hidden", type=_shape, default=(10, 10))
    parser.add_argument("--rank", type=int, help="of an MPORBM; without it, an RBM")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--plain", action="store_true", help="the paper's rule, without the gauge")
    parser.add_argument("--rounds", type=int, default=11)
    asked = parser.parse_args()

    key, gauge = jax.random.key(0), not asked.plain
    coupling = (
        DenseCoupling.random(key, asked.visible, asked.hidden)
        if asked.rank is None
        else MPOCoupling.random(key, asked.visible, asked.hidden, asked.rank)
    )
    sweep = Sweep(Machine(coupling), asked.batch, gauge=gauge)
    programs = {
        "products with W": sweep.products(),
        "sampling": sweep.samples(),
        "gradient": sweep.gradients(),
        "update": sweep.whole(),
        "host": _fit(asked, gauge),
    }
    seconds = turns(programs, asked.rounds)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    medians["host"] /= N_BATCHES

    title = f"{coupling.plan(asked.batch)}; {THREADS} threads"
    table = Table(title=title, title_justify="left")
    for heading in ("part", "share of a step", "so far"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    before, total = 0.0, medians["host"]
    for name, until in medians.items():
        share = (until - before) / total
        table.add_row(name, f"{100 * share:.0f} %", f"{1e3 * until:.2f} ms")
        before = until
    Console().print(table)


def _fit(asked: Any, gauge: bool) -> Any:
    """An epoch of `fit`, with all that it does besides."""
    rows = np.random.default_rng(0).random((N_BATCHES * asked.batch, *asked.visible)) < 0.3
    model: Any
    if asked.rank is None:
        model = RBM(int(np.prod(asked.hidden)))
    else:
        model = MPORBM(asked.hidden, rank=asked.rank, gauge="canonical" if gauge else None)
    model.set_params(batch_size=asked.batch, n_iter=1, learning_rate=1e-4, init="random")
    model.set_params(random_state=0, warm_start=True)
    return lambda: model.fit(rows)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    main()
