"""Tables of log-likelihoods, and what they tell about machines of equal sizes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mporbm.evaluation.run_cache import Outcome
from mporbm.evaluation.statistics import cell

from .densities import Density, Design
from .report.numerals import THIN_SPACE
from .verdicts import Verdict, compare, number, verdict

Found = Mapping[Design, Sequence[Outcome]]
"""The outcomes of each machine, seed by seed."""
FEWEST_EFFECTIVE = 10.0
"""The least effective sample size of a likelihood that is to be trusted."""
EQUAL = 0.03
"""How much numbers of weights that are called equal may differ, of the larger one."""
COLUMNS = [
    *("weights", "hidden units", "test", "forwards", "backwards", "training"),
    *("ESS", "seconds"),
]
ELSEWHERE = "from a paper, or older"
"""The column of what was not measured here, which takes no part in the comparison."""


def trusted(outcomes: Sequence[Outcome]) -> bool:
    """Whether the likelihoods of all seeds are to be trusted."""
    return bool(_smallest(outcomes) >= FEWEST_EFFECTIVE)


def values(outcomes: Sequence[Outcome], name: str) -> list[float]:
    """One number of each seed."""
    return [outcome[name] for outcome in outcomes]


def mean(outcomes: Sequence[Outcome], name: str) -> float:
    """The mean of one number over the seeds."""
    return float(np.mean(values(outcomes, name)))


def table(name: str, density: Density, found: Found) -> tuple[dict[str, Any], list[Verdict]]:
    """The table of a data set, and those of its verdicts that belong into a summary."""
    pairs = [(*pair, "weights") for pair in equal_weights(found)]
    pairs += [(*pair, "hidden units") for pair in equal_units(found)]
    verdicts = [_beside(found, *pair) for pair in pairs]
    ours = density.shown[0]
    summary = [entry for entry, pair in zip(verdicts, pairs, strict=True) if pair[0] == ours]
    n_train, n_test = next(iter(found.values()))[0]["sizes"]
    return {
        "name": name,
        "caption": f"{density.title}: log-likelihood of {n_test} test samples, {n_train} to learn",
        "unit": "nats",
        "better": "higher",
        "columns": [*COLUMNS, ELSEWHERE] if density.elsewhere else COLUMNS,
        "rows": _rows(density, found),
        "verdicts": [*verdicts, *_per_second(found, ours)],
        "notes": [density.about, *_exact_notes(found), *_stopped_notes(density, found)],
    }, summary


def _rows(density: Density, found: Found) -> list[dict[str, Any]]:
    blank = [None] * bool(density.elsewhere)
    rows: list[dict[str, Any]] = [
        {
            "label": design.label,
            "kind": "ours" if design.kind == "MPORBM" else "machine",
            "cells": [
                {"count": outcomes[0]["parameters"]},
                {"count": design.n_hidden},
                *(_nats(outcomes, name) for name in ("nats", "forward", "reverse", "training")),
                {"count": int(_smallest(outcomes))},
                {"count": round(mean(outcomes, "training_seconds"))},
                *blank,
            ],
        }
        for design, outcomes in found.items()
    ]
    alone = next(iter(found.values()))[0]
    cells = [None, None, {"value": alone["independent"]}, *[None] * 5, *blank]
    rows.append({"label": "independent units", "kind": "baseline", "cells": cells})
    for other in density.elsewhere:
        cells = [{"count": other.n_weights}, {"count": other.n_hidden}, *[None] * 6]
        cells.append({"value": other.nats, "digits": 1, "note": other.note})
        rows.append({"label": other.label, "kind": "baseline", "cells": cells})
    return rows


def _nats(outcomes: Sequence[Outcome], name: str) -> dict[str, Any] | None:
    """A likelihood; as text, which is never the best of its column, if it is not to be trusted."""
    if trusted(outcomes):
        return cell(values(outcomes, name))
    return {"text": number(mean(outcomes, name), 2), "note": "not to be trusted"}


def _smallest(outcomes: Sequence[Outcome]) -> float:
    return min(values(outcomes, "effective_sample_size"))


# Machines of equal sizes


def equal_weights(found: Found) -> list[tuple[Design, Design]]:
    """Every MPORBM with the dense machine of as many weights, if there is one."""

    def gap(first: Design, second: Design) -> float:
        n, m = (found[design][0]["parameters"] for design in (first, second))
        return float(abs(n - m) / max(n, m))

    return _pairs(found, gap)


def equal_units(found: Found) -> list[tuple[Design, Design]]:
    """Every MPORBM with the dense machine of as many hidden units, if there is one."""
    return _pairs(found, lambda first, second: float(first.n_hidden != second.n_hidden))


def _pairs(found: Found, gap: Callable[[Design, Design], float]) -> list[tuple[Design, Design]]:
    dense = [design for design in found if design.kind == "RBM"]
    pairs = []
    for design in found:
        if design.kind == "MPORBM":
            nearest = min(dense, key=lambda other: gap(design, other))
            if gap(design, nearest) <= EQUAL:
                pairs.append((design, nearest))
    return pairs


def _beside(found: Found, first: Design, second: Design, measure: str) -> Verdict:
    """Compare two machines of an equal measure, seed by seed, with the numbers of both."""
    ours, theirs = found[first], found[second]
    sizes = [f"{entry[0]['parameters']:,}".replace(",", THIN_SPACE) for entry in (ours, theirs)]
    return _compared(found, first, second, f"Equal {measure} ({' and '.join(sizes)} weights)")


def _compared(found: Found, first: Design, second: Design, title: str) -> Verdict:
    ours, theirs = (values(found[design], "nats") for design in (first, second))
    better: dict[str, Any] = {"lower_is_better": False, "digits": 2}
    sentence = compare(first.label, second.label, ours, theirs, "nats", **better)
    means = [number(float(np.mean(nats)), 2) for nats in (ours, theirs)]
    text = f"{title}: {means[0]} nats beside {means[1]}; {sentence['text']}"
    if not all(trusted(found[design]) for design in (first, second)):
        return verdict(None, f"{text} An effective sample size is below 10: not to be trusted.")
    return {**sentence, "text": text}


def _per_second(found: Found, ours: Design) -> list[Verdict]:
    """Compare with the best of the dense machines that did not learn for longer."""
    seconds = {design: mean(outcomes, "training_seconds") for design, outcomes in found.items()}
    others = [d for d in found if d.kind == "RBM" and seconds[d] <= seconds[ours]]
    if not others:
        return []
    best = max(others, key=lambda design: mean(found[design], "nats"))
    times = f"{seconds[ours]:.0f} s and {seconds[best]:.0f} s of training"
    return [_compared(found, ours, best, f"Best dense machine within the time ({times})")]


# Notes


def _exact_notes(found: Found) -> list[str]:
    """Say how far annealing is off where log Z is known."""
    known = {
        design.label: max(abs(entry["nats"] - entry["exact"]) for entry in outcomes)
        for design, outcomes in found.items()
        if outcomes[0]["exact"] is not None
    }
    return [
        f"{label}: log Z can be enumerated; annealing is off by {number(error, 2)} nats or less."
        for label, error in known.items()
    ]


def _stopped_notes(density: Density, found: Found) -> list[str]:
    """Say which trainings ended before their last epoch."""
    return [
        f"{design.label}: a training was stopped as diverged after {fewest} epochs."
        for design, outcomes in found.items()
        if (fewest := min(outcome["epochs"] for outcome in outcomes)) not in density.n_iter
    ]
