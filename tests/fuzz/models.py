"""Model files and checkpoints: valid ones of every kind, and changed ones with right check sums."""

import functools
import json
import math
import struct
import tempfile
from pathlib import Path

import numpy as np

import mporbm
from fuzz import mutation
from mporbm.training import checkpoint
from mporbm.training import safetensors_io as storage


def encoded(kind, arrays, header, /, **metadata):
    """A file with the right check sum, whatever is in it; safetensors has no order of its own."""
    text = header if isinstance(header, str) else json.dumps(header)
    checksum = str(storage._checksum(arrays, text))
    metadata = {"header": text, "checksum": checksum, "kind": kind, **metadata}
    table = {"__metadata__": {"format": "mporbm", "format_version": "1", **metadata}}
    parts, end = [], 0
    for name in sorted(arrays):
        array, start = arrays[name], end
        parts.append(array.tobytes())
        end += len(parts[-1])
        kind = "BOOL" if array.dtype == bool else f"{array.dtype.kind}{8 * array.itemsize}".upper()
        table[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, end]}
    return with_length(table) + b"".join(parts)


def with_length(table):
    text = json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text


def rewritten(rng, kind, arrays, header):
    """A file whose arrays or header have changed and whose check sum is right."""
    choice = rng.randrange(20)
    if choice == 0:
        return encoded(kind, arrays, mutation.deep_text(rng))
    if choice == 1:
        return encoded(kind, arrays, json.dumps(mutation.change_value(rng, [header])))
    if choice == 2:
        name = rng.choice(("kind", "format", "format_version", "checksum", "header"))
        return encoded(kind, arrays, header, **{name: rng.choice(("", "1", "x", '{"a": 1e999}'))})
    if choice < 7:
        return relabelled(rng, encoded(kind, arrays, header))
    if choice < 12:
        arrays = mutation.change_arrays(rng, arrays)
    if choice >= 10:
        header = mutation.change_value(rng, header)
    return encoded(kind, arrays, header)


def relabelled(rng, content):
    """The table of arrays of a safetensors file changed, with the right length."""
    (length,) = struct.unpack("<Q", content[:8])
    table = json.loads(content[8 : 8 + length])
    metadata = table.pop("__metadata__")
    table = mutation.change_value(rng, table)
    if rng.randrange(4) == 0:
        metadata = mutation.change_value(rng, metadata)
    table = {"__metadata__": metadata, **table} if isinstance(table, dict) else table
    return with_length(table) + content[8 + length :]


def machines():
    """Fitted estimators of every kind, without training."""
    from mporbm import Alphabet, Binarize, BitPlanes
    from mporbm.machine import (
        CPCoupling,
        DeepBelief,
        DenseCoupling,
        Gaussian,
        KroneckerCoupling,
        Machine,
        MPOCoupling,
        labelled_machine,
    )
    from mporbm.machine.layered import deep_boltzmann
    from mporbm.mps.machine import MPSMachine
    from mporbm.tensor import MPO, MPS

    def ones(*shape):
        return np.full(shape, 0.5)

    mpo = MPOCoupling(MPO([ones(1, 3, 2, 2), ones(2, 2, 2, 1)]))
    plain, dense = Machine(mpo), Machine(DenseCoupling(ones(3, 2, 2, 2), 2))
    labelled = labelled_machine(plain, ones(3, 2, 2))
    upper = Machine(MPOCoupling(MPO([ones(1, 2, 1, 2), ones(2, 2, 2, 1)])))
    mps = MPSMachine(mpo, MPS([ones(1, 3, 2), ones(2, 2, 1)]))
    made = [
        (mporbm.MPORBM((2, 2), rank=2), plain),
        (mporbm.MPORBM((2, 2), rank=2), plain),
        (
            mporbm.MPORBM((2, 2), visible_units="gaussian"),
            Machine(mpo, visible_units=Gaussian(2.0)),
        ),
        (mporbm.MPSRBM((2, 2)), mps),
        (mporbm.RBM((2, 2)), dense),
        (mporbm.MvRBM((2, 2)), Machine(KroneckerCoupling([ones(3, 2), ones(2, 2)]))),
        (mporbm.TvRBM(2), Machine(CPCoupling([ones(3, 2), ones(2, 2)], ones(2, 2)))),
        (mporbm.MPOClassRBM((2, 2), rank=2), labelled),
        (mporbm.MPODBN([(2, 2), (1, 2)], rank=2), DeepBelief((plain,), (plain,), upper)),
        (mporbm.MPODBM([(2, 2), (1, 2)], rank=2), deep_boltzmann([plain, upper])),
    ]
    grey = np.arange(24, dtype=np.uint8).reshape(4, 3, 2)
    for number, (estimator, machine) in enumerate(made):
        estimator.set_machine(machine)
        estimator.n_iter_, estimator.history_ = 1, [{"epoch": 1, "score": -1.0, "ranks": [2]}]
        estimator.random_state = 0
        estimator._restart_random_numbers()
        if machine is labelled:
            estimator.classes_ = np.array(["a", "b", "c"])
        if number == 0:
            estimator.feature_names_in_ = np.array(list("abcdef"), object)
            estimator.base_bias_ = ones(3, 2)
            estimator.coding_ = Binarize(10.0).fit(grey)
        if number == 1:
            estimator.coding_ = BitPlanes(1, shape=(3, 2)).fit(grey // 20)
        if number == 2:
            estimator.coding_ = Alphabet().fit(["aba"])
        yield estimator


@functools.cache
def models():
    """The arrays and the header of each model."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        for estimator in machines():
            estimator.save(path)
            parts.append(storage.read(path, "model"))
    return parts


@functools.cache
def valid_models():
    return [encoded("model", *parts) for parts in models()]


def changed_model(rng):
    # Mostly the simple ones: deep machines take their time.
    number = min(rng.randrange(14), rng.randrange(14), len(models()) - 1)
    return rewritten(rng, "model", *models()[number])


IDENTITY = {"seed": 3, "rank": 2, "data": "ab", "hidden_shape": [2, 2]}
STATE = {
    "cores": [np.ones((1, 2, 2), np.float32), np.ones(3, np.float32)],
    "key": np.ones(2, np.uint32),
}
PROGRESS = {"epoch": 2, "history": [{"epoch": 1, "score": -1.0}, {"epoch": 2, "score": -0.5}]}


@functools.cache
def checkpoint_parts():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        progress = checkpoint.Progress(**PROGRESS)
        checkpoint.save(
            path, {"state": STATE, "best": STATE["cores"]}, progress, IDENTITY, [0.1, 0.2]
        )
        return storage.read(path, "checkpoint")


@functools.cache
def valid_checkpoints():
    return [encoded("checkpoint", *checkpoint_parts()), valid_models()[0]]


def changed_checkpoint(rng):
    return rewritten(rng, "checkpoint", *checkpoint_parts())


def read_checkpoint(path):
    checkpoint.saved_seed(path)
    trees, progress, rates = checkpoint.load(
        path, {"state": STATE, "best": STATE["cores"]}, IDENTITY
    )
    # As training does with them.
    assert progress.epoch < 2**63
    assert isinstance(progress.copy().history, list)
    assert all(math.isfinite(rate * progress.rate_factor) for rate in rates)
    assert trees.keys() == {"state", "best"}
