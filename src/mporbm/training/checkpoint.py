"""Checkpoints: everything a training needs to go on as if nothing had happened.

The one before is kept beside the last, under a name that ends in ``.former``, and is taken when the
last cannot be read.
"""

import contextlib
import dataclasses
import math
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar, get_origin

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..atomic import locked
from ..tensor.arrays import AnyArray
from . import safetensors_io as storage

KIND = "checkpoint"

AnyPath = str | os.PathLike[str]
Entry = dict[str, float | list[int]]
"""What an epoch showed."""
Trees = Mapping[str, PyTree[AnyArray]]
"""Pytrees by name, None for one that is not there yet."""
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
    history: list[Entry] = dataclasses.field(default_factory=list)

    def copy(self) -> Self:
        """An independent copy."""
        return dataclasses.replace(self, history=list(self.history))

    def end_epoch(self, entry: Entry) -> None:
        """Note what an epoch showed."""
        self.history.append(entry)
        self.epoch += 1
        self.n_blocks, self.n_batches, self.gradient_norm = 0, 0, 0.0


def save(
    path: AnyPath,
    trees: Trees,
    progress: Progress,
    identity: Mapping[str, object],
    rates: list[float],
) -> None:
    """Write pytrees, progress, identity and the rates of the coupling and the biases."""
    arrays = {name: array for root, tree in trees.items() for name, array in _named(root, tree)}
    header = {
        "progress": dataclasses.asdict(progress),
        "identity": identity,
        "rates": rates,
        "present": [root for root, tree in trees.items() if tree is not None],
    }
    storage.write(path, KIND, arrays, header, former=former(path))


def former(path: AnyPath) -> Path:
    """The file of the checkpoint before the last."""
    return Path(f"{os.fspath(path)}.former")


def owned(path: AnyPath | None) -> contextlib.AbstractContextManager[None]:
    """Within this context the checkpoint, if there is to be one, is that of this run alone."""
    # Of several processes only the first writes.
    writes = jax.process_index() == 0
    return locked(path) if path and writes else contextlib.nullcontext()


def exists(path: AnyPath) -> bool:
    """Whether there is anything to go on from."""
    return os.path.exists(path) or former(path).exists()


def remove(path: AnyPath) -> None:
    """Forget a training."""
    Path(path).unlink(missing_ok=True)
    former(path).unlink(missing_ok=True)


def load(
    path: AnyPath, templates: Trees, identity: Mapping[str, object]
) -> tuple[Trees, Progress, list[float]]:
    """The pytrees, shaped as `templates`, the progress and the rates of a training's checkpoint."""
    return _read_last(path, lambda file: _load(file, templates, identity))


def _load(
    path: AnyPath, templates: Trees, identity: Mapping[str, object]
) -> tuple[Trees, Progress, list[float]]:
    arrays, header = storage.read(path, KIND)
    with _complete(path):
        progress, rates = _progress(header["progress"]), _rates(header["rates"])
        # Before the arrays: those of other settings have other names and shapes.
        _check_identity(path, header["identity"], identity)
        present = header["present"]
        # These may not be there yet; without the others there is nothing to go on from.
        needed = {root for root, template in templates.items() if template is not None}
        needed -= {"best"}
        if not isinstance(present, list) or not needed.issubset(present):
            raise KeyError(*sorted(needed))
        trees = {
            root: _filled(path, root, template, arrays) if root in present else None
            for root, template in templates.items()
        }
    return trees, progress, rates


def saved_seed(path: AnyPath) -> int:
    """The seed of the training that a checkpoint belongs to."""
    with warnings.catch_warnings():
        # Whoever reads the rest of it will be told.
        warnings.simplefilter("ignore", CheckpointWarning)
        return _read_last(path, _saved_seed)


def _saved_seed(path: AnyPath) -> int:
    _, header = storage.read(path, KIND)
    with _complete(path):
        identity = header["identity"]
        seed = identity["seed"] if isinstance(identity, dict) else None
        if type(seed) is not int or not 0 <= seed < 2**32:
            raise TypeError(f"invalid seed {seed!r:.50}")
    return seed


def _read_last(path: AnyPath, read: Callable[[AnyPath], Found]) -> Found:
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


@contextlib.contextmanager
def _complete(path: AnyPath) -> Iterator[None]:
    """Refuse a file in which something is missing or of another type."""
    try:
        yield
    except (KeyError, TypeError) as error:
        raise storage.FileFormatError(
            f"{os.fspath(path)}: an incomplete or corrupted checkpoint, or one of another version "
            f"({error!r:.200}). Delete the file to start anew."
        ) from error


def _check_identity(path: AnyPath, saved: object, expected: Mapping[str, object]) -> None:
    """Refuse to go on with other settings or data than those of the checkpoint."""
    if not isinstance(saved, dict):
        raise TypeError("invalid identity")
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


def _progress(saved: object) -> Progress:
    """Validate a saved `Progress`."""
    if not isinstance(saved, dict):
        raise TypeError("invalid progress")
    progress = Progress(**saved)
    for field in dataclasses.fields(Progress):
        value = getattr(progress, field.name)
        is_large = type(value) is int and not 0 <= value < 2**63
        if is_large or type(value) is not (get_origin(field.type) or field.type):
            raise TypeError(f"invalid {field.name}")
    if not 0.0 < progress.rate_factor <= 1.0 or any(type(e) is not dict for e in progress.history):
        raise TypeError("invalid rate_factor or history")
    return progress


def _rates(saved: object) -> list[float]:
    """Validate saved learning rates of the coupling and the biases."""
    if not isinstance(saved, list) or [type(rate) for rate in saved] != [float, float]:
        raise TypeError("rates that are not two numbers")
    if not all(rate >= 0.0 and math.isfinite(rate) for rate in saved):
        raise TypeError("rates that are negative or not finite")
    return saved


def _named(root: str, tree: PyTree[AnyArray] | None) -> list[tuple[str, AnyArray]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(root + jax.tree_util.keystr(place), leaf) for place, leaf in leaves]


def _filled(
    path: AnyPath, root: str, template: PyTree[AnyArray], arrays: Mapping[str, np.ndarray]
) -> PyTree[jax.Array]:
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
