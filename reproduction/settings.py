"""The settings of the paper's Algorithm 1, which are not the defaults of the estimators."""

from typing import Any

PAPER: dict[str, Any] = {
    "rule": "plain",
    "negative_phase": "cd",
    "schedule": "constant",
    "momentum": 0.5,
}
"""CD-1 with momentum at a constant rate."""
