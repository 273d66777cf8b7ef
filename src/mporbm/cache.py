"""Folders that are kept from process to process, and compiled programs in one of them."""

import hashlib
import os
import platform
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CACHE_VARIABLE = "MPORBM_CACHE"
DEFAULT_SECONDS = 1.0
"""By default JAX keeps no program that compiles faster; a first fit has a dozen of those."""


def cache_folder(name: str) -> Path:
    """Return the folder `name` in ``$MPORBM_CACHE``, or in the user's cache of this system."""
    if value := os.environ.get(CACHE_VARIABLE):
        return Path(value).expanduser() / name
    return _user_cache() / "mporbm" / name


def _user_cache() -> Path:
    """Return the folder in which this system keeps the caches of a user."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def enable_compilation_cache(folder: str | os.PathLike[str] | None = None) -> None:
    """Let JAX keep what it compiles, so that the next process starts faster.

    The command line calls this function by itself; in Python nothing is kept unless it is called,
    at any time.

    Parameters
    ----------
    folder
        Where compiled programs are kept. By default in the user's cache, or in ``$MPORBM_CACHE``,
        one folder for each kind of processor; then JAX's own settings win: whatever
        ``JAX_COMPILATION_CACHE_DIR`` names is used, and ``JAX_ENABLE_COMPILATION_CACHE=false``
        keeps nothing.

    Examples
    --------
    >>> import mporbm
    >>> mporbm.enable_compilation_cache()  # doctest: +SKIP
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    config: Any = jax.config
    if folder is None:
        if config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
            return
        folder = cache_folder("compiled") / _processor()
    path = Path(folder)
    with suppress(OSError):
        path.mkdir(parents=True, exist_ok=True)
    if not os.access(path, os.W_OK):
        # Nothing is lost but time.
        return
    config.update("jax_enable_compilation_cache", True)
    config.update("jax_compilation_cache_dir", str(path))
    if config.jax_persistent_cache_min_compile_time_secs == DEFAULT_SECONDS:
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # If JAX has compiled something before, it has settled that there is no cache.
    compilation_cache.reset_cache()


def _processor() -> str:
    """Return a name for this kind of processor: programs use all instructions that it has."""
    description = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        description += [line for line in lines if line.startswith(("flags", "Features"))][:1]
    return hashlib.sha256(" ".join(description).encode()).hexdigest()[:16]
