"""Trainings of a small machine, and what they leave behind."""

from types import SimpleNamespace

import jax
import numpy as np
from numpy.testing import assert_array_equal

from mporbm import MPORBM
from mporbm.training import safetensors_io as storage

COMMON = {"hidden_shape": (2, 2), "rank": 2, "scheme": "su", "gauge": None, "batch_size": 5}
COMMON |= {"init": "random", "learning_rate": 0.1, "random_state": 0}


def model(**parameters):
    return MPORBM(**{**COMMON, "n_iter": 4, **parameters})


def arrays(machine):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(machine)]


def assert_same(one, other):
    """The same parameters to the last bit, and the same history but for the time it took."""
    for a, b in zip(arrays(one.machine_), arrays(other.machine_), strict=True):
        assert_array_equal(a, b)
    histories = [[{**e, "seconds": None} for e in m.history_] for m in (one, other)]
    assert histories[0] == histories[1]


def progress(path):
    """What a checkpoint says of its training."""
    _, header = storage.read(path, "checkpoint")
    return SimpleNamespace(**header["progress"])
