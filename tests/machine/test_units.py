"""Units against sums and integrals over their states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from numpy.testing import assert_allclose

from mporbm.machine import UNITS, Bernoulli, Categorical, Copies, Gaussian, JointUnits, Machine
from strategies import assert_numbers_distributed, random_coupling

FIELDS = (-700.0, -3.0, -0.1, 0.0, 0.5, 4.0, 700.0)


def test_bernoulli_partition_and_mean():
    units, fields = Bernoulli(), jnp.array(FIELDS)
    assert_allclose(units.log_partition(fields), np.logaddexp(0.0, FIELDS), rtol=1e-14)
    one = jnp.ones_like(fields)
    assert_allclose(units.mean(fields), jnp.exp(units.log_density(one, fields)), rtol=1e-10)


def test_gaussian_partition_mean_and_density():
    units = Gaussian(1.7)
    x = jnp.linspace(-30.0, 30.0, 6001)
    for field in jnp.array([-2.0, 0.0, 0.8]):
        weights = jnp.exp(x * field - units.potential(x))
        total = np.trapezoid(weights, x)
        assert_allclose(units.log_partition(field), np.log(total), rtol=1e-9)
        assert_allclose(units.mean(field), np.trapezoid(x * weights, x) / total, atol=1e-9)
        assert_allclose(jnp.exp(units.log_density(x, field)), weights / total, atol=1e-9)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_mean_is_the_slope_of_the_log_partition(units):
    fields = jnp.linspace(-3.0, 3.0, 7)
    slopes = jax.vmap(jax.grad(units.log_partition))(fields)
    assert_allclose(slopes, units.mean(fields), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_samples_have_the_right_mean_and_variance(units, key):
    fields = jnp.array([-1.5, 0.0, 0.7])
    n = 200_000
    samples = units.sample(key, jnp.broadcast_to(fields, (n, 3)))
    variance = jax.vmap(jax.grad(lambda f: units.mean(f)))(fields)
    error = jnp.sqrt(variance / n)
    assert np.all(abs(samples.mean(axis=0) - units.mean(fields)) < 5 * error)
    assert_allclose(samples.var(axis=0), variance, rtol=0.02)


@pytest.mark.parametrize("units", [Bernoulli(), Gaussian(0.6)], ids=["bernoulli", "gaussian"])
def test_samples_and_means_at_once(units, key):
    fields = jnp.linspace(-3.0, 3.0, 700).reshape(7, 100)
    state, mean = units.sample_and_mean(key, fields)
    assert_allclose(state, units.sample(key, fields), rtol=1e-14)
    assert_allclose(mean, units.mean(fields), rtol=1e-14)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_improbable_states_stay_improbable(dtype, key):
    """2^-23 steps of a uniform number would turn one unit in ten million on by mistake."""
    n = 20_000_000

    @jax.jit
    def count(field):
        return jnp.count_nonzero(Bernoulli().sample(key, jnp.full(n, field)))

    assert count(jnp.asarray(-40.0, dtype)) == 0
    assert count(jnp.asarray(40.0, dtype)) == n
    # sigmoid(-14) = 8.3e-7
    rare = int(count(jnp.asarray(-14.0, dtype)))
    assert abs(rare - n * 8.315e-7) < 5 * np.sqrt(n * 8.315e-7)


def test_only_a_learnable_variance_gets_gradients(rng):
    coupling = random_coupling("dense", (2,), (2,), 1, rng)
    visible = rng.normal(size=(2,))

    def gradient(learnable):
        machine = Machine(coupling, visible_units=Gaussian(0.5, learnable=learnable))
        return jax.grad(lambda m: m.free_energy(visible))(machine).visible_units.log_variance

    assert gradient(learnable=False) == 0.0
    # d/d(log s) of v^2 / (2 s) summed over units
    assert_allclose(gradient(learnable=True), -np.sum(visible**2) / (2 * 0.5))


# Groups of units, and layers of several kinds

CATEGORICAL_FIELDS = np.array([[-1.0, 0.5, 2.0], [700.0, -700.0, 699.0]])


@pytest.mark.parametrize("flat", [False, True])
def test_categorical_units_are_a_softmax_over_each_group(flat, key):
    units = Categorical(3 if flat else None)
    fields = jnp.asarray(CATEGORICAL_FIELDS.reshape(-1) if flat else CATEGORICAL_FIELDS)
    log_z = scipy.special.logsumexp(CATEGORICAL_FIELDS, axis=1)
    p = scipy.special.softmax(CATEGORICAL_FIELDS, axis=1)
    assert_allclose(np.ravel(units.log_partition(fields)), log_z, rtol=1e-14)
    assert_allclose(units.mean(fields), p.reshape(fields.shape), atol=1e-14)
    slope = jax.grad(lambda f: units.log_partition(f).sum())(fields)
    assert_allclose(slope, units.mean(fields), atol=1e-14)
    n = 50_000
    drawn = np.asarray(units.sample(key, jnp.broadcast_to(fields, (n, *fields.shape))))
    drawn = drawn.reshape(n, 2, 3)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (drawn.sum(axis=2) == 1.0).all()
    numbers = drawn.argmax(axis=2)
    assert_numbers_distributed(numbers[:, 0] * 3 + numbers[:, 1], np.outer(*p).ravel())
    state = jnp.asarray(drawn[0].reshape(fields.shape))
    expected = np.log(p[[0, 1], numbers[0]])
    assert_allclose(np.ravel(units.log_density(state, fields)), expected, rtol=1e-10)
    assert_allclose(units.entropy(units.mean(fields)).sum(), scipy.stats.entropy(p.T).sum())


def test_rare_categories_are_drawn_as_often_as_they_should_be(key):
    """In single precision, too, and never the impossible one."""
    n, fields = 2**20, jnp.array([0.0, -np.log(2.0**14), -np.inf], jnp.float32)
    drawn = Categorical().sample(key, jnp.broadcast_to(fields, (n, 3))).sum(axis=0)
    assert drawn[2] == 0.0
    assert abs(float(drawn[1]) - n / (1 + 2**14)) < 5 * np.sqrt(n / 2**14)


KINDS = {
    "bernoulli": (Bernoulli(), (3,)),
    "categorical": (Categorical(), (2, 3)),
    "flat": (Categorical(2), (6,)),
    "joint": (JointUnits((Bernoulli(), Categorical(), Categorical(2)), (2, 3, 4)), (9,)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_listed_states_are_all_there_are(kind, rng):
    """The sum over listed states of ``exp(<x, f>)`` is the partition sum, each listed once."""
    units, shape = KINDS[kind]
    n_states = units.n_states(shape)
    states = np.asarray(units.states(jnp.arange(n_states), shape, float))
    assert states.shape == (n_states, *shape)
    assert len(np.unique(states.reshape(n_states, -1), axis=0)) == n_states
    field = rng.normal(size=shape)
    log_weights = (states * field).reshape(n_states, -1).sum(axis=1)
    log_z = scipy.special.logsumexp(log_weights)
    assert_allclose(units.log_partition(jnp.asarray(field)).sum(), log_z, rtol=1e-12)
    p = np.exp(log_weights - log_z)
    assert_allclose(units.mean(jnp.asarray(field)), np.tensordot(p, states, axes=1), rtol=1e-10)
    terms = units.log_density(jnp.asarray(states), jnp.asarray(field))
    assert_allclose(terms.reshape(n_states, -1).sum(axis=1), np.log(p), rtol=1e-10)
    mean = units.mean(jnp.asarray(field))
    assert_allclose(units.entropy(mean).sum(), scipy.stats.entropy(p), rtol=1e-10)
    second = np.tensordot(p, states**2, axes=1)
    assert_allclose(units.total_variance(mean, jnp.zeros(())), second - mean**2, atol=1e-12)


def test_joint_units_know_the_variance_of_each_unit(key, rng):
    variance = np.array([0.5, 2.0])
    units = JointUnits((Bernoulli(), Gaussian(variance), Categorical()), (1, 2, 3))
    field = jnp.asarray(rng.normal(size=6))
    batch = jnp.broadcast_to(field, (50_000, 6))
    drawn, mean = units.sample_and_mean(key, batch)
    np.testing.assert_array_equal(drawn, units.sample(key, batch))
    assert_allclose(mean[0], units.mean(field), rtol=1e-14)
    assert_allclose(mean[0, 1:3], variance * field[1:3])
    spread = np.asarray(drawn).var(axis=0)
    assert_allclose(spread, units.total_variance(mean[0], jnp.zeros(())), rtol=0.05)
    assert_allclose(drawn.mean(axis=0), mean[0], atol=5 * np.sqrt(2.0 / 50_000))
    state = drawn[0]
    expected = [
        Bernoulli().log_density(state[:1], field[:1]).sum(),
        Gaussian(variance).log_density(state[1:3], field[1:3]).sum(),
        Categorical().log_density(state[3:], field[3:]).sum(),
    ]
    assert_allclose(units.log_density(state, field).sum(), sum(expected), rtol=1e-12)
    assert units.n_states((6,)) is None
    assert units.slice(1, 3) == Gaussian(variance)
    assert units.slice(2, 6).sizes == (1, 3)
    with pytest.raises(ValueError, match=r"visible_units: expected parts of \(5,\) units in all"):
        Machine(random_coupling("dense", (5,), (2,), 1, rng), visible_units=units)


def test_neighbours_that_are_binary_are_one_part():
    assert JointUnits.of([Bernoulli(), Bernoulli()], [2, 3]) == Bernoulli()
    three = JointUnits.of([Gaussian(), Bernoulli(), Bernoulli()], [1, 2, 3])
    assert three.sizes == (1, 5)


@pytest.mark.parametrize("name", UNITS)
def test_every_registered_kind_has_the_means_of_samples(name, rng):
    """The base bias of samples gives independent units their means, and their frequencies."""
    units, n = UNITS[name](), 10_000
    bias = np.array([0.3, -1.0, 0.8])
    rows = np.asarray(units.sample(jax.random.key(1), jnp.broadcast_to(jnp.asarray(bias), (n, 3))))
    found = units.base_bias(rows)
    assert_allclose(units.mean(jnp.asarray(found)), rows.mean(axis=0), atol=1e-3)
    assert np.isfinite(units.base_bias(np.zeros((4, 3)))).all()


def test_base_biases_of_joint_units_and_variances():
    rows = np.array([[1.0, 4.0, 1.0, 0.0], [1.0, 2.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    units = JointUnits((Bernoulli(), Gaussian(2.0), Categorical()), (1, 1, 2))
    found = units.base_bias(rows)
    assert_allclose(found[0], np.log(2.5 / 1.5))
    assert_allclose(found[1], 1.0)
    assert_allclose(found[2:], np.log([1.5 / 4.0, 2.5 / 4.0]))
    assert_allclose(Copies(Bernoulli(), 2).base_bias(rows[:, :1]), found[:1])


def test_categorical_noise_is_that_of_the_channel(rng):
    """Bayes' rule for one group of 3 states that stayed with probability 0.8."""
    units, field = Categorical(), jnp.asarray(rng.normal(size=3))
    seen, noise = jnp.array([0.0, 1.0, 0.0]), jnp.asarray(0.2)
    found = units.observe(seen, jnp.ones(3, bool), noise)
    likelihood = np.array([0.1, 0.8, 0.1])
    expected = scipy.special.softmax(np.asarray(field)) * likelihood
    p = found.units.mean(field + found.field)
    assert_allclose(p, expected / expected.sum(), rtol=1e-12)
    # Of the noise that fits best, the expected share of changed groups.
    fitted = units.fit_noise(seen, jnp.ones(3, bool), field + found.field, found.field)
    assert_allclose(fitted, 1.0 - p[1], rtol=1e-12)
    unseen = units.observe(seen, jnp.zeros(3, bool), noise)
    assert not unseen.field.any()


def test_noise_on_joint_units_is_noise_on_the_data():
    units = JointUnits((Gaussian(2.0), Categorical()), (2, 2))
    values, observed = jnp.array([1.0, 3.0, 0.0, 1.0]), jnp.array([True, False, True, True])
    found = units.observe(values, observed, jnp.asarray(0.5))
    np.testing.assert_array_equal(found.known, [False, False, True, True])
    assert_allclose(found.field, [4.0, 0.0, 0.0, 0.0])
    assert_allclose(found.units.parts[0].variance, [1.0 / (0.5 + 4.0), 2.0])
    felt = jnp.array([0.3, 0.1, 9.0, 9.0]) + found.field
    alone = Gaussian(2.0).fit_noise(values[:2], observed[:2], felt[:2], found.field[:2])
    assert_allclose(units.fit_noise(values, observed, felt, found.field), alone)
    with pytest.raises(NotImplementedError, match="Copies units have no model of noise"):
        Copies(Bernoulli(), 2).observe(values, observed, jnp.asarray(0.1))


def test_groups_that_do_not_fit_are_refused(rng):
    coupling = random_coupling("dense", (4,), (2,), 1, rng)
    with pytest.raises(ValueError, match=r"visible_units: .*groups of 3 units.*shape \(4,\)"):
        Machine(coupling, visible_units=Categorical(3))
    machine = Machine(
        random_coupling("dense", (2, 3), (2, 1, 2), 1, rng), None, None, Categorical()
    )
    with pytest.raises(ValueError, match=r"units: expected a last axis of groups of 3 units"):
        machine.to_mpo()
