"""Inference under evidence, against enumeration of all visible or, if Gaussian, hidden states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax, xlogy
from scipy.stats import norm

from mporbm.machine import Gaussian, Machine, exact
from mporbm.sampling import Evidence, observe
from mporbm.sampling.evidence import (
    mean_field,
    posterior_average,
    posterior_sample,
    posterior_step,
    reconstruct,
)
from strategies import KINDS, VISIBLE, all_states, assert_distributed, tiny_machine

N, MANY, N_STEPS = 2000, 20_000, 50

SEEN = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
OBSERVED = np.array([[True, False], [False, True], [True, False]])
HIDDEN_STATES = np.array([[int(d) for d in f"{n:04b}"] for n in range(16)], float)
NOISES = (None, 0.1)
each_kind = pytest.mark.parametrize("kind", KINDS)
each_noise = pytest.mark.parametrize("noise", NOISES, ids=["known", "flipped"])


def rows(machine, noise, seen=SEEN, n=N):
    """Machine and evidence for chains that all see the same."""
    visible = jnp.asarray(np.broadcast_to(seen, (n, *VISIBLE)))
    observed = jnp.asarray(np.broadcast_to(OBSERVED, (n, *VISIBLE)))
    return observe(machine, visible, observed, noise)


def first_of(evidence, array):
    """An array of evidence for the first chain."""
    return np.broadcast_to(array, evidence.value.shape)[0]


average = jax.jit(posterior_average)
draw = jax.jit(posterior_sample)
step = jax.jit(posterior_step)
fields = jax.jit(mean_field)
passed = jax.jit(reconstruct)


def likelihood(machine, noise):
    """``p(seen | V)`` of every visible state, as a product over the observed units."""
    right = 1.0 if noise is None else 1.0 - noise
    each = np.where(all_states(machine) == SEEN, right, 1.0 - right)
    return np.where(OBSERVED, each, 1.0).prod(axis=(1, 2))


def exact_posterior(machine, noise):
    joint = np.asarray(exact.visible_distribution(machine)) * likelihood(machine, noise)
    return joint / joint.sum()


def assert_mean(values, expected):
    """The mean over independent rows is within five of its standard errors."""
    values = np.asarray(values)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    distance = np.abs(values.mean(axis=0) - expected)
    assert (distance <= 5.0 * error + 1e-12).all(), f"{distance} with errors {error}"


def assert_moments(posterior, mean, square):
    """Means over the rows are those of the units and of their squares."""
    assert_mean(posterior.mean, mean)
    # Of a row's own variance the variance of its mean is missing, but nothing of its square.
    assert_mean(posterior.variance + posterior.mean**2, square)


# Binary units


@each_kind
@each_noise
def test_chains_average_to_the_posterior_mean(kind, noise, key):
    machine = tiny_machine(kind)
    p = exact_posterior(machine, noise)
    mean = np.tensordot(p, all_states(machine), axes=1)
    posterior = average(key, *rows(machine, noise), N_STEPS)
    assert_moments(posterior, mean, mean)


@each_noise
def test_draws_follow_the_posterior(noise, key):
    machine = tiny_machine()
    drawn = draw(key, *rows(machine, noise), N_STEPS)
    assert_distributed(drawn, exact_posterior(machine, noise))


@each_noise
def test_other_evidence_is_noticed(noise, key):
    """The tests have the power to fail: one unit seen otherwise, or a little more noise."""
    machine = tiny_machine()
    p = exact_posterior(machine, 0.15 if noise else None)
    mean = np.tensordot(p, all_states(machine), axes=1)
    seen = SEEN.copy()
    if noise is None:
        seen[1, 1] = 0.0
    machine, evidence = rows(machine, noise, seen)
    posterior = average(key, machine, evidence, N_STEPS)
    with pytest.raises(AssertionError, match="with errors"):
        assert_mean(posterior.mean[:, ~OBSERVED], mean[~OBSERVED])
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(draw(key, machine, evidence, N_STEPS), p)


@each_noise
def test_a_step_leaves_the_posterior_as_it_is(noise, key, rng):
    machine = tiny_machine(scale=1.5)
    p = exact_posterior(machine, noise)
    first = visible = all_states(machine)[rng.choice(len(p), MANY, p=p)]
    machine, evidence = rows(machine, noise, n=MANY)
    for number in range(3):
        visible = step(jax.random.fold_in(key, number), machine, evidence, visible)
    assert (np.asarray(visible) != first).any(axis=(1, 2)).mean() > 0.2
    assert_distributed(visible, p)


def test_known_units_never_move(key):
    machine, evidence = rows(tiny_machine(), None)
    for n_steps in (0, 1, 2, 10):
        visible = np.asarray(draw(key, machine, evidence, n_steps))
        assert (visible[:, OBSERVED] == SEEN[OBSERVED]).all()
        assert visible[:, ~OBSERVED].std(axis=0).all()


@each_noise
def test_chains_start_as_independent_units(noise, key):
    machine, evidence = rows(tiny_machine(), noise)
    rate = expit(machine.visible_bias + first_of(evidence, evidence.field))
    if noise is None:
        rate = np.where(OBSERVED, SEEN, rate)
    assert_mean(draw(key, machine, evidence, 0), rate)


def test_one_step_is_a_chain(key):
    machine, evidence = rows(tiny_machine(), 0.1)
    mean = average(key, machine, evidence, 1).mean
    assert ((mean > 0.0) & (mean < 1.0)).all()


@pytest.mark.parametrize("infer", ["gibbs", "mean-field", "reconstruction"])
def test_known_units_are_sure(infer, key):
    machine, evidence = rows(tiny_machine(), None)
    posterior = {
        "gibbs": lambda: average(key, machine, evidence, 3),
        "mean-field": lambda: fields(machine, evidence, 3),
        "reconstruction": lambda: passed(machine, evidence, jnp.asarray(OBSERVED)),
    }[infer]()
    np.testing.assert_array_equal(posterior.mean[:, OBSERVED], evidence.value[:, OBSERVED])
    assert not posterior.variance[:, OBSERVED].any()
    assert (posterior.variance[:, ~OBSERVED] > 0.0).all()
    mean = posterior.mean[:, ~OBSERVED]
    np.testing.assert_allclose(posterior.variance[:, ~OBSERVED], mean * (1.0 - mean), rtol=1e-10)


# Mean field and reconstruction


def parameters(machine):
    w = np.asarray(machine.coupling.to_matrix())
    return w, np.asarray(machine.visible_bias).ravel(), np.asarray(machine.hidden_bias).ravel()


def entropy(mean):
    return -(xlogy(mean, mean) + xlogy(1.0 - mean, 1.0 - mean)).sum()


def bound(machine, evidence, mean):
    """The evidence lower bound of independent units, the best hidden ones for the visible."""
    w, b, c = parameters(machine)
    v = mean.ravel()
    h = expit(v @ w + c)
    energy = v @ w @ h + v @ (b + first_of(evidence, evidence.field).ravel()) + c @ h
    # Of a known unit, 0 or 1, the entropy is 0.
    return energy + entropy(v) + entropy(h) - float(exact.log_partition(machine))


@pytest.mark.parametrize("scale", [1.0, 2.0])
@each_noise
def test_mean_field_climbs_to_a_fixed_point_below_the_evidence(noise, scale):
    machine, evidence = rows(tiny_machine(scale=scale), noise, n=1)
    weight = np.exp((all_states(machine) * np.asarray(evidence.field)).sum(axis=(1, 2)))
    if noise is None:
        weight = likelihood(machine, None)
    limit = np.log(np.asarray(exact.visible_distribution(machine)) @ weight)
    means = [np.asarray(fields(machine, evidence, n).mean[0]) for n in [*range(12), 3000]]
    bounds = [bound(machine, evidence, mean) for mean in means]
    assert (np.diff(bounds) > -1e-12).all()
    assert bounds[1] > bounds[0]
    assert bounds[-1] < limit

    w, b, c = parameters(machine)
    last = means[-1].ravel()
    again = expit(w @ expit(last @ w + c) + b + first_of(evidence, evidence.field).ravel())
    unknown = ~first_of(evidence, evidence.known).ravel()
    np.testing.assert_allclose(again[unknown], last[unknown], atol=1e-9)


@each_noise
def test_everything_is_exact_without_weights(noise, key):
    machine, evidence = rows(tiny_machine(scale=0.0), noise)
    mean = np.tensordot(exact_posterior(machine, noise), all_states(machine), axes=1)
    for posterior in (fields(machine, evidence, 1), average(key, machine, evidence, 3)):
        np.testing.assert_allclose(posterior.mean, np.broadcast_to(mean, (N, *VISIBLE)), rtol=1e-10)


@each_noise
def test_reconstruction_is_a_pass_up_and_down(noise):
    machine, evidence = rows(tiny_machine(), noise)
    w, b, c = parameters(machine)
    start = np.where(OBSERVED, SEEN, expit(b).reshape(VISIBLE))
    expected = expit(w @ expit(start.ravel() @ w + c) + b).reshape(VISIBLE)
    if noise is None:
        expected = np.where(OBSERVED, SEEN, expected)
    posterior = passed(machine, evidence, jnp.asarray(OBSERVED))
    np.testing.assert_allclose(posterior.mean[0], expected, rtol=1e-10)
    np.testing.assert_allclose(posterior.variance[0], expected * (1.0 - expected), atol=1e-12)


# Gaussian units


def gaussian_machine(scale=0.7):
    machine = tiny_machine(scale=scale)
    variance = np.linspace(0.5, 1.5, 6).reshape(VISIBLE)
    return Machine(machine.coupling, machine.visible_bias, machine.hidden_bias, Gaussian(variance))


def hidden_mixture(machine):
    """For every hidden state its log-probability and the mean it gives the visible units."""
    w, b, c = parameters(machine)
    variance = np.asarray(machine.visible_units.variance).ravel()
    field = HIDDEN_STATES @ w.T + b
    log_p = HIDDEN_STATES @ c + (variance * field**2).sum(axis=1) / 2.0
    return log_p - logsumexp(log_p), variance * field, variance


def gaussian_posterior(machine, noise, seen):
    """Mean and mean square of each unit: mixtures over the hidden states."""
    log_p, mean, variance = hidden_mixture(machine)
    y, observed = seen.ravel(), OBSERVED.ravel()
    width = np.sqrt(variance + (0.0 if noise is None else noise**2))
    log_p = log_p + norm.logpdf(y, mean, width)[:, observed].sum(axis=1)
    if noise is None:
        mean, variance = np.where(observed, y, mean), np.where(observed, 0.0, variance)
    else:
        precision = 1.0 / variance + observed / noise**2
        mean, variance = (mean / variance + observed * y / noise**2) / precision, 1.0 / precision
    p = softmax(log_p)
    return (p @ mean).reshape(VISIBLE), (p @ (mean**2 + variance)).reshape(VISIBLE)


GAUSSIAN_SEEN = np.array([[1.3, 9.0], [9.0, -0.4], [0.7, 9.0]])
each_gaussian_noise = pytest.mark.parametrize("noise", [None, 0.6], ids=["known", "noisy"])


@each_gaussian_noise
def test_gaussian_chains_have_the_moments_of_the_mixture(noise, key):
    machine = gaussian_machine()
    mean, square = gaussian_posterior(machine, noise, GAUSSIAN_SEEN)
    posterior = average(key, *rows(machine, noise, GAUSSIAN_SEEN), N_STEPS)
    assert_moments(posterior, mean, square)
    other, _ = gaussian_posterior(machine, noise, GAUSSIAN_SEEN + 0.3)
    with pytest.raises(AssertionError, match="with errors"):
        assert_mean(posterior.mean[:, ~OBSERVED], other[~OBSERVED])


@each_gaussian_noise
def test_gaussian_mean_field_is_a_fixed_point(noise):
    machine = gaussian_machine()
    w, b, c = parameters(machine)
    variance = np.asarray(machine.visible_units.variance).ravel()
    posterior = fields(*rows(machine, noise, GAUSSIAN_SEEN, n=1), 3000)
    last, observed, y = np.asarray(posterior.mean).ravel(), OBSERVED.ravel(), GAUSSIAN_SEEN.ravel()
    again = w @ expit(last @ w + c) + b
    if noise is None:
        again, variance = variance * again, np.where(observed, 0.0, variance)
        again = np.where(observed, y, again)
    else:
        precision = 1.0 / variance + observed / noise**2
        again, variance = (again + observed * y / noise**2) / precision, 1.0 / precision
    np.testing.assert_allclose(again, last, atol=1e-9)
    np.testing.assert_allclose(np.asarray(posterior.variance).ravel(), variance, atol=1e-12)


def test_evidence_keeps_what_it_is_given():
    visible, observed = jnp.asarray(SEEN), jnp.asarray(OBSERVED)
    evidence = Evidence.from_known(visible, observed)
    np.testing.assert_array_equal(evidence.clamp(visible + 5.0), np.where(OBSERVED, SEEN, SEEN + 5))
    _, flipped = observe(tiny_machine(), visible, observed, 0.2)
    np.testing.assert_array_equal(flipped.clamp(visible + 5.0), SEEN + 5)
    field = np.where(OBSERVED, np.where(SEEN == 1.0, np.log(4.0), -np.log(4.0)), 0.0)
    np.testing.assert_allclose(flipped.field, field, rtol=1e-12)
