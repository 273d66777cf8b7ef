"""All that mporbm reads: how to make files of it that are nearly valid, and what reads them."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import mporbm
from fuzz import arrays, data, models, mutation, settings
from mporbm.datasets.formats import open_image, read_gzip
from mporbm.datasets.loaders import read_idx
from reproduction.datasets.density import read_binary
from reproduction.datasets.tables import read_integers


@dataclass(frozen=True)
class Parser:
    """What makes files of a format, and what reads them."""

    name: str
    """Of the file."""
    valid: Callable[[], list[bytes]]
    """Some valid files, as bytes."""
    changed: Callable[[Random], bytes]
    """A file with changes that know the format, from a generator."""
    read: Callable[[Path], Any]
    """Reads a path; refuses by a ValueError that names it."""

    def make(self, rng):
        kind = rng.randrange(20)
        if kind == 0:
            return mutation.random_bytes(rng)
        if kind < 7:
            one, other = rng.choice(self.valid()), rng.choice(self.valid())
            return mutation.change_bytes(rng, one, other)
        return self.changed(rng)


PARSERS = {
    "model": Parser("x.safetensors", models.valid_models, models.changed_model, mporbm.load),
    "checkpoint": Parser(
        "x.checkpoint",
        models.valid_checkpoints,
        models.changed_checkpoint,
        models.read_checkpoint,
    ),
    ".npy": Parser("x.npy", arrays.valid_npy, arrays.changed_npy, arrays.read_whole),
    ".npz": Parser("x.npz", arrays.valid_npz, arrays.changed_npz, arrays.read_whole),
    "PNG": Parser("x.png", arrays.valid_png, arrays.changed_png, arrays.read_whole),
    "JPEG": Parser(
        "x.jpg", data.valid_jpeg, data.changed_jpeg, data.of_bytes(open_image, "JPEG", (4, 3))
    ),
    "IDX": Parser("x.idx", data.valid_idx, data.changed_idx, data.of_bytes(read_idx, 3)),
    "gzip IDX": Parser(
        "x.gz",
        lambda: [gzip.compress(data.valid_idx()[0], mtime=0)],
        data.changed_gzip,
        lambda path: read_idx(read_gzip(path), 3),
    ),
    "text": Parser(
        "x.data",
        lambda: [b"1 2 3 4\n5 6 7 8\n9 10 11 12\n"],
        data.changed_text,
        data.of_bytes(read_integers, 3, 4),
    ),
    "binary text": Parser(
        "x.data",
        lambda: [b"0,1,0,1,0,0\n1,0,0,0,0,1\n"],
        data.changed_binary_text,
        data.of_bytes(read_binary, 2, (1, 2, 3)),
    ),
    "CSV": Parser("x.txt", lambda: [data.CSV], data.changed_csv, data.read_csv),
    "archive": Parser("a.zip", data.valid_archive, data.changed_archive, data.read_archive),
    "TOML": Parser("x.toml", lambda: [settings.TOML], settings.changed_toml, settings.read_toml),
    "outcome": Parser(
        "x.json",
        lambda: [json.dumps(settings.OUTCOME).encode()],
        settings.changed_outcome,
        settings.read_outcome,
    ),
}
