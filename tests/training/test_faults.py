"""Trust under faults: broken checkpoints, two runs, full disks, folders and clocks that go."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import mporbm
from mporbm.atomic import locked
from mporbm.training import CheckpointWarning, FileFormatError
from mporbm.training.checkpoint import former
from trainings import assert_same, model, progress


@pytest.fixture
def X(rng):
    return rng.random((12, 3, 2)) < 0.4


# The one before


def broken(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def two(X, tmp_path):
    """The checkpoints of two epochs."""
    path = tmp_path / "checkpoint"
    model(checkpoint=path, n_iter=2).fit(X)
    assert [progress(file).epoch for file in (path, former(path))] == [2, 1]
    return path


@pytest.mark.parametrize("random_state", [0, None])
def test_after_a_broken_checkpoint_comes_the_one_before(X, two, random_state):
    broken(two)
    with pytest.warns(CheckpointWarning, match=r"check sum is wrong.*goes on from .*\.former"):
        resumed = model(checkpoint=two, n_iter=4, random_state=random_state).fit(X)
    assert_same(resumed, model(n_iter=4).fit(X))
    assert [progress(file).epoch for file in (two, former(two))] == [4, 3]


def test_a_missing_checkpoint_has_one_before(X, two):
    """As after a crash where the file system knows one name for a file."""
    two.unlink()
    with pytest.warns(CheckpointWarning, match=r"checkpoint.*goes on from"):
        resumed = model(checkpoint=two, n_iter=3).fit(X)
    assert_same(resumed, model(n_iter=3).fit(X))


def test_two_broken_checkpoints_are_refused(X, two):
    broken(two)
    broken(former(two))
    with pytest.raises(FileFormatError, match=rf"{two}: .*check sum is wrong"):
        model(checkpoint=two).fit(X)


def test_the_one_before_is_kept_without_second_names(X, tmp_path, monkeypatch):
    def fail(*args):
        raise PermissionError("this file system knows one name for a file")

    monkeypatch.setattr("os.link", fail)
    path = tmp_path / "checkpoint"
    model(checkpoint=path, n_iter=3).fit(X)
    assert [progress(file).epoch for file in (path, former(path))] == [3, 2]


# Two runs


def test_a_checkpoint_in_use_is_refused(X, tmp_path):
    path = tmp_path / "checkpoint"
    with locked(path), pytest.raises(BlockingIOError, match=rf"{path}: is used by .*{os.getpid()}"):
        model(checkpoint=path).fit(X)
    model(checkpoint=path).fit(X)
    assert set(tmp_path.iterdir()) == {path, former(path)}


def test_a_killed_process_gives_its_lock_back(tmp_path):
    path = tmp_path / "checkpoint"
    script = (
        "import os, sys; from mporbm.atomic import locked; import signal\n"
        "with locked(sys.argv[1]):\n"
        "    open(f'{os.path.dirname(sys.argv[1])}/.checkpoint.12-34', 'w').close()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(path)])
    assert ended.returncode == -signal.SIGKILL
    assert {file.name for file in tmp_path.iterdir()} == {".checkpoint.lock", ".checkpoint.12-34"}
    other = tmp_path / ".checkpoint.lock.12-34"
    other.touch()
    with locked(path):
        assert {file.name for file in tmp_path.iterdir()} == {".checkpoint.lock", other.name}
    assert list(tmp_path.iterdir()) == [other]


def test_only_one_of_many_has_a_lock(tmp_path):
    """Also while others give it back: its file comes and goes."""
    inside, most = [], []

    def contend():
        n_taken = 0
        while n_taken < 50:
            try:
                with locked(tmp_path):
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
                    n_taken += 1
            except BlockingIOError:
                time.sleep(0.001)

    threads = [threading.Thread(target=contend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 200
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_without_locks_training_works(X, tmp_path, monkeypatch, number):
    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", fail)
    model(checkpoint=tmp_path / "checkpoint").fit(X)


# What else can happen


def test_clocks_that_jump_change_nothing(X, tmp_path, monkeypatch):
    expected = model(n_iter=4).fit(X)
    jumps = np.random.default_rng(0)
    for clock in ("time", "time_ns"):
        monkeypatch.setattr(f"time.{clock}", lambda: int(jumps.integers(-(10**9), 10**9)))
    path = tmp_path / "checkpoint"
    model(checkpoint=path, n_iter=2).fit(X)
    os.utime(path, (0, 0))
    assert_same(model(checkpoint=path, n_iter=4).fit(X), expected)


def test_a_folder_that_vanishes_ends_the_training(X, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "checkpoint"
    fitted = model(checkpoint=path, n_iter=3).set_callbacks(Vanish(folder))
    with pytest.raises(FileNotFoundError, match=rf"{path}: expected an existing folder"):
        fitted.fit(X)
    assert fitted.n_iter_ == 2


class Vanish:
    """A callback of scikit-learn that removes a folder after the first epoch."""

    def __init__(self, folder):
        self.folder = folder

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        pass

    def on_fit_task_end(self, estimator, context, **kwargs):
        shutil.rmtree(self.folder, ignore_errors=True)
        return False


# Killed at any time

LONG = {"n_iter": 100, "negative_phase": "pcd", "n_gibbs": 500}
VICTIM = """
import json, os, signal, sys, threading, time
import numpy as np

tests, folder, parameters, seconds = sys.argv[1:]
sys.path.insert(0, tests)
from trainings import model

def kill():
    time.sleep(float(seconds))
    os.kill(os.getpid(), signal.SIGKILL)

X = np.load(f"{folder}/X.npy")
fitted = model(**json.loads(parameters), checkpoint=f"{folder}/checkpoint")
threading.Thread(target=kill, daemon=True).start()
fitted.fit(X).save(f"{folder}/model")
os._exit(0)
"""


@pytest.mark.soak
def test_killed_at_any_time_it_goes_on_as_if_nothing_had_happened(X, tmp_path):
    """50 kills hit compilation, epochs and checkpoints of several trainings as they come."""
    plain = str(int(jax.config.read("jax_disable_most_optimizations")))
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_DISABLE_MOST_OPTIMIZATIONS": plain}
    environment |= {
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    rng, killed, expected, most = np.random.default_rng(0), [], None, 600.0
    while len(killed) < 50:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        np.save(folder / "X.npy", X)
        arguments = [Path(__file__).parents[1], folder, json.dumps(LONG)]
        while not (folder / "model").exists():
            seconds = most if expected is None else rng.uniform(0.0, most)
            command = [sys.executable, "-c", VICTIM, *map(str, arguments), str(seconds)]
            code = subprocess.run(command, env=environment, timeout=900).returncode
            assert code in (0, -signal.SIGKILL)
            if code:
                last = folder / "checkpoint"
                killed.append(progress(last).epoch if last.exists() else 0)
        found = mporbm.load(folder / "model")
        if expected is None:
            # The first is left alone: it compiles for the others, and shows how long they take.
            expected, most = found, 1.0 + sum(entry["seconds"] for entry in found.history_)
        assert_same(found, expected)
    print(f"killed {len(killed)} times, after epochs {killed} of {LONG['n_iter']}")
