"""Compiled programs are kept from process to process, if the user asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from mporbm import RBM, enable_compilation_cache

SCRIPT = """
import logging
import numpy as np
from mporbm import RBM, enable_compilation_cache

enable_compilation_cache()
seen = []
logging.getLogger("jax._src.compiler").addHandler(type("Seen", (logging.Handler,), {
    "emit": lambda self, record: seen.append(record.getMessage())})())
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
RBM(2, n_iter=1, batch_size=4, random_state=0).fit(np.eye(4))
print(sum("Persistent compilation cache hit for 'jit_run_block'" in line for line in seen))
"""


def fitted(folder):
    """How often a new process found the training program compiled."""
    # As a user has it: the tests tell JAX where to keep programs.
    plain = {name: value for name, value in os.environ.items() if "_CACHE_" not in name}
    environment = {**plain, "MPORBM_CACHE": str(folder)}
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


@pytest.mark.slow
def test_a_second_process_finds_what_the_first_has_compiled(tmp_path):
    assert fitted(tmp_path / "cache") == 0
    assert any((tmp_path / "cache" / "compiled").glob("*/*"))
    assert fitted(tmp_path / "cache") == 1


@pytest.fixture
def config(monkeypatch, tmp_path):
    """JAX's settings as of a user, put back after the test."""
    names = ["jax_enable_compilation_cache", "jax_compilation_cache_dir"]
    names.append("jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    monkeypatch.setenv("MPORBM_CACHE", str(tmp_path / "cache"))
    jax.config.update("jax_compilation_cache_dir", None)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
    yield jax.config
    for name, value in before.items():
        jax.config.update(name, value)
    reset_cache()


def test_training_and_inference_leave_jax_as_it_is(config, tmp_path):
    before = dict(config.values)
    model = RBM(2, n_iter=1, batch_size=4, random_state=0).fit(np.eye(4))
    model.partial_fit(np.eye(4)).transform(np.eye(4))
    assert dict(config.values) == before
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_is_asked_for_is_used(config, tmp_path):
    config.update("jax_enable_compilation_cache", False)
    config.update("jax_compilation_cache_dir", "elsewhere")
    enable_compilation_cache(tmp_path / "mine")
    assert config.jax_enable_compilation_cache
    assert config.jax_compilation_cache_dir == str(tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()


def test_what_jax_was_told_holds(config, tmp_path):
    config.update("jax_compilation_cache_dir", "elsewhere")
    enable_compilation_cache()
    assert config.jax_compilation_cache_dir == "elsewhere"
    config.update("jax_compilation_cache_dir", None)
    config.update("jax_enable_compilation_cache", False)
    enable_compilation_cache()
    assert config.jax_compilation_cache_dir is None
    assert not (tmp_path / "cache").exists()


def test_a_folder_that_cannot_be_written_does_no_harm(config, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file, not a folder")
    enable_compilation_cache()
    assert config.jax_compilation_cache_dir is None
    (tmp_path / "cache").unlink()
    monkeypatch.setattr("os.access", lambda path, mode: False)
    enable_compilation_cache()
    assert config.jax_compilation_cache_dir is None


def test_each_kind_of_processor_has_a_folder(config, tmp_path, monkeypatch):
    for flags in ("flags : avx2", "flags : avx2 avx512f", "Features : neon", "Features : sve"):
        monkeypatch.setattr(Path, "read_text", lambda *_, flags=flags, **__: f"cpu\n{flags}\n")
        config.update("jax_compilation_cache_dir", None)
        enable_compilation_cache()
        assert Path(config.jax_compilation_cache_dir).parent == tmp_path / "cache" / "compiled"
    assert len([*(tmp_path / "cache" / "compiled").iterdir()]) == 4


def test_a_time_that_was_asked_for_stays(config):
    config.update("jax_persistent_cache_min_compile_time_secs", 7.0)
    enable_compilation_cache()
    assert config.jax_persistent_cache_min_compile_time_secs == 7.0
