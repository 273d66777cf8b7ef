"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file (.safetensors) that `fit` wrote.")
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Samples: a .npy file, one array of a .npz file (FILE.npz:NAME if it has several), a "
        "zarr store (.zarr), a PNG image or a folder of them, in the order of their names.",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="OUT",
        help="Where to write: a .npy file, or, without a suffix, a folder of PNG images.",
    ),
]
OutputArray = Annotated[
    Path, typer.Option("--out", "-o", metavar="OUT", help="The .npy file to write.")
]
OutputModel = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="MODEL", help="The model file to write (.safetensors)."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text, for scripts.")
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Makes the random numbers, and so the result, repeatable."),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw the first ones (.png, .svg or .pdf)."),
]
Method = Annotated[
    Literal["gibbs", "mean-field", "reconstruct"],
    typer.Option(
        help="gibbs: posterior mean along Markov chains; mean-field: a fast approximation; "
        "reconstruct: one pass up and down, as in the paper."
    ),
]
NGibbs = Annotated[int, typer.Option(help="Gibbs steps of each chain.")]
Binary = Annotated[
    bool, typer.Option("--binary", help="Write the likelier of 0 and 1 instead of probabilities.")
]
NSamples = Annotated[
    int | None,
    typer.Option(
        help="Write this many plausible versions of each sample, (n, n_samples, ...), instead of "
        "their mean."
    ),
]
Std = Annotated[
    Path | None,
    typer.Option(
        "--std", metavar="FILE", help="Also write the standard deviation of each unit (.npy)."
    ),
]
Original = Annotated[
    str | None,
    typer.Option(
        "--original",
        metavar="DATA",
        help="The true samples, to tell the peak signal-to-noise ratio (PSNR) and to draw.",
    ),
]
