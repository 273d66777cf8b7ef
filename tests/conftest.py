"""Every test runs in float64, with all type hints of the package checked at run time."""

import gc
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from beartype import BeartypeConf
from beartype.claw import beartype_package
from hypothesis import settings

# A violated hint warns, and so fails the test; tests of bad input ignore the warning to see what
# a user sees.
beartype_package("mporbm", conf=BeartypeConf(is_pep484_tower=True, violation_type=UserWarning))
jax.config.update("jax_enable_x64", True)
# Compiling takes most of the time: less of it for slower programs. Set the variable to 0 to test
# them as users have them.
UNOPTIMISED = os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") not in ("0", "false")
jax.config.update("jax_disable_most_optimizations", UNOPTIMISED)
QUICK_COMPILER = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
"""Flags with which XLA compiles in half of the time; one that does not know them ends at once."""

collect_ignore = ["mutations"]
MOST_CACHE_BYTES = 2**30
SLOWEST_FIRST = (
    *("test_classifier.py", "test_deep.py", "test_checkpoint.py", "test_units.py"),
    *("test_extensions.py", "test_classification.py", "test_machine.py", "test_estimators.py"),
    *("test_cli.py", "test_matmul.py", "test_inference.py", "test_likelihood.py", "test_exact.py"),
    *("test_devices.py", "test_loop.py", "test_coupling.py", "test_scheme.py", "test_gradient.py"),
    *("test_sklearn.py", "test_processes.py", "test_beyond.py"),
)
"""Files that take longest, so that none of them is left for one worker at the end."""


def pytest_configure(config):
    """Compile quickly, and share compiled programs: among workers, processes and later runs.

    They are below pytest's own cache (``pytest --cache-clear`` forgets them), not in the user's.
    """
    is_worker = hasattr(config, "workerinput")
    if UNOPTIMISED and not is_worker and "XLA_FLAGS" not in os.environ:
        probe = [sys.executable, "-c", "import jax; jax.devices()"]
        flags = {"XLA_FLAGS": QUICK_COMPILER}
        if not subprocess.run(probe, env=os.environ | flags, capture_output=True).returncode:
            os.environ.update(flags)
    folder = config.cache.mkdir("compiled")
    if not is_worker and sum(entry.stat().st_size for entry in folder.iterdir()) > MOST_CACHE_BYTES:
        shutil.rmtree(folder)
    options = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in options.items():
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Begin with the files that take longest; within a file the order stays.

    Examples of estimators learn real images, compiled as users have them, and are slow.
    """
    for item in items:
        places = item.path.parent.name, item.path.stem
        if isinstance(item, pytest.DoctestItem) and {"estimators", "estimator"} & {*places}:
            item.add_marker(pytest.mark.slow)
    places = {name: place for place, name in enumerate(SLOWEST_FIRST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


# Every new shape compiles, so a few examples a property; shapes repeat across properties.
settings.register_profile("mporbm", max_examples=6, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=150, deadline=None)
settings.load_profile("mporbm")


MOST_MAPS = 30_000


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Forget compiled programs before they take all memory maps that Linux gives a process.

    A program has dozens of them, a process 65530: one more, and XLA aborts.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def key():
    """A random key."""
    return jax.random.key(0)


@pytest.fixture
def rng():
    """A NumPy generator."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def mnist_images():
    """The 10000 test images of MNIST from the folder that MPORBM_DATA names."""
    folder = os.environ.get("MPORBM_DATA")
    if folder is None:
        pytest.skip("MPORBM_DATA is not set: no folder with real data")
    path = Path(folder) / "mnist" / "t10k-images-idx3-ubyte.gz"
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16).reshape(
        -1, 28, 28
    )
