"""Outcomes of runs as files whose names are a hash of what was asked."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atomic import write_text

Outcome = dict[str, Any]
"""What a run found, as JSON can hold it, with its time in "seconds"."""


def outcome_path(folder: Path, kind: str, asked: Mapping[str, object]) -> Path:
    """Name the file of an outcome by a hash of what was asked, in any order."""
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def read_outcome(path: Path) -> Outcome | None:
    """Read the outcome that was kept before; None if there is none that can be understood."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        found: Outcome = {**kept["outcome"], "seconds": float(kept["seconds"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # A file that cannot be understood is made again.
        return None
    return found


def write_outcome(
    path: Path, about: Mapping[str, object], outcome: Mapping[str, object], seconds: float
) -> None:
    """Write what was found, beside what it is about."""
    kept = {**about, "seconds": round(seconds, 2), "outcome": outcome}
    write_text(path, json.dumps(kept, allow_nan=False))
