"""Machines with a label against enumeration of all three layers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax

from mporbm.machine import (
    Bernoulli,
    Categorical,
    DenseCoupling,
    JointUnits,
    Machine,
    exact,
    label_logits,
    labelled_machine,
    with_labels,
)
from mporbm.machine.layered import stack_of
from strategies import (
    all_states,
    binary_states,
    label_distribution,
    log_joint,
    machines,
    random_coupling,
    random_labelled,
    random_machine,
    seeds,
    tiny_machine,
)


@eqx.filter_jit
def quantities(machine, v, labels):
    x = with_labels(machine, v, labels)
    return label_logits(machine, v), machine.free_energy(x), machine.hidden_mean(x)


@settings(max_examples=5)
@given(machines(), st.integers(1, 4), seeds)
def test_label_probabilities_and_free_energies_by_enumeration(plain, n_classes, seed):
    rng = np.random.default_rng(seed)
    machine = random_labelled(plain, rng, n_classes)
    v, labels = rng.normal(size=(2, *plain.visible_shape)), rng.integers(0, n_classes, 2)
    logits, free_energy, mean = quantities(machine, v, labels)

    potential = np.asarray(plain.visible_units.potential(jnp.asarray(v))).reshape(2, -1).sum(axis=1)
    log_weights = log_joint(machine, v) - potential[:, None, None]
    given_label = logsumexp(log_weights, axis=2)
    log_p = given_label - logsumexp(given_label, axis=1, keepdims=True)
    assert_allclose(jax.nn.log_softmax(logits), log_p, rtol=1e-9, atol=1e-9)
    assert_allclose(free_energy, -given_label[[0, 1], labels], rtol=1e-9, atol=1e-9)
    p_hidden = softmax(log_weights[[0, 1], labels], axis=1)
    assert_allclose(mean, p_hidden @ binary_states(plain.hidden_shape), atol=1e-9)


@pytest.mark.parametrize("shapes", [((3, 2), (2, 2)), ((2, 1), (2, 3))])
def test_exact_quantities_by_enumeration(shapes, rng, monkeypatch):
    """With the hidden layer as the smaller one, and with V and the label, in uneven chunks."""
    plain = random_machine(random_coupling("mpo", *shapes, 2, rng), rng)
    machine = random_labelled(plain, rng)
    # Chunks of 8 states, of which there are 12 in the second case.
    larger = max(*machine.visible_shape, *machine.hidden_shape)
    monkeypatch.setattr(exact, "CHUNK_ENTRIES", 8 * larger)
    joint = label_distribution(machine)
    v = all_states(plain).reshape(-1, np.prod(shapes[0]))
    states = np.concatenate([np.repeat(v, 3, axis=0), np.tile(np.eye(3), (len(v), 1))], axis=1)
    p, h = joint.reshape(len(states), -1), binary_states(plain.hidden_shape)
    units = machine.visible_units
    assert units == JointUnits((Bernoulli(), Categorical()), (v.shape[1], 3))
    assert_array_equal(units.states(jnp.arange(len(states)), machine.visible_shape, float), states)
    log_z = logsumexp(log_joint(machine, all_states(plain)))
    assert_allclose(exact.log_partition(machine), log_z, rtol=1e-12)
    assert_allclose(exact.visible_distribution(machine), p.sum(axis=1), rtol=1e-9)
    assert_allclose(np.exp(-machine.energy(states[:, None], h[None]) - log_z), p, rtol=1e-9)
    means = exact.expectations(machine)
    assert_allclose(means.visible, p.sum(axis=1) @ states, rtol=1e-9)
    assert_allclose(means.hidden, p.sum(axis=0) @ h, rtol=1e-9)
    assert_allclose(means.product, np.einsum("sh,si,hj->ij", p, states, h), rtol=1e-9)
    gradient = jax.grad(exact.log_partition)(machine)
    assert_allclose(gradient.visible_bias, means.visible, rtol=1e-9)
    p_label = joint.sum(axis=0) / joint.sum(axis=(0, 1))
    assert_allclose(machine.visible_mean(h)[:, -3:].T, p_label, rtol=1e-9)


def test_without_label_weights_v_is_distributed_as_without_a_label():
    plain, d = tiny_machine(), np.array([0.5, -1.0, 2.0])
    machine = labelled_machine(plain, np.zeros((3, *plain.hidden_shape)), d)
    v = all_states(plain)
    p = softmax(label_logits(machine, v), axis=1)
    assert_allclose(p, np.tile(softmax(d), (len(v), 1)), rtol=1e-12)
    p_visible = np.asarray(exact.visible_distribution(machine)).reshape(-1, 3).sum(axis=1)
    assert_allclose(p_visible, exact.visible_distribution(plain), rtol=1e-12)


def test_extreme_fields_give_finite_probabilities():
    machine = labelled_machine(
        Machine(DenseCoupling(1e4 * np.ones((2, 3)))), 1e4 * np.eye(3), [0.0, 1e5, 0.0]
    )
    log_p = jax.nn.log_softmax(label_logits(machine, jnp.array([[1.0, 1.0], [-1.0, -1.0]])))
    assert np.isfinite(log_p).all()


def test_the_parts_are_found_again(rng):
    plain = tiny_machine()
    u, d = rng.normal(size=(3, 2, 2)), rng.normal(size=3)
    low, top = stack_of(labelled_machine(plain, u, d))
    for one, other in zip(*map(jax.tree.leaves, (low, plain)), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(np.moveaxis(top.coupling.weights, -1, 0), u)
    assert_array_equal(top.hidden_bias, d)


def test_no_label_is_all_zeros(rng):
    machine = random_labelled(tiny_machine(), rng)
    found = with_labels(machine, np.ones((2, 3, 2)), [1, -1])
    assert_array_equal(found, [[1] * 6 + [0, 1, 0], [1] * 6 + [0, 0, 0]])


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
        labelled_machine(*arguments)


def test_a_machine_without_a_label_has_no_logits():
    with pytest.raises(TypeError, match="machine: expected a deep machine"):
        label_logits(tiny_machine(), np.zeros((1, 3, 2)))
    machine = labelled_machine(tiny_machine(), np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match=r"machine: expected the layers V, H and a label"):
        label_logits(Machine(machine.coupling), np.zeros((1, 3, 2)))
