"""Outcomes of runs as files whose names are a hash of what was asked."""

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Outcome = dict[str, Any]
"""What a run found, as JSON can hold it, with its time in "seconds"."""


def outcome_path(folder: Path, kind: str, asked: Mapping[str, Any]) -> Path:
    """The file of the outcome of what was asked, in any order."""
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    return folder / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def read_outcome(path: Path) -> Outcome | None:
    """What was found before, if it was."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        found: Outcome = {**kept["outcome"], "seconds": float(kept["seconds"])}
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        # A file that cannot be understood is made again.
        return None
    return found


def write_outcome(
    path: Path, about: Mapping[str, Any], outcome: Mapping[str, Any], seconds: float
) -> None:
    """Keep what was found, beside what it is about."""
    kept = {**about, "seconds": round(seconds, 2), "outcome": outcome}
    write_text(path, json.dumps(kept, allow_nan=False))


def write_text(path: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
