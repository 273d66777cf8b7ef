"""Imports flow downwards only: estimators -> learning -> sampling -> machine -> tensor."""

import ast
import subprocess
import sys
from pathlib import Path

import mporbm

PACKAGE = Path(mporbm.__file__).parent
LAYERS = [
    *("tensor", "machine", "sampling", "learning", "estimators"),
    *("datasets", "diagram", "pictures", "paper", "sweep", "report", "cli"),
]


def imported_layers(path: Path) -> set[str]:
    """The layers of this package that a module imports, itself included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            found |= {node.module.split(".")[0]} if node.module else {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mporbm."):
            found.add(node.module.split(".")[1])
    return found


def test_imports_flow_downwards():
    checked = 0
    for height, layer in enumerate(LAYERS):
        for path in (PACKAGE / layer).glob("*.py"):
            files = {"cache"} if layer in ("estimators", "datasets") else set()
            assert imported_layers(path) <= {*LAYERS[:height], *files}, path
            checked += 1
    assert checked > 10
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == {*LAYERS}


def test_pictures_and_diagrams_do_without_each_other():
    for path in (PACKAGE / "pictures").glob("*.py"):
        assert "diagram" not in imported_layers(path), path


def test_importing_the_package_is_cheap():
    """Neither JAX nor matplotlib is loaded before it is needed."""
    script = "import sys, mporbm; print(sorted({'jax', 'matplotlib', 'numpy'} & set(sys.modules)))"
    script += "; mporbm.machine.Machine; print('jax' in sys.modules)"
    command = [sys.executable, "-c", script]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["[]", "True"]
