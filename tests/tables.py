"""Tables of cases that one test goes through, instead of a test for each."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_each(check: Callable[..., Any], rows: Iterable[tuple[Any, ...]]) -> None:
    """Call `check` with every row; in the end, fail with the errors of all rows that failed.

    An error says which row it is of: its number, and what it holds.
    """
    rows, failures = list(rows), []
    assert rows, "expected a table with rows, got none"
    for number, row in enumerate(rows):
        try:
            check(*row)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"row {number}: {row!r}"[:500])
            failures.append(error)
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} of {len(rows)} rows failed", failures)


def check_messages(cases: Iterable[tuple[Callable[[], Any], type[Exception], str]]) -> None:
    """Demand that every call raises its error with a message that matches."""
    check_each(_check_message, cases)


def _check_message(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert re.search(message, str(caught.value)), f"expected {message!r}, got {caught.value}"
