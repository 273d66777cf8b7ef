"""Progress of `fit` and of inference: bars where rich is installed, else lines of plain text."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress_bar(
    name: str, n_iter: int, shown: bool, headline: str = ""
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Give a function that shows what was watched in an epoch, on a bar with the time left.

    The headline stands above the bar.
    """
    if not shown or jax.process_index() > 0:
        yield lambda entry: None
        return
    with _bar(name, n_iter, "epochs", headline, bar_width=10) as update:
        yield lambda entry: update(entry["epoch"], _watched(entry))


@contextmanager
def sample_bar(name: str, n_samples: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many samples are done, and shows it."""
    if not shown:
        yield lambda n_done: None
        return
    with _bar(name, n_samples, "samples") as update:
        yield lambda n_done: update(n_done, "")


def _watched(entry: dict[str, Any]) -> str:
    """Return what an epoch showed, short enough for terminals of 80 columns."""
    parts = [f"error {entry['reconstruction_error']:.4f}", f"score {entry['score']:.1f}"]
    if "validation_score" in entry:
        parts.append(f"validation {entry['validation_score']:.1f}")
    if "ranks" in entry:
        parts.append(f"ranks {','.join(map(str, entry['ranks']))}")
    return "  ".join(parts)


@contextmanager
def _bar(
    name: str, total: int, unit: str, headline: str = "", bar_width: int = 40
) -> Iterator[Callable[[int, str], None]]:
    """Give a function of what is done and a text, which shows both on the standard error."""
    try:
        from rich import progress as bars
        from rich.console import Console
    except ModuleNotFoundError:
        with _lines(name, total, unit, headline) as update:
            yield update
        return
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=bar_width),
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


@contextmanager
def _lines(name: str, total: int, unit: str, headline: str) -> Iterator[Callable[[int, str], None]]:
    """Give the same function without rich: a line every few seconds, and one at the end."""
    last = time.monotonic()

    def update(n_done: int, text: str) -> None:
        nonlocal last
        if n_done >= total or time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            print(f"{name}: {n_done}/{total} {unit}  {text}".rstrip(), file=sys.stderr)

    if headline:
        print(headline, file=sys.stderr)
    yield update
