"""Several devices, and several processes, learn what one learns."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mporbm.learning.team import Team

PROGRAM = Path(__file__).with_name("member.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def train(path, n_devices, n_processes=1, writer=0):
    """What processes of so many devices each have learnt."""
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "WRITER": str(writer)}
    address = [] if n_processes == 1 else [free_port(), n_processes]
    processes = []
    for number in range(n_processes):
        command = [
            sys.executable,
            PROGRAM,
            path,
            n_devices,
            *address,
            *([number] if address else []),
        ]
        processes.append(subprocess.Popen(list(map(str, command)), env=environment))
    try:
        assert [process.wait(timeout=300) for process in processes] == [0] * n_processes
    finally:
        for process in processes:
            process.kill()
    with np.load(path) as found:
        return dict(found)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return train(tmp_path_factory.mktemp("alone") / "found.npz", 1)


@pytest.mark.parametrize(("n_devices", "n_processes", "writer"), [(2, 1, 0), (1, 2, 1)])
def test_the_same_is_learnt(alone, tmp_path, n_devices, n_processes, writer):
    found = train(tmp_path / "found.npz", n_devices, n_processes, writer)
    assert found.keys() == alone.keys()
    for name, values in alone.items():
        scale = np.abs(values).max(initial=1e-300)
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-9 * scale, err_msg=name)


def test_one_device_is_no_team():
    assert Team.of(100) is None
