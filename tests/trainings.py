"""Trainings of a small machine, what they leave behind, and learning without samples."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_array_equal

from mporbm import MPORBM
from mporbm.learning import Batch, NegativePhase
from mporbm.machine import exact
from mporbm.training import safetensors_io as storage
from reproduction.settings import PAPER
from strategies import all_states, exact_samples, tiny_machine

COMMON = {"hidden_shape": (2, 2), "rank": 2, "scheme": "su", "gauge": None, "batch_size": 5}
COMMON |= {"init": "random", "learning_rate": 0.1, "random_state": 0, **PAPER}
del COMMON["negative_phase"]


def model(**parameters):
    return MPORBM(**{**COMMON, "negative_phase": "cd", "n_iter": 4, **parameters})


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


class Exact(NegativePhase):
    """All visible states with their probabilities: a negative phase without sampling."""

    def init(self, key, machine, n_chains):
        return None

    def step(self, key, machine, state, data):
        return None, Batch(jnp.asarray(all_states(machine)), exact.visible_distribution(machine))


def data_batch(rng, n_samples=7):
    """States of another machine, with unequal weights."""
    weight = rng.uniform(0.5, 2.0, n_samples)
    visible = exact_samples(tiny_machine(seed=5), n_samples, rng)
    return Batch(jnp.asarray(visible), jnp.asarray(weight / weight.sum()))


@eqx.filter_jit
def log_likelihood(machine, data):
    return data.mean(exact.log_probability(machine, data.visible))
