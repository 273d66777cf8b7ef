"""Compiled programs are kept from process to process."""

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from ..cache import cache_folder

DEFAULT_SECONDS = 1.0
"""Programs that take less time to compile are not kept by JAX; a first fit has a dozen of them."""


@cache
def keep_compiled() -> None:
    """Let JAX keep what it compiles, unless it was told where to, or not to.

    ``JAX_COMPILATION_CACHE_DIR`` names another folder, and ``JAX_ENABLE_COMPILATION_CACHE=false``
    keeps nothing.
    """
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:
        return
    folder = cache_folder("compiled") / _processor()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        # Nothing is lost but time.
        return
    config.update("jax_compilation_cache_dir", str(folder))
    if config.jax_persistent_cache_min_compile_time_secs == DEFAULT_SECONDS:
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # Whatever was compiled before has settled that there is no cache.
    compilation_cache.reset_cache()


def _processor() -> str:
    """A name for this kind of processor: programs use all instructions that it has."""
    description = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        description += [line for line in lines if line.startswith(("flags", "Features"))][:1]
    return hashlib.sha256(" ".join(description).encode()).hexdigest()[:16]
