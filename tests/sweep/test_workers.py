"""Runs are done by processes of their own; what fails or is killed loses only itself."""

import os
import signal
import sys
import threading
import warnings
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import pytest

from mporbm.evaluation.processes import available_cores
from mporbm.sweep import Samples, perform_all, workers
from mporbm.sweep.workers import KILLED, attempt, locally, on_dask
from sweep.toys import toys, traces, wait_for

SAMPLES = Samples(np.ones((4, 2)), np.ones((1, 2)))


def test_a_failure_is_told_in_one_line(tmp_path):
    done = attempt(7, toys(tmp_path, "fail")[0], SAMPLES)
    assert (done.number, done.outcome) == (7, None)
    assert done.reason == "ValueError: 0 cannot be done"


def test_mistakes_of_the_program_are_not_taken_for_failures(tmp_path):
    with pytest.raises(AttributeError, match="there is no such thing"):
        attempt(0, toys(tmp_path, "err")[0], SAMPLES)


@pytest.mark.skipif(sys.platform != "linux", reason="cores are given to processes on Linux only")
def test_processes_share_the_cores_and_die_alone(tmp_path):
    work = toys(tmp_path, "meet", "meet", "kill")
    found = {done.number: done for done in locally(work, SAMPLES, 2)}
    assert sorted(found) == [0, 1, 2]
    assert (found[2].outcome, found[2].reason) == (None, KILLED)
    for number in (0, 1):
        assert found[number].outcome["measures"] == {"reconstruction_error": 8.0}
    seen = traces(tmp_path)
    # Not in this process, and with cores that no other has.
    assert str(os.getpid()) not in {process for lines in seen.values() for process, _ in lines}
    if len(available_cores()) > 1:
        shares = np.array_split(available_cores(), 2)
        cores = [seen[number][0][1] for number in (0, 1)]
        assert sorted(cores) == sorted(str(share.tolist()) for share in shares)


@pytest.mark.skipif(sys.platform != "linux", reason="a process is sent a signal")
def test_an_interruption_ends_all_processes(tmp_path):
    def interrupt():
        wait_for(lambda: len(traces(tmp_path)) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        list(locally(toys(tmp_path, "wait", "wait", "end"), SAMPLES, 2))
    thread.join()
    seen = traces(tmp_path)
    assert seen.keys() == {0, 1}
    wait_for(lambda: not any(alive(int(lines[0][0])) for lines in seen.values()))


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_single_process_is_this_one(tmp_path):
    found = list(locally(toys(tmp_path, "end", "fail", "end"), SAMPLES, 1))
    assert [done.outcome is None for done in found] == [False, True, False]
    assert {lines[0][0] for lines in traces(tmp_path).values()} == {str(os.getpid())}


@pytest.mark.parametrize("n_jobs", [2, 3, 9])
@pytest.mark.parametrize("killed", [set(), {0}, {3}, {0, 1}, {1, 4}, {0, 1, 2, 3, 4, 5}])
def test_whose_process_is_killed_shows_when_it_is_done_alone(tmp_path, monkeypatch, n_jobs, killed):
    """A process that is killed takes all others along, whose runs have to be done again."""
    pools = []

    def pool(numbers, trials, samples, n_processes, begun):
        pools.append(list(numbers))
        assert n_processes == min(n_jobs, len(numbers))
        for number in numbers:
            begun[:] = numbers[: numbers.index(number) + n_processes]
            if killed & {*begun} - done.keys():
                raise BrokenProcessPool
            yield attempt(number, trials[number], samples)

    monkeypatch.setattr(workers, "_pool", pool)
    done = {}
    for ended in locally(toys(tmp_path, *["end"] * 6), SAMPLES, n_jobs):
        assert ended.number not in done
        done[ended.number] = ended
    assert done.keys() == {*range(6)}
    assert {number for number, ended in done.items() if ended.reason == KILLED} == killed
    assert all((done[number].outcome is None) == (number in killed) for number in done)
    assert len(pools) <= 1 + 6 + len(killed)


# Dask


@pytest.fixture
def scheduler():
    """The address of a Dask scheduler in this process, with one worker."""
    distributed = pytest.importorskip(
        "distributed", reason="the package distributed is not installed"
    )
    with warnings.catch_warnings():
        # Theirs: of ports that are taken, and of sockets that are closed late.
        warnings.simplefilter("ignore")
        with distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            protocol="tcp",
        ) as cluster:
            yield cluster.scheduler_address


def test_dask_does_the_runs(tmp_path, scheduler):
    trials = toys(tmp_path, "end", "fail", "end")
    outcomes = perform_all(
        list(trials.values()), SAMPLES, tmp_path / "runs", dask=scheduler, shown=False
    )
    assert [outcome["status"] for outcome in outcomes] == ["done", "failed", "done"]
    assert outcomes[1]["reason"] == "ValueError: 1 cannot be done"
    assert outcomes[2]["measures"] == {"reconstruction_error": 8.0}
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert traces(tmp_path).keys() == {0, 1, 2}


def test_dask_has_to_be_there(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", None)
        with pytest.raises(ValueError, match=r"dask=host:1: .* pip install 'mporbm\[dask\]'"):
            next(on_dask(toys(tmp_path, "end"), SAMPLES, "host:1"))
    pytest.importorskip("distributed", reason="the package distributed is not installed")
    monkeypatch.setattr("mporbm.sweep.workers.WAIT", 0.5)
    with pytest.raises(ConnectionError, match=r"dask=127.0.0.1:9: .* none answers there"):
        next(on_dask(toys(tmp_path, "end"), SAMPLES, "127.0.0.1:9"))
