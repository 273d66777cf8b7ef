"""The README as a user runs it: JAX's default precision, warnings as errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
def test_examples_of_the_readme():
    command = [sys.executable, "-W", "error", "-m", "doctest", str(README)]
    plain = {n: v for n, v in os.environ.items() if n != "JAX_DISABLE_MOST_OPTIMIZATIONS"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
    assert result.returncode == 0, result.stdout + result.stderr
    assert README.read_text().count(">>>") > 10
