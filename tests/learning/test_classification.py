"""Learning with labels: gradients against the exact ones, steps, and what training does."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from mporbm import MPOClassRBM
from mporbm.learning import (
    Alternating,
    LabelledBatch,
    LabelledCD,
    LabelledParameters,
    LabelledPCD,
    LabelledRows,
    LabelledRule,
    Labelling,
    Rates,
    Simultaneous,
    automatic_rates,
)
from mporbm.learning import gradient as plain_gradient
from mporbm.learning.gauge import natural
from mporbm.learning.rates import label_rates
from mporbm.learning.start import with_unit_fields
from mporbm.machine import exact
from mporbm.training import ArraySource, PackedBits
from strategies import (
    all_states,
    assert_numbers_distributed,
    joint_distribution,
    machines,
    seeds,
    state_numbers,
    tiny_machine,
    with_labels,
)

N_CLASSES = 3
OBJECTIVES = {
    "generative": {"discriminative": False, "generative_weight": 1.0},
    "discriminative": {"discriminative": True},
    "hybrid": {"discriminative": True, "generative_weight": 0.3},
}


@functools.cache
def tiny(kind="mpo", seed=0):
    return with_labels(tiny_machine(kind, seed, 0.7), np.random.default_rng(seed), N_CLASSES)


def every_state(machine):
    """All pairs of visible states and labels with their exact probabilities."""
    states = all_states(machine)
    n_classes = machine.n_classes
    return LabelledBatch(
        jnp.asarray(np.repeat(states, n_classes, axis=0)),
        jnp.exp(log_joint(machine, np.repeat(states, n_classes, axis=0), label_cycle(machine))),
        label_cycle(machine),
    )


def label_cycle(machine):
    return jnp.tile(jnp.arange(machine.n_classes), 2 ** np.prod(machine.visible_shape))


def log_joint(machine, visible, labels):
    """``log p(V, y)`` exactly."""
    return -machine.free_energy(visible, labels) - exact.log_partition(machine)


def log_conditional(machine, visible, labels):
    """``log p(y | V)`` as a difference of free energies."""
    return machine.free_energy(visible) - machine.free_energy(visible, labels)


@eqx.filter_jit
def value(machine, data, discriminative, generative_weight=0.0):
    """The exact objective."""
    total = generative_weight * log_joint(machine, data.visible, data.labels)
    if discriminative:
        total = total + log_conditional(machine, data.visible, data.labels)
    return data.mean(total)


class Exact(LabelledCD):
    """All states with their probabilities: a negative phase without sampling."""

    def step(self, key, machine, state, data):
        return None, every_state(machine)


def batch(machine, rng, n_samples=7):
    weight = rng.uniform(0.5, 2.0, n_samples)
    visible = rng.integers(0, 2, (n_samples, *machine.visible_shape)).astype(float)
    labels = rng.integers(0, machine.n_classes, n_samples)
    return LabelledBatch(*map(jnp.asarray, (visible, weight / weight.sum(), labels)))


@eqx.filter_jit
def gradient(rule, machine, data, samples, moved=None):
    return rule.gradient(machine, data, samples, moved)


def assert_same(one, other, **tolerance):
    for a, b in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        assert_allclose(a, b, **tolerance)


@pytest.mark.parametrize("kind", ["mpo-periodic", "dense"])
def test_gradients_are_those_of_autodiff(kind, rng):
    machine, options = tiny(kind), OBJECTIVES["hybrid"]
    data, rule = batch(machine, rng), LabelledRule(Exact(), **options)
    samples = Exact().step(None, machine, None, data)[1]
    found, _ = gradient(rule, machine, data, samples)
    slope = eqx.filter_jit(eqx.filter_grad(value))(machine, data, **options)
    assert_same(found, LabelledParameters.of(slope), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_are_finite_differences(objective, rng):
    machine, options, step = tiny(), OBJECTIVES[objective], 1e-5
    data, rule = batch(machine, rng), LabelledRule(Exact(), **OBJECTIVES[objective])
    found, _ = gradient(rule, machine, data, every_state(machine))
    arrays, structure = jax.tree.flatten(LabelledParameters.of(machine))
    slopes = jax.tree.leaves(found)
    for k, array in enumerate(arrays):
        direction = rng.normal(size=array.shape)
        ends = []
        for sign in (1.0, -1.0):
            moved = [a + sign * step * direction if j == k else a for j, a in enumerate(arrays)]
            theta = jax.tree.unflatten(structure, moved)
            ends.append(float(value(theta.into(machine), data, **options)))
        expected = (ends[0] - ends[1]) / (2.0 * step)
        assert_allclose(np.vdot(slopes[k], direction), expected, rtol=1e-6, atol=1e-9)


# Every shape compiles two programs.
@settings(max_examples=3)
@given(machines(kinds=("mpo", "mpo-periodic", "dense")), st.integers(1, 4), seeds)
def test_discriminative_gradients_for_any_shape(machine, n_classes, seed):
    """Bernoulli and Gaussian units, open and periodic: each core, and all biases."""
    rng = np.random.default_rng(seed)
    machine = with_labels(machine, rng, n_classes)
    data = batch(machine, rng, 4)
    found, info = gradient(LabelledRule(LabelledCD(), discriminative=True), machine, data, data)

    def mean_log_probability(machine):
        return data.mean(log_conditional(machine, data.visible, data.labels))

    slope = eqx.filter_jit(eqx.filter_grad(mean_log_probability))(machine)
    assert_same(found, LabelledParameters.of(slope), rtol=1e-8, atol=1e-10)
    rate = data.mean(machine.given(data.labels).hidden_mean(data.visible))
    assert_allclose(info.hidden_rate, rate, atol=1e-10)


def test_only_the_moved_factors_get_a_gradient(rng):
    machine = tiny()
    data, rule = batch(machine, rng), LabelledRule(LabelledCD(), discriminative=True)
    every, _ = gradient(rule, machine, data, data)
    one, _ = gradient(rule, machine, data, data, (1,))
    assert one.factors[0] is None
    assert_allclose(one.factors[1], every.factors[1], rtol=1e-12)


def test_without_label_weights_the_generative_gradient_is_the_plain_one(rng):
    machine = eqx.tree_at(lambda m: m.label_weights, tiny(), jnp.zeros((N_CLASSES, 2, 2)))
    data, samples = batch(machine, rng), batch(machine, rng)
    rule = LabelledRule(LabelledCD(), **OBJECTIVES["generative"])
    found, info = gradient(rule, machine, data, samples)
    expected, plain_info = plain_gradient(machine.given(0), data, samples)
    assert_same((found.factors, *found.biases[:2]), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(info.hidden_rate, plain_info.hidden_rate, rtol=1e-9)


@pytest.mark.parametrize("gauge", [True, False])
@pytest.mark.parametrize("scheme", [Simultaneous(), Alternating()], ids=["su", "aop"])
def test_one_step_is_the_rate_times_the_exact_gradient(scheme, gauge, rng, key):
    machine, rate = tiny(), 1e-3
    data = batch(machine, rng)
    rule = LabelledRule(Exact(), gauge=gauge, momentum=0.0, **OBJECTIVES["hybrid"])
    labelling = Labelling(scheme)
    start = labelling.init(key, rule, machine, 1)
    step = eqx.filter_jit(labelling.step)
    end, _ = step(key, rule, start, data, Rates(rate, rate))
    groups = [(0, 1)] if isinstance(scheme, Simultaneous) else [(0,), (1,)]
    assert labelling.n_updates(machine) == len(groups)
    expected = machine
    for group in groups:
        g, _ = gradient(rule, expected, data, every_state(expected))
        theta = LabelledParameters.of(expected)
        steps = natural(expected.coupling, g.factors) if gauge else g.factors
        share = rate / len(group) if gauge else rate
        factors = tuple(
            w + share * steps[k] if k in group else w for k, w in enumerate(theta.factors)
        )
        biases = (b + rate * s for b, s in zip(theta.biases, g.biases, strict=True))
        expected = LabelledParameters(factors, *biases).into(expected)
    assert_same(end.machine, expected, rtol=1e-9, atol=1e-12)


def test_sparsity_pulls_the_hidden_bias(rng):
    machine = tiny()
    data = batch(machine, rng)
    options = {"discriminative": True, "sparsity_target": 0.1, "sparsity_cost": 2.0}
    plain, info = gradient(LabelledRule(LabelledCD(), discriminative=True), machine, data, data)
    sparse, _ = gradient(LabelledRule(LabelledCD(), **options), machine, data, data)
    pull = 2.0 * (0.1 - info.hidden_rate)
    assert_allclose(sparse.hidden_bias, plain.hidden_bias + pull, rtol=1e-12)
    assert_allclose(sparse.label_weights, plain.label_weights, rtol=1e-12)


@pytest.mark.parametrize("phase", [LabelledCD(2), LabelledPCD(2)], ids=["cd", "pcd"])
def test_negative_phases_are_stationary(phase, key, rng):
    """Exact samples stay exact: at the data for CD, in the chains for PCD."""
    machine, n = tiny(), 20_000
    p = joint_distribution(machine).sum(axis=2).ravel()
    state, labels = np.divmod(rng.choice(len(p), n, p=p), N_CLASSES)
    data = LabelledBatch(
        jnp.asarray(all_states(machine)[state]), jnp.full(n, 1 / n), jnp.asarray(labels)
    )
    start = phase.init(key, machine, n)
    if isinstance(phase, LabelledPCD):
        assert [a.shape for a in start] == [(n, *machine.visible_shape), (n,)]
        start = data.visible, data.labels
    end, samples = eqx.filter_jit(phase.step)(key, machine, start, data)
    assert jax.tree.structure(end) == jax.tree.structure(start)
    numbers = state_numbers(samples.visible) * N_CLASSES + np.asarray(samples.labels)
    assert_numbers_distributed(numbers, p)
    assert_allclose(samples.weight.sum(), 1.0, rtol=1e-9)


def test_chains_begin_at_the_rates_of_the_biases(key):
    machine, n = tiny(), 20_000
    _, labels = LabelledPCD().init(key, machine, n)
    assert_numbers_distributed(np.asarray(labels), jax.nn.softmax(machine.label_bias))


@pytest.mark.parametrize("packed", [False, True])
def test_rows_keep_their_labels(packed, rng):
    bits = rng.random((10, 3, 2)) < 0.5
    codes = np.packbits(bits.reshape(10, 6), axis=1) >> 2
    rows = PackedBits(codes, 6, (3, 2)) if packed else bits
    labels = np.arange(10, dtype=np.int32)
    source = ArraySource(LabelledRows(rows, labels))
    machine = with_labels(tiny_machine(), rng, 10)
    scheme = Labelling(Simultaneous())
    (block,) = source.blocks(np.random.default_rng(1), 5)
    for chosen in block.chosen:
        found = scheme.batch(machine, block.rows[chosen], jnp.full(5, 0.2))
        np.testing.assert_array_equal(found.visible, bits[np.asarray(found.labels)])
    head = source.head(3)
    shown = scheme.watch(machine, jax.device_put(head), jnp.arange(2))
    p = machine.label_log_probability(bits[head.labels])
    assert_allclose(shown.score, np.mean([p[k, y] for k, y in enumerate(head.labels)]), rtol=1e-9)
    free = [machine.free_energy(bits[y], int(y)) for y in head.labels]
    assert_allclose(shown.free_energy, np.mean(free), rtol=1e-9)
    assert source.fingerprint() != ArraySource(LabelledRows(rows, labels[::-1])).fingerprint()


def bars_and_stripes():
    """Images of 3x3 pixels with some rows, or some columns, all on, and which of both they are."""
    lines = np.array([line for line in np.ndindex(2, 2, 2) if 0 < sum(line) < 3])
    stripes = np.repeat(lines[:, None, :], 3, axis=1)
    images = np.concatenate([stripes, stripes.transpose(0, 2, 1)])
    return images, np.repeat(["columns", "rows"], len(lines))


def test_labels_that_no_pixel_tells_are_learnt():
    """Every pixel is on as often in both classes: small weights would wait on a plateau."""
    images, labels = bars_and_stripes()
    model = MPOClassRBM(
        (4, 2), rank=6, objective="discriminative", learning_rate=1.0, n_iter=150, random_state=0
    )
    model.fit(np.tile(images, (4, 1, 1)), np.tile(labels, 4))
    assert model.score(images, labels) == 1.0
    assert model.history_[-1]["score"] > -0.3


def test_hidden_fields_start_with_a_spread_of_1(rng):
    machine, rows = tiny_machine(scale=0.01), rng.normal(size=(50, 3, 2))
    field = np.asarray(with_unit_fields(machine, rows).hidden_field(rows))
    assert_allclose(field.std(axis=0).mean(), 1.0, rtol=1e-9)
    assert_allclose(field.mean(axis=0), 0.0, atol=1e-9)
    same = with_unit_fields(machine, np.ones((5, 3, 2)))
    assert_allclose(same.coupling.to_matrix(), machine.coupling.to_matrix(), rtol=1e-12)


def test_rates_for_labels_bear_the_generative_part(rng):
    rows = rng.random((20, 6))
    plain = automatic_rates(rows)
    for weight, factor in ((None, 10.0), (0.01, 10.0), (0.5, 2.0)):
        rates = label_rates(rows, weight)
        assert_allclose(rates.coupling, factor * plain.coupling, rtol=1e-9)
        assert_allclose(rates.bias, factor * plain.bias, rtol=1e-9)
