"""Machines whose hidden units are not binary: against quadrature, closed forms and autodiff."""

from itertools import product

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import erfcx, logsumexp
from scipy.stats import binom, kstest, truncnorm

from mporbm.learning import Batch, Parameters, gradient
from mporbm.machine import (
    HIDDEN_UNITS,
    Bernoulli,
    Categorical,
    DenseCoupling,
    Gaussian,
    JointUnits,
    Machine,
    Rectified,
    exact,
)
from mporbm.sampling import gibbs, log_partition
from strategies import assert_distributed, binary_states, exact_samples, random_coupling

UNITS = {
    "gaussian": Gaussian(0.7),
    "rectified": Rectified(),
    "categorical": Categorical(),
    "groups": Categorical(2),
    "joint": JointUnits((Bernoulli(), Gaussian(1.5), Rectified()), (1, 1, 2)),
}
by_units = pytest.mark.parametrize("name", UNITS)
RANGE = {Gaussian: (-40.0, 40.0), Rectified: (0.0, 60.0)}


def machine_of(name, kind="dense"):
    rng = np.random.default_rng(3)
    hidden = (4,) if name == "joint" or kind == "dense" else (2, 2)
    coupling = random_coupling(kind, (3, 2), hidden, 2, rng)
    biases = 0.3 * rng.normal(size=(3, 2)), 0.3 * rng.normal(size=hidden)
    return Machine(jax.tree.map(lambda x: 0.7 * x, coupling), *biases, hidden_units=UNITS[name])


def kinds_of(machine):
    """The kind of each hidden unit."""
    units = machine.hidden_units
    if not isinstance(units, JointUnits):
        return [units] * machine.hidden_bias.size
    pairs = zip(units.parts, units.sizes, strict=True)
    return [part for part, size in pairs for _ in range(size)]


def integral(unit, field):
    """``log sum_h exp(h f - potential(h))`` of one unit, by quadrature."""
    if isinstance(unit, Bernoulli):
        return np.logaddexp(0.0, field)
    variance = 1.0 if isinstance(unit, Rectified) else float(unit.variance)
    top = max(variance * field, RANGE[type(unit)][0])
    most = top * field - top**2 / (2.0 * variance)

    def density(h):
        return np.exp(h * field - h**2 / (2.0 * variance) - most)

    value = quad(density, *RANGE[type(unit)], points=[top], limit=200)[0]
    return most + np.log(value)


def minus_free_energies(machine):
    """``-F(V)`` of all binary V, by quadrature, or by a sum over all H."""
    w, states = np.asarray(machine.coupling.to_matrix()), binary_states((3, 2))
    b, c = np.ravel(machine.visible_bias), np.ravel(machine.hidden_bias)
    fields = states @ w + c
    if isinstance(machine.hidden_units, Categorical):
        size = machine.hidden_units.n_categories or machine.hidden_shape[-1]
        hidden = np.array([np.ravel(rows) for rows in product(np.eye(size), repeat=4 // size)])
        return states @ b + logsumexp(fields @ hidden.T, axis=1)
    terms = [
        [integral(u, f) for u, f in zip(kinds_of(machine), row, strict=True)] for row in fields
    ]
    return states @ b + np.sum(terms, axis=1)


@by_units
def test_free_energy_and_log_z_are_integrals(name):
    machine = machine_of(name)
    expected = minus_free_energies(machine)
    visible = binary_states((3, 2)).reshape(-1, 3, 2)
    assert_allclose(-machine.free_energy(visible), expected, rtol=1e-8)
    assert_allclose(exact.log_partition(machine), logsumexp(expected), rtol=1e-9)


@by_units
def test_energies_know_the_potential_of_hidden_units(name, rng):
    """Of two hidden states the energies differ as the joint density does."""
    machine = machine_of(name)
    v, h = rng.integers(0, 2, (5, 3, 2)).astype(float), np.abs(rng.normal(size=(5, 4)))
    h[:, 0] = h[:, 0] > 0.5 if name == "joint" else h[:, 0]
    if isinstance(machine.hidden_units, Categorical):
        size = machine.hidden_units.n_categories or 4
        h = np.eye(size)[rng.integers(size, size=(5, 4 // size))].reshape(5, 4)
    field = machine.hidden_field(v)
    density = machine.hidden_units.log_density(jnp.asarray(h), field).reshape(5, -1).sum(axis=1)
    expected = -machine.free_energy(v) + density
    assert_allclose(-machine.energy(v, h), expected, rtol=1e-9)
    # Bernoulli visible units, summed out by hand.
    visible_field = np.asarray(machine.visible_field(h)).reshape(5, -1)
    own = (h * np.asarray(machine.hidden_bias)).sum(axis=1)
    own -= np.asarray(machine.hidden_units.potential(jnp.asarray(h))).sum(axis=1)
    summed = np.logaddexp(0.0, visible_field).sum(axis=1) + own
    assert_allclose(-machine.hidden_free_energy(h), summed, rtol=1e-9)


@by_units
@pytest.mark.parametrize("kind", ["dense", "mpo"])
def test_gradients_are_those_of_the_exact_log_likelihood(name, kind, rng):
    if name == "joint" and kind == "mpo":
        kind = "cp"
    machine = machine_of(name, kind)
    data = jnp.asarray(rng.integers(0, 2, (7, 3, 2)).astype(float))
    states = jnp.asarray(binary_states((3, 2)).reshape(-1, 3, 2))
    model = Batch(states, exact.visible_distribution(machine))
    found, _ = eqx.filter_jit(gradient)(machine, Batch.equal(data), model)

    def log_likelihood(parameters):
        return exact.log_probability(parameters.into(machine), data).mean()

    expected = jax.grad(log_likelihood)(Parameters.of(machine))
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


class Halved(Rectified):
    """A wrong kernel: states that are half as large as they should be."""

    def sample(self, key, field):
        return 0.5 * super().sample(key, field)


@by_units
def test_gibbs_is_stationary(name, key, rng):
    machine = machine_of(name)
    start = exact_samples(machine, 20_000, rng)
    end = jax.jit(gibbs, static_argnums=3)(key, machine, start, 3)
    assert_distributed(end, exact.visible_distribution(machine))


def test_a_wrong_kernel_is_noticed(key, rng):
    machine = machine_of("rectified")
    start = exact_samples(machine, 20_000, rng)
    wrong = eqx.tree_at(lambda m: m.hidden_units, machine, Halved(), is_leaf=lambda x: x is None)
    end = jax.jit(gibbs, static_argnums=3)(key, wrong, start, 3)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(end, exact.visible_distribution(machine))


@by_units
def test_annealing_covers_log_z(name, rng):
    machine = machine_of(name)
    true = float(exact.log_partition(machine))
    samples = exact_samples(machine, 150, rng)
    keys = [jax.random.key(number) for number in range(20)]
    options = {"n_chains": 100, "n_temperatures": 20}
    for given in ({}, {"samples": samples}):
        found = [log_partition(key, machine, **options, **given) for key in keys]
        covered = sum(low < true < high for low, high in (one.interval for one in found))
        assert covered >= binom.ppf(1e-4, len(keys), 0.95)


def test_two_gaussian_layers_have_a_closed_form(rng):
    """log Z of two real layers, by quadrature over two dimensions."""
    w, b, c = 0.6, 0.4, -0.3
    machine = Machine(DenseCoupling(np.array([[w]])), [b], [c], Gaussian(1.2), Gaussian(0.8))

    def inner(v):
        return np.exp(b * v - v**2 / 2.4 + 0.5 * 0.8 * (w * v + c) ** 2) * np.sqrt(2 * np.pi * 0.8)

    assert_allclose(exact.log_partition(machine), np.log(quad(inner, -60.0, 60.0)[0]), rtol=1e-9)
    improper = Machine(DenseCoupling(np.array([[1.1]])), [b], [c], Gaussian(1.2), Gaussian(0.8))
    assert exact.log_partition(improper) == np.inf
    # Of larger layers: the log-density of the closed form is the free energy's.
    machine = Machine(
        DenseCoupling(0.2 * rng.normal(size=(4, 3))),
        rng.normal(size=4),
        rng.normal(size=3),
        Gaussian(rng.uniform(0.5, 1.5, 4)),
        Gaussian(rng.uniform(0.5, 1.5, 3)),
    )
    visible = rng.normal(size=(5, 4))
    weights = np.asarray(machine.coupling.to_matrix())
    s, t = np.asarray(machine.visible_units.variance), np.asarray(machine.hidden_units.variance)
    precision = np.diag(1.0 / s) - (weights * t) @ weights.T
    covariance = np.linalg.inv(precision)
    mean = covariance @ (np.asarray(machine.visible_bias) + weights @ (t * machine.hidden_bias))
    rest = visible - mean
    expected = -0.5 * np.einsum("ni,ij,nj->n", rest, precision, rest)
    expected -= 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance)[1]
    assert_allclose(exact.log_probability(machine, visible), expected, rtol=1e-9)


# Rectified units


def test_rectified_partition_and_mean():
    units, x = Rectified(), jnp.linspace(0.0, 60.0, 600_001)
    for field in jnp.array([-8.0, -5.001, -5.0, -4.999, -1.0, 0.0, 2.0, 9.0]):
        weights = jnp.exp(x * field - units.potential(x) - jnp.maximum(field, 0.0) ** 2 / 2.0)
        total = np.trapezoid(weights, x)
        log_total = np.log(total) + max(float(field), 0.0) ** 2 / 2.0
        assert_allclose(units.log_partition(field), log_total, rtol=1e-6)
        assert_allclose(units.mean(field), np.trapezoid(x * weights, x) / total, rtol=1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [(jnp.float64, 1e-10), (jnp.float32, 3e-6)])
def test_rectified_tails_are_precise(dtype, rtol):
    units, fields = Rectified(), jnp.array([-1e4, -300.0, -20.0, -5.01, -5.0, -4.9], dtype)
    mills = np.sqrt(np.pi / 2.0) * erfcx(-np.asarray(fields, np.float64) / np.sqrt(2.0))
    assert_allclose(units.log_partition(fields), np.log(mills), rtol=rtol)
    slopes = jax.vmap(jax.grad(units.log_partition))(fields)
    assert_allclose(slopes, units.mean(fields), rtol=30 * rtol)
    assert units.log_partition(fields).dtype == units.mean(fields).dtype == dtype


@pytest.mark.parametrize("field", [-1000.0, -10.0, -5.01, -4.99, -1.0, 0.0, 3.0, 50.0])
def test_rectified_samples_are_those_of_a_truncated_normal(field, key):
    samples = np.asarray(Rectified().sample(key, jnp.full(100_000, field)))
    assert samples.min() >= 0.0
    expected = truncnorm(-field, np.inf, loc=field)
    assert kstest(samples, expected.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", HIDDEN_UNITS)
def test_hidden_units_are_made_by_name(name):
    machine = Machine(random_coupling("dense", (2,), (3,), 1, np.random.default_rng(0)))
    machine = Machine(machine.coupling, hidden_units=HIDDEN_UNITS[name]())
    assert machine.hidden_mean(np.ones((4, 2))).shape == (4, 3)


def test_hidden_units_do_not_say_what_is_not_known():
    with pytest.raises(NotImplementedError, match="without base rates"):
        Rectified().base_bias(np.ones((4, 3)))
    with pytest.raises(NotImplementedError, match="no mean-field entropy"):
        Rectified().entropy(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="variance is not told"):
        Rectified().total_variance(jnp.ones(3), jnp.ones(3))
