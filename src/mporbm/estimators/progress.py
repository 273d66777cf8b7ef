"""Progress of `fit` and of inference: a bar where rich is installed, else lines of plain text."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_bar(
    name: str, total: int, unit: str, headline: str = ""
) -> Iterator[Callable[[int, str], None]]:
    """Give a function that shows progress on the standard error; the headline stands above it."""
    try:
        from rich import progress as bars
        from rich.console import Console
    except ModuleNotFoundError:
        if headline:
            print(headline, file=sys.stderr)
        yield _lines(name, total, unit)
        return
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=10),
        bars.MofNCompleteColumn(),
        bars.TextColumn(unit),
        bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[shown]}"),
    )
    with bars.Progress(*columns, console=Console(stderr=True)) as progress:
        if headline:
            progress.console.print(headline, highlight=False)
        task = progress.add_task(name, total=total, shown="")
        yield lambda n_done, text: progress.update(task, completed=n_done, shown=text)


def _lines(name: str, total: int, unit: str) -> Callable[[int, str], None]:
    """Give the same function without rich: a line every few seconds, and one at the end."""
    last = time.monotonic()

    def update(n_done: int, text: str) -> None:
        nonlocal last
        if n_done >= total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"{name}: {n_done}/{total} {unit}  {text}".rstrip(), file=sys.stderr)

    return update


def epoch_text(entry: Mapping[str, Any]) -> str:
    """Return what an epoch showed, short enough for terminals of 80 columns."""
    parts = [f"error {entry['reconstruction_error']:.4f}", f"score {entry['score']:.1f}"]
    if "validation_score" in entry:
        parts.append(f"validation {entry['validation_score']:.1f}")
    if "ranks" in entry:
        parts.append(f"ranks {','.join(map(str, entry['ranks']))}")
    return "  ".join(parts)
