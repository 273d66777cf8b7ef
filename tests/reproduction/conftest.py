"""Runs done in this process, and experiments whose runs are made up."""

import importlib

import pytest

from reproduction import runs
from reproduction_support import fakes


@pytest.fixture
def in_process(monkeypatch):
    """Runs are done here, one after the other."""
    monkeypatch.setattr(runs, "run_in_processes", fakes.run_here)


@pytest.fixture(scope="module")
def made_up():
    """All runs are made up, and done here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "run_in_processes", fakes.run_here)
        for name, run in fakes.RUNS.items():
            patch.setattr(importlib.import_module(f"reproduction.{name}"), "run", run)
        yield
