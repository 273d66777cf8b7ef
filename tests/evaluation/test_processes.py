"""Cores are shared evenly; how tasks are done in processes is tested in reproduction/test_runs."""

import os

import pytest

from mporbm.evaluation import processes


def test_available_cores():
    cores = processes.available_cores()
    assert cores == sorted(set(cores))
    assert 1 <= len(cores) <= os.cpu_count()


@pytest.mark.parametrize("n_cores", [1, 2, 5, 8])
@pytest.mark.parametrize("n_processes", [1, 2, 3, 9])
def test_cores_are_shared_evenly(monkeypatch, n_cores, n_processes):
    cores = list(range(3, 3 + n_cores))
    monkeypatch.setattr(processes, "available_cores", lambda: cores)
    shares = processes.share_cores(n_processes)
    assert len(shares) == n_processes
    assert sorted({core for share in shares for core in share}) == cores
    sizes = [len(share) for share in shares]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
    # Nobody shares a core as long as there are enough.
    assert sum(sizes) == max(n_cores, n_processes)
