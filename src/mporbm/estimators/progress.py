"""Progress bars: epochs of `fit`, samples of inference."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(
    name: str, n_iter: int, shown: bool, headline: str = ""
) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that shows what an epoch showed, on a bar with the time left.

    The headline stands above the bar.
    """
    if not shown or jax.process_index() > 0:
        yield lambda entry: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[shown]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        if headline:
            progress.console.print(headline, highlight=False)
        task = progress.add_task(name, total=n_iter, shown="")

        def show(entry: dict[str, Any]) -> None:
            # Short enough for terminals of 80 columns.
            parts = [f"error {entry['reconstruction_error']:.4f}", f"score {entry['score']:.1f}"]
            if "validation_score" in entry:
                parts.append(f"validation {entry['validation_score']:.1f}")
            if "ranks" in entry:
                parts.append(f"ranks {','.join(map(str, entry['ranks']))}")
            progress.update(task, completed=entry["epoch"], shown="  ".join(parts))

        yield show


@contextmanager
def sample_bar(name: str, n_samples: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """A function that is told how many samples are done, and shows it."""
    if not shown:
        yield lambda n_done: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("samples"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(name, total=n_samples)
        yield lambda n_done: progress.update(task, completed=n_done)
