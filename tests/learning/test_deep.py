"""Learning of several layers: gradients against the exact log-likelihood, which rises."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from mporbm.learning import (
    Algorithm,
    Batch,
    ContrastiveDivergence,
    DrawnStates,
    MeanFieldBound,
    Objective,
    Parameters,
    PassOfMeans,
    PersistentCD,
    Rates,
    Simultaneous,
    UpdateRule,
    WakeSleep,
    gradient,
)
from mporbm.learning.centring import Centre, centre_step
from mporbm.learning.deep import conditional_gradient
from mporbm.learning.gauge import precondition, step_shares, transport_velocity
from mporbm.learning.gradient import log_likelihood_gradient, plan_update
from mporbm.learning.monitor import weight_norm
from mporbm.learning.start import mirrored
from mporbm.machine import Bernoulli, Copies, DeepBelief, Gaussian, Machine, deep_boltzmann, exact
from mporbm.sampling.deep import infer_layers
from strategies import all_states, data_distribution, tiny_machine, tiny_stack

V = all_states(tiny_machine())


@jax.jit
def log_likelihood(machine, weight):
    """``sum_V weight(V) log p(V)`` of a deep machine, V enumerated."""
    even = -machine.free_energy(jnp.asarray(all_states(machine)))
    log_p = jax.nn.logsumexp(even.reshape(64, -1), axis=1) - jax.nn.logsumexp(even)
    return weight @ log_p


def test_with_enumerated_expectations_it_is_the_gradient_of_the_log_likelihood(rng):
    machine = deep_boltzmann(tiny_stack(3))
    weight = rng.dirichlet(np.ones(64))
    p = np.asarray(exact.visible_distribution(machine)).reshape(64, -1)
    posterior = weight[:, None] * p / p.sum(axis=1, keepdims=True)
    even = jnp.asarray(all_states(machine))
    found, _ = jax.jit(gradient)(
        machine,
        Batch(even, jnp.asarray(posterior.ravel())),
        Batch(even, jnp.asarray(p.ravel())),
    )
    expected = Parameters.of(jax.jit(jax.grad(log_likelihood))(machine, jnp.asarray(weight)))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert_allclose(one, other, atol=1e-10)
    # And that is what finite differences say.
    slope, step = jax.tree.leaves(expected), 1e-5
    leaves, structure = jax.tree.flatten(machine)
    for k in range(len(slope)):
        change = rng.normal(size=leaves[k].shape)

        def value(length, k=k, change=change):
            moved = [*leaves[:k], leaves[k] + length * change, *leaves[k + 1 :]]
            return log_likelihood(jax.tree.unflatten(structure, moved), jnp.asarray(weight))

        difference = (value(step) - value(-step)) / (2 * step)
        assert_allclose(difference, (slope[k] * change).sum(), atol=1e-7)


def test_the_data_part_has_the_other_layers_at_their_means(rng):
    machine = deep_boltzmann(tiny_stack(2))
    stored = rng.integers(0, 2, (5, 3, 2)).astype(bool)
    batch = MeanFieldBound().batch(machine, jnp.asarray(stored), jnp.full(5, 0.2))
    even = np.asarray(infer_layers(machine, jnp.asarray(stored, float)))
    assert_allclose(batch.visible, even)
    # A fixed point of both conditionals.
    again = machine.visible_mean(machine.hidden_mean(even))
    assert_allclose(again[:, 6:], even[:, 6:], atol=1e-3)


def test_natural_steps_are_those_of_every_coupling_alone(rng):
    parts = [machine.coupling for machine in tiny_stack(2)]
    others = [machine.coupling for machine in tiny_stack(2, seed=1)]
    coupling = deep_boltzmann(tiny_stack(2)).coupling
    former = deep_boltzmann(tiny_stack(2, seed=1)).coupling
    gradients = [rng.normal(size=leaf.shape) for leaf in jax.tree.leaves(coupling)]
    gradients = [jnp.asarray(g) for g in gradients]
    found = [precondition(coupling, k, g) for k, g in enumerate(gradients)]
    expected = [
        *(precondition(parts[0], k, g) for k, g in enumerate(gradients[:2])),
        *(precondition(parts[1], k, g) for k, g in enumerate(gradients[2:])),
    ]
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-10)
    assert_allclose(
        transport_velocity(coupling, 3, former, gradients[3]),
        transport_velocity(parts[1], 1, others[1], gradients[3]),
    )
    assert step_shares(coupling, (0, 1, 2, 3)) == {0: 0.5, 1: 0.5, 2: 0.5, 3: 0.5}
    assert step_shares(coupling, (0, 1, 3)) == {0: 0.5, 1: 0.5, 3: 1.0}
    assert_allclose(weight_norm(coupling), np.linalg.norm(coupling.to_matrix()))


@pytest.mark.parametrize("upwards", [True, False])
def test_conditionals_learn_along_the_gradient_of_their_likelihood(upwards, rng):
    machine = tiny_machine()
    low = jnp.asarray(rng.integers(0, 2, (7, 3, 2)).astype(float))
    high = jnp.asarray(rng.integers(0, 2, (7, 2, 2)).astype(float))
    weight = jnp.asarray(rng.dirichlet(np.ones(7)))
    found, info = conditional_gradient(machine, Batch(low, weight), high, upwards=upwards)
    mean = machine.hidden_mean(low) if upwards else machine.visible_mean(high)
    pairs = (low, high - mean) if upwards else (low - mean, high)
    # The dense gradient of W is an outer product; a core sees it through the other one.
    flat = [x.reshape(7, -1) for x in pairs]
    dense = (weight[:, None] * flat[0]).T @ flat[1]

    def slope(coupling):
        return (coupling.to_matrix() * dense).sum()

    expected = jax.tree.leaves(jax.grad(slope)(machine.coupling))
    for one, other in zip(found.factors, expected, strict=True):
        assert_allclose(one, other, atol=1e-10)
    moved, still = (1, 0) if upwards else (0, 1)
    biases = found.visible_bias, found.hidden_bias
    assert_allclose(biases[moved], jnp.tensordot(weight, pairs[moved], axes=1), atol=1e-12)
    assert (np.asarray(biases[still]) == 0.0).all()
    field = machine.hidden_field(low) if upwards else machine.visible_field(high)
    assert_allclose(info.largest_field, np.abs(field).max())


def centred_slope(machine, centre, value):
    """The gradient of a value of a machine for W, b and c, the biases of centred variables."""
    w = machine.coupling
    b = machine.visible_bias + w.apply(centre.hidden)
    c = machine.hidden_bias + w.apply_transpose(centre.visible)

    def of_centred(parameters):
        w, b, c = parameters
        biases = b - w.apply(centre.hidden), c - w.apply_transpose(centre.visible)
        return value(Machine(w, *biases, machine.visible_units, machine.hidden_units))

    slope_w, *slope_biases = jax.jit(jax.grad(of_centred))((w, b, c))
    return [*jax.tree.leaves(slope_w), *slope_biases]


def assert_centred(machine, planned, ascent, value):
    """`centre_step` of a gradient is the gradient of the value in centred parameters."""
    centre = Centre.begin(machine)
    found, _ = centre_step(UpdateRule(centred=True), planned, ascent, centre, Rates(1.0, 1.0))
    expected = centred_slope(machine, centre, value)
    for one, other in zip([*found.factors, *found.biases], expected, strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_all_layers_together_have_centred_gradients(rng):
    machine = deep_boltzmann(tiny_stack(2))
    weight = rng.dirichlet(np.ones(64))
    p = np.asarray(exact.visible_distribution(machine)).reshape(64, -1)
    posterior = weight[:, None] * p / p.sum(axis=1, keepdims=True)
    even, planned = jnp.asarray(all_states(machine)), plan_update(machine, p.size)
    batches = [Batch(even, jnp.asarray(share.ravel())) for share in (posterior, p)]
    ascent, _ = log_likelihood_gradient(*planned, *batches)
    assert_centred(machine, planned, ascent, lambda m: log_likelihood(m, jnp.asarray(weight)))


@pytest.mark.parametrize("upwards", [True, False])
def test_conditionals_have_centred_gradients(upwards, rng):
    machine = tiny_machine()
    low = jnp.asarray(rng.integers(0, 2, (7, 3, 2)).astype(float))
    high = jnp.asarray(rng.integers(0, 2, (7, 2, 2)).astype(float))
    batch = Batch.equal(low)
    ascent, info = conditional_gradient(machine, batch, high, upwards=upwards)
    assert_allclose(info.hidden_mean, high.mean(axis=0))

    def value(machine):
        if upwards:
            terms = machine.hidden_units.log_density(high, machine.hidden_field(low))
        else:
            terms = machine.visible_units.log_density(low, machine.visible_field(high))
        return terms.sum() / 7

    assert_centred(machine, plan_update(machine, 7), ascent, value)


def test_a_mirrored_machine_on_top_changes_nothing(rng):
    """The belief network is the machine below; its bound is the log-likelihood itself."""
    below, weight = tiny_machine(scale=0.7), rng.dirichlet(np.ones(64))
    start = Machine(below.coupling.transposed())
    top = mirrored(below, start)
    expected = float(weight @ np.log(exact.visible_distribution(below)))
    found = belief_log_likelihood(DeepBelief.of_stack((below, top)), weight)
    assert_allclose(found, expected, rtol=1e-10)
    # Below two copies of the data, a deep machine has the second one as its last layer.
    doubled = Machine(below.coupling, *Parameters.of(below).biases, Copies(Bernoulli(), 2))
    p = np.asarray(jax.nn.softmax(-deep_boltzmann((doubled, top)).free_energy(_pairs(V))))
    both = np.exp(_pair_log_weights(below))
    assert_allclose(p.reshape(64, 64), both / both.sum(), rtol=1e-8)


def _pairs(states):
    """All pairs of states, each as one row."""
    flat = states.reshape(len(states), -1)
    return jnp.asarray(
        np.concatenate([np.repeat(flat, len(flat), 0), np.tile(flat, (len(flat), 1))], axis=1)
    )


def _pair_log_weights(machine):
    """``log sum_H exp(-E(V, H) - E(V', H))`` with C counted once, of all pairs V, V'."""
    field = np.asarray(machine.coupling.apply_transpose(V)).reshape(64, -1)
    hidden = field[:, None] + field[None] + np.asarray(machine.hidden_bias).ravel()
    visible = V.reshape(64, -1) @ np.asarray(machine.visible_bias).ravel()
    return visible[:, None] + visible[None] + np.logaddexp(0.0, hidden).sum(axis=2)


def test_what_cannot_be_mirrored_starts_as_it_would():
    below = tiny_machine()
    for other in (
        (below, tiny_stack(2)[1]),
        (tiny_machine("kronecker"), Machine(below.coupling.transposed())),
        (
            Machine(below.coupling, visible_units=Gaussian()),
            Machine(below.coupling.transposed()),
        ),
    ):
        assert mirrored(*other) is other[1]


def test_states_are_drawn_from_stored_probabilities(rng):
    probability = rng.random((3, 2))
    probability[0] = [0.0, 1.0]
    stored = jnp.asarray(np.broadcast_to(probability, (20_000, 3, 2)))
    objective, machine = DrawnStates(), tiny_machine()
    batch = objective.batch(machine, stored, jnp.full(20_000, 1 / 20_000))
    drawn = np.asarray(objective.draw(jax.random.key(0), machine, batch).visible)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    flat = drawn.reshape(len(drawn), 6)
    expected = np.outer(probability, probability)
    np.fill_diagonal(expected, probability)
    # Means and correlations, within five standard errors.
    assert_allclose(flat.T @ flat / len(flat), expected, atol=5 * 0.5 / np.sqrt(len(flat)))
    again = np.asarray(objective.draw(jax.random.key(1), machine, batch).visible)
    assert (again != drawn).any()
    # Copies share a state.
    double = Machine(machine.coupling, visible_units=Copies(Bernoulli(), 2))
    assert_allclose(objective.draw(jax.random.key(0), double, batch).visible, 2.0 * drawn)


def test_a_step_learns_from_drawn_states(rng):
    machine, key = tiny_machine(), jax.random.key(3)
    stored = jnp.asarray(rng.random((20, 3, 2)))
    drawn, plain = (
        Algorithm(Simultaneous(), ContrastiveDivergence(1), objective=objective)
        for objective in (DrawnStates(), Objective())
    )
    batch = DrawnStates().batch(machine, stored, jnp.full(20, 0.05))
    states = DrawnStates().draw(key, machine, batch)
    rates, state = Rates(0.1, 0.1), drawn.init(key, machine, 20)
    one, _ = drawn.step(key, state, batch, rates)
    two, _ = plain.step(key, state, states, rates)
    for a, b in zip(jax.tree.leaves(one.machine), jax.tree.leaves(two.machine), strict=True):
        np.testing.assert_array_equal(a, b)


def trained(scheme, objective, phase, machine, weight, n_steps, rate, centred=False):
    """The machine after many steps on all states with their weights."""
    rule = UpdateRule(momentum=0.0, centred=centred)
    algorithm = Algorithm(scheme, phase, rule, objective)
    state = algorithm.init(jax.random.key(1), machine, 500)
    rates = Rates(rate, rate)

    @jax.jit
    def run(state, keys):
        def step(state, key):
            chosen = jax.random.choice(key, 64, (500,), p=jnp.asarray(weight))
            data = objective.batch(state.machine, jnp.asarray(V)[chosen], jnp.full(500, 1 / 500))
            new, info = algorithm.step(key, state, data, rates)
            return new, (info.gradient_norm, info.largest_field)

        return jax.lax.scan(step, state, keys)

    state, (norms, fields) = run(state, jax.random.split(jax.random.key(2), n_steps))
    assert np.isfinite(norms).all()
    assert (np.asarray(fields) > 0.0).all()
    return state.machine


def small(stack):
    """The same stack with weak weights and no biases."""
    return tuple(jax.tree.map(lambda x: 0.1 * x, machine) for machine in stack)


by_rule = pytest.mark.parametrize(("centred", "rate"), [(False, 0.2), (True, 0.03)])


@by_rule
def test_joint_learning_raises_the_exact_log_likelihood(centred, rate):
    target = data_distribution(deep_boltzmann(tiny_stack(2, seed=3)))
    start = deep_boltzmann(small(tiny_stack(2)))
    phase = PersistentCD(2)
    end = trained(Simultaneous(), MeanFieldBound(), phase, start, target, 400, rate, centred)
    values = [float(log_likelihood(m, jnp.asarray(target))) for m in (start, end)]
    best = float(target @ np.log(target))
    # Most of the way to the distribution itself.
    assert values[1] > values[0] + 0.7 * (best - values[0]), (values, best)
    assert values[1] <= best


def belief_log_likelihood(belief, weight):
    """``sum_V weight(V) log p(V)`` of a network of two layers."""
    low, top = belief.generation[0], belief.top
    p = np.asarray(exact.visible_distribution(top))
    terms = low.visible_units.log_density(
        jnp.asarray(V), low.visible_field(jnp.asarray(all_states(top)))[:, None]
    )
    conditional = np.exp(np.asarray(terms).reshape(len(p), 64, -1).sum(axis=2))
    return float(weight @ np.log(p @ conditional))


@by_rule
def test_wake_and_sleep_raise_the_exact_log_likelihood(centred, rate):
    target = data_distribution(deep_boltzmann(tiny_stack(2, seed=3)))
    start = DeepBelief.of_stack(small(tiny_stack(2)))
    phase = ContrastiveDivergence(2)
    end = trained(WakeSleep(), PassOfMeans(), phase, start, target, 400, rate, centred)
    values = [belief_log_likelihood(m, target) for m in (start, end)]
    best = float(target @ np.log(target))
    assert values[1] > values[0] + 0.5 * (best - values[0]), (values, best)
    # Recognition and generation went different ways.
    assert not np.allclose(
        end.recognition[0].coupling.to_matrix(), end.generation[0].coupling.to_matrix()
    )


def test_what_is_watched(rng):
    stored = jnp.asarray(rng.integers(0, 2, (8, 3, 2)).astype(bool))
    units = jnp.arange(4)
    deep = deep_boltzmann(tiny_stack(2))
    seen = MeanFieldBound().watch(deep, stored, units)
    even = infer_layers(deep, stored.astype(float))
    passed = deep.visible_mean(deep.hidden_mean(even))
    assert_allclose(seen.reconstruction_error, ((passed - even)[:, :6] ** 2).mean())
    assert -6 * math.log(2) * 3 < float(seen.score) < 0.0
    belief = DeepBelief.of_stack(tiny_stack(2))
    seen = PassOfMeans().watch(belief, stored, units)
    passed = belief.visible_mean(belief.hidden_mean(stored.astype(float)))
    assert_allclose(seen.reconstruction_error, ((passed - stored) ** 2).mean())
    assert float(seen.score) == -float(seen.reconstruction_error)
