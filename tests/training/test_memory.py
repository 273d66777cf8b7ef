"""Training on a file twice as large as the memory it may take."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# Eight bytes a number: the same memory, less to compute.
SHAPE, TYPE = (64, 64), np.float64

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from mporbm import MPORBM

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

path, task = sys.argv[1:]
X = np.load(path, mmap_mode="r")
if task == "read":
    X = np.array(X)
else:
    parameters = {"hidden_shape": (2, 2), "rank": 2, "scheme": "su", "learning_rate": 1e-3}
    fitted = MPORBM(**parameters, batch_size=256, n_iter=1, random_state=0).fit(X)
    assert fitted.n_iter_ == 1
print(peak())
"""


def write(path, n_bytes):
    """A file of samples, few of which take room on disk."""
    n_samples = int(n_bytes // (np.prod(SHAPE) * np.dtype(TYPE).itemsize))
    rows = np.lib.format.open_memmap(path, "w+", TYPE, (n_samples, *SHAPE))
    chosen = np.linspace(0, n_samples - 1, 100).astype(int)
    rows[chosen] = np.random.default_rng(0).random((100, *SHAPE)) < 0.5


def peak_memory(path, task):
    """The most memory that a process took at any time, in bytes."""
    command = [sys.executable, "-c", SCRIPT, path, task]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.soak
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="no /proc to read the peak of memory from"
)
def test_a_file_of_twice_the_memory_trains(tmp_path):
    path = tmp_path / "X.npy"
    # Two blocks: what the program, its libraries and the buffers of training need by themselves.
    write(path, 2**25)
    needed = peak_memory(path, "fit")
    # Room for what the allocator keeps (up to a third more while other processes compete) and for
    # the index of the samples, not for the file.
    cap = int(1.5 * needed)
    try:
        write(path, 2 * cap)
        assert peak_memory(path, "fit") < cap
        # The measurement would have shown a copy of the file.
        assert peak_memory(path, "read") > 2 * cap
    finally:
        path.unlink()
