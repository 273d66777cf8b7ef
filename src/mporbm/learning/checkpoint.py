"""Checkpoints: everything a training needs to go on as if nothing had happened.

The one before is kept beside the last, under a name that ends in ``.former``, and is taken when the
last cannot be read.
"""

import contextlib
import dataclasses
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

import jax
import jax.numpy as jnp

from . import storage
from .lock import locked

KIND = "checkpoint"

Found = TypeVar("Found")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be read; training goes on from the one before."""


@dataclasses.dataclass
class Progress:
    """Where a training stands."""

    epoch: int = 0
    """Finished epochs."""
    n_blocks: int = 0
    """Finished blocks of the epoch that has begun."""
    gradient_norm: float = 0.0
    """The sum of the gradient norms of its batches so far."""
    n_batches: int = 0
    rate_factor: float = 1.0
    """What back-offs have multiplied the learning rates with."""
    n_back_offs: int = 0
    best_score: float = -math.inf
    best_epoch: int = 0
    stopped: bool = False
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def copy(self) -> Self:
        """An independent copy."""
        return dataclasses.replace(self, history=list(self.history))

    def end_epoch(self, entry: dict[str, Any]) -> None:
        """Note what an epoch showed."""
        self.history.append(entry)
        self.epoch += 1
        self.n_blocks, self.n_batches, self.gradient_norm = 0, 0, 0.0


def save(
    path: str | os.PathLike[str],
    trees: dict[str, Any],
    progress: Progress,
    identity: dict[str, Any],
    rates: list[float],
) -> None:
    """Write named pytrees (None for one that is not there yet), progress, identity and rates."""
    arrays = {name: array for root, tree in trees.items() for name, array in _named(root, tree)}
    header = {
        "progress": dataclasses.asdict(progress),
        "identity": identity,
        "rates": rates,
        "present": [root for root, tree in trees.items() if tree is not None],
    }
    storage.write(path, KIND, arrays, header, former=former(path))


def former(path: str | os.PathLike[str]) -> Path:
    """The file of the checkpoint before the last."""
    return Path(f"{os.fspath(path)}.former")


def owned(path: str | os.PathLike[str] | None) -> contextlib.AbstractContextManager[None]:
    """Within this context the checkpoint, if there is to be one, is that of this run alone."""
    # Of several processes only the first writes.
    writes = jax.process_index() == 0
    return locked(path) if path and writes else contextlib.nullcontext()


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything to go on from."""
    return os.path.exists(path) or former(path).exists()


def remove(path: str | os.PathLike[str]) -> None:
    """Forget a training."""
    Path(path).unlink(missing_ok=True)
    former(path).unlink(missing_ok=True)


def load(
    path: str | os.PathLike[str], templates: dict[str, Any], identity: dict[str, Any]
) -> tuple[dict[str, Any], Progress, list[float]]:
    """The pytrees, shaped as `templates`, the progress and the rates of a training's checkpoint."""
    return _last(path, lambda file: _load(file, templates, identity))


def _last(path: str | os.PathLike[str], read: Callable[[Any], Found]) -> Found:
    """What can be read of the last checkpoint, or else of the one before."""
    try:
        return read(path)
    except (storage.FileFormatError, FileNotFoundError) as error:
        try:
            found = read(former(path))
        except (storage.FileFormatError, FileNotFoundError):
            raise error from None
        warnings.warn(
            f"{error} Training goes on from the checkpoint before, {former(path)}.",
            CheckpointWarning,
            stacklevel=2,
        )
        return found


def _load(
    path: str | os.PathLike[str], templates: dict[str, Any], identity: dict[str, Any]
) -> tuple[dict[str, Any], Progress, list[float]]:
    arrays, header = storage.read(path, KIND)
    try:
        progress = Progress(**header["progress"])
        saved, rates, present = dict(header["identity"]), header["rates"], header["present"]
        # Before the arrays: those of other settings have other names and shapes.
        check_identity(path, saved, identity)
        trees = {
            root: _filled(path, root, template, arrays) if root in present else None
            for root, template in templates.items()
        }
    except (KeyError, TypeError) as error:
        raise storage.FileFormatError(
            f"{os.fspath(path)}: an incomplete checkpoint ({error!r})."
        ) from error
    return trees, progress, rates


def saved_seed(path: str | os.PathLike[str]) -> int:
    """The seed of the training that a checkpoint belongs to."""
    with warnings.catch_warnings():
        # Whoever reads the rest of it will be told.
        warnings.simplefilter("ignore", CheckpointWarning)
        return _last(path, _saved_seed)


def _saved_seed(path: str | os.PathLike[str]) -> int:
    _, header = storage.read(path, KIND)
    try:
        return int(header["identity"]["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise storage.FileFormatError(
            f"{os.fspath(path)}: an incomplete checkpoint ({error!r})."
        ) from error


def check_identity(
    path: str | os.PathLike[str], saved: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Refuse to go on with other settings or data than those of the checkpoint."""
    different = [
        f"{name} ({saved.get(name)!r} there, {expected.get(name)!r} here)"
        for name in sorted(saved.keys() | expected.keys())
        if saved.get(name) != expected.get(name)
    ]
    if different:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a checkpoint of this training, got one that "
            f"differs in {', '.join(different)}. Delete the file to start anew, or choose another."
        )


def _named(root: str, tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(root + jax.tree_util.keystr(place), leaf) for place, leaf in leaves]


def _filled(path: str | os.PathLike[str], root: str, template: Any, arrays: dict[str, Any]) -> Any:
    leaves = []
    for name, like in _named(root, template):
        array = arrays[name]
        if array.shape != like.shape or array.dtype != like.dtype:
            raise storage.FileFormatError(
                f"{os.fspath(path)}: expected {name} of shape {like.shape} and type {like.dtype}, "
                f"got {array.shape} and {array.dtype}; it belongs to another training."
            )
        leaves.append(jnp.asarray(array))
    return jax.tree.unflatten(jax.tree.structure(template), leaves)
