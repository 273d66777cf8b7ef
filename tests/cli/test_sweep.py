"""A sweep tries every setting once, whatever ends it, and says which are the best."""

import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from multiprocessing.context import SpawnProcess
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

import mporbm
from mporbm.cli.sweep import _work
from mporbm.cli.sweep_config import N_SETTINGS, read_config
from mporbm.cli.sweep_report import text
from mporbm.sweep import Range, Run, Search

# What a user without the tests' type checker sees.
pytestmark = pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")

FILES = {"results.csv", "runs.csv", "sweep.png", "best.toml", "runs", "study.log"}
HERE = ["--n-jobs", 1]
COMMON = 'data = "x.npy"\nhidden_shape = [2, 2]\nn_iter = 2\nbatch_size = 10\n'


@pytest.fixture
def place(tmp_path, rng):
    """A folder with samples and labels, apart from that of the results."""
    folder = tmp_path / "place"
    folder.mkdir()
    samples = rng.random((30, 3, 2)) < 0.4
    np.save(folder / "x.npy", samples)
    np.save(folder / "x-val.npy", rng.random((12, 3, 2)) < 0.4)
    np.save(folder / "y.npy", rng.integers(3, size=30))
    np.save(folder / "y-val.npy", rng.integers(3, size=12))
    return folder


@pytest.fixture
def config(place):
    """Write a configuration file."""

    def write(*texts, common=COMMON):
        path = place / "sweep.toml"
        path.write_text(common + "\n".join(texts))
        return path

    return write


@pytest.fixture
def performed(monkeypatch):
    """Runs that were done in this process."""
    done, train = [], Run.train

    def record(run, samples):
        done.append((dict(run.options), run.seed))
        return train(run, samples)

    monkeypatch.setattr(Run, "train", record)
    return done


@pytest.fixture
def made_up(monkeypatch):
    """Outcomes follow from rank and seed, so that no training is needed: runs that were done."""
    done = []

    def train(run, samples):
        done.append((dict(run.options), run.seed))
        rank = run.options["rank"]
        if rank == 7 and run.seed == 1:
            raise ValueError("7 is too many")
        measures = {
            "reconstruction_error": 1.0 / rank,
            "pseudo_log_likelihood": -10.0 / rank + 0.01 * run.seed * rank,
        }
        if samples.y is not None:
            measures["nearest_neighbour_error"] = float(rank)
        status = "diverged" if rank == 9 else "done"
        return {"status": status, "measures": measures, "n_iter": 2, "n_parameters": 10 * rank}

    monkeypatch.setattr(Run, "train", train)
    return done


@pytest.fixture
def terminated(made_up, monkeypatch):
    """The process is told to end during runs, which are made up; only sweeps listen."""
    train, former = Run.train, signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def terminate(run, samples):
        signal.raise_signal(signal.SIGTERM)
        return train(run, samples)

    monkeypatch.setattr(Run, "train", terminate)
    yield made_up
    signal.signal(signal.SIGTERM, former)


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# Configuration

BAD = {
    "": "sweep=None: expected a table [sweep]",
    "sweep = 3": "sweep=3: expected a table [sweep]",
    "[sweep]": "sweep={}: expected a table [sweep]",
    "[sweep]\nrank = 3": "sweep.rank=3: expected a list of values, or a range",
    "[sweep]\nrank = []": "sweep.rank=[]: expected a list of values, or a range",
    "[sweep]\nrank = [2, 2]": "sweep.rank=[2, 2]: expected values that differ",
    "[sweep]\nnonsense = [1]": "nonsense: there is no such option; see mporbm fit --help.",
    "[sweep]\nmomentum = [0.1, true]": "momentum=True: expected a number.",
    "[sweep]\nscheme = ['als']": "scheme='als': expected one of aop, su, two-site.",
    "[sweep]\nn_iter = [1, 2]": "n_iter: expected one value, or several in [sweep], not both.",
    "[sweep]\nx-val = ['x.npy']": "sweep.x-val: expected it outside of [sweep]",
    "[sweep]\nvalidation_fraction = [0.1]": "sweep.validation_fraction: expected it outside",
    "[sweep]\nseed = [1, 2]": "seed: expected seeds, a list.",
    "[sweep]\nbinarize = [0, 1]": "binarize: expected one value for all runs: the likelihood of",
    "[sweep]\nvisible-units = ['gaussian']": "visible_units: expected one value for all runs",
    "seed = 1\n[sweep]\nrank = [1]": "seed: expected seeds, a list.",
    "checkpoint = 'c'\n[sweep]\nrank = [1]": "checkpoint: expected no such option",
    "nonsense = 1\n[sweep]\nrank = [1]": "nonsense: there is no such option",
    "momentum = 'high'\n[sweep]\nrank = [1]": "momentum='high': expected a number.",
    "seeds = 3\n[sweep]\nrank = [1]": "seeds=3: expected a list of different integers",
    "seeds = []\n[sweep]\nrank = [1]": "seeds=[]: expected a list of different integers",
    "seeds = [1, 1]\n[sweep]\nrank = [1]": "seeds=[1, 1]: expected a list of different integers",
    "seeds = [-1]\n[sweep]\nrank = [1]": "seeds=[-1]: expected a list of different integers",
    "seeds = [true]\n[sweep]\nrank = [1]": "seeds=[True]: expected a list of different integers",
    "x_val = 3\n[sweep]\nrank = [1]": "x_val=3: expected a string.",
    "y_val = 'y.npy'\n[sweep]\nrank = [1]": "y_val: expected the labels of the training samples",
    "y = 'y.npy'\nx_val = 'x-val.npy'\n[sweep]\nrank = [1]": "x_val: expected y_val, too",
    "y = 'y.npy'\ny_val = 'y-val.npy'\n[sweep]\nrank = [1]": "y_val: expected x_val, too",
    "measure = 'loss'\n[sweep]\nrank = [1]": "measure='loss': expected pseudo_log_likelihood or",
    "measure = 'nearest_neighbour_error'\n[sweep]\nrank = [1]": "measure='nearest_neighbour_error'",
    "measure = 'pseudo_log_likelihood'\nvisible_units = 'gaussian'\n[sweep]\nrank = [1]": (
        "measure='pseudo_log_likelihood': expected reconstruction_error; nearest neighbours need"
    ),
    "rank 3": "expected a TOML file: ",
    "[sweep]\nrank = {low = 1}": "rank=None: expected whole numbers",
    "[sweep]\nrank = {low = 3, high = 2}": "sweep.rank={'low': 3, 'high': 2}: expected numbers low",
    "[sweep]\nmomentum = {low = 0, high = 0.5, log = true}": "sweep.momentum={'low': 0, 'high': 0",
    "[sweep]\nmomentum = {low = 0, high = 0.5, step = 1}": "sweep.momentum={'low': 0, 'high': 0.5",
    "[sweep]\nrank = {low = [1], high = [2]}": "sweep.rank={'low': [1], 'high': [2]}: expected num",
    "[sweep]\nscheme = {low = 'su', high = 'aop'}": "sweep.scheme={'low': 'su', 'high': 'aop'}: ",
    "sampler = 'best'\n[sweep]\nrank = [1]": "sampler='best': expected one of grid, tpe, random.",
    "sampler = 'grid'\n[sweep]\nrank = {low = 1, high = 2}": "sampler='grid': expected a list of",
    "sampler = 'grid'\nn_settings = 2\n[sweep]\nrank = [1]": "sampler='grid': expected no n_setti",
    "n-settings = 0\n[sweep]\nrank = [1]": "n_settings=0: expected an integer of at least 1.",
}


def test_bad_configurations_are_refused(refused, config, tmp_path):
    for words, expected in BAD.items():
        path = config(words)
        message = refused("sweep", path, "-o", tmp_path / "out")
        assert message.startswith(f"{path}: {expected}")


BAD_VALUES = {
    "[sweep]\nmomentum = [0.5, 1.5]": "momentum=1.5: expected a number in [0, 1).",
    "[sweep]\nrank = [2, 0]": "rank=0: expected an integer of at least 1",
    "[sweep]\nmodel = ['rbm']\nrank = [2]": "rank: rbm has no such option; see mporbm fit --help.",
    "[sweep]\nlearning_rate = ['fast']": "learning_rate='fast': expected auto or a number",
    "validation_fraction = 0.99\n[sweep]\nrank = [2]": "validation_fraction=0.99: expected to",
    "gray = true\n[sweep]\nrank = [2]": "gray: expected bit_planes, too.",
    "[sweep]\nmomentum = {low = 0.1, high = 1.5}": "momentum=1.5: expected a number in [0, 1).",
}


def test_settings_that_nothing_can_have_are_refused_before_any_run(
    refused, config, tmp_path, performed
):
    for words, expected in BAD_VALUES.items():
        assert refused("sweep", config(words), "-o", tmp_path / "out").startswith(expected)
    assert performed == []


BAD_DATA = {
    "x_val = 'none.npy'": (r"place/none\.npy: .*there is no such file", None),
    "x_val = 'bad.npy'": (r"place/bad\.npy: expected samples of shape \(3, 2\)", (4, 2)),
    "y = 'bad.npy'": (r"place/bad\.npy: expected a number or a string for each of 30", (29,)),
    "y = 'none.npy'": (r"place/none\.npy: expected a file of labels", None),
    "y = 'sweep.toml'": (r"place/sweep\.toml: expected a file of labels", None),
}


def test_bad_files_are_refused(refused, config, place, tmp_path):
    for words, (expected, shape) in BAD_DATA.items():
        if shape is not None:
            np.save(place / "bad.npy", np.zeros(shape, bool))
        message = refused("sweep", config(words, "[sweep]\nrank = [1]"), "-o", tmp_path / "out")
        assert re.search(expected, message), message


def test_bytes_need_a_coding(refused, config, place, tmp_path):
    np.save(place / "x.npy", np.full((9, 3, 2), 200, np.uint8))
    message = refused("sweep", config("[sweep]\nrank = [1]"), "-o", tmp_path / "out")
    assert message.startswith(f"{place}/x.npy: expected values from 0 to 1, got up to 200")


def test_the_samples_have_to_be_named(refused, config, tmp_path):
    path = config("[sweep]\nrank = [1]", common="")
    assert refused("sweep", path, "-o", tmp_path / "out").startswith(f"{path}: data: expected")


def test_a_file_is_no_folder(refused, config, place, tmp_path):
    message = refused("sweep", config("[sweep]\nrank = [1]"), "-o", place / "x.npy")
    assert message == f"{place}/x.npy: expected a folder, but it is a file."


def test_the_grid_has_every_combination(config, place):
    # Names may be written either way.
    path = config(
        "seeds = [4, 2]\nx-val = 'x-val.npy'\nmomentum = 0.9",
        "[sweep]\nrank = [3, [2, 2]]\nlearning-rate = ['auto', 0.1]\nrule = ['plain']",
    )
    asked = read_config(path)
    plan = asked.plan
    assert (asked.data, asked.x_val) == (f"{place}/x.npy", f"{place}/x-val.npy")
    assert (plan.seeds, plan.measure, plan.sampler) == ((4, 2), "pseudo_log_likelihood", "grid")
    assert plan.grid == [
        {"rank": rank, "learning_rate": rate, "rule": "plain"}
        for rank in (3, [2, 2])
        for rate in ("auto", 0.1)
    ]
    runs = plan.runs(plan.grid[3])
    assert [run.seed for run in runs] == [4, 2]
    assert runs[0].options == {
        **{"hidden_shape": [2, 2], "n_iter": 2, "batch_size": 10, "momentum": 0.9},
        **{"rank": [2, 2], "learning_rate": 0.1, "rule": "plain"},
    }
    estimator = runs[0].estimator
    assert (estimator.rank, estimator.learning_rate, estimator.rule) == ((2, 2), 0.1, "plain")
    assert runs[0].coding is None


def test_ranges_are_sampled(config):
    words = "[sweep]\nrank = {low = 1, high = 8}\nmomentum = {low = 0, high = 0.9}"
    plan = read_config(config(words)).plan
    assert plan.space == {"rank": Range(1, 8), "momentum": Range(0.0, 0.9)}
    assert (plan.sampler, plan.n_settings) == ("tpe", N_SETTINGS)
    plan = read_config(config("n_settings = 5\nsampler = 'random'\n[sweep]\nrank = [1, 2]")).plan
    assert (plan.sampler, plan.n_settings, plan.space) == ("random", 5, {"rank": [1, 2]})


# Results


def test_every_setting_is_tried_with_every_seed(ok, config, tmp_path, made_up):
    path, out = config("seeds = [0, 1]\n[sweep]\nrank = [5, 2]\nmomentum = [0.5, 0.9]"), "out"
    facts = ok("sweep", path, "-o", tmp_path / out, *HERE)
    tried = [(o["rank"], o["momentum"], seed) for o, seed in made_up]
    assert tried == [(r, m, s) for r in (5, 2) for m in (0.5, 0.9) for s in (0, 1)]
    assert {item.name for item in (tmp_path / out).iterdir()} == FILES
    assert len(list((tmp_path / out / "runs").iterdir())) == 8
    assert facts["output"] == str(tmp_path / out)
    assert facts["best"] == {"rank": 5, "momentum": 0.5}
    # Equal outcomes cannot be told apart.
    assert facts["like_the_best"] == [{"rank": 5, "momentum": 0.9}]
    with Image.open(tmp_path / out / "sweep.png") as image:
        assert len(np.unique(np.asarray(image))) > 2


def test_what_is_there_is_not_done_again(ok, config, place, tmp_path, made_up):
    arguments = ["-o", tmp_path / "out", *HERE]
    ok("sweep", config("seeds = [0, 1]\n[sweep]\nrank = [2, 3]"), *arguments)
    assert len(made_up) == 4
    ok("sweep", config("seeds = [0, 1]\n[sweep]\nrank = [2, 3]"), *arguments)
    assert len(made_up) == 4
    # What is asked for in addition, and only that, is done.
    ok("sweep", config("seeds = [0, 1, 2]\n[sweep]\nrank = [4, 3]"), *arguments)
    assert [(options["rank"], seed) for options, seed in made_up[4:]] == [
        *((4, 0), (4, 1), (4, 2), (3, 2))
    ]
    # What settings are compared by is no part of a run.
    words = "measure = 'reconstruction_error'\nseeds = [0, 1]\n[sweep]\nrank = [2, 3]"
    assert ok("sweep", config(words), *arguments)["measure"] == "reconstruction_error"
    assert len(made_up) == 8
    # Other samples make other runs, as do other options and a spoilt file.
    np.save(place / "x.npy", np.zeros((30, 3, 2), bool))
    ok("sweep", config("seeds = [0]\n[sweep]\nrank = [2]"), *arguments)
    ok("sweep", config("seeds = [0]\nmomentum = 0.1\n[sweep]\nrank = [2]"), *arguments)
    assert len(made_up) == 10
    for outcome in (tmp_path / "out" / "runs").iterdir():
        outcome.write_text("{")
    ok("sweep", config("seeds = [0]\n[sweep]\nrank = [2]"), *arguments)
    assert len(made_up) == 11


def test_the_tables_are_those_of_the_outcomes(ok, run, config, tmp_path, made_up):
    path, out = config("y = 'y.npy'\nseeds = [0, 3]\n[sweep]\nrank = [5, 2, 9, 3]"), "out"
    facts = ok("sweep", path, "-o", tmp_path / out, *HERE)
    kept_outcomes = [json.loads(p.read_text()) for p in (tmp_path / out / "runs").iterdir()]
    outcomes = {(o["options"]["rank"], o["seed"]): o["outcome"] for o in kept_outcomes}
    assert facts["measure"] == "nearest_neighbour_error"
    rows = read_csv(tmp_path / out / "results.csv")
    assert [row["rank"] for row in rows] == ["5", "2", "9", "3"]
    for row, found in zip(rows, facts["settings"], strict=True):
        rank = int(row["rank"])
        assert found["options"] == {"rank": rank}
        for name in ("pseudo_log_likelihood", "reconstruction_error", "nearest_neighbour_error"):
            values = [outcomes[rank, seed]["measures"][name] for seed in (0, 3)]
            expected = [np.mean(values), np.std(values, ddof=1)]
            assert_allclose([float(row[f"{name}_{what}"]) for what in ("mean", "std")], expected)
            assert_allclose(list(found["measures"][name].values()), expected)
        assert (row["n_done"], row["n_diverged"]) == (("0", "2") if rank == 9 else ("2", "0"))
    assert [row["place"] for row in rows] == ["3", "1", "", "2"]
    assert facts["best"] == {"rank": 2}
    runs = read_csv(tmp_path / out / "runs.csv")
    assert [(int(row["rank"]), int(row["seed"])) for row in runs] == [
        (rank, seed) for rank in (5, 2, 9, 3) for seed in (0, 3)
    ]
    for row in runs:
        outcome = outcomes[int(row["rank"]), int(row["seed"])]
        assert row["status"] == outcome["status"]
        for name, value in outcome["measures"].items():
            assert float(row[name]) == value
    # The best first, those without a place last.
    ended = run("sweep", path, "-o", tmp_path / out, *HERE)
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    places = [line.split()[0] for line in lines if re.match(r" *\d ", line)]
    assert places == ["2", "3", "5", "9"]
    assert "2 of 2 diverged" in ended.out
    assert "2.0 ± 0.0" in ended.out
    assert max(map(len, lines[:-1])) <= 80
    assert f"Best: rank=2 ({tmp_path / out / 'best.toml'})" in ended.out


def test_a_failed_run_is_told_and_tried_again(run, config, tmp_path, made_up, monkeypatch):
    path, out = config("seeds = [0, 1]\n[sweep]\nrank = [7, 2]"), tmp_path / "out"
    ended = run("sweep", path, "-o", out, *HERE)
    assert ended.code == 1
    assert ended.err == (
        f"mporbm: error: 1 of 4 runs failed, which the same command tries again; the others are "
        f"kept in {out}; the first is rank=7, seed 1: ValueError: 7 is too many\n"
    )
    assert "1 of 2 failed" in ended.out
    assert "Best: rank=2 " in ended.out
    row = read_csv(out / "runs.csv")[1]
    assert (row["status"], row["reason"]) == ("failed", "ValueError: 7 is too many")
    assert len(list((out / "runs").iterdir())) == 3
    assert len(made_up) == 4
    ended = run("sweep", path, "-o", out, *HERE, "--json")
    assert (ended.code, json.loads(ended.out)["settings"][0]["runs"]["failed"]) == (1, 1)
    assert len(made_up) == 5


def test_there_may_be_nothing_to_choose_from(run, config, tmp_path, made_up):
    out = tmp_path / "out"
    assert run("sweep", config("[sweep]\nrank = [2]"), "-o", out, "-q", *HERE).code == 0
    ended = run("sweep", config("[sweep]\nrank = [9]"), "-o", out, *HERE)
    assert ended.code == 1
    assert "3 of 3 diverged" in ended.out
    assert f"{out}: expected a setting with which no run diverges, got none" in ended.err
    # Not that of the sweep before.
    assert {item.name for item in out.iterdir()} == FILES - {"best.toml"}


def test_one_seed_is_said_to_be_few(run, config, tmp_path, made_up):
    path = config("seeds = [0]\n[sweep]\nrank = [2, 3]")
    ended = run("sweep", path, "-o", tmp_path / "out", *HERE)
    assert "one seed does not tell settings apart" in ended.out


def test_quiet(run, config, tmp_path, made_up):
    ended = run("sweep", config("[sweep]\nrank = [2]"), "-o", tmp_path / "out", "-q", *HERE)
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.parametrize(
    ("value", "expected"), [([2, 3], "2,3"), (True, "true"), (0.1, "0.1"), ("auto", "auto")]
)
def test_values_are_written_as_flags_have_them(value, expected):
    assert text(value) == expected


# Trainings


@pytest.mark.slow
def test_the_best_setting_can_be_fitted(ok, config, place, tmp_path):
    """What fit makes of it is what was compared, as the validation samples are given."""
    out, model = tmp_path / "out", tmp_path / "m.safetensors"
    words = "data = 'x.npy'\nx_val = 'x-val.npy'\nseeds = [3, 1]\nmodel = 'rbm'\nbinarize = 0.5\n"
    words += "n_iter = 2\nearly_stopping = true\nlearning_rate = 1e-5\n"
    path = config("[sweep]\nhidden_shape = [3, [2, 2]]\nschedule = ['linear']", common=words)
    facts = ok("sweep", path, "-o", out, *HERE)
    options = tomllib.loads((out / "best.toml").read_text())
    assert options == {
        **{"model": "rbm", "binarize": 0.5, "n_iter": 2, "early_stopping": True},
        **{"learning_rate": 1e-5, "x_val": f"{place}/x-val.npy", "seed": 3},
        **facts["best"],
    }
    ok("fit", place / "x.npy", "--config", out / "best.toml", "-o", model)
    score = ok("score", model, place / "x-val.npy", "--pseudo")["pseudo_log_likelihood"]
    shape = text(facts["best"]["hidden_shape"])
    best = next(row for row in read_csv(out / "runs.csv") if row["hidden_shape"] == shape)
    assert float(best["pseudo_log_likelihood"]) == pytest.approx(score)
    assert mporbm.load(model).n_parameters_ == int(best["n_parameters"])


def test_an_interrupted_sweep_says_how_to_go_on(run, config, tmp_path, made_up, monkeypatch):
    original, path, out = Search.work, config("[sweep]\nrank = [2, 3]"), tmp_path / "out"
    for error, code in ((KeyboardInterrupt(), 130), (SystemExit(143), 143)):

        def interrupted(search, look, error=error):
            search.try_next()
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(Search, "work", interrupted)
            before = signal.getsignal(signal.SIGTERM)
            ended = run("sweep", path, "-o", out, *HERE)
        assert signal.getsignal(signal.SIGTERM) is before
        assert (ended.code, ended.out) == (code, "")
        said = f"stopped; the same command goes on from what is done, which {out} keeps\n"
        assert ended.err.endswith(said)
        assert {item.name for item in out.iterdir()} == {"runs", "study.log"}
    assert Search.work is original
    assert run("sweep", path, "-o", out, *HERE).code == 0
    assert len(made_up) == 6


def test_a_signal_in_the_last_run_ends_a_sweep(run, config, tmp_path, terminated):
    path, out = config("seeds = [0]\n[sweep]\nrank = [2]"), tmp_path / "out"
    ended = run("sweep", path, "-o", out, *HERE)
    assert (ended.code, ended.out, len(terminated)) == (143, "", 1)
    assert len(list((out / "runs").iterdir())) == 1


def test_a_sweep_waits_for_the_last_trial_of_another_one(run, config, tmp_path, monkeypatch):
    """Without haste, and a signal ends it."""
    path, out = config("n_settings = 1\n[sweep]\nrank = {low = 1, high = 6}"), tmp_path / "out"
    asked, rounds = read_config(path), []
    other = Search(asked.plan, asked.read_samples(), out, "other")
    trial = other.study.ask(other._space)
    trial.set_user_attr("process", [socket.gethostname(), os.getpid()])

    def bury(search):
        rounds.append(time.monotonic())
        if len(rounds) == 2:
            signal.raise_signal(signal.SIGINT)
        assert len(rounds) < 4, "the signal was not heard"

    monkeypatch.setattr(Search, "bury", bury)
    monkeypatch.setattr("mporbm.cli.sweep.SECONDS_BETWEEN_LOOKS", 0.5)
    ended = run("sweep", path, "-o", out, *HERE)
    assert (ended.code, ended.out, len(rounds)) == (130, "", 2)
    assert rounds[1] - rounds[0] > 0.4


def test_processes_are_told_to_end_before_they_are_killed(monkeypatch):
    ended = []
    monkeypatch.setattr(SpawnProcess, "kill", lambda worker: ended.append(worker.exitcode))
    monkeypatch.setattr("mporbm.cli.sweep.SECONDS_BETWEEN_LOOKS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        _work(["--version"], 1, mock.Mock(side_effect=KeyboardInterrupt))
    assert ended == [-signal.SIGTERM]


def test_a_process_of_a_sweep_ends_after_the_run_in_which_it_is_told_to(
    run, config, tmp_path, terminated
):
    path = config("[sweep]\nrank = {low = 2, high = 3}")
    ended = run("sweep", path, "-o", tmp_path / "out", "--session", "other", "--quiet")
    assert (ended.code, len(terminated)) == (143, 1)


def test_processes_of_a_sweep_do_without_reports(run, config, tmp_path, made_up, monkeypatch):
    monkeypatch.setitem(sys.modules, "mporbm.cli.sweep_report", None)
    path = config("[sweep]\nrank = [2]")
    ended = run("sweep", path, "-o", tmp_path / "out", "--session", "other", "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_sampled_settings_are_compared_and_drawn(ok, config, tmp_path, made_up):
    words = "n_settings = 6\nseeds = [0, 1]\n[sweep]\nrank = {low = 1, high = 6}\n"
    words += "learning_rate = {low = 0.001, high = 0.1, log = true}\nscheme = ['su', 'aop']"
    facts = ok("sweep", config(words), "-o", tmp_path / "out", *HERE)
    assert len(facts["settings"]) == 6
    largest = max(setting["options"]["rank"] for setting in facts["settings"])
    assert facts["best"]["rank"] == largest
    best = tomllib.loads((tmp_path / "out" / "best.toml").read_text())
    assert best["learning_rate"] == facts["best"]["learning_rate"]
    with Image.open(tmp_path / "out" / "sweep.png") as image:
        assert len(np.unique(np.asarray(image))) > 2


@pytest.mark.slow
def test_a_killed_sweep_goes_on(ok, config, tmp_path, performed):
    """What was done stays, and is not done again; its processes end with it."""
    seeds, runs = list(range(5)), tmp_path / "out" / "runs"
    words = f"data = 'x.npy'\nmodel = 'rbm'\nhidden_shape = [2]\nn_iter = 100\nseeds = {seeds}\n"
    path = config("[sweep]\nmomentum = [0.1, 0.2]", common=words)
    process = subprocess.Popen(
        [sys.executable, "-m", "mporbm", "sweep", path, "-o", tmp_path / "out", "--n-jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and not list(runs.glob("*.json")):
        time.sleep(0.001)
    children = _children(process.pid)
    process.kill()
    printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (-signal.SIGKILL, b"")
    assert len(children) >= 2
    deadline = time.monotonic() + 60
    while any(_alive(child) for child in children):
        assert time.monotonic() < deadline, "a process has outlived the sweep"
        time.sleep(0.05)
    before = {outcome: outcome.read_bytes() for outcome in runs.glob("*.json")}
    assert 0 < len(before) < 10
    facts = ok("sweep", path, "-o", tmp_path / "out", *HERE)
    assert len(performed) == 10 - len(before)
    assert {outcome: outcome.read_bytes() for outcome in before} == before
    for setting in facts["settings"]:
        assert setting["runs"] == {"done": 5, "diverged": 0, "failed": 0, "pruned": 0}


@pytest.mark.slow
def test_commands_of_one_folder_share_the_work(config, tmp_path):
    """Each run is done once, and every command ends with all of them."""
    path, out = config("seeds = [0, 1]\n[sweep]\nmomentum = [0.1, 0.2, 0.3]"), tmp_path / "out"
    command = [sys.executable, "-m", "mporbm", "sweep", path, "-o", out, *HERE, "--json"]
    started = [subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE) for _ in range(2)]
    found = [json.loads(process.communicate(timeout=300)[0]) for process in started]
    assert found[0] == found[1]
    assert all(setting["runs"]["done"] == 2 for setting in found[0]["settings"])
    outcomes = [json.loads(file.read_text()) for file in (out / "runs").glob("*.json")]
    assert len(outcomes) == 6


def _children(process):
    """The processes that a process has started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True)
    return [int(number) for number in found.stdout.split()]


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
