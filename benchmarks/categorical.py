"""Log-likelihood of data with categories: lattice proteins, and positions of Connect Four, in nats.

Proteins are sequences of 27 sites with one of 20 amino acids each; a fifth is for testing, drawn by
the same permutation for every seed, and values are nats a site. Positions are 42 squares that are
empty or have a stone of one of two players; their published test part is not used: machines learn
from the training part and are tested on the validation part, and values are nats a position. With
``bernoulli`` the three states of a square are three binary units. With ``--validation`` machines
learn from nine tenths of the training part and are tested on the last one: that is how settings
are chosen. log Z is estimated by annealed importance sampling forwards, backwards and by both
together. Intervals are those of the mean over the seeds, by Student's t.

    MPORBM_DATA=... python -m benchmarks.categorical [CASE...] --seeds 3 --out categorical.json
"""

import argparse
import gzip
import json
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from mporbm import MPORBM, RBM, MvRBM, TvRBM
from mporbm.datasets.fetch import folders

KINDS: dict[str, Any] = {"RBM": RBM, "MvRBM": MvRBM, "TvRBM": TvRBM, "MPORBM": MPORBM}
CASES = (
    "proteins, MPORBM 20x20, rank 16",
    "proteins, RBM 100",
    "connect4, MPORBM 20x10, rank 10",
    "connect4, MPORBM 20x10, rank 10, bernoulli",
)
"""What is measured if nothing is asked for. Other sizes, ", rectified hidden",
", categorical hidden", ", 40 epochs", ", 200 samples a batch", ", 2 Gibbs steps", ", step 0.5" and
", decay 0.001" can be, in this order."""
CASE = re.compile(
    r"(?P<data>proteins|connect4), (?P<kind>RBM|MvRBM|TvRBM|MPORBM) (?P<hidden_shape>[0-9x]+)"
    r"(?:, rank (?P<rank>\d+))?(?P<bernoulli>, bernoulli)?"
    r"(?:, (?P<hidden_units>rectified|categorical) hidden)?(?:, (?P<n_iter>\d+) epochs)?"
    r"(?:, (?P<batch_size>\d+) samples a batch)?(?:, (?P<n_gibbs>\d+) Gibbs steps)?"
    r"(?:, step (?P<learning_rate>[0-9.]+))?(?:, decay (?P<weight_decay>[0-9.]+))?"
)
N_ITER = {"proteins": 15, "connect4": 40}
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
ONE_FIFTH, SEED = 5, 0
"""The part of the proteins that is for testing, and the seed that draws it."""
N_SAMPLES = 1000


def parts_of(name: str) -> dict[str, str]:
    """Read the name of a case."""
    if (found := CASE.fullmatch(name)) is None:
        raise ValueError(f"CASE: expected a name such as {CASES[0]!r}, got {name!r}.")
    return {key: value for key, value in found.groupdict().items() if value is not None}


def build(name: str, seed: int) -> Any:
    """Make the estimator of a case."""
    parts = parts_of(name)
    sizes = tuple(map(int, parts["hidden_shape"].split("x")))
    options: dict[str, Any] = {
        "hidden_shape": sizes,
        "visible_units": "bernoulli" if "bernoulli" in parts else "categorical",
        "n_iter": N_ITER[parts["data"]],
    }
    options |= {k: int(parts[k]) for k in ("rank", "n_iter", "batch_size", "n_gibbs") if k in parts}
    if "hidden_units" in parts:
        options["hidden_units"] = parts["hidden_units"]
    options |= {k: float(parts[k]) for k in ("learning_rate", "weight_decay") if k in parts}
    return KINDS[parts["kind"]](**options, random_state=seed)


def load(name: str, validation: bool) -> tuple[np.ndarray, np.ndarray]:
    """The training and the test part of the data of a case, one-hot."""
    data = parts_of(name)["data"]
    train, test = _proteins() if data == "proteins" else _positions()
    if validation:
        n_learnt = len(train) * 9 // 10
        train, test = train[:n_learnt], train[n_learnt:]
    return train, test


def _proteins() -> tuple[np.ndarray, np.ndarray]:
    path = _path("proteins", "Lattice_Proteins_MSA.fasta.gz")
    with gzip.open(path, "rt", encoding="ascii") as file:
        sequences = [line.strip() for line in file if not line.startswith(">")]
    letters = np.array([list(sequence) for sequence in sequences])
    shuffled = np.random.default_rng(SEED).permutation(len(letters))
    one_hot = letters[shuffled][..., None] == np.array(list(AMINO_ACIDS))
    n_test = len(letters) // ONE_FIFTH
    return one_hot[n_test:], one_hot[:n_test]


def _positions() -> tuple[np.ndarray, np.ndarray]:
    return tuple(
        np.loadtxt(
            _path("density", f"connect4.{part}.data.gz"), dtype=np.uint8, delimiter=","
        ).reshape(-1, 42, 3)
        == 1
        for part in ("train", "valid")
    )


def _path(dataset: str, name: str) -> Path:
    found = [folder / name for folder in folders(dataset) if (folder / name).is_file()]
    if not found:
        raise FileNotFoundError(f"{name}: expected it in {folders(dataset)[0]}.")
    return found[0]


def measure(
    name: str, seed: int, validation: bool, n_chains: int, n_temperatures: int
) -> dict[str, float]:
    """Train a machine, and say how likely the data are, and how many samples are such data."""
    train, test = load(name, validation)
    model = build(name, seed)
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    log_z = model.log_partition("ais", n_chains=n_chains, n_temperatures=n_temperatures)
    unit = test.shape[1] if parts_of(name)["data"] == "proteins" else 1
    learnt, unseen = (
        -model.free_energy(rows).astype(np.float64) / unit for rows in (train[: len(test)], test)
    )
    drawn = model.sample(N_SAMPLES, random_state=seed)
    return {
        "weights": model.n_parameters_,
        "seconds": seconds,
        "training": learnt.mean() - log_z.value / unit,
        "test": unseen.mean() - log_z.value / unit,
        "forward": unseen.mean() - log_z.forward / unit,
        "reverse": unseen.mean() - log_z.reverse / unit,
        "sampling_error": unseen.std() / math.sqrt(len(unseen)),
        "effective_sample_size": log_z.effective_sample_size,
        "valid_samples": float((drawn.sum(axis=-1) == 1).all(axis=1).mean()),
    }


def show(results: Mapping[str, list[dict[str, float]]]) -> str:
    """One row for each machine: means over the seeds, with intervals of 95 %."""
    lines = [
        "| machine | weights | seconds | test | forward | reverse | training less test | ESS "
        "| samples with one state each |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, runs in results.items():
        digits = 4 if name.startswith("proteins") else 2
        gap = [{"gap": run["training"] - run["test"]} for run in runs]
        cells = [name, f"{runs[0]['weights']:.0f}", f"{_values(runs, 'seconds').mean():.0f}"]
        cells += [_interval(runs, key, digits) for key in ("test", "forward", "reverse")]
        cells += [_interval(gap, "gap", digits)]
        cells += [f"{_values(runs, 'effective_sample_size').min():.0f} or more"]
        cells += [f"{100 * _values(runs, 'valid_samples').mean():.1f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _values(runs: list[dict[str, float]], key: str) -> np.ndarray:
    return np.array([run[key] for run in runs])


def _interval(runs: list[dict[str, float]], key: str, digits: int) -> str:
    values = _values(runs, key)
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    """Measure what is asked for; results so far are kept after every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--validation", action="store_true", help="test on a part of the training")
    parser.add_argument("--chains", type=int, default=256)
    parser.add_argument("--temperatures", type=int, default=4000)
    parser.add_argument("--out", type=Path, help="a JSON file; runs that it has are not repeated")
    asked = parser.parse_args()
    settings = {
        "validation": asked.validation,
        "n_chains": asked.chains,
        "n_temperatures": asked.temperatures,
    }
    for name in asked.names:
        build(name, 0)
    results: dict[str, list[dict[str, float]]] = {}
    if asked.out is not None and asked.out.exists():
        kept = json.loads(asked.out.read_text(encoding="utf-8"))
        if kept["settings"] != settings:
            parser.error(f"--out: expected runs with {settings}, got {kept['settings']}")
        results = kept["results"]
    for name in asked.names or CASES:
        for seed in range(len(results.get(name, [])), asked.seeds):
            results.setdefault(name, []).append(measure(name, seed, **settings))
            if asked.out is not None:
                text = json.dumps({"settings": settings, "results": results}, indent=1)
                asked.out.write_text(text + "\n", encoding="utf-8")
    print(show(results))


if __name__ == "__main__":
    main()
