"""How a step over samples in MPS form grows with the order d, up to 2^40 visible units.

python benchmarks/chain.py --out docs/performance/chain.json
"""

import argparse
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from contest import turns
from rich.console import Console
from rich.table import Table
from scaling import exponent

from mporbm.learning import Algorithm, Batch, ContrastiveDivergence, Rates
from mporbm.machine import MPOCoupling
from mporbm.mps.machine import MPSMachine
from mporbm.mps.scheme import MPSLikelihood, MPSScheme
from mporbm.mps.start import mps_start
from mporbm.tensor import MPSBatch, max_ranks

ORDERS = (10, 20, 30, 40)
N_SAMPLES, BOND, RANK, N_HIDDEN = 32, 8, 8, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="a JSON file for the curves")
    asked = parser.parse_args()
    found: dict[str, Any] = {}
    table = Table(title=f"{N_SAMPLES} samples of 2^d units, ranks {BOND} and {RANK}")
    for heading in ("scheme", "d", "time of a step", "memory"):
        table.add_column(heading, justify="left" if heading == "scheme" else "right")
    for name, alternating in (("CD-AOP", True), ("CD-SU", False)):
        programs = {str(order): program(order, alternating) for order in ORDERS}
        seconds = turns({order: run for order, (run, _) in programs.items()}, asked.rounds)
        medians = [float(np.median(times)) for times in seconds.values()]
        memory = [size for _, size in programs.values()]
        numbers = [float(order) for order in ORDERS]
        found[name] = {
            "orders": list(ORDERS),
            # Times mean something only beside each other.
            "relative_times": [median / medians[0] for median in medians],
            "memory": memory,
            "time_exponent": exponent(numbers, medians),
            "memory_exponent": exponent(numbers, memory),
        }
        for order, ratio, size in zip(ORDERS, found[name]["relative_times"], memory, strict=True):
            table.add_row(name, str(order), f"{ratio:.2f}", f"{size / 2**20:.1f} MiB")
        exponents = (found[name][key] for key in ("time_exponent", "memory_exponent"))
        table.add_row(name, "exponent", *(f"{value:.2f}" for value in exponents), end_section=True)
    Console().print(table)
    if asked.out is not None:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def program(order: int, alternating: bool) -> tuple[Any, int]:
    """A compiled step, and the bytes that it works in."""
    rng = np.random.default_rng(0)
    bonds = [1, *[BOND] * (order - 1), 1]
    shapes = [(N_SAMPLES, bonds[k], 2, bonds[k + 1]) for k in range(order)]
    cores = [rng.normal(size=s).astype(np.float32) / np.sqrt(s[1] * 2) for s in shapes]
    samples = MPSBatch([jnp.asarray(core) for core in cores])
    hidden = (N_HIDDEN, *(1,) * (order - 1))
    ranks = [min(RANK, most) for most in max_ranks([2 * size for size in hidden], "open")]
    mpo, bias = mps_start(rng, samples, hidden, ranks)
    machine = MPSMachine(MPOCoupling(mpo), bias)
    scheme, phase = MPSScheme(alternating), ContrastiveDivergence(n_gibbs=1)
    algorithm = Algorithm(scheme, phase, objective=MPSLikelihood())
    key = jax.random.key(0)
    state = algorithm.init(key, machine, N_SAMPLES)
    data = Batch(samples, jnp.full(N_SAMPLES, 1.0 / N_SAMPLES))
    jitted: Any = eqx.filter_jit(algorithm.step)
    step = jitted.lower(key, state, data, Rates(1e-3, 1e-3)).compile()
    sizes = step.compiled.memory_analysis()
    n_bytes = int(sizes.temp_size_in_bytes + sizes.argument_size_in_bytes)

    def run() -> None:
        step(key, state, data, Rates(1e-3, 1e-3))[1].gradient_norm.block_until_ready()

    return run, n_bytes


if __name__ == "__main__":
    main()
