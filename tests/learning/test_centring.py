"""Centred steps against the exact log-likelihood in centred parameters, by autodiff."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm import MPORBM, MPOClassRBM
from mporbm.learning import Algorithm, Alternating, Rates, Simultaneous, UpdateRule
from mporbm.learning.centring import Centre, centre_step
from mporbm.learning.gradient import Batch, log_likelihood_gradient, plan_update
from mporbm.learning.two_site import TwoSite
from mporbm.machine import DenseCoupling, Machine
from strategies import KINDS, tiny_machine
from trainings import Exact, data_batch, log_likelihood

RATE = 1e-3
SCHEMES = {"su": Simultaneous(), "aop": Alternating(), "two-site": TwoSite()}


RULE = UpdateRule(centred=True, momentum=0.0)


def centred_biases(machine, centre):
    """``b = B + W(lambda)`` and ``c = C + W^T(mu)``, by the matrix W."""
    w = np.asarray(machine.coupling.to_matrix())
    b = machine.visible_bias + (w @ np.ravel(centre.hidden)).reshape(machine.visible_shape)
    c = machine.hidden_bias + (np.ravel(centre.visible) @ w).reshape(machine.hidden_shape)
    return b, c


def direction_of(machine, data, moved, centre, rule=RULE):
    """The centred gradient for some factors, with exact expectations, and the rate of its step."""
    planned = plan_update(machine, len(data), moved)
    _, samples = Exact().step(None, machine, None, data)
    ascent, _ = log_likelihood_gradient(*planned, data, samples)
    return centre_step(rule, planned, ascent, centre, Rates(1.0, 1.0))


def after_step(machine, data, scheme, rule=RULE):
    algorithm = Algorithm(scheme, Exact(), rule)
    key = jax.random.key(0)
    start = algorithm.init(key, machine, 1)
    return algorithm.step(key, start, data, Rates(RATE, RATE))[0].machine


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_in_centred_parameters(kind, rng):
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    centre = Centre.begin(machine)
    b, c = centred_biases(machine, centre)

    def centred_likelihood(parameters):
        coupling, b, c = parameters
        biases = b - coupling.apply(centre.hidden), c - coupling.apply_transpose(centre.visible)
        return log_likelihood(Machine(coupling, *biases), data)

    expected = jax.grad(centred_likelihood)((machine.coupling, b, c))
    for k in range(len(machine.coupling.factors)):
        found, _ = direction_of(machine, data, (k,), centre)
        wanted = expected[0].factors[k], *expected[1:]
        for ours, theirs in zip((found.factors[k], *found.biases), wanted, strict=True):
            assert_allclose(ours, theirs, rtol=1e-8, atol=1e-11)


def test_small_batches_have_the_gradient_of_all_data_on_average(rng):
    """Offsets by the means of a batch would take its own correlations away."""
    machine, data = tiny_machine("mpo", scale=0.7), data_batch(rng)
    data, centre = Batch.equal(data.visible), Centre.begin(machine)
    whole, _ = direction_of(machine, data, (0, 1), centre)
    singles = [
        direction_of(machine, Batch.equal(data.visible[k : k + 1]), (0, 1), centre)[0]
        for k in range(len(data))
    ]
    mean = jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *singles)
    for a, b in zip(jax.tree.leaves(mean), jax.tree.leaves(whole), strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["su", "aop"])
def test_a_step_is_as_long_as_the_rate(kind, scheme, rng):
    """In W, b and c together; several factors that share a step take a shorter one."""
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    n_factors = len(machine.coupling.factors)
    first = (0,) if scheme == "aop" else tuple(range(n_factors))
    algorithm = Algorithm(SCHEMES[scheme], Exact(), RULE)
    start = algorithm.init(jax.random.key(0), machine, 1)
    state, _ = algorithm.update(jax.random.key(0), start, data, Rates(RATE, RATE), first)
    before, after = (
        np.concatenate(
            [np.ravel(m.coupling.to_matrix()), *map(np.ravel, centred_biases(m, start.centre))]
        )
        for m in (machine, state.machine)
    )
    length = np.linalg.norm(after - before)
    assert length <= RATE * (1.0 + 1e-4)
    if len(first) == 1:
        sizes = [factor.size for factor in machine.coupling.factors]
        assert_allclose(length, RATE * np.sqrt(sizes[0] / max(sizes)), rtol=1e-4)
    assert log_likelihood(state.machine, data) > log_likelihood(machine, data)


@pytest.mark.parametrize("kind", KINDS)
def test_the_square_of_a_shared_step_is_the_mean_over_its_factors(kind, rng):
    machine, data = tiny_machine(kind, scale=0.7), data_batch(rng)
    centre, every = Centre.begin(machine), range(len(machine.coupling.factors))
    sizes = [factor.size for factor in machine.coupling.factors]

    def square(moved):
        _, rates = direction_of(machine, data, moved, centre)
        share = min(sum(sizes[c] for c in moved) / max(sizes), 1.0)
        return share * float(rates.coupling) ** -2

    alone = [square((k,)) for k in every]
    assert_allclose(square(tuple(every)), np.mean(alone), rtol=1e-8)


def test_weight_decay_is_a_part_of_the_step(rng):
    """However strong it is, a step is no longer than the rate."""
    machine, data = tiny_machine("mpo", scale=0.7), data_batch(rng)
    for weight_decay in (0.1, 1e6):
        rule = UpdateRule(centred=True, momentum=0.0, weight_decay=weight_decay)
        after = after_step(machine, data, Simultaneous(), rule)
        moved = np.asarray(after.coupling.to_matrix()) - np.asarray(machine.coupling.to_matrix())
        assert np.linalg.norm(moved) <= RATE * (1.0 + 1e-4)
    assert_allclose(np.linalg.norm(moved), RATE, rtol=1e-2)


def test_the_hidden_offsets_follow_the_data(rng):
    machine, data = tiny_machine("mpo", scale=0.7), data_batch(rng)
    algorithm = Algorithm(Simultaneous(), Exact(), RULE)
    start = algorithm.init(jax.random.key(0), machine, 1)
    state, _ = algorithm.step(jax.random.key(0), start, data, Rates(RATE, RATE))
    mean = data.mean(machine.hidden_mean(data.visible))
    expected = 0.99 * start.centre.hidden + 0.01 * mean
    assert_allclose(state.centre.hidden, expected, rtol=1e-7)
    assert_allclose(state.centre.visible, 1.0 / (1.0 + np.exp(-machine.visible_bias)), rtol=1e-7)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_flipped_bits_are_learnt_alike(scheme, rng):
    """With V -> 1 - V, W -> -W, B -> -B and C -> C + W^T(1) the machine is the same."""
    machine, data = tiny_machine("mpo", scale=0.7), data_batch(rng)

    def flipped(machine):
        ones = jnp.ones(machine.visible_shape)
        first, *others = machine.coupling.factors
        coupling = machine.coupling.with_factors((-first, *others))
        hidden_bias = machine.hidden_bias + machine.coupling.apply_transpose(ones)
        return Machine(coupling, -machine.visible_bias, hidden_bias)

    other = Batch(1.0 - data.visible, data.weight)
    assert_allclose(log_likelihood(flipped(machine), other), log_likelihood(machine, data))
    one = flipped(after_step(machine, data, SCHEMES[scheme]))
    two = after_step(flipped(machine), other, SCHEMES[scheme])
    for a, b in zip(_dense(one), _dense(two), strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-10)
    plain = UpdateRule(momentum=0.0)
    one = flipped(after_step(machine, data, SCHEMES[scheme], plain))
    two = after_step(flipped(machine), other, SCHEMES[scheme], plain)
    assert np.abs(_dense(one)[0] - _dense(two)[0]).max() > 1e-6


def _dense(machine):
    return machine.coupling.to_matrix(), machine.visible_bias, machine.hidden_bias


def test_two_sites_with_room_for_all_ranks_step_as_a_dense_machine(rng):
    dense, data = tiny_machine("dense", scale=0.7), data_batch(rng)
    machine = dense.to_mpo()
    one = after_step(machine, data, TwoSite(max_ranks=(6,)))
    two = after_step(dense, data, Simultaneous())
    assert isinstance(dense.coupling, DenseCoupling)
    for a, b in zip(_dense(one), _dense(two), strict=True):
        assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-8, atol=1e-11)


def test_a_gradient_of_rounding_errors_is_no_step():
    machine = tiny_machine("mpo")
    _, everything = Exact().step(None, machine, None, None)
    after = after_step(machine, everything, Simultaneous())
    leaves = [jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (machine, after)]
    for a, b in zip(*leaves, strict=True):
        assert np.abs(a - b).max() < 0.1 * RATE


OPTIONS = {"rule": "centred", "n_iter": 4, "random_state": 0}
ROWS = np.random.default_rng(0).random((30, 4, 3))


def test_units_of_other_kinds_learn_centred():
    rows = np.random.default_rng(0).normal(size=(30, 4, 3))
    model = MPORBM(
        (2, 2),
        rank=2,
        visible_units="gaussian",
        hidden_units="bernoulli",
        standardize=False,
        **OPTIONS,
    ).fit(rows)
    assert np.isfinite(model.weight_matrix()).all()
    one_hot = np.eye(3)[ROWS[..., 0].argmax(axis=1) % 3][:, None, :].repeat(4, axis=1)
    model = MPORBM((2, 2), rank=2, visible_units="categorical", **OPTIONS).fit(one_hot)
    assert np.isfinite(model.weight_matrix()).all()


@pytest.mark.parametrize("objective", ["generative", "discriminative", "hybrid"])
def test_classifiers_learn_centred(objective):
    labels = np.arange(30) % 2
    rows = np.where(labels, 0.8, 0.2)[:, None, None] > ROWS
    options = {**OPTIONS, "n_iter": 30, "hidden_shape": (2, 2), "rank": 2}
    model = MPOClassRBM(objective=objective, **options).fit(rows, labels)
    assert model.score(rows, labels) > 0.9


def test_without_the_gauge_a_step_has_no_length():
    with pytest.raises(ValueError, match="gauge=None: expected 'canonical' with rule='centred'"):
        MPORBM((2, 2), rank=2, gauge=None, **OPTIONS).fit(ROWS < 0.3)


def test_automatic_rates_are_those_of_the_rule():
    model = MPORBM((2, 2), rank=2, **OPTIONS).fit(ROWS < 0.3)
    lengths = model._continuation.rates
    model.set_params(rule="plain").partial_fit(ROWS < 0.3)
    plain = (
        MPORBM((2, 2), rank=2, rule="plain", random_state=0)
        .partial_fit(ROWS < 0.3)
        ._continuation.rates
    )
    assert model._continuation.rates.coupling == plain.coupling != lengths.coupling


def test_early_stopping_gives_the_best_average_and_goes_on_from_it():
    options = {**OPTIONS, "early_stopping": True, "n_iter": 30, "n_iter_no_change": 2}
    model = MPORBM((2, 2), rank=2, **options).fit(ROWS < 0.3)
    scores = [entry["validation_score"] for entry in model.history_]
    assert len(scores) == int(np.argmax(scores)) + 3
    state, average = model._continuation.reached
    assert eqx.tree_equal(average.machine, model.machine_)
    assert eqx.tree_equal(state.machine, model.machine_)
    assert model.partial_fit(ROWS < 0.3).n_iter_ == len(scores) + 1
