"""Machines with labels against enumeration of both layers and all labels."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from mporbm.machine import DenseCoupling, Gaussian, LabelledMachine, Machine, exact
from strategies import (
    all_states,
    assert_distributed,
    binary_states,
    joint_distribution,
    machines,
    seeds,
    tiny_machine,
    with_labels,
)


def labelled(seed=0):
    return with_labels(tiny_machine(seed=seed), np.random.default_rng(seed))


@eqx.filter_jit
def quantities(machine, v, labels):
    """What a machine says about visible states, with labels given and summed out."""
    return {
        "log_probability": machine.label_log_probability(v),
        "given": machine.free_energy(v, labels),
        "summed": machine.free_energy(v),
        "mean": machine.hidden_mean(v),
        "field": machine.hidden_field(v),
    }


@settings(max_examples=5)
@given(machines(), st.integers(1, 4), seeds)
def test_labels_and_free_energies_by_enumeration_of_the_hidden_layer(machine, n_classes, seed):
    rng = np.random.default_rng(seed)
    machine = with_labels(machine, rng, n_classes)
    n, shape = 2, machine.visible_shape
    v, labels = rng.normal(size=(n, *shape)), rng.integers(0, n_classes, n)
    found = quantities(machine, v, labels)

    h, flat = binary_states(machine.hidden_shape), v.reshape(n, -1)
    w, b, c = machine.coupling.to_matrix(), machine.visible_bias, machine.hidden_bias
    u, d = np.asarray(machine.label_weights), np.asarray(machine.label_bias)
    own = flat @ np.ravel(b)
    if isinstance(machine.visible_units, Gaussian):
        own = own - (v**2 / (2.0 * np.asarray(machine.visible_units.variance))).reshape(n, -1).sum(
            1
        )
    field = flat @ np.asarray(w) + np.ravel(c)
    # log p(V, y, H) + log Z: (n, classes, hidden states)
    layers = own[:, None, None] + (field @ h.T)[:, None]
    log_joint = layers + d[:, None] + u.reshape(n_classes, -1) @ h.T
    with_label = logsumexp(log_joint, axis=2)
    p = np.exp(with_label - logsumexp(with_label, axis=1, keepdims=True))
    assert_allclose(found["log_probability"], np.log(p), rtol=1e-9, atol=1e-9)
    assert_allclose(found["given"], -with_label[np.arange(n), labels], rtol=1e-9, atol=1e-9)
    assert_allclose(found["summed"], -logsumexp(with_label, axis=1), rtol=1e-9, atol=1e-9)
    hidden = np.exp(log_joint - logsumexp(log_joint, axis=(1, 2), keepdims=True)).sum(axis=1) @ h
    assert_allclose(found["mean"].reshape(n, -1), hidden, atol=1e-9)
    mean_field = field + p @ u.reshape(n_classes, -1)
    assert_allclose(found["field"].reshape(n, -1), mean_field, rtol=1e-9, atol=1e-9)


def test_energies_by_enumeration():
    machine = labelled()
    joint = joint_distribution(machine)
    v = all_states(machine)
    h = binary_states(machine.hidden_shape).reshape(-1, *machine.hidden_shape)
    log_z = exact.log_partition(machine)
    energies = eqx.filter_jit(lambda m, label: m.energy(v[:, None], h[None], label))
    for label in range(3):
        energy = energies(machine, jnp.asarray(label))
        assert_allclose(np.exp(-energy - log_z), joint[:, label], rtol=1e-9)
    summed = energies(machine, None)
    assert_allclose(np.exp(-summed - log_z), joint.sum(axis=1), rtol=1e-9)
    free = np.exp(-machine.hidden_free_energy(h) - log_z)
    assert_allclose(free, joint.sum(axis=(0, 1)), rtol=1e-9)
    p_label = jax.nn.softmax(machine.label_field(h))
    assert_allclose(p_label.T, joint.sum(axis=0) / joint.sum(axis=(0, 1)), rtol=1e-9)


def test_exact_quantities_sum_labels_out():
    machine = labelled()
    joint = joint_distribution(machine)
    assert_allclose(exact.visible_distribution(machine), joint.sum(axis=(1, 2)), rtol=1e-9)
    means = exact.expectations(machine)
    hidden = joint.sum(axis=(0, 1)) @ binary_states(machine.hidden_shape)
    assert_allclose(means.hidden.ravel(), hidden, rtol=1e-9)
    # log Z is that of the conditional machines together.
    parts = [d + exact.log_partition(machine.given(y)) for y, d in enumerate(machine.label_bias)]
    assert_allclose(exact.log_partition(machine), logsumexp(parts), rtol=1e-12)


def test_without_label_weights_it_is_the_plain_machine():
    plain = tiny_machine()
    d = np.array([0.5, -1.0, 2.0])
    machine = LabelledMachine(plain, np.zeros((3, *plain.hidden_shape)), d)
    v = all_states(plain)
    assert_allclose(machine.hidden_mean(v), plain.hidden_mean(v), rtol=1e-12)
    assert_allclose(machine.hidden_field(v), plain.hidden_field(v), rtol=1e-9, atol=1e-12)
    assert_allclose(machine.free_energy(v), plain.free_energy(v) - logsumexp(d), rtol=1e-12)
    p = np.exp(d - logsumexp(d))
    assert_allclose(np.exp(machine.label_log_probability(v)), np.tile(p, (len(v), 1)), rtol=1e-12)
    expected = exact.visible_distribution(plain)
    assert_allclose(exact.visible_distribution(machine), expected, rtol=1e-12)


def test_samples_of_the_hidden_layer_know_all_labels(key):
    machine, n = labelled(), 20_000
    joint = joint_distribution(machine)
    v = np.repeat(all_states(machine)[5:6], n, axis=0)
    hidden = eqx.filter_jit(lambda m, v: m.sample_hidden(key, v))(machine, v)
    conditional = joint[5].sum(axis=0)
    assert_distributed(hidden, conditional / conditional.sum())


def test_extreme_fields_give_finite_probabilities():
    machine = LabelledMachine(
        Machine(DenseCoupling(1e4 * np.ones((2, 3)))), 1e4 * np.eye(3), [0.0, 1e5, 0.0]
    )
    log_p = machine.label_log_probability(jnp.array([[1.0, 1.0], [-1.0, -1.0]]))
    assert np.isfinite(log_p).all()
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12)


def test_embedding_into_an_mpo_keeps_the_labels():
    dense = with_labels(tiny_machine("dense"), np.random.default_rng(0))
    v = all_states(dense)
    one, two = (m.label_log_probability(v) for m in (dense, dense.to_mpo()))
    assert_allclose(one, two, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((None, np.zeros((3, 2, 2))), TypeError, "machine: expected a Machine, got NoneType"),
        (
            (tiny_machine(), np.zeros((3, 4))),
            ValueError,
            r"label_weights: expected shape \(n_classes, 2, 2\).*got \(3, 4\)",
        ),
        (
            (tiny_machine(), np.zeros((0, 2, 2))),
            ValueError,
            r"label_weights: expected shape \(n_classes, 2, 2\).*got \(0, 2, 2\)",
        ),
        (
            (tiny_machine(), np.zeros((3, 2, 2)), np.zeros(2)),
            ValueError,
            r"label_bias: expected shape \(3,\), got \(2,\)",
        ),
        (
            (tiny_machine(), np.full((3, 2, 2), np.nan)),
            ValueError,
            "label_weights: expected entries that are finite",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        LabelledMachine(*arguments)
