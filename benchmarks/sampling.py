"""Which samples of a machine have the classes of its data: after how many steps, by which sampler.

Machines learn the first 50,000 training images of MNIST, thresholded at 127. The classes of 1000
samples, as the 3 nearest of the other 10,000 training images tell them, are compared with the
classes of these: the total variation distance, after so many Gibbs steps from the states that
the chains of the training have passed through (`chains_`). The same starts with parallel tempering
between the base rates and the machine, for as many products with W as 1000 steps; and chains that
start as independent units. `moved` is the share of samples whose class is another one than that of
their start.

    MPORBM_DATA=... python benchmarks/sampling.py --seeds 3 --out sampling.json
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.neighbors import KNeighborsClassifier

from mporbm import MPORBM, RBM
from mporbm.datasets import load_mnist
from mporbm.machine import Machine
from mporbm.sampling import Tempering
from mporbm.sampling.tempering import TemperingState

CASES: dict[str, Callable[[], Any]] = {
    "MPORBM, default": MPORBM,
    "MPORBM 20x25, rank 40": lambda: MPORBM((20, 25), rank=40),
    "MPORBM 32x32, rank 40": lambda: MPORBM((32, 32), rank=40),
    "RBM 500": lambda: RBM(500),
}
N_LEARNT, N_SAMPLES, N_CLASSES = 50_000, 1000, 10
STEPS = (0, 10, 30, 100, 300, 1000, 3000)
ALIKE = 1000
"""The Gibbs steps that tempering may cost."""
TEMPERATURES = (6, 16)


@eqx.filter_jit
def tempered(
    key: jax.Array, machine: Machine, tempering: Tempering, start: jax.Array, n_steps: jax.Array
) -> jax.Array:
    """Temper chains that start at the same states at every temperature: the coldest ones."""
    planned = machine.planned(len(start), 10**6)
    visible = jnp.broadcast_to(start, (tempering.n_temperatures, *start.shape))

    def step(number: jax.Array, state: TemperingState) -> TemperingState:
        return tempering.step(jax.random.fold_in(key, number), planned, state)[0]

    begin = TemperingState(visible, jnp.zeros((), jnp.int32))
    cold: jax.Array = jax.lax.fori_loop(0, n_steps, step, begin).visible[-1]
    return cold


def measure(name: str, seed: int) -> dict[str, list[float]]:
    """Train a machine: the distance of classes, and the share that moved, for each sampler."""
    images, classes = load_mnist("train", return_X_y=True)
    images = images > 127
    model = CASES[name]().set_params(random_state=seed).fit(images[:N_LEARNT])
    judge = KNeighborsClassifier(3)
    judge.fit(images[N_LEARNT:].reshape(-1, 784), classes[N_LEARNT:])
    true = np.bincount(classes[N_LEARNT:], minlength=N_CLASSES) / (len(classes) - N_LEARNT)

    start = np.random.default_rng(seed).permutation(model.chains_)[:N_SAMPLES]
    first = judge.predict(start.reshape(len(start), -1))

    def judged(samples: Any, begun: bool = True) -> list[float]:
        found = judge.predict(np.asarray(samples).reshape(len(samples), -1) > 0.5)
        shares = np.bincount(found, minlength=N_CLASSES) / len(found)
        distance = 0.5 * float(np.abs(shares - true).sum())
        return [distance, float(np.mean(found != first))] if begun else [distance]

    results = {f"{n} steps": judged(model.gibbs(start, n, random_state=seed)) for n in STEPS}
    for n_temperatures in TEMPERATURES:
        tempering = Tempering(n_temperatures, jnp.asarray(model.base_bias_))
        # Exchanges take a third product at each temperature.
        n_steps = jnp.asarray(ALIKE * 2 // (3 * n_temperatures))
        key, begin = jax.random.key(seed), jnp.asarray(start, jnp.float32)
        drawn = tempered(key, model.machine_, tempering, begin, n_steps)
        results[f"{n_temperatures} temperatures"] = judged(drawn)
    del model.chains_
    results[f"independent, {ALIKE} steps"] = judged(
        model.sample(N_SAMPLES, ALIKE, random_state=seed), begun=False
    )
    return results


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in CASES]:
        parser.error(f"CASE: expected one of {', '.join(CASES)}, got {unknown[0]}")
    results: dict[str, list[dict[str, list[float]]]] = {}
    if arguments.out is not None and arguments.out.exists():
        results = json.loads(arguments.out.read_text(encoding="utf-8"))
    console = Console(width=160)
    for seed in range(arguments.seeds):
        for name in arguments.names or CASES:
            if len(results.get(name, [])) > seed:
                continue
            with console.status(f"{name}, seed {seed}"):
                results.setdefault(name, []).append(measure(name, seed))
            if arguments.out is not None:
                text = json.dumps(results, indent=1)
                arguments.out.write_text(text + "\n", encoding="utf-8")
    title = "Total variation distance of classes (share moved), means over seeds"
    table = Table(title=title, title_justify="left")
    samplers = list(next(iter(results.values()))[0])
    for column in ("machine", *samplers):
        table.add_column(column, justify="left" if column == "machine" else "right")
    for name, runs in results.items():
        means = [np.mean([run[sampler] for run in runs], axis=0) for sampler in samplers]
        cells = [
            f"{far:.3f}" + "".join(f" ({share:.2f})" for share in moved) for far, *moved in means
        ]
        table.add_row(name, *cells)
    console.print(table)


if __name__ == "__main__":
    main()
