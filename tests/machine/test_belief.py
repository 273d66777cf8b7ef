"""Deep belief networks: what they look like to data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mporbm.machine import DeepBelief
from strategies import tiny_machine, tiny_stack


def test_one_layer_is_the_machine_on_top(key, rng):
    machine = tiny_machine()
    belief = DeepBelief.of_stack((machine,))
    visible = rng.integers(0, 2, (5, 3, 2)).astype(float)
    hidden = machine.hidden_mean(visible)
    for name, batch in (("hidden_field", visible), ("hidden_mean", visible)):
        assert_array_equal(getattr(belief, name)(batch), getattr(machine, name)(batch))
    assert_array_equal(belief.visible_field(hidden), machine.visible_field(hidden))
    found = belief.resampled_field(key, visible)
    assert_array_equal(found, machine.resampled_field(key, visible))


def test_means_pass_through_every_layer(rng):
    belief = DeepBelief.of_stack(tiny_stack(3))
    visible = rng.integers(0, 2, (5, 3, 2)).astype(float)
    state = visible
    for machine in (*belief.recognition, belief.top):
        state = machine.hidden_mean(state)
    assert_allclose(belief.hidden_mean(visible), state)
    assert_allclose(belief.planned(5).hidden_mean(visible), state)
    for machine in (belief.top, *belief.generation[::-1]):
        state = machine.visible_mean(state)
    assert_allclose(belief.visible_mean(belief.hidden_mean(visible)), state)
    assert belief.hidden_shape == (1, 2)
    assert belief.visible_shape == (3, 2)


def test_random_passes_have_the_means_of_their_conditionals(key, rng):
    """Every layer drawn up and down, against the mean given the layer that it was drawn from."""
    belief, n = DeepBelief.of_stack(tiny_stack(3)), 5_000
    visible = jnp.broadcast_to(jnp.asarray(rng.integers(0, 2, (3, 2)).astype(float)), (n, 3, 2))
    up = belief.up_samples(key, visible)
    down = belief.down_samples(jax.random.key(1), up[-1])
    for k, (q, p) in enumerate(zip(belief.recognition, belief.generation, strict=True)):
        tolerance = 5 * 0.5 / np.sqrt(n)
        assert_allclose(up[k + 1].mean(0), q.hidden_mean(up[k]).mean(0), atol=tolerance)
        assert_allclose(down[k].mean(0), p.visible_mean(down[k + 1]).mean(0), atol=tolerance)


def test_sides_that_do_not_fit_are_refused():
    first, second, third = tiny_stack(3)
    with pytest.raises(ValueError, match="recognition: expected machines of the shapes"):
        DeepBelief((first,), (first, second), third)
    with pytest.raises(ValueError, match=r"couplings\[1\]: expected the visible shape \(2, 2\)"):
        DeepBelief((first,), (first,), third)
