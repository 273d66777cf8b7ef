"""Commands on several processes."""

import os
import subprocess
import sys

import numpy as np
import pytest

import mporbm

OPTIONS = ["--hidden-shape", "2,2", "--rank", "2", "--n-iter", "2", "--batch-size", "10"]


@pytest.fixture
def samples(tmp_path, rng):
    path = tmp_path / "samples.npy"
    np.save(path, rng.random((30, 4, 4)) < 0.4)
    return path


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


def test_a_process_that_fails_ends_the_others(samples, tmp_path):
    model = tmp_path / "model.safetensors"
    arguments = ["launch", "-n", 2, "fit", samples, "-o", model, *OPTIONS, "--rank", "0"]
    command = [sys.executable, "-m", "mporbm", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "rank" in done.stderr
    assert "the others are stopped" in done.stderr
    assert not model.exists()


@pytest.mark.parametrize(
    "arguments", [["--coordinator", "here:1"], ["--num-processes", 2], ["--process-id", 0]]
)
def test_processes_know_each_other_only_if_asked_to(run, samples, tmp_path, arguments):
    ended = run("fit", samples, "-o", tmp_path / "model.safetensors", *arguments)
    assert ended.code == 1
    assert "expected --distributed, too" in ended.err


def test_only_fit_is_launched(run):
    ended = run("launch", "-n", 2, "inspect", "model.safetensors")
    assert ended.code == 1
    assert "expected the command fit" in ended.err
