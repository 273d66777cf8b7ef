"""Several devices, and several processes, learn what one learns."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mporbm.cli.processes import free_port
from mporbm.training.devices import Team
from training.member import LABELS, LEARNING

PROGRAM = Path(__file__).with_name("member.py")


def train(path, names, n_devices=1, n_processes=1, writer=0, dump=False):
    """What processes of so many devices each have learnt; its programs beside it, if dumped."""
    path.parent.mkdir()
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "WRITER": str(writer)}
    environment |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
    if dump:
        # What was compiled before would not be there.
        flags = f"--xla_dump_to={path.parent} --xla_dump_hlo_as_text"
        environment |= {"XLA_FLAGS": f"{flags} --xla_dump_hlo_module_re=run_block"}
        environment |= {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    address = [] if n_processes == 1 else [free_port(), n_processes]
    processes = []
    for number in range(n_processes):
        command = [
            sys.executable,
            PROGRAM,
            path,
            ",".join(names),
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


def assert_same(found, alone):
    assert found.keys() == alone.keys()
    for name, values in alone.items():
        scale = np.abs(values).max(initial=1e-300)
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-9 * scale, err_msg=name)


def test_two_processes_learn_what_one_learns(tmp_path):
    alone = train(tmp_path / "alone" / "found.npz", ["centred"])
    both = train(tmp_path / "both" / "found.npz", ["centred"], n_processes=2, writer=1)
    assert_same(both, alone)


@pytest.mark.slow
def test_devices_and_processes_learn_the_same_whatever_they_learn(tmp_path):
    names = [*LEARNING, LABELS]
    alone = train(tmp_path / "alone" / "found.npz", names)
    devices = train(tmp_path / "devices" / "found.npz", names, n_devices=2, dump=True)
    assert_same(devices, alone)
    check_messages(tmp_path / "devices")
    assert_same(train(tmp_path / "both" / "found.npz", names, n_processes=2, writer=1), alone)


def check_messages(folder):
    """For each update one: the gradients of its core and of the biases, and little else."""
    programs = sorted(folder.glob("*run_block*after_optimizations.txt"))
    assert len(programs) == len(LEARNING) + 1
    for program, name in zip(programs, LEARNING, strict=False):
        sizes = messages(program.read_text())
        # Cores have 14 x 3 x 4 and 4 x 14 x 4 entries, units are 14 x 14 and 3 x 4; of the hidden
        # ones their mean, too; of two devices the largest fields.
        biases = 14 * 14 + 2 * 3 * 4 + 2
        cores = {
            "su": [14 * 3 * 4 + 4 * 14 * 4],
            "two-site": [14 * 3 * 14 * 4],
            "fpcd": [14 * 3 * 4, 4 * 14 * 4, *[14 * 3 * 4 + 4 * 14 * 4] * 2],
        }.get(name, [14 * 3 * 4, 4 * 14 * 4])
        # The weights of all seven batches are added up once, and how many there are.
        assert sorted(sizes) == sorted([7, 7, *(core + biases for core in cores)]), name


def messages(program):
    """The numbers of entries of all arrays that a program sends to other devices."""
    kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
    sent = re.findall(rf"= (.*) (?:{kinds})(?:-start)?\(", program)
    shapes = [shape for types in sent for shape in re.findall(r"\w+\[([\d,]*)\]", types)]
    return [math.prod(int(size) for size in shape.split(",") if size) for shape in shapes]


def test_one_device_is_no_team():
    assert Team.of(100) is None
