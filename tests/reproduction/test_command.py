"""The command that repeats the paper's experiments, and what becomes of it when it is stopped."""

import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mporbm.atomic import locked
from reproduction import __main__ as command
from reproduction import generation, runs
from reproduction.experiments import EXPERIMENTS
from reproduction.runs import perform_all
from reproduction_support import fakes, toy

NAMES = list(EXPERIMENTS)
QUIET = ["--quiet"]


@pytest.fixture
def run(capsys):
    """Run the command: its exit code and what it printed."""

    def call(*words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            command.main([str(word) for word in words])
        printed = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code, out=printed.out, err=printed.err)

    return call


@pytest.fixture
def refused(run, tmp_path):
    """Run the command in vain: the one line that it prints; it leaves nothing behind."""

    def call(*words, code=1):
        before = sorted(tmp_path.rglob("*"))
        ended = run(*words)
        assert (ended.code, ended.out) == (code, ""), ended
        assert ended.err.startswith("reproduction: error: ")
        assert ended.err.count("\n") == 1, ended.err
        assert sorted(tmp_path.rglob("*")) == before
        return ended.err.removeprefix("reproduction: error: ").rstrip("\n")

    return call


@pytest.fixture
def made_up(in_process, monkeypatch):
    """Tables 5 and 6 take no time: their runs are made up, and done in this process."""
    monkeypatch.setattr(generation, "run", fakes.generation_run)


@pytest.fixture
def never(monkeypatch):
    """Nothing is begun."""

    def perform(*args, **options):
        raise AssertionError("experiments were begun")

    monkeypatch.setattr("reproduction.experiments.reproduce", perform)


def contents(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("made_up")
def test_it_says_what_is_confirmed_and_where_the_report_is(run, tmp_path):
    out = tmp_path / "new" / "out"
    ended = run("table6", "-o", out)
    assert (ended.code, ended.err) == (0, "")
    *found, last = ended.out.splitlines()
    assert last == f"Report: {out}/report.html"
    results = json.loads((out / "results.json").read_text())
    signs = {True: "confirmed: ", False: "not confirmed: ", None: "open: "}
    expected = [signs[verdict["holds"]] + verdict["text"] for verdict in results["summary"]]
    assert found == expected
    assert len(found) >= 2
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Table 6. Image completion" in page
    assert contents(out) >= {"report.html", "results.json", "runs", "figures"}


@pytest.mark.usefixtures("made_up")
def test_as_json_or_silent(run, tmp_path):
    ended = run("table5", "-o", tmp_path / "out", "--json")
    assert (ended.code, ended.err) == (0, "")
    facts = json.loads(ended.out)
    assert facts["report"] == str(tmp_path / "out" / "report.html")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert facts["results"] == str(tmp_path / "out" / "results.json")
    assert facts["summary"] == results["summary"]
    for quiet in ("--quiet", "-q"):
        ended = run("table5", "-o", tmp_path / "out", quiet)
        assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.usefixtures("made_up")
def test_the_report_says_how_it_was_made(run, tmp_path):
    out = tmp_path / "out"
    for words, mode, seeds in (
        (["table5"], "quick", 1),
        (["table5", "--full", "--seeds", 3], "full", 1),
        (["table6", "--quick", "--seeds", 2], "quick", 2),
    ):
        assert run(*words, "-o", out, *QUIET).code == 0
        results = json.loads((out / "results.json").read_text())
        assert results["mode"] == mode
        said = results["command"].split()
        assert said[:4] == ["python", "-m", "reproduction", words[0]]
        assert f"--{mode}" in said
        assert [w for w in said if w.isdigit()] == [str(w) for w in words if isinstance(w, int)]
        kept = [json.loads(path.read_text()) for path in (out / "runs").glob("generation-*")]
        offline = [asked["configuration"]["offline"] for asked in kept]
        assert (mode == "quick") in offline
        assert {asked["configuration"]["seed"] for asked in kept} == set(range(seeds))


def test_all_experiments_by_default(run, tmp_path, monkeypatch):
    asked = []

    def perform(names, folder, **options):
        asked.append((names, folder, options))
        raise ValueError("enough")

    monkeypatch.setattr("reproduction.experiments.reproduce", perform)
    monkeypatch.chdir(tmp_path)
    for words in ([], ["figure7", "table4", "--n-jobs", 3, "--full"], ["--full"]):
        assert run(*words).err == "reproduction: error: enough\n"
    (names, folder, options), (others, _, more), (everything, _, _) = asked
    # A quick run is for the paper.
    assert [*names, "beyond"] == everything == NAMES
    assert (str(folder), options["n_jobs"], options["full"]) == ("reproduced", None, False)
    assert options["seeds"] is None
    # Nobody looks at a bar that is not on a terminal.
    assert options["shown"] is False
    assert others == ["figure7", "table4"]
    assert (more["n_jobs"], more["full"]) == (3, True)


def test_help_says_what_is_needed(run):
    text = " ".join(run("--help").out.split())
    assert "MPORBM_DATA" in text
    assert "MNIST" in text
    for name in NAMES:
        assert name in text
    assert "130 MB" in text


# Refusals


@pytest.mark.usefixtures("never")
def test_names_that_are_not_there(refused, tmp_path):
    out = tmp_path / "out"
    message = refused("table5", "table8", "-o", out)
    assert message == f"NAME='table8': expected one of {', '.join(NAMES)}."


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize(
    "words", [["--seeds", 0], ["--n-jobs", 0], ["--seeds", "many"], ["--slow"]]
)
def test_usage_that_cannot_be(refused, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    message = refused(*words, code=2)
    assert words[0] in message
    assert message.endswith("; see python -m reproduction --help.")


@pytest.mark.usefixtures("never")
def test_a_file_is_no_folder(refused, tmp_path):
    (tmp_path / "out").write_text("a file")
    for out in (tmp_path / "out", tmp_path / "out" / "below"):
        message = refused("table5", "-o", out)
        assert message.startswith(str(out))


@pytest.mark.usefixtures("never")
def test_packages_that_are_not_installed(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "PACKAGES", ("numpy", "no_such_package"))
    message = refused("table5", "-o", tmp_path / "out")
    assert message.startswith("needs the packages no_such_package; install them with pip install")
    assert "'.[demo]'" in message


def test_two_reproductions_in_one_folder(refused, tmp_path):
    with locked(tmp_path):
        message = refused("tables1-3", "--quick", "--out", tmp_path)
    assert f"{tmp_path}: is used by another run" in message


@pytest.mark.usefixtures("made_up")
def test_a_failed_run_is_one_line(run, tmp_path, monkeypatch):
    def fail(machine, **asked):
        if machine == "MvRBM":
            raise OSError("mnist: images.gz is not on this computer")
        return fakes.generation_run(machine, **asked)

    monkeypatch.setattr(generation, "run", fail)
    out = tmp_path / "out"
    ended = run("table5", "-o", out)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("reproduction: error: 1 of 3 runs failed, the others are kept in ")
    assert "generation MvRBM" in ended.err
    assert ended.err.endswith("mnist: images.gz is not on this computer\n")
    assert ended.err.count("\n") == 1
    assert contents(out) == {"runs"}
    assert len(contents(out / "runs")) == 2


@pytest.mark.usefixtures("made_up")
def test_an_outcome_that_vanishes_is_one_line(run, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "run_in_processes", lambda *_, **__: [])
    ended = run("table5", "-o", tmp_path / "out")
    assert (ended.code, ended.out) == (1, "")
    assert "the outcome of a run is missing; start again." in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.usefixtures("made_up")
def test_an_interruption_has_its_exit_code(run, tmp_path, monkeypatch):
    for error, code in ((KeyboardInterrupt(), 130), (SystemExit(143), 143)):

        def stop(*_, error=error, **__):
            raise error

        monkeypatch.setattr(runs, "run_in_processes", stop)
        ended = run("table5", "-o", tmp_path / "out")
        assert (ended.code, ended.out) == (code, "")
        assert "Traceback" not in ended.err


# Killed

SCRIPT = """
from reproduction.__main__ import main
from reproduction.experiments import EXPERIMENTS
from reproduction_support import toy

EXPERIMENTS["toy"] = toy
main()
"""


def alive(process):
    """Whether there is such a process that has not ended."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start the command in a process of its own, and wait until it does a run."""
    place, started, workers = tmp_path / "place", [], []
    place.mkdir()
    monkeypatch.setenv(toy.PLACE, str(place))

    def call(name):
        words = ["toy", "-o", str(tmp_path / "out"), "--n-jobs", "1"]
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a shell does it, so that a key reaches all processes at once.
            start_new_session=True,
        )
        started.append(process)
        toy.wait_for(lambda: name in toy.traces(place) or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        worker, _ = toy.processes(place)[name]
        assert worker not in (process.pid, os.getpid())
        workers.append(worker)
        return SimpleNamespace(process=process, worker=worker)

    yield call
    for process in started:
        process.kill()
    for worker in workers:
        if alive(worker):
            os.kill(worker, signal.SIGKILL)
    # Their pipes are closed when all of them are gone.
    for process in started:
        process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at the processes of Linux")
def test_what_is_killed_goes_on(start, tmp_path):
    place, kept = tmp_path / "place", tmp_path / "out" / "runs"
    wanted = toy.runs(None)

    def done():
        return [run.configuration["name"] for run in wanted if run.outcome(kept) is not None]

    victim = start("second")
    assert done() == ["first"]
    victim.process.send_signal(signal.SIGKILL)
    victim.process.wait()
    # Nobody is left behind who would go on for ever.
    toy.wait_for(lambda: not alive(victim.worker), 20.0)
    (place / "second.go").touch()
    victim = start("third")
    assert done() == ["first", "second"]
    # A key reaches all processes at once.
    os.killpg(victim.process.pid, signal.SIGINT)
    out, errors = victim.process.communicate(timeout=60)
    assert (victim.process.returncode, out) == (130, "")
    assert "Traceback" not in errors
    assert not alive(victim.worker)
    assert contents(tmp_path / "out") == {"runs"}
    # What was done is not done again, and no half of a file is there.
    (place / "third.go").touch()
    for run in wanted[2:]:
        run.perform(kept)
    perform_all(wanted, kept, shown=False)
    assert toy.traces(place) == {"first": 1, "second": 2, "third": 2}
    assert contents(kept) == {run.path(kept).name for run in wanted}
