"""Annealed importance sampling against the exact log Z of machines small enough to enumerate."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logit, logsumexp, softmax
from scipy.stats import binom, chi2

from mporbm.machine import DenseCoupling, Gaussian, Machine, exact
from mporbm.sampling import LogPartition, independent_units, log_partition
from mporbm.sampling.ais import _anneal, bridge
from strategies import HIDDEN, KINDS, VISIBLE, exact_samples, tiny_machine

N_KEYS = 20
SIZES = {"n_chains": 100, "n_temperatures": 30}
RARE = 1e-4
"""How rarely a test that should pass would fail."""


def opposite_modes(kind, size=3.0):
    """A machine that does not change when all units flip, so that every mode has an opposite.

    `size` is the mean absolute weight.
    """
    coupling = tiny_machine(kind).coupling
    n_factors = len(jax.tree.leaves(coupling))
    factor = (size / np.abs(coupling.to_matrix()).mean()) ** (1.0 / n_factors)
    coupling = jax.tree.map(lambda x: factor * x, coupling)
    w = np.asarray(coupling.to_matrix())
    return Machine(
        coupling,
        -0.5 * w.sum(axis=1).reshape(coupling.visible_shape),
        -0.5 * w.sum(axis=0).reshape(coupling.hidden_shape),
    )


def gaussian_machine():
    machine = tiny_machine(scale=0.7)
    variance = np.linspace(0.5, 1.5, 6).reshape(VISIBLE)
    return Machine(machine.coupling, machine.visible_bias, machine.hidden_bias, Gaussian(variance))


@functools.cache
def states(n_units):
    return np.array(list(itertools.product([0.0, 1.0], repeat=n_units)))


def log_joint(w, b, c):
    """``-E(V, H)`` of all pairs of states."""
    v, h = states(6), states(4)
    return v @ w @ h.T + (v @ b)[:, None] + h @ c


def enumerated(machine):
    b, c = np.asarray(machine.visible_bias).ravel(), np.asarray(machine.hidden_bias).ravel()
    return log_joint(np.asarray(machine.coupling.to_matrix()), b, c)


def log_z(machine):
    return logsumexp(enumerated(machine))


def base_rates(machine):
    """The bias of independent units that are on as often as those of the machine."""
    p = softmax(enumerated(machine)).sum(axis=1)
    return logit(p @ states(6)).reshape(VISIBLE)


def estimates(machine, base=None, **sizes):
    keys = map(jax.random.key, range(N_KEYS))
    return [log_partition(key, machine, base, **{**SIZES, **sizes}) for key in keys]


def n_covered(found, value):
    return sum(low < value < high for low, high in (one.interval for one in found))


def assert_estimates(found, value):
    """Estimates are right as often, and as precise, as they say."""
    forward, reverse = np.array([(one.value, one.reverse) for one in found]).T
    errors = np.array([one.standard_error for one in found])
    covered, least = n_covered(found, value), binom.ppf(RARE, len(found), 0.95)
    assert covered >= least, f"{covered} of {len(found)} intervals contain log Z"
    spread = ((forward - forward.mean()) ** 2).sum() / (errors**2).mean()
    assert chi2.ppf(RARE, N_KEYS - 1) < spread < chi2.isf(RARE, N_KEYS - 1)
    # Below and above on average, but for what twenty keys leave open.
    assert forward.mean() < value + 4.0 * forward.std() / np.sqrt(N_KEYS)
    assert reverse.mean() > value - 4.0 * reverse.std() / np.sqrt(N_KEYS)
    ratio = np.exp(forward - value)
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / np.sqrt(N_KEYS)
    assert np.abs(reverse - value).mean() < 3.0 * errors.mean()
    sizes = [one.effective_sample_size for one in found]
    assert 1.0 <= min(sizes) <= max(sizes) <= SIZES["n_chains"]


@pytest.mark.parametrize("kind", KINDS)
def test_opposite_modes_are_both_found(kind):
    machine = opposite_modes(kind)
    p = softmax(enumerated(machine)).sum(axis=1)
    np.testing.assert_allclose(p, p[::-1], rtol=1e-8)
    # Half of all is in a few states, and a chain would hardly go from one mode to the other.
    assert np.sort(p)[-8:].sum() > 0.5
    assert_estimates(estimates(machine, base_rates(machine)), log_z(machine))


def test_the_bias_of_the_machine_is_the_default_base():
    machine = tiny_machine(scale=1.5)
    found = estimates(machine)
    assert_estimates(found, log_z(machine))
    given = log_partition(jax.random.key(0), machine, machine.visible_bias, **SIZES)
    assert given == found[0]
    other = log_partition(jax.random.key(0), machine, base_rates(machine), **SIZES)
    assert other != found[0]


def test_a_machine_that_learnt_two_patterns(rng):
    """Exact gradient ascent on all units on, and all units off."""
    patterns, rate = np.array([[0.0] * 6, [1.0] * 6]), 0.1
    w, b, c = 0.1 * rng.normal(size=(6, 4)), np.zeros(6), np.zeros(4)
    for _ in range(1500):
        p, hidden = softmax(log_joint(w, b, c)), expit(patterns @ w + c)
        w = w + rate * (patterns.T @ hidden / 2.0 - states(6).T @ p @ states(4))
        b = b + rate * (patterns.mean(axis=0) - p.sum(axis=1) @ states(6))
        c = c + rate * (hidden.mean(axis=0) - p.sum(axis=0) @ states(4))
    coupling = DenseCoupling(w.reshape(*VISIBLE, *HIDDEN), len(VISIBLE))
    machine = Machine(coupling, b.reshape(VISIBLE), c.reshape(HIDDEN))
    assert p.sum(axis=1)[[0, -1]].min() > 0.4
    assert_estimates(estimates(machine, base_rates(machine)), log_z(machine))


def test_other_weights_are_noticed():
    """The test has the power to fail: weights that are a tenth larger."""
    machine = opposite_modes("mpo")
    found = estimates(opposite_modes("mpo", size=3.3), base_rates(machine))
    assert n_covered(found, log_z(machine)) == 0
    with pytest.raises(AssertionError, match=f"0 of {N_KEYS} intervals"):
        assert_estimates(found, log_z(machine))


def test_gaussian_units():
    machine = gaussian_machine()
    mean = np.asarray(exact.expectations(machine).visible)
    for base in (None, mean / np.asarray(machine.visible_units.variance)):
        assert_estimates(estimates(machine, base), float(exact.log_partition(machine)))


# Both directions together


def bridged(machine, samples, **sizes):
    """Estimates by both directions, from other samples for every key."""
    found = []
    for number in range(N_KEYS):
        key = jax.random.key(number)
        own = {"samples": samples(key), **SIZES, **sizes}
        found.append(log_partition(key, machine, base_rates(machine), **own))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions_together_are_right_and_more_precise(kind, rng):
    machine, sizes = opposite_modes(kind), {"n_temperatures": 4}
    true = log_z(machine)
    found = bridged(machine, lambda key: exact_samples(machine, 150, rng), **sizes)
    alone = estimates(machine, base_rates(machine), **sizes)
    assert n_covered(found, true) >= binom.ppf(RARE, N_KEYS, 0.95)
    values, errors = (
        np.array([getattr(one, name) for one in found]) for name in ("value", "standard_error")
    )
    spread = ((values - values.mean()) ** 2).sum() / (errors**2).mean()
    assert chi2.ppf(RARE, N_KEYS - 1) < spread < chi2.isf(RARE, N_KEYS - 1)
    assert abs(values.mean() - true) < 4.0 * values.std(ddof=1) / np.sqrt(N_KEYS)
    assert errors.mean() < 0.7 * np.mean([one.standard_error for one in alone])
    for one, other in zip(found, alone, strict=True):
        assert one.forward == other.value == other.forward
        assert one.effective_sample_size > other.effective_sample_size


def test_samples_of_another_machine_are_noticed(rng):
    """The test above has the power to fail: states that are drawn evenly.

    The reverse estimate is then below the forward one, which makes the standard error larger.
    """
    machine, true = opposite_modes("mpo"), log_z(opposite_modes("mpo"))
    right = bridged(machine, lambda key: exact_samples(machine, 150, rng), n_temperatures=4)
    wrong = bridged(
        machine, lambda key: jax.random.bernoulli(key, 0.5, (150, *VISIBLE)), n_temperatures=4
    )
    said = np.mean([one.standard_error for one in right])
    assert sum(abs(one.value - true) < 1.96 * said for one in right) >= binom.ppf(RARE, 20, 0.95)
    assert sum(abs(one.value - true) < 1.96 * said for one in wrong) < binom.ppf(RARE, 20, 0.95)
    assert np.mean([one.standard_error for one in wrong]) > 1.2 * said
    assert np.mean([one.reverse - one.forward for one in wrong]) < 0.0


def test_the_bridge_of_gaussian_weights_finds_their_ratio(rng):
    """If weights forwards are normal, those backwards are, too, and the ratio is known."""
    ratio, variance, n = 3.0, 4.0, 200_000
    for n_forward, n_backward in ((n, n // 4), (n // 4, n)):
        forward = rng.normal(ratio - variance / 2.0, np.sqrt(variance), n_forward)
        backward = -rng.normal(ratio + variance / 2.0, np.sqrt(variance), n_backward)
        found = bridge(jnp.asarray(forward), jnp.asarray(backward))
        assert abs(found.value - ratio) < 4.0 * found.standard_error
        assert found.standard_error < 0.01


def test_the_error_of_the_bridge_is_that_of_many_repetitions(rng):
    values, errors = [], []
    for _ in range(400):
        forward, backward = rng.normal(1.0, np.sqrt(2.0), 60), -rng.normal(3.0, np.sqrt(2.0), 30)
        found = bridge(jnp.asarray(forward), jnp.asarray(backward))
        values.append(found.value)
        errors.append(found.standard_error)
    assert abs(np.mean(values) - 2.0) < 4.0 * np.std(values) / 20.0
    np.testing.assert_allclose(np.mean(errors), np.std(values), rtol=0.15)


def test_paths_that_do_not_overlap_or_overflow_have_no_effective_samples():
    apart = bridge(jnp.zeros(50), jnp.full(50, -200.0))
    assert 0.0 < apart.value < 200.0
    assert apart.effective_sample_size < 1e-9
    broken = bridge(jnp.asarray([0.0, jnp.inf]), jnp.zeros(2))
    assert np.isnan(broken.value)
    assert broken.effective_sample_size == 0.0


@pytest.mark.slow
def test_single_precision_stays_good_over_many_temperatures(key):
    machine = opposite_modes("mpo")
    single = jax.tree.map(lambda x: x.astype(jnp.float32), machine)
    found = log_partition(key, single, base_rates(machine), n_chains=100, n_temperatures=1000)
    assert found.standard_error < 0.03
    assert abs(found.value - log_z(machine)) < 4.0 * found.standard_error
    assert abs(found.reverse - log_z(machine)) < 4.0 * found.standard_error


def test_more_temperatures_are_more_precise():
    machine = opposite_modes("mpo")
    base = base_rates(machine)
    few, many = (estimates(machine, base, n_temperatures=n) for n in (8, SIZES["n_temperatures"]))
    pairs = list(zip(few, many, strict=True))
    for name, sign in (("standard_error", 1.0), ("effective_sample_size", -1.0)):
        difference = [sign * (getattr(a, name) - getattr(b, name)) for a, b in pairs]
        assert np.mean(difference) > 4.0 * np.std(difference) / np.sqrt(N_KEYS)


def test_weights_are_exact_in_both_directions(key, rng):
    """Few steps are rough, and yet the mean weight is the ratio of the partition functions."""
    machine, n, n_steps = tiny_machine(), 20_000, 4
    base = np.linspace(-0.5, 0.5, 6).reshape(VISIBLE)
    ratio = log_z(machine) - np.logaddexp(0.0, base).sum() - 4.0 * np.log(2.0)

    bare = Machine(machine.coupling, base)
    starts = {False: independent_units(key, bare, (n,)), True: exact_samples(machine, n, rng)}
    for reverse, start in starts.items():
        _, weight = jax.jit(_anneal, static_argnames="reverse")(
            key, machine, jnp.asarray(base), jnp.asarray(start), n_steps, reverse=reverse
        )
        weight = np.asarray(weight) * (-1.0 if reverse else 1.0)
        # Their logarithms are below and above, each of them by more than chance.
        error = weight.std() / np.sqrt(n)
        assert (weight.mean() - ratio) * (1.0 if reverse else -1.0) > 5.0 * error
        scaled = np.exp((weight - ratio) * (-1.0 if reverse else 1.0))
        assert abs(scaled.mean() - 1.0) < 5.0 * scaled.std() / np.sqrt(n)


def test_a_machine_without_weights_has_the_log_z_of_its_base(key):
    machine = tiny_machine(scale=0.0)
    found = log_partition(key, Machine(machine.coupling, machine.visible_bias), **SIZES)
    energies = states(6) @ np.asarray(machine.visible_bias).ravel()
    value = logsumexp(energies) + 4.0 * np.log(2.0)
    np.testing.assert_allclose([found.value, found.reverse], value, rtol=1e-12)
    assert found.standard_error < 1e-12
    np.testing.assert_allclose(found.effective_sample_size, SIZES["n_chains"])


def test_the_interval_holds_95_percent():
    low, high = LogPartition(3.0, 0.5, 10.0, 3.1).interval
    np.testing.assert_allclose([low, high], [3.0 - 1.96 * 0.5, 3.0 + 1.96 * 0.5])


@pytest.mark.parametrize(
    ("needed", "tried"),
    [(1, [1000]), (3000, [1000, 2000, 4000]), (10**6, [1000, 2000, 4000, 8000, 16_000])],
)
def test_temperatures_double_until_chains_are_effective(monkeypatch, key, needed, tried):
    """Below what is needed, one chain of 16 has all of the weight."""
    numbers = []

    def weights(key, machine, base, n_chains, n_temperatures):
        numbers.append(int(n_temperatures))
        spread = 0.0 if numbers[-1] >= needed else 100.0
        found = np.zeros(n_chains)
        found[0] = spread
        return jnp.zeros((n_chains, *machine.visible_shape)), jnp.asarray(found)

    monkeypatch.setattr("mporbm.sampling.ais._forwards", weights)
    monkeypatch.setattr("mporbm.sampling.ais._backwards", lambda *args: jnp.zeros(16))
    found = log_partition(key, tiny_machine(), n_chains=16)
    assert numbers == tried
    assert found.effective_sample_size == pytest.approx(1.0 if needed == 10**6 else 16.0)
    numbers.clear()
    log_partition(key, tiny_machine(), n_chains=16, n_temperatures=50)
    assert numbers == [50]


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_chains": 1}, ValueError, "n_chains=1: expected an integer of at least 2"),
        ({"n_chains": 10.0}, TypeError, "n_chains=10.0: expected an integer"),
        ({"n_temperatures": 0}, ValueError, "n_temperatures=0: expected an integer of at least 1"),
        ({"samples": np.zeros((5, 2, 3))}, ValueError, r"samples: expected shape \(..., 3, 2\)"),
        ({"samples": np.zeros(VISIBLE)}, ValueError, r"samples: expected shape \(m, 3, 2\)"),
        ({"samples": np.zeros((1, *VISIBLE))}, ValueError, "m of at least 2, got"),
        ({"samples": np.full((3, *VISIBLE), np.nan)}, ValueError, "samples: .*finite"),
        (
            {"base_bias": np.zeros((2, 3))},
            ValueError,
            r"base_bias: expected shape \(3, 2\), got \(2, 3\); transpose",
        ),
        ({"base_bias": np.full(VISIBLE, np.nan)}, ValueError, "base_bias: .*finite"),
        ({"base_bias": "zero"}, TypeError, "base_bias: expected an array of real numbers"),
    ],
)
def test_message(options, error, message, key):
    with pytest.raises(error, match=message):
        log_partition(key, tiny_machine(), **options)
