"""Sentences that say plainly what was confirmed."""

from collections.abc import Sequence
from typing import Any

from mporbm.evaluation.statistics import Interval, interval, paired

Verdict = dict[str, Any]
MINUS = "\N{MINUS SIGN}"


def verdict(holds: bool | None, text: str) -> Verdict:
    """A sentence, and whether it is good news; None if the numbers do not tell."""
    return {"holds": holds, "text": text}


def number(value: float, digits: int = 1) -> str:
    """A number as it is printed."""
    # Rounded before its sign is asked for, so that nothing is minus zero.
    rounded = round(value, digits)
    return f"{MINUS if rounded < 0 else ''}{abs(rounded):.{digits}f}"


def with_interval(found: Interval, unit: str, digits: int = 1) -> str:
    """A mean and its interval, if there is one, in words."""
    mean, low, high = (number(value, digits) for value in found[:3])
    return f"{mean} {unit}" + ("" if found.n < 2 else f" ({low} to {high})")


def compare(
    first: str,
    second: str,
    values: Sequence[float],
    others: Sequence[float],
    unit: str,
    *,
    lower_is_better: bool = True,
    digits: int = 1,
) -> Verdict:
    """Tell whether the first of two is better, split by split.

    Only an interval on one side of zero decides; for anything else the question is open.
    """
    difference = paired(values, others)
    sign = 1.0 if lower_is_better else -1.0
    low, high = sorted((sign * difference.low, sign * difference.high))
    holds = None
    if difference.n > 1 and high < 0.0:
        holds = True
    elif difference.n > 1 and low > 0.0:
        holds = False
    outcome = {True: "better", False: "worse", None: "no clear difference"}[holds]
    if difference.n < 2:
        outcome = "one run cannot tell"
    shown = with_interval(difference, unit, digits)
    return verdict(holds, f"{first} {MINUS} {second} = {shown}: {outcome}.")


def reaches(
    name: str,
    values: Sequence[float],
    target: float,
    unit: str,
    whose: str,
    *,
    lower_is_better: bool = True,
    digits: int = 1,
) -> Verdict:
    """Tell whether the mean is as good as a number that was given."""
    found = interval(values)
    holds = found.mean <= target if lower_is_better else found.mean >= target
    relation = "at or below" if lower_is_better else "at or above"
    return verdict(
        holds,
        f"{name}: {with_interval(found, unit, digits)} is {'' if holds else 'not '}{relation} "
        f"{whose} {number(target, 2)} {unit}.",
    )
