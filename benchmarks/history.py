"""Times of the compiled programs, kept from version to version by pytest-benchmark.

    make history

measures them, keeps the times in .benchmarks (they mean nothing on another machine) and compares
them with those of the last time.
"""

from typing import Any

import jax
from roofline import machines
from step import Sweep

from mporbm.machine import DenseCoupling, Machine
from mporbm.sampling import Evidence
from mporbm.sampling.evidence import posterior_average


def pytest_generate_tests(metafunc: Any) -> None:
    """All machines, by both rules."""
    if "gauge" in metafunc.fixturenames:
        metafunc.parametrize("name", machines())
        metafunc.parametrize("gauge", [True, False], ids=["gauge", "plain"])


def test_sweep(benchmark: Any, name: str, gauge: bool) -> None:
    coupling, batch = machines()[name]
    sweep = Sweep(Machine(coupling), batch, gauge=gauge).whole()
    sweep()
    benchmark(sweep)


def test_posterior_average(benchmark: Any) -> None:
    key = jax.random.key(0)
    machine = Machine(DenseCoupling.random(key, (784,), (100,)))
    visible = jax.random.bernoulli(key, 0.15, (1000, 784))
    evidence = Evidence.from_known(visible.astype(float), visible)
    program = jax.jit(lambda key: posterior_average(key, machine, evidence, 20).mean)
    program(key).block_until_ready()
    benchmark(lambda: program(key).block_until_ready())
