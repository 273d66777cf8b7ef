"""Fields of a MATLAB 5 file that nobody vouches for, read by SciPy in a process of its own.

SciPy's reader takes as much memory as a file states, and some broken files end its process: one in
twenty files with a few changed bytes did, with SciPy 1.17. Files whose hash was checked are read by
``scipy.io.loadmat`` directly.
"""

import io
import os
import subprocess
import sys
import zipfile

import numpy as np
from numpy.typing import NDArray

from mporbm.datasets.formats import Blob

MOST_MEMORY = 2**31
"""Bytes that the reading process may take; DrivFace.mat needs some 100 MB."""
MOST_SECONDS = 60.0
READER = """
import io, resource, sys

most_memory, variable, *fields = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (int(most_memory), int(most_memory)))
import numpy, scipy.io

found = scipy.io.loadmat(io.BytesIO(sys.stdin.buffer.read()), variable_names=[variable])[variable]
arrays = io.BytesIO()
numpy.savez(arrays, **{name: found[name].item() for name in fields})
sys.stdout.buffer.write(arrays.getvalue())
"""


def read_struct(blob: Blob, variable: str, *fields: str) -> dict[str, NDArray[np.generic]]:
    """Read numeric fields of a struct; whatever is wrong with the file is a ValueError."""
    expected = f"a MATLAB 5 file with a struct {variable} of fields {' and '.join(fields)}"
    # With one thread, or the memory of others would count.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        reader = subprocess.run(
            [sys.executable, "-I", "-c", READER, str(MOST_MEMORY), variable, *fields],
            input=blob.content,
            capture_output=True,
            timeout=MOST_SECONDS,
            env=environment,
        )
        if reader.returncode:
            said = reader.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(said[-1] if said else f"its reader ended by {-reader.returncode}")
        with np.load(io.BytesIO(reader.stdout), allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, zipfile.BadZipFile, subprocess.TimeoutExpired) as error:
        raise ValueError(f"{blob.label}: expected {expected}: {error}") from error
