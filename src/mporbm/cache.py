"""Where files are kept from process to process."""

import os
from pathlib import Path

CACHE_VARIABLE = "MPORBM_CACHE"


def cache_folder(name: str) -> Path:
    """A folder of ``$MPORBM_CACHE``, or of the cache folder of the system."""
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value).expanduser() / name
    import platformdirs

    return platformdirs.user_cache_path("mporbm") / name
