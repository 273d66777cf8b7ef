"""Variables of MATLAB 5 files, read by SciPy.

SciPy trusts the sizes that a file states and can end the process on a malicious one, so this is
for files whose hash was checked (Alphadigits), or that users have put in place themselves
(DrivFace.mat, of which no hash is known).
"""

import io
import struct
import zlib
from typing import Any

from mporbm.datasets.archives import Blob

MOST_BYTES = 2**27
"""The longest file that is read; DrivFace.mat in double precision has a quarter of it."""


def read_mat(blob: Blob, *names: str) -> dict[str, Any]:
    """Read the variables of these names; a ValueError says what is wrong with the file."""
    from scipy.io import loadmat

    if len(blob.content) > MOST_BYTES:
        raise ValueError(
            f"{blob.label}: expected a MATLAB 5 file of at most {MOST_BYTES} bytes, got "
            f"{len(blob.content)}."
        )
    try:
        variables: dict[str, Any] = loadmat(io.BytesIO(blob.content), variable_names=names)
    except (
        # What SciPy raises for broken files.
        *(ArithmeticError, EOFError, LookupError, MemoryError, NotImplementedError, OSError),
        *(TypeError, ValueError, struct.error, zlib.error),
    ) as error:
        raise ValueError(f"{blob.label}: expected a MATLAB 5 file: {error}") from error
    if absent := [name for name in names if name not in variables]:
        raise ValueError(f"{blob.label}: expected variables {names}, but it lacks {absent}.")
    return variables
