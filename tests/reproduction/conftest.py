"""Runs done in this process, and experiments whose runs are made up."""

import importlib

import pytest

from reproduction_support import fakes
from reproduction import runs


def performed(missing, folder, n_jobs, interrupts):
    """What `runs._performed` does, without other processes."""
    for run in missing:
        try:
            run.perform(folder)
        except Exception as error:
            yield run, error
        else:
            yield run, None


@pytest.fixture
def in_process(monkeypatch):
    """Runs are done here, one after the other."""
    monkeypatch.setattr(runs, "_performed", performed)


@pytest.fixture(scope="module")
def made_up():
    """All runs are made up, and done here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_performed", performed)
        for name, run in fakes.RUNS.items():
            patch.setattr(importlib.import_module(f"reproduction.{name}"), "run", run)
        yield
