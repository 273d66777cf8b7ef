"""Tables of integers in text."""

import io

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.formats import Blob


def read_integers(
    blob: Blob, n_rows: int, n_columns: int, separator: bytes | None = None
) -> NDArray[np.int64]:
    """Read a table of integers in text, one row in each line; blank lines are left out.

    Integers are separated by blanks, or by a `separator`.
    """
    table = np.empty((n_rows, n_columns), np.int64)
    number = 0
    for line in io.BytesIO(blob.content):
        if not (line := line.strip()):
            continue
        # No more than are needed to see that there are too many.
        words = line.split(separator, n_columns)
        if number == n_rows or len(words) != n_columns:
            got = f"{len(words)} in sample {number + 1}" if number < n_rows else "more lines"
            raise ValueError(
                f"{blob.label}: expected {n_columns} integers in each of {n_rows} lines, got "
                f"{got}; it may be cut off."
            )
        try:
            table[number] = np.array(words, np.int64)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{blob.label}: expected integers in text: {error}.") from error
        number += 1
    if number < n_rows:
        raise ValueError(
            f"{blob.label}: expected {n_rows} lines of {n_columns} integers, got {number}; it may "
            f"be cut off."
        )
    return table
