"""Commands on several processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mporbm
from trainings import progress

OPTIONS = ["--hidden-shape", "2,2", "--rank", "2", "--n-iter", "2", "--batch-size", "10"]


@pytest.fixture
def samples(tmp_path, rng):
    path = tmp_path / "samples.npy"
    np.save(path, rng.random((30, 4, 4)) < 0.4)
    return path


@pytest.mark.slow
def test_processes_that_were_launched_train_one_model(samples, tmp_path):
    """Only one of them prints and writes."""
    found = []
    for name, start in {"together": ["launch", "-n", 2, "fit"], "alone": ["fit"]}.items():
        model = tmp_path / f"{name}.safetensors"
        arguments = [*start, samples, "-o", model, *OPTIONS, "--seed", 3, "--json"]
        command = [sys.executable, "-m", "mporbm", *map(str, arguments)]
        environment = {**os.environ, "JAX_ENABLE_X64": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count(str(model)) == 1
        found.append(mporbm.load(model))
    assert {path.name for path in tmp_path.iterdir()} == {
        *("samples.npy", "together.safetensors", "alone.safetensors")
    }
    first, second = (model.weight_matrix() for model in found)
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9 * np.abs(second).max())


def children(process):
    """Of the processes that a process has started, those of one number each, in order."""
    tasks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(number) for number in tasks.read_text().split()]


def started(arguments, environment, checkpoint, epoch, tries=3):
    """A process that has written a checkpoint of a later epoch."""
    command = [sys.executable, "-m", "mporbm", *map(str, arguments)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    while not (checkpoint.exists() and progress(checkpoint).epoch > epoch):
        if process.poll() is not None:
            errors = process.communicate()[1]
            # On a computer that is very busy one may wait in vain for the other.
            assert "distributed: " in errors, errors
            assert tries > 1, errors
            return started(arguments, environment, checkpoint, epoch, tries - 1)
        time.sleep(0.01)
    return process


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds processes in /proc")
def test_a_run_goes_on_with_fewer_or_more_processes(samples, tmp_path):
    """Killed alone, then either of two, then one of two asked to end, and finished alone."""
    model, checkpoint = tmp_path / "model.safetensors", tmp_path / "checkpoint"
    options = [samples, "-o", model, *OPTIONS, "--negative-phase", "pcd", "--seed", 3]
    # Long chains make epochs long, and rounding errors grow with updates only.
    options += ["--n-gibbs", 2000, "--checkpoint", checkpoint, "--n-iter", 60]
    alone, together = ["fit"], ["launch", "-n", 2, "fit"]
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    epochs = [0]
    kills = [(alone, None, signal.SIGKILL), (together, 0, signal.SIGKILL)]
    kills += [(together, 1, signal.SIGKILL), (together, 1, signal.SIGTERM)]
    for start, victim, number in kills:
        process = started([*start, *options], environment, checkpoint, epochs[-1])
        os.kill(process.pid if victim is None else children(process)[victim], number)
        # It is over within a minute, and says why.
        _, errors = process.communicate(timeout=60)
        if victim is None:
            assert process.returncode == -signal.SIGKILL
        elif number == signal.SIGTERM:
            # All have heard of it, and have stopped at the same batch.
            assert process.returncode == 128 + signal.SIGTERM
            assert f"stopped; the same command goes on from {checkpoint}" in errors
        else:
            assert process.returncode == 1
            assert f"process {victim} was ended by SIGKILL; the others are stopped" in errors
        epochs.append(progress(checkpoint).epoch)
    command = [sys.executable, "-m", "mporbm", *map(str, [*alone, *options])]
    subprocess.run(command, env=environment, check=True, timeout=300)
    assert epochs == sorted(set(epochs))
    assert epochs[-1] < 60

    parameters = {"rank": 2, "batch_size": 10, "negative_phase": "pcd", "random_state": 3}
    expected = mporbm.MPORBM((2, 2), **parameters, n_gibbs=2000, n_iter=60).fit(np.load(samples))
    found = mporbm.load(model)
    assert found.n_iter_ == 60
    scale = np.abs(expected.weight_matrix()).max()
    np.testing.assert_allclose(
        found.weight_matrix(), expected.weight_matrix(), rtol=0, atol=1e-9 * scale
    )


@pytest.mark.slow
def test_a_process_that_fails_ends_the_others(samples, tmp_path):
    model = tmp_path / "model.safetensors"
    arguments = ["launch", "-n", 2, "fit", samples, "-o", model, *OPTIONS, "--rank", "0"]
    command = [sys.executable, "-m", "mporbm", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "rank" in done.stderr
    assert "the others are stopped" in done.stderr
    assert not model.exists()


def test_processes_know_each_other_only_if_asked_to(run, samples, tmp_path):
    for words in (["--coordinator", "here:1"], ["--num-processes", 2], ["--process-id", 0]):
        ended = run("fit", samples, "-o", tmp_path / "model.safetensors", *words)
        assert ended.code == 1
        assert "expected --distributed, too" in ended.err


def test_only_fit_is_launched(run):
    ended = run("launch", "-n", 2, "inspect", "model.safetensors")
    assert ended.code == 1
    assert "expected the command fit" in ended.err
