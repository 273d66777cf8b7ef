"""Table 6: image completion, PSNR of all machines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mporbm.evaluation.run_cache import Outcome

from . import generation
from .runs import Run
from .scale import Scale

PAPER = {
    "RBM": {"right": 13.86, "bottom": 13.66},
    "MvRBM": {"right": 12.35, "bottom": 12.38},
    "MPORBM": {"right": 13.79, "bottom": 13.69},
}

runs = generation.runs


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """The table and what it confirms."""
    titles = {"right": "right half given", "bottom": "bottom half given"}
    verdicts = generation.verdicts(titles, PAPER, scale, outcome)
    return {
        "name": "table6",
        "title": "Table 6. Image completion",
        "text": [
            f"Machines that have seen {generation.N_TRAIN} binary MNIST images complete test "
            "images of which one half is given. One pass up and down is the paper's way; the "
            "posterior mean averages p(V | given half) along Gibbs chains, which is what PSNR "
            "rewards. All machines are trained by our rule; weight decay is chosen on other "
            "training images. Two baselines that the paper does not have need no machine.",
        ],
        "tables": [generation.table("table6-psnr", titles, PAPER, scale, outcome)],
        "figures": [],
        "verdicts": verdicts,
        "summary": [
            {**sentence, "text": f"Completion, {sentence['text']}"}
            for sentence in verdicts
            if "the paper's" in sentence["text"]
        ],
    }
