"""Values of the results together with where they stand, so that errors can name the place."""

import math
import numbers
import operator
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Validated(NamedTuple):
    """A value and the expression that leads to it."""

    value: Any
    name: str = "results"

    def error(self, expected: str, got: str | None = None) -> ValueError:
        """An error that says what was expected here."""
        return ValueError(
            f"{self.name}: expected {expected}, got {got or reprlib.repr(self.value)}"
        )

    def mapping(self) -> dict[str, "Validated"]:
        """The entries of a dictionary, whatever their names."""
        if not isinstance(self.value, Mapping):
            raise self.error("a dictionary")
        for key in self.value:
            if not isinstance(key, str):
                raise self.error("names of entries to be text", reprlib.repr(key))
        return {key: Validated(item, f'{self.name}["{key}"]') for key, item in self.value.items()}

    def entries(self, *required: str, optional: tuple[str, ...] = ()) -> dict[str, "Validated"]:
        """The entries of a dictionary with exactly these names; optional ones may be missing."""
        entries = self.mapping()
        for name in required:
            if name not in entries:
                raise self.error(f'an entry "{name}"', ", ".join(entries) or "none")
        # A misspelt name would drop what it holds without a word.
        for name in entries:
            if name not in (*required, *optional):
                raise self.error(f"only the entries {', '.join((*required, *optional))}", name)
        return entries

    def items(self) -> list["Validated"]:
        """The items of a list."""
        if isinstance(self.value, (str, bytes)) or not isinstance(self.value, Sequence):
            raise self.error("a list")
        return [Validated(item, f"{self.name}[{k}]") for k, item in enumerate(self.value)]

    def text(self) -> str:
        """A text, perhaps empty."""
        if not isinstance(self.value, str):
            raise self.error("text")
        return self.value

    def filled(self) -> str:
        """A text that says something."""
        if not self.text().strip():
            raise self.error("text that is not empty")
        return self.text()

    def choice(self, *options: Any) -> Any:
        """One of the options."""
        if not any(type(self.value) is type(o) and self.value == o for o in options):
            raise self.error(" or ".join("null" if o is None else repr(o) for o in options))
        return self.value

    def number(self) -> float:
        """A finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, numbers.Real):
            raise self.error("a number")
        if not math.isfinite(self.value):
            raise self.error("a finite number, or null if there is none")
        return float(self.value)

    def integer(self, minimum: int) -> int:
        """An integer of at least `minimum`."""
        try:
            number = operator.index(self.value)
        except TypeError:
            raise self.error("an integer") from None
        if isinstance(self.value, bool) or number < minimum:
            raise self.error(f"an integer of at least {minimum}")
        return number
