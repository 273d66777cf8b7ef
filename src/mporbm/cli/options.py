"""Arguments and options that several commands share, and what commands print."""

import dataclasses
import functools
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, get_type_hints

import typer
from rich.console import Console, RenderableType
from rich.status import Status

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
OutputModel = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="MODEL", help="The model file to write (.safetensors)."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="Makes the random numbers, and so the result, repeatable."),
]
SampleSteps = Annotated[
    int | None,
    typer.Option(
        "--n-gibbs",
        help="Gibbs steps of each chain.",
        show_default="100 from chains of the training, 1000 without",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw the first ones (.png, .svg or .pdf)."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text, for scripts.")
]


@dataclasses.dataclass(frozen=True)
class Report:
    """Facts of a finished command, on the standard output; everything else goes to the other."""

    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")
    ] = False
    as_json: Json = False

    @property
    def shown(self) -> bool:
        """Whether there is text for people."""
        return not (self.quiet or self.as_json)

    def note(self, text: str) -> None:
        """Say something that is not a result."""
        if self.shown:
            print(text, file=sys.stderr)

    def busy(self, text: str) -> AbstractContextManager[Status | None]:
        """Show on a terminal that something takes its time."""
        return Console(stderr=True).status(text) if self.shown else nullcontext()

    def finish(self, facts: Mapping[str, object], *texts: RenderableType) -> None:
        """Print the facts as JSON, or the texts that say them."""
        if self.as_json:
            print(json.dumps(_finite(facts), allow_nan=False))
        elif self.shown:
            # Names of files are no markup.
            console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
            for text in texts:
                console.print(text)


def _finite(value: object) -> object:
    """Put None in place of infinity and NaN, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return value if not isinstance(value, float) or math.isfinite(value) else None


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it."""
    return "x".join(map(str, shape))


def flattened(
    command: Callable[..., None], more: Iterable[inspect.Parameter] = ()
) -> Callable[..., None]:
    """Return a command whose dataclass parameters are replaced by their fields.

    Typer then sees each field as an option. The parameters in `more`, passed on as ``**options``,
    come after the required ones.
    """
    groups: dict[str, type] = {}
    found = []
    for parameter in inspect.signature(command).parameters.values():
        kind = parameter.annotation
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            groups[parameter.name] = kind
            hints = get_type_hints(kind, include_extras=True)
            fields = inspect.signature(kind).parameters.values()
            found += [field.replace(annotation=hints[field.name]) for field in fields]
        elif parameter.kind is not parameter.VAR_KEYWORD:
            found.append(parameter)
    required = [parameter for parameter in found if parameter.default is parameter.empty]
    ordered = [*required, *more, *(p for p in found if p.default is not p.empty)]
    parameters = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in ordered]

    @functools.wraps(command)
    def call(**values: object) -> None:
        for name, kind in groups.items():
            fields = inspect.signature(kind).parameters
            values[name] = kind(**{field: values.pop(field) for field in fields})
        command(**values)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
