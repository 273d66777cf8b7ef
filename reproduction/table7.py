"""Table 7: image denoising, PSNR of all machines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mporbm.evaluation.run_cache import Outcome

from . import generation
from .runs import Run
from .scale import Scale

PAPER = {
    "RBM": {"10%": 13.55, "15%": 12.90, "20%": 11.88},
    "MvRBM": {"10%": 11.82, "15%": 10.26, "20%": 9.23},
    "MPORBM": {"10%": 13.49, "15%": 13.24, "20%": 12.95},
}

runs = generation.runs


def section(scale: Scale, outcome: Callable[[Run], Outcome], folder: Path) -> dict[str, Any]:
    """The table and what it confirms, with a picture."""
    titles = {f"{noise:.0%}": f"{100 * noise:.0f} % noise" for noise in generation.NOISES}
    figure = generation.strips_figure(
        "table7-noise",
        "20%",
        "Test images with 20 % salt & pepper noise, and what the machines make of them (posterior "
        "mean, first choice of training images).",
        scale,
        outcome,
        folder,
    )
    verdicts = generation.verdicts(titles, PAPER, scale, outcome)
    return {
        "name": "table7",
        "title": "Table 7. Image denoising",
        "text": [
            "The same machines clean test images with salt & pepper noise. They know its density: "
            "a pixel is wrong with half of that probability, which the posterior mean takes into "
            "account. One pass up and down does not."
        ],
        "tables": [generation.table("table7-psnr", titles, PAPER, scale, outcome)],
        "figures": [figure],
        "verdicts": verdicts,
        "summary": [
            {**sentence, "text": f"Denoising, {sentence['text']}"}
            for sentence in verdicts
            if "the paper's" in sentence["text"]
        ],
    }
