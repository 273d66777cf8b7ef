"""The gradients that labels give against finite differences of enumerated probabilities."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from mporbm import MPOClassRBM
from mporbm.learning import (
    Alternating,
    Batch,
    ContrastiveDivergence,
    FastPersistentCD,
    ParallelTempering,
    Parameters,
    PersistentCD,
    automatic_rates,
    classification,
    gradient,
)
from mporbm.learning.classification import Classification
from mporbm.learning.gradient import plan_update
from mporbm.learning.rates import label_rates
from mporbm.learning.start import with_unit_fields
from mporbm.machine import exact, label_logits, labelled_machine, with_labels
from mporbm.machine.layered import stack_of
from mporbm.training import ArraySource, LabelledRows, PackedBits
from mporbm.training.rows import unpacked
from strategies import (
    all_states,
    assert_numbers_distributed,
    label_distribution,
    label_numbers,
    log_joint,
    machines,
    random_labelled,
    seeds,
    tiny_machine,
)

K = 3
OBJECTIVES = {
    "generative": {"discriminative": False, "generative_weight": 1.0},
    "discriminative": {"discriminative": True, "generative_weight": None},
    "hybrid": {"discriminative": True, "generative_weight": 0.3},
}


def classification_gradient(
    machine, data, samples, moved=None, *, discriminative, generative_weight
):
    weight = None if generative_weight is None else jnp.asarray(generative_weight)
    objective = Classification(discriminative, weight)
    return objective.gradient(*plan_update(machine, len(data), moved), data, samples)


def discriminative_gradient(machine, data):
    return classification.discriminative_gradient(*plan_update(machine, len(data)), data)


def label_score(machine, data):
    logits = label_logits(
        machine,
        data.visible[:, : -n_classes_of(machine)].reshape(-1, *stack_of(machine)[0].visible_shape),
    )
    labels = data.visible[:, -n_classes_of(machine) :]
    return data.mean((labels * jax.nn.log_softmax(logits)).sum(axis=1))


def n_classes_of(machine):
    return stack_of(machine)[1].hidden_shape[0]


@functools.cache
def tiny(kind="mpo"):
    return random_labelled(tiny_machine(kind, 0, 0.7), np.random.default_rng(0), K)


def labelled_samples(machine, rng, n_samples=7):
    """Samples with labels and unequal weights; V and labels, then both as a batch."""
    shape, n_classes = stack_of(machine)[0].visible_shape, stack_of(machine)[1].hidden_shape[0]
    v = rng.integers(0, 2, (n_samples, *shape)).astype(float)
    labels, weight = rng.integers(0, n_classes, n_samples), rng.uniform(0.5, 2.0, n_samples)
    data = Batch(with_labels(machine, v, labels), jnp.asarray(weight / weight.sum()))
    return v, labels, data


def every_state(machine):
    """All states of V and the label with their exact probabilities."""
    v, labels = all_states(stack_of(machine)[0]), np.arange(K)
    states = with_labels(machine, np.repeat(v, K, axis=0), np.tile(labels, len(v)))
    return Batch(states, exact.visible_distribution(machine))


def value(machine, v, labels, weight, discriminative, generative_weight):
    """The objective by NumPy alone; V has no potential."""
    with_label = logsumexp(log_joint(machine, v), axis=2)
    own = with_label[np.arange(len(v)), labels]
    total = 0.0
    if discriminative:
        total = total + own - logsumexp(with_label, axis=1)
    if generative_weight is not None:
        log_z = logsumexp(log_joint(machine, all_states(stack_of(machine)[0])))
        total = total + generative_weight * (own - log_z)
    return float(np.asarray(weight) @ total)


def assert_slopes(found, machine, objective, rng, step=1e-5):
    """Along a random direction of each array the gradient is a finite difference."""
    arrays, structure = jax.tree.flatten(Parameters.of(machine))
    for k, (array, slope) in enumerate(zip(arrays, jax.tree.leaves(found), strict=True)):
        direction = rng.normal(size=array.shape)
        ends = []
        for sign in (1.0, -1.0):
            moved = [a + sign * step * direction if j == k else a for j, a in enumerate(arrays)]
            ends.append(objective(jax.tree.unflatten(structure, moved).into(machine)))
        expected = (ends[0] - ends[1]) / (2.0 * step)
        assert_allclose(np.vdot(slope, direction), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["mpo-periodic", "dense"])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients_are_finite_differences(name, kind, rng):
    machine, options = tiny(kind), OBJECTIVES[name]
    v, labels, data = labelled_samples(machine, rng)
    found, info = eqx.filter_jit(classification_gradient)(
        machine, data, every_state(machine), **options
    )
    assert_slopes(found, machine, lambda m: value(m, v, labels, data.weight, **options), rng)
    fields = machine.hidden_field(data.visible)
    assert_allclose(info.hidden_mean, data.mean(jax.nn.sigmoid(fields)), rtol=1e-9)
    assert info.largest_field >= abs(fields).max()


@settings(max_examples=3)
@given(machines(kinds=("mpo", "mpo-periodic", "dense")), st.integers(1, 4), seeds)
def test_discriminative_gradients_for_any_shape(plain, n_classes, seed):
    """Bernoulli and Gaussian units, whose potential is the same for all labels."""
    rng = np.random.default_rng(seed)
    machine = random_labelled(plain, rng, n_classes)
    v, labels, data = labelled_samples(machine, rng, 4)
    found, _ = eqx.filter_jit(discriminative_gradient)(machine, data)
    options = OBJECTIVES["discriminative"]
    assert_slopes(found, machine, lambda m: value(m, v, labels, data.weight, **options), rng)
    score = value(machine, v, labels, data.weight, **options)
    assert_allclose(label_score(machine, data), score, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_only_the_moved_factors_get_a_gradient(name, rng):
    machine = tiny()
    data, samples = (labelled_samples(machine, rng)[2] for _ in range(2))
    run = functools.partial(classification_gradient, machine, data, samples, **OBJECTIVES[name])
    every, one = run()[0], run((1, 2))[0]
    assert [factor is None for factor in one.factors] == [True, False, False]
    for k in (1, 2):
        assert_allclose(one.factors[k], every.factors[k], rtol=1e-12)
    assert_allclose(one.visible_bias, every.visible_bias, rtol=1e-12)


def test_every_core_has_its_turn_and_the_label_moves_with_each():
    machine = tiny("mpo")
    n_cores = len(machine.coupling.factors) - 1
    assert n_cores > 1
    assert Alternating().groups(machine) == tuple((k, n_cores) for k in range(n_cores))


def test_samples_without_a_label_teach_none(rng):
    machine = tiny()
    data = labelled_samples(machine, rng)[2]
    nothing = Batch(data.visible.at[:, -K:].set(0.0), data.weight)
    found, _ = discriminative_gradient(machine, nothing)
    assert all((array == 0.0).all() for array in jax.tree.leaves(found))


def test_without_label_weights_the_generative_gradient_is_the_plain_one(rng):
    plain = tiny_machine()
    machine = labelled_machine(plain, np.zeros((K, 2, 2)))
    (v, _, data), (w, _, samples) = (labelled_samples(machine, rng) for _ in range(2))
    found, _ = gradient(machine, data, samples)
    expected, _ = gradient(
        plain, Batch(jnp.asarray(v), data.weight), Batch(jnp.asarray(w), samples.weight)
    )
    for one, other in zip(found.factors[:-1], expected.factors, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert_allclose(found.visible_bias[:-K], expected.visible_bias.ravel(), atol=1e-12)
    assert_allclose(found.hidden_bias, expected.hidden_bias.ravel(), atol=1e-12)


@pytest.mark.parametrize(
    "phase",
    [ContrastiveDivergence(2), PersistentCD(2), FastPersistentCD(2), ParallelTempering(2, 2)],
    ids=["cd", "pcd", "fpcd", "pt"],
)
def test_negative_phases_of_labels_are_stationary(phase, key, rng):
    """Exact samples stay exact: at the data for CD, in the chains for the others."""
    machine, n = tiny(), 20_000
    p = label_distribution(machine).sum(axis=2).ravel()
    state, labels = np.divmod(rng.choice(len(p), n, p=p), K)
    start = with_labels(machine, all_states(tiny_machine())[state], labels)
    data = Batch(start, jnp.full(n, 1 / n))
    chains = phase.init(key, machine, n)
    if isinstance(phase, PersistentCD):
        chains = start
    elif isinstance(phase, FastPersistentCD):
        chains = type(chains)(start, chains.fast)
    elif isinstance(phase, ParallelTempering):
        chains = type(chains)(chains.visible.at[-1].set(start), chains.n_steps)
    _, samples = eqx.filter_jit(phase.step)(key, machine, chains, data)
    assert (samples.visible[:, -K:] != start[:, -K:]).any(axis=1).mean() > 0.1
    assert_numbers_distributed(label_numbers(samples.visible, K), p)
    assert_allclose(samples.weight.sum(), 1.0, rtol=1e-9)


def test_chains_begin_at_the_rates_of_the_label_bias(key):
    machine = tiny()
    chains = PersistentCD().init(key, machine, 20_000)
    d = stack_of(machine)[1].hidden_bias
    assert_numbers_distributed(np.asarray(chains[:, -K:]).argmax(axis=1), jax.nn.softmax(d))


@pytest.mark.parametrize("packed", [False, True])
def test_rows_keep_their_labels(packed, rng):
    bits = rng.random((10, 3, 2)) < 0.5
    codes = np.packbits(bits.reshape(10, 6), axis=1) >> 2
    rows = PackedBits(codes, 6, (3, 2)) if packed else bits
    labels = np.arange(10, dtype=np.int32)
    source = ArraySource(LabelledRows(rows, labels))
    machine, objective = random_labelled(tiny_machine(), rng, 10), Classification()
    (block,) = source.blocks(np.random.default_rng(1), 5)
    for chosen in block.chosen:
        found = objective.batch(machine, unpacked(block.rows[chosen]), jnp.full(5, 0.2))
        visible, drawn = np.split(np.asarray(found.visible), [6], axis=1)
        np.testing.assert_array_equal(visible.reshape(-1, 3, 2), bits[drawn.argmax(axis=1)])
    head = source.head(3)
    shown = objective.watch(machine, jax.device_put(head), jnp.arange(2))
    p = jax.nn.log_softmax(label_logits(machine, bits[head.labels].astype(float)))
    assert_allclose(shown.score, np.mean([p[k, y] for k, y in enumerate(head.labels)]), rtol=1e-9)
    free = machine.free_energy(with_labels(machine, bits[head.labels].astype(float), head.labels))
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
