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

from . import safetensors_io as storage
from .file_lock import locked

KIND = "checkpoint"
COUNTS = ("epoch", "n_blocks", "n_batches", "n_back_offs", "best_epoch")
"""What is counted in the progress of a training."""

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
        progress = _progress(header["progress"])
        saved, rates, present = header["identity"], _rates(header["rates"]), header["present"]
        # Before the arrays: those of other settings have other names and shapes.
        check_identity(path, saved, identity)
        # The best machine may not be there yet; without a state there is nothing to go on from.
        if "state" not in present:
            raise KeyError("state")
        trees = {
            root: _filled(path, root, template, arrays) if root in present else None
            for root, template in templates.items()
        }
    except (KeyError, TypeError) as error:
        raise _incomplete(path, error) from error
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
        seed = header["identity"]["seed"]
        if type(seed) is not int or not 0 <= seed < 2**32:
            raise TypeError("a seed that is none")
    except (KeyError, TypeError) as error:
        raise _incomplete(path, error) from error
    return seed


def check_identity(path: str | os.PathLike[str], saved: Any, expected: dict[str, Any]) -> None:
    """Refuse to go on with other settings or data than those of the checkpoint."""
    if not isinstance(saved, dict):
        raise TypeError("an identity that is no table")
    different = [
        f"{name} ({saved.get(name)!r:.200} there, {expected.get(name)!r} here)"
        for name in sorted(saved.keys() | expected.keys())
        if saved.get(name) != expected.get(name)
    ]
    if different:
        raise ValueError(
            f"checkpoint={os.fspath(path)!r}: expected a checkpoint of this training, got one that "
            f"differs in {', '.join(different)}. Delete the file to start anew, or choose another."
        )


def _progress(saved: Any) -> Progress:
    """Where a training stands, if one can stand there."""
    progress = Progress(**saved)
    counts = [getattr(progress, name) for name in COUNTS]
    numbers = [progress.gradient_norm, progress.rate_factor, progress.best_score]
    if (
        any(type(count) is not int or not 0 <= count < 2**63 for count in counts)
        or any(type(number) is not float for number in numbers)
        or not 0.0 < progress.rate_factor <= 1.0
        or type(progress.stopped) is not bool
        or type(progress.history) is not list
        or any(type(entry) is not dict for entry in progress.history)
    ):
        raise TypeError("progress of other types")
    return progress


def _rates(saved: Any) -> list[float]:
    """The learning rates of the coupling and the biases."""
    if type(saved) is not list or [type(rate) for rate in saved] != [float, float]:
        raise TypeError("rates that are not two numbers")
    if not all(rate >= 0.0 and math.isfinite(rate) for rate in saved):
        raise TypeError("rates that are negative or not finite")
    return saved


def _incomplete(path: str | os.PathLike[str], error: Exception) -> storage.FileFormatError:
    return storage.FileFormatError(
        f"{os.fspath(path)}: an incomplete or corrupted checkpoint, or one of another version "
        f"({error!r:.200}). Delete the file to start anew."
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
