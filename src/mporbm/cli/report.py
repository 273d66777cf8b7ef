"""What commands print: text for people, or one JSON object for programs."""

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console


class Report:
    """Facts of a finished command, on the standard output; everything else goes to the other."""

    def __init__(self, quiet: bool, as_json: bool):
        self.as_json = as_json
        self.shown = not (quiet or as_json)

    def note(self, text: str) -> None:
        """Say something that is not a result."""
        if self.shown:
            print(text, file=sys.stderr)

    def busy(self, text: str) -> AbstractContextManager[Any]:
        """Show on a terminal that something takes its time."""
        return Console(stderr=True).status(text) if self.shown else nullcontext()

    def finish(self, facts: dict[str, Any], *texts: Any) -> None:
        """Print the facts as JSON, or the texts that say them."""
        if self.as_json:
            print(json.dumps(facts))
        elif self.shown:
            # Names of files are no markup.
            console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
            for text in texts:
                console.print(text)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it."""
    return "x".join(map(str, shape))
