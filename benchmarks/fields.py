"""How fast is ``W^T(V)``, as a ratio to the same contraction elsewhere.

For each coupling the contenders take turns in one process; the table gives the median over the
rounds of (their time / our time), with the quartiles. Above 1 means that ours is faster.

    make bench
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import opt_einsum
from rich.console import Console
from rich.progress import track
from rich.table import Table

from mporbm.machine import Coupling, DenseCoupling, MPOCoupling
from mporbm.tensor.network import index_names

CASES = [
    ((28, 28), (10, 10), 1, 100),
    ((28, 28), (10, 10), 40, 100),
    ((80, 80, 8), (10, 10, 5), 20, 50),
    ((128, 128, 24), (10, 10, 5), 20, 16),
]


def main() -> None:
    """Run all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="rounds of alternation")
    parser.add_argument("--json", type=Path, help="also write the ratios to this file")
    options = parser.parse_args()

    table = Table(
        title="W^T(V): their time / our time, median (quartiles)",
        caption="above 1: ours is faster",
    )
    table.add_column("coupling", no_wrap=True)
    table.add_column("batch", justify="right")
    for heading in ("NumPy + opt_einsum", "dense matrix product, JAX"):
        table.add_column(heading, justify="right")
    results = []
    for visible, hidden, rank, batch in track(CASES, description="measuring"):
        coupling = MPOCoupling.random(jax.random.key(0), visible, hidden, rank)
        data = np.random.default_rng(0).normal(size=(batch, *visible)).astype(np.float32)
        times = alternate(contenders(coupling, data), options.rounds)
        name = f"{'x'.join(map(str, visible))} -> {'x'.join(map(str, hidden))}, rank {rank}"
        ratios = {
            other: np.percentile(times[other] / times["ours"], (25, 50, 75)).tolist()
            for other in ("numpy", "dense")
        }
        results.append({"coupling": name, "batch": batch, "ratios": ratios})
        cells = [f"{m:.2f} ({low:.2f}-{high:.2f})" for low, m, high in ratios.values()]
        table.add_row(name, str(batch), *cells)
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def contenders(coupling: Coupling, data: np.ndarray) -> dict[str, Callable[[], Any]]:
    """The three ways to the same fields; each is called until it has compiled what it compiles."""
    compiled = jax.jit(lambda c, v: c.apply_transpose(v))
    on_device = jax.device_put(data)

    nodes = coupling.nodes()
    symbols = {i: opt_einsum.get_symbol(k) for k, i in enumerate(all_indices(coupling))}
    inputs = [("n", *index_names("i", len(coupling.visible_shape))), *(n.indices for n in nodes)]
    output = ("n", *index_names("j", len(coupling.hidden_shape)))
    formula = ",".join("".join(symbols[i] for i in group) for group in inputs)
    formula += "->" + "".join(symbols[i] for i in output)
    arrays = [data, *(np.asarray(node.array) for node in nodes)]
    expression = opt_einsum.contract_expression(formula, *[a.shape for a in arrays])

    dense = DenseCoupling(coupling.to_matrix())
    flat = on_device.reshape(len(data), -1)
    return {
        "ours": lambda: compiled(coupling, on_device).block_until_ready(),
        "numpy": lambda: expression(*arrays),
        "dense": lambda: compiled(dense, flat).block_until_ready(),
    }


def all_indices(coupling: Coupling) -> list[str]:
    """Every index of the contraction, the batch first."""
    return ["n", *dict.fromkeys(i for node in coupling.nodes() for i in node.indices)]


def alternate(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, np.ndarray]:
    """Times of each function in each round, after a warm-up that also checks that they agree."""
    answers = [np.asarray(function()).reshape(-1) for function in functions.values()]
    for answer in answers[1:]:
        scale = float(np.abs(answers[0]).max())
        np.testing.assert_allclose(answer, answers[0], rtol=1e-3, atol=1e-4 * scale)
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in times.items()}


if __name__ == "__main__":
    main()
