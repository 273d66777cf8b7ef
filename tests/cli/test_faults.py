"""Commands whose disk is full, whose folder goes, or whose file another run uses."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import mporbm
from mporbm.atomic import locked
from trainings import progress

OPTIONS = ["--hidden-shape", "8,8", "--rank", "64", "--scheme", "su", "--batch-size", "10"]
OPTIONS += ["--n-iter", "6", "--seed", "0", "--quiet"]
# The plain rule: its checkpoints have no mean and no chains, and their size is known.
OPTIONS += ["--rule", "plain", "--negative-phase", "cd", "--schedule", "constant"]
OPTIONS += ["--momentum", "0.5", "--learning-rate", "0.01"]


@pytest.fixture
def samples(tmp_path, rng):
    path = tmp_path / "samples.npy"
    np.save(path, rng.random((20, 16, 16)) < 0.4)
    return path


SMALL_DISK = """
set -u
mount -t tmpfs -o size="$1" none "$2" || exit 77
cd "$2"
"$3" -m mporbm fit "$4" -o m.safetensors $5
echo "code $?"
ls -A
cp m.safetensors.checkpoint "$6/full"
mount -o remount,size=64m none "$2"
"$3" -m mporbm fit "$4" -o m.safetensors $5
echo "code $?"
ls -A
cp m.safetensors "$6/resumed"
"""


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint(samples, tmp_path):
    """On a disk with room for two checkpoints, not for three; with more room it goes on."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    for folder in (disk, kept):
        folder.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare, to mount a disk without being root")
    command = ["unshare", "-Urm", "sh", "-c", SMALL_DISK, "sh"]
    command += ["640k", disk, sys.executable, samples, " ".join(OPTIONS), kept]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if ended.returncode == 77 or "unshare failed" in ended.stderr:
        pytest.skip(f"may not mount a disk here: {ended.stderr.strip()}")
    assert ended.stdout.split("\n") == [
        *("code 1", "m.safetensors.checkpoint", "m.safetensors.checkpoint.former"),
        *("code 0", "m.safetensors", ""),
    ]
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("mporbm: error: m.safetensors.checkpoint: cannot be written: ")
    assert "No space left on device" in ended.stderr
    assert "make room, or write elsewhere" in ended.stderr
    assert progress(kept / "full").epoch == 2
    assert mporbm.load(kept / "resumed").n_iter_ == 6


def test_two_runs_of_one_output(refused, samples, tmp_path):
    out = tmp_path / "m.safetensors"
    with locked(f"{out}.checkpoint"):
        message = refused("fit", samples, "-o", out, *OPTIONS)
    assert f"{out}.checkpoint: is used by another run (process {os.getpid()})" in message
    assert "wait for it to end, or choose another name" in message
    assert list(tmp_path.iterdir()) == [samples]
