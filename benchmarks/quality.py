"""Time to quality: seconds of training until MNIST's test images are as likely as asked for.

All 60,000 training images, thresholded at 127. Learners take turns: each learns up to the next
second of a geometric grid, in a process of its own, while all others wait (`contest`, `learners`).
What each has learnt by then is judged by one and the same estimate of the log-likelihood, annealed
importance sampling forwards and backwards, of which the mean counts; the clock stands still
meanwhile. Who is above all targets retires. The time of a target is interpolated between the last
judgement below and the first above it.

The learning rate of each is chosen among three before that: learners on the first 55,000 images,
judged by the last 5,000, with another seed.

    MPORBM_DATA=... python benchmarks/quality.py --rounds 5 --out quality.json
"""

import argparse
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from contest import THREADS, Contender, quartiles, ratios, staged
from learners import Parameters, Rows, Stand, images
from rich.console import Console
from rich.table import Table

from mporbm.machine import Bernoulli, DenseCoupling, Machine
from mporbm.sampling import log_partition

FIRST_TURN, TURNS_PER_DOUBLING = 0.5, 4
N_VALIDATED = 5000
CHOICE_SEED = 1000
LARGE, SMALL = {"hidden_shape": (20, 25), "rank": 40}, {"hidden_shape": (16, 16), "rank": 40}


@dataclass(frozen=True)
class Entrant:
    """A learner of `learners.KINDS`, what it is built with, and the rates to choose from."""

    learner: str
    rates: tuple[float, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def contender(self, rate: float, n_images: int, seed: int) -> Contender:
        """The learner at one of its rates."""
        options = {**self.options, "learning_rate": rate}
        arguments = {"learner": self.learner, "n_images": n_images, "seed": seed}
        return Contender("learners", "prepare", {**arguments, "options": options})


ENTRANTS = {
    "our RBM 784 -> 500": Entrant("ours", (1.0, 2.0, 4.0)),
    "our MPORBM 28x28 -> 20x25, rank 40": Entrant("ours", (1.0, 2.0, 4.0), LARGE),
    "our MPORBM 28x28 -> 16x16, rank 40": Entrant("ours", (1.0, 2.0, 4.0), SMALL),
    "rbms, centred, PCD-1, batch 100": Entrant("rbms", (1.0, 2.0, 4.0)),
    "rbms, its defaults": Entrant("rbms, defaults", (0.01,), {"n_gibbs": 100, "batch": 2000}),
    "scikit-learn": Entrant("scikit-learn", (0.02, 0.05, 0.1)),
    "learnergy": Entrant("learnergy", (0.02, 0.05, 0.1)),
}


@dataclass
class Point:
    """What a learner had learnt after some time: nats of held-out images, and how sure they are."""

    seconds: float
    n_updates: int
    forward: float
    reverse: float
    effective_sample_size: float

    @property
    def nats(self) -> float:
        """The mean of both estimates, which err to different sides; nothing good if not finite."""
        mean = 0.5 * (self.forward + self.reverse)
        return mean if math.isfinite(mean) else -math.inf


Judge = Callable[[Stand], Point]


def judge_by(train: Rows, held_out: Rows, n_temperatures: int) -> Judge:
    """An estimate of the mean log-likelihood of held-out images."""
    base = Bernoulli().base_bias(train)
    density = jax.jit(lambda machine, rows: -machine.free_energy(rows).mean())

    def judge(stand: Stand) -> Point:
        machine = _machine(stand.parameters)
        log_z = log_partition(
            jax.random.key(0), machine, base, n_chains=100, n_temperatures=n_temperatures
        )
        score = float(density(machine, held_out))
        estimates = score - log_z.value, score - log_z.reverse
        size = log_z.effective_sample_size
        return Point(stand.seconds, stand.n_updates, *estimates, size)

    return judge


def _machine(parameters: Parameters) -> Machine:
    weights, visible_bias, hidden_bias = parameters
    return Machine(DenseCoupling(weights), visible_bias, hidden_bias)


def race(
    contenders: Mapping[str, Contender], judge: Judge, targets: Sequence[float], budget: float
) -> dict[str, dict[str, Any]]:
    """What each contender reaches within a budget of seconds, and when it passes the targets."""
    stands: dict[str, list[Stand]] = {name: [] for name in contenders}
    judged: dict[str, dict[int, Point]] = {name: {} for name in contenders}
    turns = _grid(budget)
    with staged(contenders) as ask:
        for number, seconds in enumerate(turns):
            for name in list(contenders):
                points = judged[name]
                if points and points[max(points)].nats >= max(targets):
                    continue
                stands[name].append(ask(name, seconds))
            if number % TURNS_PER_DOUBLING == 0 or number == len(turns) - 1:
                for name, found in stands.items():
                    if len(found) == number + 1:
                        judged[name][number] = judge(found[number])
    for name, points in judged.items():
        for target in targets:
            _narrow(points, stands[name], target, judge)
    return {
        name: {
            "first": stands[name][0].first,
            "crossings": [crossing(points.values(), target) for target in targets],
            "points": [asdict(points[number]) for number in sorted(points)],
        }
        for name, points in judged.items()
    }


def _grid(budget: float) -> list[float]:
    """When turns end: ever longer ones, up to the budget."""
    n_turns = math.ceil(TURNS_PER_DOUBLING * math.log2(budget / FIRST_TURN))
    ends = [FIRST_TURN * 2.0 ** (n / TURNS_PER_DOUBLING) for n in range(max(n_turns, 0))]
    return [*ends, budget]


def _narrow(points: dict[int, Point], stands: Sequence[Stand], target: float, judge: Judge) -> None:
    """Judge what lies between the first two judgements that a target lies between."""
    above = next((n for n in sorted(points) if points[n].nats >= target), None)
    below = max((n for n in points if above is not None and n < above), default=None)
    while above is not None and below is not None and above - below > 1:
        middle = (above + below) // 2
        points[middle] = judge(stands[middle])
        if points[middle].nats >= target:
            above = middle
        else:
            below = middle


def crossing(points: Iterable[Point], target: float) -> float | None:
    """The first time at which a target is passed, linear in its logarithm between points."""
    before = None
    for point in sorted(points, key=lambda point: point.seconds):
        if point.nats >= target:
            if before is None or not math.isfinite(before.nats):
                return point.seconds
            share = (target - before.nats) / (point.nats - before.nats)
            return float(before.seconds * (point.seconds / before.seconds) ** share)
        before = point
    return None


def choose(
    entrant: Entrant, judge: Judge, n_images: int, targets: Sequence[float], budget: float
) -> dict[str, Any]:
    """The rate that passes most targets, and the last of those first; else the one that is best."""
    contenders = {
        str(rate): entrant.contender(rate, n_images, CHOICE_SEED) for rate in entrant.rates
    }
    found = race(contenders, judge, targets, budget)

    def merit(name: str) -> tuple[float, ...]:
        passed = [seconds for seconds in found[name]["crossings"] if seconds is not None]
        best = max(Point(**point).nats for point in found[name]["points"])
        return len(passed), -max(passed, default=0.0), best

    return {"rate": float(max(found, key=merit)), "tried": found}


def summary(rounds: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What all rounds say of each learner: quartiles of times, and of speeds to the best peer's."""
    peers = [name for name in rounds[0] if ENTRANTS[name].learner != "ours"]
    n_targets = len(next(iter(rounds[0].values()))["crossings"])

    def times(name: str, target: int, first: bool = False) -> list[float] | None:
        """Seconds of each round; None if a round missed the target."""
        runs = [entries[name] for entries in rounds]
        found = [run["crossings"][target] for run in runs]
        if None in found:
            return None
        return [time + first * run["first"] for time, run in zip(found, runs, strict=True)]

    def speed(name: str, target: int, first: bool = False) -> list[float] | None:
        """Ratios of times, round by round: the best peer's, divided by its own."""
        own, others = times(name, target, first), [times(peer, target, first) for peer in peers]
        reached = [other for other in others if other is not None]
        return ratios(np.min(reached, axis=0), own) if own and reached else None

    found = {}
    for name in rounds[0]:
        ends = [Point(**entries[name]["points"][-1]) for entries in rounds]
        seconds = [times(name, target) for target in range(n_targets)]
        found[name] = {
            "rate": chosen[name]["rate"],
            "milliseconds": quartiles([1e3 * end.seconds / end.n_updates for end in ends]),
            "seconds": [None if each is None else quartiles(each) for each in seconds],
            "speed": [speed(name, target) for target in range(n_targets)],
            "first": quartiles([entries[name]["first"] for entries in rounds]),
            "speed_with_first": speed(name, n_targets - 1, first=True),
            "end": [quartiles([end.nats for end in ends]), quartiles([e.seconds for e in ends])],
            "gap": max(abs(end.forward - end.reverse) for end in ends),
        }
    return found


def show(results: Mapping[str, Any], console: Console) -> None:
    """One row for each learner."""
    n_rounds, targets = len(results["rounds"]), results["setting"]["targets"]
    title = f"Seconds of training to a log-likelihood of test images; {n_rounds} rounds"
    table = Table(title=title, title_justify="left")
    aims = [text for target in targets for text in (f"to {target:g}", "speed")]
    headings = [
        "learner",
        "rate",
        "ms an update",
        *aims,
        "first call",
        "speed with it",
        "at the end",
    ]
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for name, found in results["learners"].items():
        cells = [name, f"{found['rate']:g}", _spread(found["milliseconds"])]
        for seconds, speed in zip(found["seconds"], found["speed"], strict=True):
            cells += [_spread(seconds), _spread(speed, 2)]
        cells += [f"{found['first'][1]:.1f}", _spread(found["speed_with_first"], 2)]
        nats, seconds = (values[1] for values in found["end"])
        table.add_row(*cells, f"{nats:.1f} after {seconds:.0f} s")
    console.print(table)


def _spread(values: Sequence[float] | None, digits: int = 1) -> str:
    if values is None:
        return "-"
    low, middle, high = (f"{value:.{digits}f}" for value in values)
    return middle if low == high else f"{middle} ({low}-{high})"


def main() -> None:
    """Choose rates, race as often as asked for, and print the table; all is kept on the way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="LEARNER", help=f"of {', '.join(ENTRANTS)}")
    parser.add_argument("--rounds", type=int, default=5, help="trainings of each, one seed each")
    parser.add_argument("--targets", type=float, nargs="+", default=[-100.0, -90.0])
    parser.add_argument("--budget", type=float, default=120.0, help="seconds of each training")
    parser.add_argument("--choice-budget", type=float, default=30.0, help="the same for each rate")
    parser.add_argument(
        "--images", type=int, default=60_000, help="the first of those for training"
    )
    parser.add_argument("--temperatures", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="a JSON file; what it has is not repeated")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in ENTRANTS]:
        parser.error(f"LEARNER: expected one of {', '.join(ENTRANTS)}, got {unknown[0]}")
    entrants = {name: ENTRANTS[name] for name in asked.names or ENTRANTS}
    targets = sorted(asked.targets)
    setting = {"learners": list(entrants), "targets": targets, "images": asked.images}
    setting |= {"budget": asked.budget, "choice_budget": asked.choice_budget}
    setting |= {"temperatures": asked.temperatures}
    results: dict[str, Any] = {
        "machine": {"threads": THREADS, "processor": platform.processor()},
        **{"setting": setting, "chosen": {}, "rounds": []},
    }
    if asked.out is not None and asked.out.exists():
        results = json.loads(asked.out.read_text(encoding="utf-8"))
        if results["setting"] != setting:
            parser.error(f"--out: expected {asked.out} of {setting}, got {results['setting']}")
    train, test = images("train")[: asked.images], images("test")
    console = Console(width=160)

    def keep() -> None:
        if asked.out is not None:
            asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")

    n_learnt = asked.images - min(N_VALIDATED, asked.images // 10)
    judge = judge_by(train[:n_learnt], train[n_learnt:], asked.temperatures)
    for name, entrant in entrants.items():
        if name in results["chosen"]:
            continue
        if len(entrant.rates) == 1:
            results["chosen"][name] = {"rate": entrant.rates[0]}
            continue
        with console.status(f"{name}: one of {entrant.rates}"):
            chosen = choose(entrant, judge, n_learnt, targets, asked.choice_budget)
        results["chosen"][name] = chosen
        console.print(f"{name}: rate {chosen['rate']:g}")
        keep()
    judge = judge_by(train, test, asked.temperatures)
    for seed in range(len(results["rounds"]), asked.rounds):
        contenders = {
            name: entrant.contender(results["chosen"][name]["rate"], asked.images, seed)
            for name, entrant in entrants.items()
        }
        with console.status(f"round {seed + 1} of {asked.rounds}"):
            results["rounds"].append(race(contenders, judge, targets, asked.budget))
        results["learners"] = summary(results["rounds"], results["chosen"])
        keep()
    show(results, console)


if __name__ == "__main__":
    main()
