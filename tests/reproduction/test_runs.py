"""Runs are done once, whatever ends them: their outcomes are kept, and the others are done."""

import json
import os
import signal
import sys
import threading

import pytest

from mporbm.evaluation import processes
from mporbm.evaluation.processes import available_cores
from reproduction.runs import Run, perform_all
from reproduction_support import toy


@pytest.fixture
def place(tmp_path):
    """Where runs leave their traces."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(tmp_path):
    """Where outcomes are kept."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


def a_run(place, name="one", does="end", cost=1.0):
    return Run("reproduction_support.toy", {"name": name, "place": str(place), "does": does}, cost)


def outcomes(folder):
    """The files of outcomes, and whatever else is there."""
    return sorted(path.name for path in folder.iterdir())


# One run


def test_an_outcome_is_kept(place, folder):
    run = a_run(place)
    assert run.outcome(folder) is None
    run.perform(folder)
    kept = json.loads(run.path(folder).read_text())
    assert (kept["module"], kept["configuration"]) == (
        "reproduction_support.toy",
        run.configuration,
    )
    assert kept["outcome"] == {"name": "one", "number": 0.1}
    assert 0.0 <= kept["seconds"] < 60.0
    assert run.outcome(folder) == {**kept["outcome"], "seconds": kept["seconds"]}
    assert outcomes(folder) == [run.path(folder).name]


def test_what_was_asked_makes_the_name(place, folder, monkeypatch):
    run = a_run(place)
    path = run.path(folder)
    assert path.parent == folder
    assert path.name.startswith("toy-")
    swapped = Run("reproduction_support.toy", dict(reversed(run.configuration.items())), cost=7.0)
    assert swapped.path(folder) == path
    others = [
        Run("reproduction_support.toy", {**run.configuration, "name": "two"}),
        Run("reproduction_support.toy", {**run.configuration, "more": None}),
        Run("reproduction_support.toy", {**run.configuration, "name": 1}),
        Run("reproduction_support.toy", {**run.configuration, "name": "1"}),
    ]
    paths = [path, *(other.path(folder) for other in others)]
    monkeypatch.setattr(toy, "REVISION", 2)
    paths.append(run.path(folder))
    assert len({*paths}) == 6


SPOILT = [
    b"",
    b'{"module": "reproduction_support.toy", "seconds": 1.0, "outcome": {"name": "on',
    b"null",
    b"[1, 2]",
    b"3",
    b'{"seconds": 1.0}',
    b'{"outcome": {}}',
    b'{"outcome": {}, "seconds": "long"}',
    b'{"outcome": {}, "seconds": null}',
    b'{"outcome": 3, "seconds": 1.0}',
    b"\xff\xfe\x00",
]


@pytest.mark.usefixtures("in_process")
def test_a_spoilt_file_is_made_again(place, folder):
    run = a_run(place)
    for content in SPOILT:
        run.path(folder).write_bytes(content)
        assert run.outcome(folder) is None, content
    perform_all([run], folder, shown=False)
    assert run.outcome(folder)["name"] == "one"
    assert outcomes(folder) == [run.path(folder).name]


def test_a_number_that_is_none_is_not_kept(place, folder):
    with pytest.raises(ValueError, match="JSON"):
        a_run(place, does="nan").perform(folder)
    assert outcomes(folder) == []


# Several runs


@pytest.mark.usefixtures("in_process")
def test_each_run_is_done_once(place, folder):
    wanted = [a_run(place, name) for name in ("one", "two", "one")]
    perform_all(wanted[::2], folder, shown=False)
    assert toy.traces(place) == {"one": 1}
    perform_all(wanted, folder, shown=False)
    assert toy.traces(place) == {"one": 1, "two": 1}


def test_nothing_is_started_if_nothing_is_missing(place, folder, monkeypatch):
    run = a_run(place)
    run.perform(folder)
    monkeypatch.setattr(processes, "ProcessPoolExecutor", None)
    monkeypatch.setattr(processes, "multiprocessing", None)
    perform_all([run, run], folder, shown=False)
    perform_all([], folder / "new", shown=False)
    assert toy.traces(place) == {"one": 1}


@pytest.mark.usefixtures("in_process")
def test_the_longest_is_first(place, folder, monkeypatch):
    begun = []
    monkeypatch.setattr(Run, "perform", lambda run, folder: begun.append(run.cost))
    costs = (1.0, 5.0, 0.5, 3.0)
    perform_all([a_run(place, str(cost), cost=cost) for cost in costs], folder, shown=False)
    assert begun == [5.0, 3.0, 1.0, 0.5]


@pytest.mark.usefixtures("in_process")
def test_a_failure_is_named(place, folder):
    wanted = [a_run(place, "bad", "fail"), a_run(place, "worse", "fail"), a_run(place, "good")]
    with pytest.raises(ChildProcessError) as caught:
        perform_all(wanted, folder, shown=False)
    message = str(caught.value)
    assert message.startswith(f"2 of 3 runs failed, the others are kept in {folder}; ")
    assert f"toy bad {place} fail: ValueError: bad cannot be done" in message
    assert isinstance(caught.value.__cause__, ValueError)
    assert wanted[2].outcome(folder) is not None
    # What failed, and only that, is done again.
    (place / "repaired").touch()
    perform_all(wanted, folder, shown=False)
    assert toy.traces(place) == {"bad": 2, "worse": 2, "good": 1}
    assert outcomes(folder) == sorted(run.path(folder).name for run in wanted)


@pytest.mark.usefixtures("in_process")
def test_progress_is_shown_only_if_wanted(place, folder, capsys):
    perform_all([a_run(place, "one")], folder, shown=False)
    assert capsys.readouterr() == ("", "")
    perform_all([a_run(place, "two")], folder, shown=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "toy two" in printed.err


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_signals_are_obeyed_between_two_waits(place, folder, monkeypatch, number, raised):
    """Not where they arrive: an exception within the pool's locks would make it wait for ever."""
    original, passed = processes.wait, []

    def interrupted(*arguments, **options):
        signal.raise_signal(number)
        passed.append(number)
        return original(*arguments, **options)

    monkeypatch.setattr(processes, "wait", interrupted)
    before = signal.getsignal(number)
    with pytest.raises(raised) as ended:
        perform_all([a_run(place, does="wait")], folder, shown=False)
    assert getattr(ended.value, "code", 130) == 128 + number
    assert passed == [number]
    assert signal.getsignal(number) is before


def test_runs_can_be_asked_for_by_any_thread(place, folder):
    run, failures = a_run(place), []
    run.perform(folder)

    def ask():
        try:
            perform_all([run], folder, shown=False)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert failures == []


# Processes of their own


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="cores are given to processes on Linux only")
def test_processes_that_fail_and_are_killed(place, folder):
    """The only test with real workers but for the slow ones: each takes seconds to start."""
    n_jobs = min(2, len(available_cores()))
    work = {f"meet-{k}": "meet" if n_jobs == 2 else "end" for k in range(2)}
    # The last one has not ended when the killed one is gone.
    work |= {"bad": "fail", "killed": "kill after all" if n_jobs == 2 else "kill", "last": "nap"}
    wanted = {
        name: a_run(place, name, does, cost=-float(number))
        for number, (name, does) in enumerate(work.items())
    }
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ChildProcessError, match="of 5 runs failed, the others are kept in"):
        perform_all(wanted.values(), folder, n_jobs=n_jobs, shown=False)
    assert signal.getsignal(signal.SIGTERM) is before
    done = {name for name, run in wanted.items() if run.outcome(folder) is not None}
    assert {"meet-0", "meet-1"} <= done <= {"meet-0", "meet-1", "last"}
    if n_jobs == 2:
        cores = [cores for name, (_, cores) in toy.processes(place).items() if "meet" in name]
        assert sorted(cores) == [f"[{core}]" for core in available_cores()[:2]]
    assert not any(alive(number) for number, _ in toy.processes(place).values())
    assert outcomes(folder) == sorted(wanted[name].path(folder).name for name in done)
    # What is asked for again goes on.
    (place / "repaired").touch()
    count = toy.traces(place)
    perform_all(wanted.values(), folder, n_jobs=n_jobs, shown=False)
    assert all(run.outcome(folder) is not None for run in wanted.values())
    again = toy.traces(place)
    assert {name for name in again if again[name] > count.get(name, 0)} == wanted.keys() - done
    assert outcomes(folder) == sorted(run.path(folder).name for run in wanted.values())


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
