"""Time to quality: seconds of training until MNIST's test images are as likely as asked for.

All 60,000 training images, thresholded at 127. Learners take turns: each learns up to the next
second of a geometric grid, in a process of its own, while all others wait (`contest`, `learners`).
What each has learnt by then is judged by one and the same estimate of the log-likelihood, annealed
importance sampling forwards and backwards, of which the mean counts; the clock stands still
meanwhile. Who is above all targets retires. The time of a target is interpolated between the last
judgement below and the first above it.

The learning rate of each is chosen among three before that, within the same time: learners on the
first 55,000 images, judged by the last 5,000, with another seed. *rbms* has six choices in two
rows: at a constant rate its last parameters keep moving, and it averages none.

    MPORBM_DATA=... python benchmarks/quality.py --out quality.json
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
FAR = 15.0
"""Nats below a target at which a rough estimate will do."""
LARGE, SMALL = {"hidden_shape": (20, 25), "rank": 40}, {"hidden_shape": (16, 16), "rank": 40}


@dataclass(frozen=True)
class Entrant:
    """A learner of `learners.KINDS`, what it is built with, and the options to choose from."""

    learner: str
    choices: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def contender(self, choice: Mapping[str, Any], n_images: int, seed: int) -> Contender:
        """The learner by one of its choices."""
        arguments = {"learner": self.learner, "n_images": n_images, "seed": seed}
        return Contender(
            "learners", "prepare", {**arguments, "options": {**self.options, **choice}}
        )


def _rates(*rates: float) -> tuple[Mapping[str, Any], ...]:
    return tuple({"learning_rate": rate} for rate in rates)


FALLING = tuple(
    {"learning_rate": rate, "n_updates": n_updates}
    for rate, n_updates in ((4.0, 1200), (2.0, 1800), (2.0, 2400))
)
ENTRANTS = {
    "our RBM 784 -> 500": Entrant("ours", _rates(1.0, 2.0, 4.0)),
    "our MPORBM 28x28 -> 20x25, rank 40": Entrant("ours", _rates(1.0, 2.0, 4.0), LARGE),
    "our MPORBM 28x28 -> 16x16, rank 40": Entrant("ours", _rates(1.0, 2.0, 4.0), SMALL),
    "rbms, falling rate": Entrant("rbms", FALLING),
    "rbms, constant rate": Entrant("rbms", _rates(0.2, 0.6, 2.0)),
    "rbms, its defaults": Entrant("rbms, defaults", _rates(0.01), {"n_gibbs": 100, "batch": 2000}),
    "scikit-learn": Entrant("scikit-learn", _rates(0.01, 0.03, 0.1)),
    "learnergy": Entrant("learnergy", _rates(0.03, 0.1, 0.3)),
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


def judge_by(train: Rows, held_out: Rows, targets: Sequence[float], n_temperatures: int) -> Judge:
    """An estimate of the mean log-likelihood of held-out images.

    With an eighth of the temperatures first, and with all of them unless both directions then say
    that it is more than `FAR` nats below all targets.
    """
    base = Bernoulli().base_bias(train)
    density = jax.jit(lambda machine, rows: -machine.free_energy(rows).mean())

    def estimate(stand: Stand, number: int) -> Point:
        machine = _machine(stand.parameters)
        log_z = log_partition(jax.random.key(0), machine, base, n_chains=100, n_temperatures=number)
        score = float(density(machine, held_out))
        estimates = score - log_z.value, score - log_z.reverse
        return Point(stand.seconds, stand.n_updates, *estimates, log_z.effective_sample_size)

    def judge(stand: Stand) -> Point:
        rough = estimate(stand, max(n_temperatures // 8, 1))
        if max(rough.forward, rough.reverse) < min(targets) - FAR:
            return rough
        return estimate(stand, n_temperatures)

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
                        judged[name][number] = _judged_once(judged[name], found[number], judge)
    for name, points in judged.items():
        for target in targets:
            _narrow(points, stands[name], target, judge)
    return {
        name: {
            "first": stands[name][0].first,
            "crossings": [crossing(points.values(), target) for target in targets],
            "points": [asdict(point) for point in _by_time(points.values())],
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
        points[middle] = _judged_once(points, stands[middle], judge)
        if points[middle].nats >= target:
            above = middle
        else:
            below = middle


def _judged_once(points: Mapping[int, Point], stand: Stand, judge: Judge) -> Point:
    """Judge a stand, unless it is one of before: a long piece may end after several turns."""
    same = (point for point in points.values() if point.seconds == stand.seconds)
    return next(same, None) or judge(stand)


def crossing(points: Iterable[Point], target: float) -> float | None:
    """The first time at which a target is passed, linear in its logarithm between points."""
    before = None
    for point in _by_time(points):
        if point.nats >= target:
            if before is None or not math.isfinite(before.nats):
                return point.seconds
            share = (target - before.nats) / (point.nats - before.nats)
            return float(before.seconds * (point.seconds / before.seconds) ** share)
        before = point
    return None


def _by_time(points: Iterable[Point]) -> list[Point]:
    return sorted({point.seconds: point for point in points}.values(), key=lambda p: p.seconds)


def choose(
    entrant: Entrant, judge: Judge, n_images: int, targets: Sequence[float], budget: float
) -> dict[str, Any]:
    """What passes most targets, and the last of those first; else what is best at any time."""
    named = {described(choice): choice for choice in entrant.choices}
    contenders = {
        name: entrant.contender(choice, n_images, CHOICE_SEED) for name, choice in named.items()
    }
    found = race(contenders, judge, targets, budget)

    def merit(name: str) -> tuple[float, ...]:
        passed = [seconds for seconds in found[name]["crossings"] if seconds is not None]
        best = max(Point(**point).nats for point in found[name]["points"])
        return len(passed), -max(passed, default=0.0), best

    return {"options": named[max(found, key=merit)], "tried": found}


def described(choice: Mapping[str, Any]) -> str:
    """A rate, and within how many updates it falls to 0 if it does."""
    rate, n_updates = choice["learning_rate"], choice.get("n_updates")
    return f"{rate:g}" if n_updates is None else f"{rate:g}, to 0 in {n_updates}"


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
            "rate": described(chosen[name]["options"]),
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
        cells = [name, found["rate"], _spread(found["milliseconds"])]
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
    parser.add_argument("--rounds", type=int, default=3, help="trainings of each, one seed each")
    parser.add_argument("--targets", type=float, nargs="+", default=[-100.0, -90.0])
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of each training")
    parser.add_argument(
        "--images", type=int, default=60_000, help="the first of those for training"
    )
    parser.add_argument("--temperatures", type=int, default=800)
    parser.add_argument("--out", type=Path, help="a JSON file; what it has is not repeated")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in ENTRANTS]:
        parser.error(f"LEARNER: expected one of {', '.join(ENTRANTS)}, got {unknown[0]}")
    entrants = {name: ENTRANTS[name] for name in asked.names or ENTRANTS}
    targets = sorted(asked.targets)
    setting = {"learners": list(entrants), "targets": targets, "images": asked.images}
    setting |= {"budget": asked.budget, "temperatures": asked.temperatures}
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
    judge = judge_by(train[:n_learnt], train[n_learnt:], targets, asked.temperatures)
    for name, entrant in entrants.items():
        if name in results["chosen"]:
            continue
        if len(entrant.choices) == 1:
            results["chosen"][name] = {"options": entrant.choices[0]}
            continue
        with console.status(f"{name}: one of {[described(each) for each in entrant.choices]}"):
            chosen = choose(entrant, judge, n_learnt, targets, asked.budget)
        results["chosen"][name] = chosen
        console.print(f"{name}: rate {described(chosen['options'])}")
        keep()
    judge = judge_by(train, test, targets, asked.temperatures)
    for seed in range(len(results["rounds"]), asked.rounds):
        contenders = {
            name: entrant.contender(results["chosen"][name]["options"], asked.images, seed)
            for name, entrant in entrants.items()
        }
        with console.status(f"round {seed + 1} of {asked.rounds}"):
            results["rounds"].append(race(contenders, judge, targets, asked.budget))
        results["learners"] = summary(results["rounds"], results["chosen"])
        keep()
    show(results, console)


if __name__ == "__main__":
    main()
