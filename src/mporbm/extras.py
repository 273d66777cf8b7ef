"""Libraries that only some users need: an error says which `pip install` brings a missing one."""

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {
    "cli": ("typer", "rich", "PIL"),
    "pictures": ("matplotlib",),
    "sweep": ("optuna",),
    "zarr": ("zarr",),
    "quimb": ("quimb", "tensorly"),
    "datasets": ("pooch", "mlxtend"),
}
"""For each extra of the package, the modules that it brings."""


class MissingExtraError(ModuleNotFoundError):
    """An optional library that something needs is not installed."""


@contextmanager
def extra(name: str, needed_by: str) -> Iterator[None]:
    """Import libraries of an extra within this context; a missing one is told with its remedy.

    Parameters
    ----------
    name
        The name of the extra, as in ``pip install "mporbm[name]"``.
    needed_by
        What cannot be done without it, for the message.

    Raises
    ------
    MissingExtraError
        If a library of this extra cannot be found; other failures pass as they are.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS[name]:
            raise
        raise MissingExtraError(
            f"{needed_by}: expected {library}, which is not installed; "
            f'pip install "mporbm[{name}]"',
            name=library,
        ) from error
