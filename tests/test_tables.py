"""Tables of cases miss no row that fails."""

import pytest

from tables import check_each, check_messages


def test_every_bad_row_is_named():
    def check(number):
        assert number % 2 == 0

    check_each(check, [(2,), (4,)])
    with pytest.raises(BaseExceptionGroup, match="2 of 3 rows failed") as failed:
        check_each(check, [(2,), (3,), (5,)])
    notes = [error.__notes__[-1] for error in failed.value.exceptions]
    assert notes == ["row 1: (3,)", "row 2: (5,)"]


def test_a_call_without_its_message_fails():
    def refuse():
        raise ValueError("rank=0: expected more")

    check_messages([(refuse, ValueError, "rank=0")])
    bad = [(refuse, ValueError, "rank=1"), (refuse, TypeError, "rank"), (int, ValueError, "")]
    for case in bad:
        with pytest.raises(BaseExceptionGroup, match="1 of 1 rows failed"):
            check_messages([case])


def test_a_table_has_rows():
    with pytest.raises(AssertionError, match="expected a table with rows"):
        check_each(print, [])
