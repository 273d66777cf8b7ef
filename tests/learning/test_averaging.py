"""The mean of a machine over the last part of its training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mporbm import MPORBM
from mporbm.learning.averaging import SHARPNESS, Average
from strategies import tiny_machine

ROWS = np.random.default_rng(0).random((25, 4, 3)) < 0.3
CENTRED = {"rule": "centred", "negative_phase": "pcd", "momentum": 0.0, "random_state": 0}


def test_the_mean_has_polynomial_weights():
    """Batch n of N counts as n (n + 1) .. (n + s - 1), up to a factor."""
    machines = [tiny_machine("mpo", seed=seed) for seed in range(7)]
    average = Average.begin(machines[0])
    for machine in machines[1:]:
        average = average.add(machine, jnp.asarray(True))
    n = np.arange(1, len(machines))
    weight = np.prod([n + k for k in range(int(SHARPNESS))], axis=0)
    expected = sum(w * m.visible_bias for w, m in zip(weight, machines[1:], strict=True))
    assert_allclose(average.machine.visible_bias, expected / weight.sum(), rtol=1e-6)


def test_a_batch_that_does_not_count_changes_nothing():
    one, other = (tiny_machine("cp", seed=seed) for seed in (1, 2))
    average = Average.begin(one).add(other, jnp.asarray(True))
    same = average.add(one, jnp.asarray(False))
    for a, b in zip(jax.tree.leaves(average), jax.tree.leaves(same), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("scheme", ["aop", "su"])
def test_a_centred_training_ends_at_its_average(scheme):
    model = MPORBM((2, 2), rank=2, scheme=scheme, n_iter=3, **CENTRED).fit(ROWS)
    state, average = model._continuation.reached
    assert average.n_batches == 3
    assert model.machine_ is average.machine
    assert np.abs(state.machine.visible_bias - average.machine.visible_bias).max() > 0.0


def test_ranks_that_change_are_not_averaged():
    model = MPORBM((2, 2), rank=2, scheme="two-site", n_iter=2, **CENTRED).fit(ROWS)
    assert model._continuation.reached[1] is None


def test_partial_fit_goes_on_from_the_parameters_not_from_their_average():
    options = {"rank": 2, "batch_size": 10, "learning_rate": 0.1, **CENTRED}
    model = MPORBM((2, 2), **options)
    for _ in range(2):
        model.partial_fit(ROWS)
    state, average = model._continuation.reached
    n_batches = 2 * -(-len(ROWS) // 10)
    assert average.n_batches == n_batches
    assert not eqx.tree_equal(state.machine, model.machine_)
