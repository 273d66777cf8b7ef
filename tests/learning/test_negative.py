"""Negative phases: one protocol, no drift."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.learning import (
    NEGATIVE_PHASES,
    Batch,
    ContrastiveDivergence,
    FastPersistentCD,
    ParallelTempering,
    PersistentCD,
)
from mporbm.machine import exact
from strategies import assert_distributed, exact_samples, tiny_machine

PHASES = {
    "cd": ContrastiveDivergence(2),
    "pcd": PersistentCD(2),
    "fpcd": FastPersistentCD(2, learning_rate=0.1),
    "pt": ParallelTempering(2, n_temperatures=3),
}


def test_every_phase_is_tested():
    kinds = {name: type(phase) for name, phase in PHASES.items()}
    own = {n: kind for n, kind in NEGATIVE_PHASES.items() if kind.__module__.startswith("mporbm")}
    assert kinds == own


@pytest.mark.parametrize("name", PHASES)
def test_phases_follow_the_protocol(name, key, rng):
    """The key first, pure functions, the state's structure kept, weights that sum to 1."""
    phase, machine = PHASES[name], tiny_machine()
    assert list(inspect.signature(phase.init).parameters) == ["key", "machine", "n_chains"]
    assert list(inspect.signature(phase.step).parameters) == ["key", "machine", "state", "data"]
    data = Batch(jnp.asarray(exact_samples(machine, 6, rng)), jnp.full(6, 1 / 6))
    start = phase.init(key, machine, 6)
    step = eqx.filter_jit(phase.step)
    end, samples = step(key, machine, start, data)
    assert jax.tree.structure(end) == jax.tree.structure(start)
    for a, b in zip(*map(jax.tree.leaves, (start, end)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert len(samples.visible) == 6
    if start is None:
        assert phase.visible_states(end) is None
    else:
        np.testing.assert_array_equal(phase.visible_states(end), samples.visible)
    assert set(np.unique(samples.visible)) <= {0.0, 1.0}
    np.testing.assert_allclose(samples.weight.sum(), 1.0, rtol=1e-12)
    again = step(key, machine, start, data)
    for a, b in zip(*map(jax.tree.leaves, ((end, samples), again)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PHASES)
def test_phases_are_stationary(name, key, rng):
    """Exact samples stay exact: at the data for CD, in the chains for the others."""
    machine, n = tiny_machine(), 20_000
    phase = FastPersistentCD(2, learning_rate=0.0) if name == "fpcd" else PHASES[name]
    exact_states = jnp.asarray(exact_samples(machine, n, rng))
    data = Batch(exact_states, jnp.full(n, 1 / n))
    state = phase.init(key, machine, n)
    step = eqx.filter_jit(phase.step)
    if name == "pcd":
        state = exact_states
    elif name == "fpcd":
        state = eqx.tree_at(lambda s: s.visible, state, exact_states)
    elif name == "pt":
        # Hot chains start exactly; the others are given time to become so.
        for number in range(20):
            state, _ = step(jax.random.fold_in(key, number), machine, state, data)
    for number in range(2):
        state, samples = step(jax.random.fold_in(key, 100 + number), machine, state, data)
    assert_distributed(samples.visible, exact.visible_distribution(machine))


def test_fast_parameters_learn_and_are_forgotten(key, rng):
    machine, phase = tiny_machine(), PHASES["fpcd"]
    data = Batch(jnp.asarray(exact_samples(tiny_machine(seed=5), 6, rng)), jnp.full(6, 1 / 6))
    step = eqx.filter_jit(phase.step)
    state, samples = step(key, machine, phase.init(key, machine, 6), data)
    contrast = data.mean(data.visible) - samples.mean(samples.visible)
    np.testing.assert_allclose(state.fast.visible_bias, 0.1 * contrast, rtol=1e-12)
    later, samples = step(key, machine, state, data)
    contrast = data.mean(data.visible) - samples.mean(samples.visible)
    expected = 0.95 * state.fast.visible_bias + 0.1 * contrast
    np.testing.assert_allclose(later.fast.visible_bias, expected, rtol=1e-12)
    assert all(np.abs(factor).max() > 0.0 for factor in later.fast.factors)


def test_fast_parameters_push_the_chains(key, rng):
    """Chains that sit in one state leave it sooner than those of plain PCD."""
    machine = tiny_machine(scale=3.0)
    n = 2000
    stuck = jnp.asarray(np.repeat(exact_samples(machine, 1, rng), n, axis=0))
    data = Batch(jnp.asarray(exact_samples(machine, 100, rng)), jnp.full(100, 0.01))
    left = {}
    for name, phase in (("pcd", PersistentCD(1)), ("fpcd", FastPersistentCD(1, 1.0))):
        state = phase.init(key, machine, n)
        state = stuck if name == "pcd" else eqx.tree_at(lambda s: s.visible, state, stuck)
        step = eqx.filter_jit(phase.step)
        for number in range(10):
            state, samples = step(jax.random.fold_in(key, number), machine, state, data)
        left[name] = float((samples.visible != stuck).any(axis=(1, 2)).mean())
    assert left["fpcd"] > left["pcd"]
