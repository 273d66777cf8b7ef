"""Small trained models as files, and commands run in this process."""

import json
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mporbm
from mporbm import MPORBM, RBM, Binarize, BitPlanes
from mporbm.cli import main
from reproduction.settings import PAPER

SHAPE = ["--hidden-shape", "2,2", "--rank", "2"]
RUN = ["--n-iter", "3", "--batch-size", "10", "--seed", "0"]
PLAIN_RULE = ["--scheme", "su", "--gauge", "none", "--rule", "plain", "--momentum", "0.5"]
PLAIN_RULE += ["--negative-phase", "cd", "--schedule", "constant"]
PARAMETERS = {"rank": 2, "n_iter": 3, "batch_size": 10, "random_state": 0}


def command(arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.fixture
def run(capsys):
    """Run a command: its exit code and what it printed."""

    def call(*arguments):
        capsys.readouterr()
        code = command(arguments)
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return call


@pytest.fixture
def ok(run):
    """Run a command that works, with ``--json``: the facts it prints."""

    def call(*arguments):
        ended = run(*arguments, "--json")
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.count("\n") == 1
        return json.loads(ended.out)

    return call


def contents(folder):
    """All files of a folder and what is in them."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in Path(folder).rglob("*")
    }


@pytest.fixture
def refused(run, tmp_path):
    """Run a command that fails: the one line that it prints; it leaves nothing behind."""

    def call(*arguments, code=1):
        before = contents(tmp_path)
        ended = run(*arguments)
        assert (ended.code, ended.out) == (code, ""), ended
        assert ended.err.startswith("mporbm: error: ")
        assert ended.err.endswith("\n")
        assert ended.err.count("\n") == 1, ended.err
        assert contents(tmp_path) == before
        return ended.err.removeprefix("mporbm: error: ").rstrip("\n")

    return call


@pytest.fixture(scope="session")
def same():
    """Assert that two estimators are the same to the last bit, but for the time they took."""

    def check(one, other):
        trees = jax.tree.leaves(one.machine_), jax.tree.leaves(other.machine_)
        for a, b in zip(*trees, strict=True):
            assert_array_equal(np.asarray(a), np.asarray(b))
        histories = [[{**e, "seconds": None} for e in m.history_] for m in (one, other)]
        assert histories[0] == histories[1]

    return check


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Data and models as files: for each kind its path, estimator, coding and samples."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    grey = rng.integers(256, size=(20, 3, 2), dtype=np.uint8)
    kinds = {
        "plain": (rng.random((20, 3, 2)) < 0.4, MPORBM((2, 2), **PARAMETERS), None, SHAPE),
        "grey": (
            grey,
            MPORBM((2, 2), **PARAMETERS),
            Binarize(100.0),
            [*SHAPE, "--binarize", 100],
        ),
        "planes": (
            grey // 64,
            MPORBM((2, 2, 1), **PARAMETERS, scheme="su", gauge=None, **PAPER),
            BitPlanes(2),
            ["--hidden-shape", "2,2,1", "--rank", "2", "--bit-planes", "2", *PLAIN_RULE],
        ),
        "dense": (
            rng.random((20, 3, 2)) < 0.4,
            RBM((2, 2), **{n: v for n, v in PARAMETERS.items() if n != "rank"}),
            None,
            ["--model", "rbm", "--hidden-shape", "2,2"],
        ),
    }
    models = {}
    for kind, (samples, expected, coding, options) in kinds.items():
        data, path = folder / f"{kind}.npy", folder / f"{kind}.safetensors"
        np.save(data, samples)
        assert command(["fit", data, "-o", path, *options, *RUN, "--quiet"]) == 0
        coded = samples if coding is None else coding.fit(samples).transform(samples)
        models[kind] = SimpleNamespace(
            data=data,
            path=path,
            samples=samples,
            coding=coding,
            coded=coded,
            expected=expected.fit(coded),
            estimator=mporbm.load(path),
            options=[*options, *RUN],
        )
    assert {path.suffix for path in folder.iterdir()} == {".npy", ".safetensors"}
    return SimpleNamespace(folder=folder, **models)
