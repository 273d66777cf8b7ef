"""A search tries every setting once, whoever does it and whatever ends it."""

import contextlib
import math
import os
import socket
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from mporbm import RBM
from mporbm.atomic import locked
from mporbm.sweep import Plan, Range, Run, Samples, Search
from mporbm.sweep.search import KILLED

SAMPLES = Samples(np.ones((4, 2)), np.ones((1, 2)))


def plan(space, **options):
    options = {"seeds": (0, 1, 2), "measure": "reconstruction_error", **options}
    return Plan(space, make=lambda setting: (RBM(), None), common={}, **options)


GRID = {"rank": [3, [2, 2]], "learning_rate": ["auto", 0.1]}
SAMPLED = {"rate": Range(0.001, 1.0, log=True), "rank": Range(2, 9), "scheme": ["su", "aop"]}


@pytest.fixture
def search(tmp_path):
    """Make a search in a folder of the test."""
    return lambda plan, session="here": Search(plan, SAMPLES, tmp_path, session)


@pytest.fixture
def trained(monkeypatch):
    """Runs are not done, but written down."""
    done = []

    def train(run, samples):
        done.append((dict(run.options), run.seed))
        if run.options.get("rank") == 7:
            raise ValueError("7 is too many")
        error = abs(math.log(run.options.get("rate", 0.1) / 0.1)) + 0.01 * run.seed
        return {"status": "done", "measures": {"reconstruction_error": error}}

    monkeypatch.setattr(Run, "train", train)
    return done


def performed(search):
    """What a command does: everything that is missing."""
    search.bury()
    while search.missing() or search.n_to_choose():
        search.enqueue(search.missing())
        search.work()
    return [(s, [o["status"] for o in outcomes]) for s, outcomes in search.outcomes()]


def test_a_grid_is_tried_once(search, trained):
    settings = [{"rank": r, "learning_rate": x} for r in (3, [2, 2]) for x in ("auto", 0.1)]
    assert performed(search(plan(GRID))) == [(setting, ["done"] * 3) for setting in settings]
    assert sorted(map(str, trained)) == sorted(
        str((s, seed)) for s in settings for seed in (0, 1, 2)
    )
    assert {t.state.name for t in search(plan(GRID)).study.get_trials()} == {"COMPLETE"}
    # What is there is not done again; what is asked for in addition is.
    performed(search(plan(GRID), "again"))
    performed(search(plan(GRID, measure="pseudo_log_likelihood"), "other"))
    assert len(trained) == 12
    performed(search(plan({**GRID, "rank": [3, 5]}, seeds=(2, 3))))
    added = {(o["rank"], o["learning_rate"], seed) for o, seed in trained[12:]}
    assert added == {(r, x, s) for r in (3, 5) for x in ("auto", 0.1) for s in (2, 3)} - {
        *((3, "auto", 2), (3, 0.1, 2))
    }


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_settings_are_sampled_in_their_ranges(search, trained, sampler):
    asked = plan(SAMPLED, sampler=sampler, n_settings=12)
    found = performed(search(asked))
    assert len(found) == 12
    for setting, outcomes in found:
        assert 0.001 <= setting["rate"] <= 1.0
        assert setting["rank"] in range(2, 10)
        assert setting["scheme"] in ("su", "aop")
        assert outcomes == ["failed"] * 3 if setting["rank"] == 7 else outcomes[0] == "done"
    # Logarithms are uniform: two thirds are below 0.1, where a tenth of uniform rates would be.
    assert min(setting["rate"] for setting, _ in found) < 0.1
    # More settings are added to those that are there.
    more = performed(search(plan(SAMPLED, sampler=sampler, n_settings=15)))
    assert [setting for setting, _ in more[:12]] == [setting for setting, _ in found]
    assert len(more) == 15


def test_settings_that_begin_poorly_are_given_up(search, trained):
    asked = plan({"rate": Range(0.001, 1.0, log=True)}, sampler="random", n_settings=30)
    found = performed(search(asked))
    poor = [setting for setting, outcomes in found if outcomes == ["done", "pruned", "pruned"]]
    assert 5 < len(poor) < 25
    assert len(trained) == 3 * 30 - 2 * len(poor)
    whole = [setting for setting, outcomes in found if outcomes == ["done"] * 3]
    assert len(whole) + len(poor) == 30
    best = min(found, key=lambda item: abs(math.log(item[0]["rate"] / 0.1)))[0]
    assert best in whole
    # They stay given up.
    assert performed(search(asked, "again")) == found


def test_failures_are_those_of_a_session(search, trained):
    asked = plan({"rank": [7, 2]})
    first = search(asked)
    assert performed(first) == [({"rank": 7}, ["failed"] * 3), ({"rank": 2}, ["done"] * 3)]
    assert first.outcomes()[0][1][1]["reason"] == "ValueError: 7 is too many"
    assert len(trained) == 6
    performed(search(asked, "here"))
    assert len(trained) == 6
    performed(search(asked, "again"))
    assert len(trained) == 9


def test_a_run_that_kills_its_process_loses_only_itself(search, trained, monkeypatch):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    asked = plan({"rank": [2, 3]})
    for session, statuses in {"another": ["done"] * 3, "here": ["done", "failed", "done"]}.items():
        victim = search(asked, session)
        victim.enqueue([{"rank": 2}])
        if session == "here":
            for path in victim.folder.iterdir():
                path.unlink()
        trial = victim.study.ask(victim._space)
        trial.set_user_attr("session", session)
        asked.runs(asked.decoded(trial.params))[0].perform(
            SAMPLES, victim.folder, victim.fingerprint
        )
        trial.set_user_attr("process", [socket.gethostname(), process.pid])
        survivor = search(asked, "here")
        found = performed(survivor)
        assert found == [({"rank": 2}, statuses), ({"rank": 3}, ["done"] * 3)]
        states = {t.state.name for t in survivor.study.get_trials()}
        assert states == {"COMPLETE", "FAIL"}
    assert survivor.outcomes()[0][1][1]["reason"] == KILLED


def test_a_trial_that_nobody_owns_is_given_up_after_a_while(search, monkeypatch):
    asked = plan(SAMPLED, sampler="random", n_settings=1)
    here = search(asked)
    here.study.ask(here._space)
    here.bury()
    assert not here.has_work()
    monkeypatch.setattr("mporbm.sweep.search.LONGEST_START", timedelta(0))
    here.bury()
    assert here.has_work()
    assert [trial.state.name for trial in here.study.get_trials()] == ["FAIL"]


def test_who_waits_for_another_process_looks(search, trained):
    asked = plan({"rank": [2]})
    here = search(asked)
    here.enqueue([{"rank": 2}])
    other = contextlib.ExitStack()
    other.enter_context(locked(asked.runs({"rank": 2})[0].path(here.folder, here.fingerprint)))
    end = threading.Timer(2.0, other.close)
    end.start()
    with pytest.raises(KeyboardInterrupt):
        here.work(mock.Mock(side_effect=[None, KeyboardInterrupt]))
    assert trained == []
    end.cancel()
    other.close()


def test_the_lock_of_a_relative_folder_leads_to_its_file(tmp_path, monkeypatch):
    """Otherwise Optuna would wait for ever for one that a killed process has left."""
    links, symlink = [], os.symlink

    def record(target, link):
        symlink(target, link)
        links.append(Path(link).exists())

    monkeypatch.setattr(os, "symlink", record)
    monkeypatch.chdir(tmp_path)
    Search(plan(GRID), SAMPLES, Path("out"), "here")
    assert {*links} == {True}


@pytest.mark.parametrize(("low", "high"), [(0.5, 0.99999), (0.12344, 0.5)])
def test_rounded_numbers_stay_in_their_range(low, high):
    asked = plan({"rate": Range(low, high)}, sampler="random")
    for value in (low, high):
        setting = asked.decoded({"rate": float(value)})
        assert low <= setting["rate"] <= high
        assert asked.decoded(asked.encoded(setting)) == setting


def test_other_samples_make_other_runs(search, trained, tmp_path):
    asked = plan({"rank": [2]})
    performed(search(asked))
    performed(Search(asked, Samples(np.zeros((4, 2)), np.ones((1, 2))), tmp_path, "here"))
    assert len(trained) == 6
