"""Deep Boltzmann machines against the energy of their layers, enumerated in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

from mporbm.machine import (
    Bernoulli,
    Categorical,
    Copies,
    Gaussian,
    JointUnits,
    LayeredCoupling,
    Machine,
    deep_boltzmann,
    exact,
)
from mporbm.machine.layered import layer_units, layered, stack_of
from strategies import LAYERS, assert_distributed, random_coupling, tiny_machine, tiny_stack

DEPTHS = (1, 2, 3)


def random_layers(n_layers, rng, n_samples=5):
    return [
        rng.integers(0, 2, (n_samples, *shape)).astype(float) for shape in LAYERS[: n_layers + 1]
    ]


def halves(layers):
    """Even and odd layers, flattened one after the other."""
    flat = [layer.reshape(len(layer), -1) for layer in layers]
    return np.concatenate(flat[::2], axis=1), np.concatenate(flat[1::2], axis=1)


def minus_energy(stack, layers):
    """``sum_k <X_{k-1}, W_k(X_k)> + sum_k <B_k, X_k> - potential(X_0)``, term by term."""
    flat = [layer.reshape(len(layer), -1) for layer in layers]
    potential = stack[0].visible_units.potential(jnp.asarray(layers[0]))
    total = -np.asarray(potential).reshape(len(flat[0]), -1).sum(axis=1)
    total += flat[0] @ np.asarray(stack[0].visible_bias).ravel()
    for k, machine in enumerate(stack):
        w = np.asarray(machine.coupling.to_matrix())
        total += np.einsum("ni,ij,nj->n", flat[k], w, flat[k + 1])
        bias = machine.hidden_bias
        if k + 1 < len(stack):
            bias = (bias + stack[k + 1].visible_bias) / 2
        total += flat[k + 1] @ np.asarray(bias).ravel()
    return total


@pytest.mark.parametrize("n_layers", DEPTHS)
@pytest.mark.parametrize("kind", ["mpo", "dense"])
def test_the_coupling_is_its_matrix(n_layers, kind, rng):
    coupling = deep_boltzmann(tiny_stack(n_layers, kind)).coupling
    w = np.asarray(coupling.to_matrix())
    even, odd = halves(random_layers(n_layers, rng))
    assert_allclose(coupling.apply(odd), odd @ w.T, rtol=1e-12)
    assert_allclose(coupling.apply_transpose(even), even @ w, rtol=1e-12)
    assert_allclose(Machine(coupling).planned(5, 200).coupling.apply(odd), odd @ w.T, rtol=1e-12)
    assert_allclose(coupling.to_mpo().to_matrix(), w)
    assert_array_equal(coupling.nodes()[0].array, w)
    assert coupling.n_parameters == sum(part.n_parameters for part in coupling.parts())


@pytest.mark.parametrize("n_layers", DEPTHS)
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_energy_is_that_of_the_layers(n_layers, gaussian, rng):
    stack = tiny_stack(n_layers, gaussian=gaussian)
    layers = random_layers(n_layers, rng)
    if gaussian:
        layers[0] = rng.normal(size=layers[0].shape)
    machine = deep_boltzmann(stack)
    assert_allclose(-machine.energy(*halves(layers)), minus_energy(stack, layers), rtol=1e-12)
    split = layered(machine).layers(*map(jnp.asarray, halves(layers)))
    assert_array_equal(split[-1], layers[-1])


def test_the_conditional_of_a_middle_layer_follows_from_the_energy(rng):
    """``p(X_1 | X_0, X_2)`` against the energies of all its states."""
    stack = tiny_stack(2)
    low, _, high = (layer[:1] for layer in random_layers(2, rng))
    states = np.array(list(itertools.product([0.0, 1.0], repeat=4))).reshape(-1, 2, 2)
    layers = [np.repeat(low, 16, 0), states, np.repeat(high, 16, 0)]
    p = scipy.special.softmax(minus_energy(stack, layers))
    found = deep_boltzmann(stack).hidden_mean(halves(layers)[0][:1])
    assert_allclose(found[0], p @ states.reshape(16, 4), rtol=1e-12)


def test_one_layer_is_the_machine_itself(rng):
    machine = tiny_machine()
    deep = deep_boltzmann([machine])
    assert_allclose(exact.log_partition(deep), exact.log_partition(machine))
    visible = rng.integers(0, 2, (5, 3, 2)).astype(float)
    assert_allclose(deep.free_energy(visible.reshape(5, -1)), machine.free_energy(visible))


@pytest.mark.parametrize("gaussian", [False, True])
def test_the_stack_of_a_deep_machine_makes_it_again(gaussian):
    machine = deep_boltzmann(tiny_stack(3, gaussian=gaussian))
    again = deep_boltzmann(stack_of(machine))
    assert jax.tree.structure(machine) == jax.tree.structure(again)
    for one, other in zip(jax.tree.leaves(machine), jax.tree.leaves(again), strict=True):
        assert_allclose(one, other, rtol=1e-14)


def test_a_middle_layer_is_the_geometric_mean_of_doubled_machines(rng):
    """The log-odds of X_1 are the mean of those that the machines below and above give it."""
    below, above = tiny_stack(2)
    below = Machine(below.coupling, below.visible_bias, below.hidden_bias, Copies(Bernoulli(), 2))
    above = Machine(
        above.coupling,
        above.visible_bias,
        above.hidden_bias,
        hidden_units=Copies(Bernoulli(), 2),
    )
    low, _, high = random_layers(2, rng)
    fields = below.hidden_field(2 * low), above.visible_field(2 * high)
    even = halves([low, low[..., 0], high])[0]
    found = deep_boltzmann([below, above]).hidden_field(even)
    assert_allclose(found, (fields[0] + fields[1]).reshape(5, -1) / 2, rtol=1e-12)


def test_copies_are_the_sum_of_units_in_one_field(key):
    field = jnp.array([-2.0, 0.3, 1.5])
    copies = Copies(Bernoulli(), 2)
    p = scipy.special.expit(np.asarray(field))
    assert_allclose(copies.mean(field), 2 * p)
    assert_allclose(np.exp(copies.log_partition(field)), (1 + np.exp(field)) ** 2)
    assert_array_equal(copies.of_values(jnp.array([0.0, 0.5, 1.0])), [0.0, 1.0, 2.0])
    drawn = np.asarray(copies.sample(key, jnp.broadcast_to(field, (20_000, 3))))
    for k in range(3):
        counts = np.bincount(drawn[:, k].astype(int), minlength=3)
        expected = 20_000 * np.array([(1 - p[k]) ** 2, 2 * p[k] * (1 - p[k]), p[k] ** 2])
        assert ((counts - expected) ** 2 / expected).sum() < 25.0
    # Fields that vary: the variance of a sum is E[var] + var(E).
    fields = np.array([-1.0, 2.0])
    means = 2 * scipy.special.expit(fields)
    inner = (means * (1 - means / 2)).mean()
    found = copies.total_variance(jnp.asarray(means.mean()), jnp.asarray(means.var()))
    assert_allclose(found, inner + means.var())
    gaussian = Copies(Gaussian(1.5), 2)
    assert_allclose(gaussian.total_variance(jnp.array(1.0), jnp.array(0.2)), 3.2)
    assert_allclose(gaussian.potential(jnp.array(2.0)), 2.0**2 / (2 * 2 * 1.5))


def with_units(machine, visible=None, hidden=None):
    """The machine with other kinds of units."""
    parts = machine.coupling, machine.visible_bias, machine.hidden_bias
    return Machine(*parts, visible or machine.visible_units, hidden or machine.hidden_units)


@pytest.mark.parametrize("n_layers", DEPTHS)
def test_categorical_layers_by_enumeration(n_layers):
    """The data are groups of 2 states, and the last layer, even or odd, is one of 2 states."""
    stack = list(tiny_stack(n_layers))
    stack[0] = with_units(stack[0], visible=Categorical())
    stack[-1] = with_units(stack[-1], hidden=Categorical())
    machine = deep_boltzmann(stack)
    kinds = [Categorical(), *[Bernoulli()] * (n_layers - 1), Categorical()]
    assert layer_units(machine) == tuple(kinds)
    shapes = layered(machine).shapes
    assert jax.tree.structure(deep_boltzmann(stack_of(machine))) == jax.tree.structure(machine)
    listed = []
    for kind, shape in zip(kinds, shapes, strict=True):
        states = np.array(list(itertools.product([0.0, 1.0], repeat=int(np.prod(shape)))))
        states = states.reshape(-1, *shape)
        if isinstance(kind, Categorical):
            states = states[(states.sum(axis=-1) == 1.0).reshape(len(states), -1).all(axis=1)]
        listed.append(states)
    chosen = np.array(list(itertools.product(*(range(len(states)) for states in listed))))
    layers = [states[k] for states, k in zip(listed, chosen.T, strict=True)]
    log_weights = minus_energy(stack, layers)
    even, odd = halves(layers)
    assert_allclose(-machine.energy(even, odd), log_weights, rtol=1e-10, atol=1e-12)
    assert_allclose(exact.log_partition(machine), scipy.special.logsumexp(log_weights), rtol=1e-12)
    p, means = scipy.special.softmax(log_weights), exact.expectations(machine)
    assert_allclose(means.visible, p @ even, atol=1e-12)
    assert_allclose(means.hidden, p @ odd, atol=1e-12)
    assert_allclose(means.product, np.einsum("n,ni,nj->ij", p, even, odd), atol=1e-12)


def test_joint_units_are_each_of_their_kind(key):
    units = JointUnits((Gaussian(1.5), Bernoulli()), (2, 1))
    field = jnp.broadcast_to(jnp.array([0.5, -1.0, 0.4]), (20_000, 3))
    for name in ("potential", "log_partition", "mean"):
        found = getattr(units, name)(field[0])
        assert_allclose(found[:2], getattr(Gaussian(1.5), name)(field[0])[:2])
        assert_allclose(found[2:], getattr(Bernoulli(), name)(field[0])[2:])
    means, spreads = jnp.array([0.1, 0.2, 0.3]), jnp.array([1.0, 2.0, 3.0])
    assert_allclose(units.total_variance(means, spreads), [2.5, 3.5, 0.21])
    drawn = np.asarray(units.sample(key, field))
    assert_allclose(drawn.mean(0), units.mean(field[0]), atol=5 * np.sqrt(1.5 / 20_000))
    assert_allclose(drawn[:, :2].var(0), 1.5, rtol=0.05)
    p = float(units.mean(field[0])[2])
    assert_distributed(drawn[:, 2:], [1 - p, p])


def test_layers_that_do_not_fit_are_refused(rng):
    parts = [random_coupling("dense", (3, 2), (2, 2), 1, rng) for _ in range(2)]
    with pytest.raises(ValueError, match=r"couplings\[1\]: expected the visible shape \(2, 2\)"):
        LayeredCoupling(parts)
    with pytest.raises(ValueError, match="couplings: expected a non-empty sequence of couplings"):
        LayeredCoupling([])
    with pytest.raises(TypeError, match=r"machine: expected a deep machine, got .*MPOCoupling"):
        layered(tiny_machine())
