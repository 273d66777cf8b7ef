"""Categorical units learn within weights and biases of zero sum, against all energies."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm import MPORBM, RBM, MPOClassRBM, MvRBM, TvRBM
from mporbm.learning.gradient import Batch, log_likelihood_gradient, plan_update
from mporbm.learning.zero_sum import zero_sum_machine, zero_sum_step
from mporbm.machine import Bernoulli, Categorical, Copies, Machine
from strategies import KINDS, random_coupling, random_machine, tiny_machine

UNITS = {
    "visible": (Categorical(), Bernoulli()),
    "hidden": (Bernoulli(), Categorical()),
    "both": (Categorical(), Categorical()),
    "groups": (Categorical(2), Categorical(2)),
}
SHAPES = (2, 4), (3, 2)


def machine_of(kind, units, rng):
    coupling = random_coupling(kind, *SHAPES, 3, rng)
    if kind == "cp":
        # Its hidden layer is a vector, of 6 units: groups of them have a size.
        units = tuple(
            Categorical(3) if k and u == Categorical() else u for k, u in enumerate(units)
        )
    machine = random_machine(coupling, rng)
    return Machine(coupling, machine.visible_bias, machine.hidden_bias, *units)


def listed(machine):
    """All states of both layers."""
    layers = (
        (machine.visible_units, machine.visible_shape),
        (machine.hidden_units, machine.hidden_shape),
    )
    return [np.asarray(u.states(jnp.arange(u.n_states(s)), s, float)) for u, s in layers]


def energies(machine, visible, hidden):
    """The energies of all pairs, by the matrix W."""
    v, h = visible.reshape(len(visible), -1), hidden.reshape(len(hidden), -1)
    w = np.asarray(machine.coupling.to_matrix())
    own = v @ np.ravel(machine.visible_bias), h @ np.ravel(machine.hidden_bias)
    return -(v @ w @ h.T) - own[0][:, None] - own[1]


def sums(array, axis, size):
    """The sums over groups along an axis."""
    last = np.moveaxis(np.asarray(array), axis, -1)
    return last.reshape(*last.shape[:-1], -1, size).sum(axis=-1)


def largest_sums(machine):
    """The largest sums of W and biases over the groups of either layer, relative to their size."""
    visible, hidden = machine.visible_shape, machine.hidden_shape
    weights = np.asarray(machine.coupling.to_matrix()).reshape(*visible, *hidden)
    found = []
    layers = (
        (machine.visible_units, visible, len(visible) - 1, machine.visible_bias),
        (machine.hidden_units, hidden, -1, machine.hidden_bias),
    )
    for units, shape, axis, bias in layers:
        if isinstance(units, Categorical):
            size = units.n_categories or shape[-1]
            for array, along in ((weights, axis), (bias, -1)):
                found.append(np.abs(sums(array, along, size)).max() / np.abs(array).max())
    return found


PAIRS = [*((kind, "both") for kind in KINDS), *(("mpo", units) for units in UNITS)]


@pytest.mark.parametrize(("kind", "units"), PAIRS)
def test_all_energies_change_alike(kind, units, rng):
    machine = machine_of(kind, UNITS[units], rng)
    changed = zero_sum_machine(machine)
    before, after = (energies(m, *listed(machine)) for m in (machine, changed))
    assert np.ptp(before) > 1.0
    assert_allclose(after - before, (after - before)[0, 0], atol=1e-11)
    assert min(largest_sums(machine)) > 0.01
    assert max(largest_sums(changed)) < 1e-13
    again = zero_sum_machine(changed)
    assert_allclose(again.coupling.to_matrix(), changed.coupling.to_matrix(), atol=1e-13)


def test_other_units_stay_as_they_are(rng):
    machine = tiny_machine()
    assert zero_sum_machine(machine) is machine
    labelled = MPOClassRBM((2, 2), rank=2, n_iter=1, random_state=0)
    labelled.fit(rng.random((20, 3, 2)) < 0.5, np.arange(20) % 2)
    assert zero_sum_machine(labelled.machine_) is labelled.machine_


def test_copies_keep_their_distribution(rng):
    """The mean of two copies over K states is 2 / K, which the hidden bias takes over."""
    machine = machine_of("mpo", UNITS["visible"], rng)
    doubled = eqx.tree_at(lambda m: m.visible_units, machine, Copies(Categorical(), 2))
    changed = zero_sum_machine(doubled)
    states = listed(machine)[0]
    pairs = (states[:, None] + states[None]).reshape(-1, *machine.visible_shape)
    difference = changed.free_energy(pairs) - doubled.free_energy(pairs)
    assert_allclose(difference, difference[0], atol=1e-11)


AXES = {"dense": (0, 1, 3), "kronecker": (-1, 0, 1), "mpo": (-1, 1, 2), "mpo-periodic": (-1, 1, 2)}
"""The factor, and its axes, that have the last modes of both layers."""


@pytest.mark.parametrize("kind", AXES)
def test_steps_lose_what_is_the_same_for_a_group_and_nothing_else(kind, rng):
    machine = machine_of(kind, UNITS["both"], rng)
    states = jnp.asarray(listed(machine)[0])
    data, samples = Batch.equal(states[:7]), Batch.equal(states)
    planned = plan_update(machine, len(data))
    ascent, _ = log_likelihood_gradient(*planned, data, samples)
    found = zero_sum_step(planned, ascent)
    place, *axes = AXES[kind]
    before, after = (np.asarray(a.factors[place]) for a in (ascent, found))
    for axis in axes:
        before = before - before.mean(axis=axis, keepdims=True)
    assert_allclose(after, before, atol=1e-12)
    assert np.abs(np.asarray(ascent.factors[place]) - after).max() > 1e-3
    for one, other in zip(ascent.factors[:place], found.factors[:place], strict=True):
        assert one is other
    # The biases of one-hot data and samples have gradients of zero sum anyway.
    for one, other in zip(ascent.biases, found.biases, strict=True):
        assert_allclose(one, other, atol=1e-14)


ROWS = np.eye(3)[np.random.default_rng(0).integers(3, size=(30, 4))]
ESTIMATORS = {
    "dense": (RBM, {"hidden_shape": (2, 2)}),
    "kronecker": (MvRBM, {"hidden_shape": (2, 2)}),
    "cp": (TvRBM, {"hidden_shape": 4, "rank": 2}),
    "mpo": (MPORBM, {"hidden_shape": (2, 2), "rank": 2}),
    "ring": (MPORBM, {"hidden_shape": (2, 2), "rank": 2, "boundary": "periodic"}),
    "two-site": (MPORBM, {"hidden_shape": (2, 2), "rank": 2, "scheme": "two-site"}),
    "at once": (MPORBM, {"hidden_shape": (2, 2), "rank": 2, "scheme": "su"}),
}
RULES = {
    "plain": {"rule": "plain", "momentum": 0.5, "weight_decay": 0.01, "learning_rate": 0.1},
    "centred": {"rule": "centred", "sparsity_target": 0.2},
    "no gauge": {"rule": "plain", "gauge": None, "init": "random", "learning_rate": 0.1},
}
CASES = [(kind, rule) for kind in ESTIMATORS for rule in ("plain", "centred")]


@pytest.mark.parametrize(("kind", "rule"), [*CASES, ("mpo", "no gauge")])
def test_trainings_keep_zero_sums(kind, rule):
    estimator, options = ESTIMATORS[kind]
    options = {**options, **RULES[rule], "hidden_units": "categorical"}
    model = estimator(
        **options, visible_units="categorical", n_iter=10, batch_size=10, random_state=0
    ).fit(ROWS)
    machine = model.machine_
    assert np.abs(machine.coupling.to_matrix()).max() > 0.01
    found = largest_sums(machine)
    assert len(found) == 4
    assert max(found) < 1e-5


def test_trainings_that_go_on_from_other_weights_put_them_right():
    dense = RBM(4, visible_units="categorical", random_state=0, n_iter=1).fit(ROWS)
    machine = dense.machine_
    weights = machine.coupling.weights + 1.0
    dense.set_machine(eqx.tree_at(lambda m: m.coupling.weights, machine, weights))
    scores = dense.score_samples(ROWS)
    assert largest_sums(dense.machine_)[0] > 0.5
    dense.set_params(learning_rate=1e-6).partial_fit(ROWS)
    assert max(largest_sums(dense.machine_)) < 1e-5
    assert_allclose(dense.score_samples(ROWS), scores, atol=1e-3)


@pytest.mark.parametrize("scheme", ["aop", "two-site"])
def test_trainings_begin_with_zero_sums(scheme):
    options = {"visible_units": "categorical", "hidden_units": "categorical", "scheme": scheme}
    model = MPORBM((2, 2), rank=2, n_iter=0, random_state=0, **options).fit(ROWS)
    assert max(largest_sums(model.machine_)) < 1e-5
