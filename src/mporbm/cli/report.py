"""What commands print: text for people, or one JSON object for programs."""

import json
import sys
from typing import Any

from rich.console import Console


class Report:
    """Facts of a finished command, on the standard output; everything else goes to the other."""

    def __init__(self, quiet: bool, as_json: bool):
        self.as_json = as_json
        self.shown = not (quiet or as_json)
        self.console = Console(highlight=False, soft_wrap=True)

    def finish(self, facts: dict[str, Any], *texts: Any) -> None:
        """Print the facts as JSON, or the texts that say them."""
        if self.as_json:
            json.dump(facts, sys.stdout)
            sys.stdout.write("\n")
        elif self.shown:
            for text in texts:
                self.console.print(text)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it."""
    return "x".join(map(str, shape))
