"""Completion, denoising, posterior samples and likelihoods, against enumeration and each other."""

import copy
import functools
import itertools
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV

import mporbm
from mporbm import MPORBM
from mporbm.estimators import batches
from mporbm.estimators.batches import CHAINS
from mporbm.estimators.likelihood import LikelihoodWarning
from mporbm.machine import DenseCoupling, Gaussian, Machine, exact
from mporbm.sampling import LogPartition, log_partition
from strategies import HIDDEN, VISIBLE, all_states, assert_distributed, exact_samples, tiny_machine

SEEN = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
MASK = np.array([[True, False], [False, True], [True, False]])
N_GIBBS = 5
METHODS = ("gibbs", "mean-field", "reconstruct")
each_method = pytest.mark.parametrize("method", METHODS)


def around(machine, **parameters):
    """A fitted estimator around a machine."""
    gaussian = isinstance(machine.visible_units, Gaussian)
    units = "gaussian" if gaussian else "bernoulli"
    model = MPORBM(visible_units=units, random_state=0, **parameters)
    model.set_machine(machine)
    model._begin(0.0)
    return model


@functools.cache
def model():
    """An estimator that tests share, and so must not change."""
    return around(tiny_machine())


@functools.cache
def single():
    return around(jax.tree.map(lambda x: x.astype(jnp.float32), tiny_machine()))


@functools.cache
def gaussian():
    machine = tiny_machine(scale=0.7)
    return around(Machine(machine.coupling, machine.visible_bias, machine.hidden_bias, Gaussian()))


def binary_rows(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, *VISIBLE)).astype(float)


def likelihood(seen, mask, noise):
    """``p(seen | V)`` of every visible state, as a product over the observed units."""
    right = 1.0 if noise is None else 1.0 - noise
    each = np.where(all_states(model().machine_) == seen, right, 1.0 - right)
    return np.where(mask, each, 1.0).prod(axis=(1, 2))


def posterior(machine, noise, mask=MASK):
    joint = np.asarray(exact.visible_distribution(machine)) * likelihood(SEEN, mask, noise)
    return joint / joint.sum()


def assert_mean(values, expected):
    """The mean over independent rows is within five of its standard errors."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    distance = np.abs(values.mean(axis=0) - expected)
    assert (distance <= 5.0 * error + 1e-12).all(), f"{distance} with errors {error}"


# Means and deviations


@pytest.mark.parametrize("noise", [None, 0.1], ids=["complete", "denoise"])
def test_answers_have_the_moments_of_the_posterior(noise):
    rows, options = np.repeat(SEEN[None], CHAINS, axis=0), {"return_std": True, "random_state": 0}
    if noise is None:
        mean, std = model().complete(rows, MASK, n_gibbs=500, **options)
    else:
        mean, std = model().denoise(rows, noise, mask=MASK, n_gibbs=500, **options)
    expected = np.tensordot(posterior(model().machine_, noise), all_states(model().machine_), 1)
    assert_mean(mean, expected)
    # A binary unit is its own square.
    assert_mean(std**2 + mean**2, expected)
    assert_allclose(std, np.sqrt(mean * (1.0 - mean)), atol=1e-6)
    assert (std[:, MASK] == 0.0).all() == (noise is None)


@pytest.mark.parametrize("noise", [None, 0.6], ids=["complete", "denoise"])
def test_gaussian_answers_have_the_moments_of_the_mixture(noise):
    machine = gaussian().machine_
    w, b = np.asarray(machine.coupling.to_matrix()), np.asarray(machine.visible_bias).ravel()
    h = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    y, mask, mean = 0.8 * SEEN.ravel(), MASK.ravel(), h @ w.T + b
    width = np.sqrt(1.0 + (noise or 0.0) ** 2)
    log_p = h @ np.asarray(machine.hidden_bias).ravel() + (mean**2).sum(axis=1) / 2.0
    log_p += norm.logpdf(y, mean, width)[:, mask].sum(axis=1)
    p = np.exp(log_p - logsumexp(log_p))
    variance = np.ones(6)
    if noise is None:
        mean, variance = np.where(mask, y, mean), np.where(mask, 0.0, 1.0)
    else:
        variance = 1.0 / (1.0 + mask / noise**2)
        mean = variance * (mean + mask * y / noise**2)
    square = (p @ (mean**2 + variance)).reshape(VISIBLE)

    rows, options = np.repeat(0.8 * SEEN[None], CHAINS, axis=0), {"n_gibbs": 500, "random_state": 0}
    if noise is None:
        found, std = gaussian().complete(rows, MASK, return_std=True, **options)
    else:
        found, std = gaussian().denoise(rows, noise, mask=MASK, return_std=True, **options)
    assert_mean(found, (p @ mean).reshape(VISIBLE))
    assert_mean(std**2 + found**2, square)


def test_mean_field_is_a_fixed_point():
    mean = model().complete(SEEN[None], MASK, method="mean-field", n_gibbs=2000)[0]
    machine = model().machine_
    again = np.asarray(machine.visible_mean(machine.hidden_mean(mean)))
    assert_allclose(np.where(MASK, SEEN, again), mean, atol=1e-9)


def test_reconstruct_is_the_pass_of_the_paper():
    machine, rows = model().machine_, binary_rows(20)
    start = np.where(MASK, rows, expit(np.asarray(machine.visible_bias)))
    passed = np.asarray(machine.visible_mean(machine.hidden_mean(start)))
    filled = model().complete(rows, MASK, method="reconstruct")
    assert_allclose(filled, np.where(MASK, rows, passed), atol=1e-12)
    assert_allclose(model().denoise(rows, mask=MASK, method="reconstruct"), passed, atol=1e-12)
    everything = model().denoise(rows, method="reconstruct")
    assert_allclose(everything, model().reconstruct(rows), atol=1e-12)


def test_reconstruct_takes_gaussian_values_as_they_are():
    rows = np.zeros((3, *VISIBLE))
    passed = gaussian().denoise(rows, 0.5, method="reconstruct")
    assert_allclose(passed, gaussian().reconstruct(rows), atol=1e-12)


def test_reconstruct_does_not_use_the_noise_level():
    rows = binary_rows(20)
    without = model().denoise(rows, method="reconstruct")
    assert_array_equal(model().denoise(rows, 0.1, method="reconstruct"), without)


# What is known


@each_method
def test_a_mask_has_several_shapes(method):
    rows = binary_rows(7)
    options = {"method": method, "n_gibbs": N_GIBBS, "random_state": 0}
    expected = model().complete(rows, MASK, **options)
    assert expected.shape == rows.shape
    assert_array_equal(expected[:, MASK], rows[:, MASK])
    assert ((expected[:, ~MASK] > 0.0) & (expected[:, ~MASK] < 1.0)).all()
    each = np.broadcast_to(MASK, rows.shape)
    for mask in (
        MASK.ravel(),
        MASK[None],
        MASK.reshape(1, 6),
        each,
        each.reshape(7, 6),
        MASK.tolist(),
    ):
        for samples in (rows, rows.reshape(7, 6)):
            assert_array_equal(model().complete(samples, mask, **options), expected)
    unknown = np.where(MASK, rows, np.nan)
    for samples in (unknown, unknown.reshape(7, 6)):
        assert_array_equal(model().complete(samples, **options), expected)


def test_every_sample_may_have_its_own_mask(rng):
    rows, mask = binary_rows(30), rng.random((30, *VISIBLE)) < 0.5
    options = {"method": "mean-field", "n_gibbs": N_GIBBS}
    together = model().complete(rows, mask, **options)
    for n in range(3):
        alone = model().complete(rows[n : n + 1], mask[n], **options)
        assert_allclose(alone[0], together[n], rtol=1e-12)
    assert_array_equal(together[mask], rows[mask])
    drawn = model().posterior_samples(rows[:8], mask[:8], n_samples=2, n_gibbs=N_GIBBS)
    for version in drawn.swapaxes(0, 1):
        assert_array_equal(version[mask[:8]], rows[:8][mask[:8]])
    assert not np.array_equal(drawn[:, 0], drawn[:, 1])


def test_nan_and_a_mask_may_both_say_what_is_unknown():
    rows = binary_rows(7)
    rows[:, 0, 1] = np.nan
    options = {"n_gibbs": N_GIBBS, "random_state": 0}
    more = MASK.copy()
    more[0, 0] = False
    unknown = np.where(more, rows, np.nan)
    filled = model().complete(rows, more, **options)
    assert_array_equal(filled, model().complete(unknown, **options))


USES = {
    "complete": lambda model, rows: model.complete(rows, MASK, n_gibbs=N_GIBBS, random_state=0),
    "mean-field": lambda model, rows: model.complete(
        rows, MASK, method="mean-field", n_gibbs=N_GIBBS
    ),
    "reconstruct": lambda model, rows: model.complete(rows, MASK, method="reconstruct"),
    "denoise": lambda model, rows: model.denoise(
        rows, 0.1, mask=MASK, n_gibbs=N_GIBBS, random_state=0
    ),
    "posterior_samples": lambda model, rows: model.posterior_samples(
        rows, MASK, n_samples=2, n_gibbs=N_GIBBS, random_state=0
    ),
    "estimate_noise": lambda model, rows: model.estimate_noise(rows, MASK),
}


@pytest.mark.parametrize("use", USES)
def test_unknown_values_are_ignored(use):
    rows = binary_rows(1024)
    expected = USES[use](model(), np.where(MASK, rows, 0.0))
    for garbage in (np.nan, 255.0, -1e300):
        assert_array_equal(USES[use](model(), np.where(MASK, rows, garbage)), expected)


@pytest.mark.parametrize("name", ["double", "single"])
def test_what_is_all_known_comes_back_bit_for_bit(name):
    estimator = {"double": model, "single": single}[name]()
    values = np.random.default_rng(0).random((8, *VISIBLE))
    bits = values < 0.5
    for rows in (values, values.astype(np.float32), bits, bits.astype(np.uint8), bits.astype(int)):
        for answer in (
            estimator.complete(rows),
            estimator.complete(rows, np.ones(VISIBLE, bool)),
            estimator.denoise(rows, 0),
            estimator.denoise(rows, salt_and_pepper=0.0),
            estimator.posterior_samples(rows, n_samples=2)[:, 1],
            estimator.posterior_samples(rows, noise=0.0, n_samples=2)[:, 0],
        ):
            assert_array_equal(answer, rows)
            assert answer.dtype.kind == "f"
    assert not estimator.complete(values, return_std=True)[1].any()


def test_known_values_keep_their_precision():
    values = np.random.default_rng(0).random((8, *VISIBLE))
    filled = single().complete(values, MASK, n_gibbs=N_GIBBS)
    assert_array_equal(filled[:, MASK], values[:, MASK])
    drawn = single().posterior_samples(values, MASK, n_samples=2, n_gibbs=N_GIBBS)
    assert_array_equal(drawn[:, 1][:, MASK], values[:, MASK])


def test_an_unknown_sample_has_the_mean_of_the_model():
    nothing = np.full((CHAINS, *VISIBLE), np.nan)
    mean = model().complete(nothing, n_gibbs=500, random_state=0)
    p = np.asarray(exact.visible_distribution(model().machine_))
    assert_mean(mean, np.tensordot(p, all_states(model().machine_), axes=1))


# Options


def test_binary_gives_the_likelier_value():
    rows = np.random.default_rng(0).random((40, *VISIBLE))
    options = {"n_gibbs": N_GIBBS, "random_state": 0}
    mean = model().complete(rows, MASK, **options)
    chosen, std = model().complete(rows, MASK, binary=True, return_std=True, **options)
    assert_array_equal(chosen[:, ~MASK], mean[:, ~MASK] > 0.5)
    assert_array_equal(chosen[:, MASK], rows[:, MASK])
    assert_array_equal(std, model().complete(rows, MASK, return_std=True, **options)[1])
    rows = (rows < 0.5).astype(float)
    cleaned = model().denoise(rows, 0.2, binary=True, **options)
    assert_array_equal(cleaned, model().denoise(rows, 0.2, **options) > 0.5)


DRAWS = {
    "complete": lambda **seed: model().complete(binary_rows(30), MASK, n_gibbs=N_GIBBS, **seed),
    "denoise": lambda **seed: model().denoise(binary_rows(30), 0.1, n_gibbs=N_GIBBS, **seed),
    "posterior_samples": lambda **seed: model().posterior_samples(
        binary_rows(8), MASK, n_samples=2, n_gibbs=N_GIBBS, **seed
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_repeats_and_no_seed_does_not(name):
    draw = DRAWS[name]
    assert_array_equal(draw(random_state=1), draw(random_state=1))
    assert not np.array_equal(draw(random_state=1), draw(random_state=2))
    assert not np.array_equal(draw(), draw())


def test_mean_field_and_reconstruct_need_no_seed():
    for method in ("mean-field", "reconstruct"):
        once, again = (
            model().complete(binary_rows(30), MASK, method=method, n_gibbs=N_GIBBS)
            for _ in range(2)
        )
        assert_array_equal(once, again)


def test_methods_differ():
    options = {"n_gibbs": N_GIBBS, "random_state": 0}
    answers = [model().complete(binary_rows(9), MASK, method=name, **options) for name in METHODS]
    for one, other in itertools.combinations(answers, 2):
        assert np.abs(one - other).max() > 1e-3


@each_method
def test_batches_do_not_matter(method):
    """More rows than go into one call, and numbers that do not fill it."""
    rows = binary_rows(2 * CHAINS + 3)
    options = {"method": method, "n_gibbs": N_GIBBS, "random_state": 0}
    together = model().complete(rows, MASK, **options)
    assert together.shape == rows.shape
    assert_array_equal(together[:, MASK], rows[:, MASK])
    assert ((together[:, ~MASK] > 0.0) & (together[:, ~MASK] < 1.0)).all()
    for n in (1, CHAINS - 1, CHAINS):
        assert_allclose(model().complete(rows[:n], MASK, **options), together[:n], rtol=1e-12)
    alike = np.repeat(SEEN[None], 2 * CHAINS, axis=0)
    both = model().complete(alike, MASK, **options).reshape(2, CHAINS, *VISIBLE)
    # Batches have random numbers of their own.
    assert np.array_equal(both[0], both[1]) == (method != "gibbs")


def test_an_interrupt_begins_no_other_call(monkeypatch):
    begun = []

    def slow(machine, batch, key):
        begun.append(1)
        if len(begun) == 2:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return np.zeros((len(batch), 1))

    monkeypatch.setattr(batches, "CHAINS", 4)
    with pytest.raises(KeyboardInterrupt):
        batches.in_batches(slow, tiny_machine(), binary_rows(400), chains=True)
    assert len(begun) < 50


# Noise


def test_salt_and_pepper_is_half_as_much_noise():
    rows, options = binary_rows(CHAINS), {"n_gibbs": N_GIBBS, "random_state": 0}
    denoised = model().denoise(rows, 0.15, **options)
    assert_array_equal(model().denoise(rows, salt_and_pepper=0.3, **options), denoised)
    assert not np.array_equal(model().denoise(rows, 0.3, **options), denoised)
    options = {"n_samples": 1, **options}
    drawn = model().posterior_samples(rows, noise=0.15, **options)
    again = model().posterior_samples(rows, salt_and_pepper=0.3, **options)
    assert_array_equal(again, drawn)


@functools.cache
def strong():
    return around(tiny_machine(scale=1.6))


def flipped(share, n=1024):
    """Samples of the strong machine, and the same with some values flipped."""
    rng = np.random.default_rng(0)
    clean = exact_samples(strong().machine_, n, rng)
    return clean, np.where(rng.random(clean.shape) < share, 1.0 - clean, clean)


def noise_likelihood(noisy, level):
    """``log p(noisy samples)`` if a share `level` was flipped."""
    p = np.asarray(exact.visible_distribution(strong().machine_))
    wrong = (noisy[:, None] != all_states(strong().machine_)).sum(axis=(2, 3))
    return np.log((p * level**wrong * (1.0 - level) ** (6 - wrong)).sum(axis=1)).sum()


@pytest.mark.parametrize("share", [0.05, 0.15])
def test_noise_is_estimated_where_the_samples_are_likeliest(share):
    _, noisy = flipped(share)
    levels = np.linspace(0.005, 0.4, 80)
    curve = np.array([noise_likelihood(noisy, level) for level in levels])
    best, step = curve.argmax(), levels[1] - levels[0]
    error = step / np.sqrt(-np.diff(curve, 2)[best - 1])
    found = strong().estimate_noise(noisy)
    assert abs(found - share) < 4.0 * error
    # Half a unit of likelihood is one standard error.
    assert noise_likelihood(noisy, found) > curve.max() - 0.5
    assert 4.0 * error < 0.5 * share


def test_gaussian_noise_is_estimated_where_the_samples_are_likeliest(rng):
    machine, width = gaussian().machine_, 0.8
    h = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    mean = h @ np.asarray(machine.coupling.to_matrix()).T + np.asarray(machine.visible_bias).ravel()
    log_p = h @ np.asarray(machine.hidden_bias).ravel() + (mean**2).sum(axis=1) / 2.0
    log_p -= logsumexp(log_p)
    chosen = mean[rng.choice(16, 1024, p=np.exp(log_p))]
    noisy = chosen + np.sqrt(1.0 + width**2) * rng.normal(size=chosen.shape)

    def curve(width):
        each = norm.logpdf(noisy[:, None], mean, np.sqrt(1.0 + width**2)).sum(axis=2)
        return logsumexp(log_p + each, axis=1).sum()

    found = gaussian().estimate_noise(noisy)
    best = max(map(curve, np.linspace(0.5, 1.1, 121)))
    assert curve(found) > best - 0.5
    assert curve(found) > curve(width) - 0.5
    assert min(curve(0.6), curve(1.0)) < best - 10.0


def test_noise_is_estimated_if_it_is_not_given():
    _, noisy = flipped(0.15)
    options = {"n_gibbs": N_GIBBS, "random_state": 0}
    given = strong().denoise(noisy, strong().estimate_noise(noisy), **options)
    assert_array_equal(strong().denoise(noisy, **options), given)


def test_hidden_values_say_nothing_about_noise():
    clean, noisy = flipped(0.15)
    mask = np.random.default_rng(1).random(clean.shape) < 0.6
    found = strong().estimate_noise(np.where(mask, noisy, np.nan))
    assert found == strong().estimate_noise(noisy, mask)
    assert abs(found - 0.15) < 0.05
    # If only clean values are seen.
    right = noisy == clean
    assert strong().estimate_noise(noisy, right) < 0.05


def test_denoising_is_as_good_as_the_exact_posterior():
    share = 0.15
    clean, noisy = flipped(share)
    states, p = all_states(strong().machine_), exact.visible_distribution(strong().machine_)
    wrong = (noisy[:, None] != states).sum(axis=(2, 3))
    joint = np.asarray(p) * share**wrong * (1.0 - share) ** (6 - wrong)
    mean = np.tensordot(joint / joint.sum(axis=1, keepdims=True), states, axes=1)
    denoised = strong().denoise(noisy, share, n_gibbs=500, random_state=0)
    # Chains of this machine are slow to mix.
    assert np.sqrt(((denoised - mean) ** 2).mean()) < 0.05
    n_wrong, n_noisy, n_least = (
        (answer != clean).sum() for answer in (denoised > 0.5, noisy, mean > 0.5)
    )
    assert n_wrong < 0.8 * n_noisy
    assert n_wrong < 1.02 * n_least


# Draws


@pytest.mark.parametrize("noise", [None, 0.1], ids=["known", "flipped"])
def test_posterior_samples_follow_the_posterior(noise):
    rows = np.stack([SEEN, 1.0 - SEEN])
    drawn = model().posterior_samples(
        rows, MASK, noise=noise, n_samples=4000, n_gibbs=50, random_state=0
    )
    assert drawn.shape == (2, 4000, *VISIBLE)
    p = posterior(model().machine_, noise)
    assert_distributed(drawn[0], p)
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(drawn[1], p)
    if noise is None:
        assert (drawn[:, :, MASK] == rows[:, None, MASK]).all()


def test_samples_are_posterior_samples_of_nothing():
    nothing = np.full((4, *VISIBLE), np.nan)
    options = {"n_gibbs": 50, "random_state": 0}
    drawn = model().posterior_samples(nothing, n_samples=1000, **options)
    sampled = model().sample(4000, **options)
    assert_array_equal(drawn.reshape(4000, *VISIBLE), sampled)
    assert_distributed(sampled, exact.visible_distribution(model().machine_))
    hidden = model().posterior_samples(
        np.zeros((4, 6)), np.zeros(6, bool), n_samples=1000, **options
    )
    assert_array_equal(hidden, drawn)


def test_progress_is_shown_on_stderr(capsys):
    loud = copy.copy(model()).set_params(verbose=1)
    rows = binary_rows(CHAINS + 1)
    for use, total in (
        (lambda: loud.complete(rows, MASK, n_gibbs=N_GIBBS), CHAINS + 1),
        (lambda: loud.denoise(rows, 0.1, n_gibbs=N_GIBBS), CHAINS + 1),
        (lambda: loud.posterior_samples(rows[:8], MASK, n_samples=2, n_gibbs=N_GIBBS), 8),
        (lambda: loud.sample(16, N_GIBBS), 16),
    ):
        use()
        shown = capsys.readouterr()
        assert f"{total}/{total} samples" in shown.err
        assert not shown.out
    DRAWS["complete"]()
    assert capsys.readouterr() == ("", "")


# Likelihood


def test_scores_are_exact_log_probabilities_of_a_small_machine():
    states = all_states(model().machine_)
    scores = model().score_samples(states)
    assert_allclose(scores, exact.log_probability(model().machine_, states), rtol=1e-10)
    assert_allclose(np.exp(scores).sum(), 1.0, rtol=1e-10)
    assert_allclose(model().score(states[:5]), scores[:5].mean(), rtol=1e-12)
    found = model().log_partition()
    assert found.value == found.reverse == found.forward
    assert found.interval == (found.value, found.value)
    assert found.standard_error == 0.0
    assert found.effective_sample_size == np.inf


def test_scores_of_gaussian_units_are_exact_densities():
    rows = np.random.default_rng(0).normal(size=(5, *VISIBLE))
    expected = exact.log_probability(gaussian().machine_, rows)
    assert_allclose(gaussian().score_samples(rows), expected, rtol=1e-10)


def test_single_precision_scores_are_close():
    states = all_states(model().machine_)
    assert_allclose(single().score_samples(states), model().score_samples(states), atol=1e-4)


def test_scores_belong_to_the_machine_as_it_is():
    rows = binary_rows(20)
    estimator = MPORBM((2, 2), rank=2, n_iter=0, random_state=0).fit(rows)

    def assert_exact(estimator):
        scores = estimator.score_samples(rows)
        assert_allclose(scores, exact.log_probability(estimator.machine_, rows), rtol=1e-10)
        return estimator.score(rows)

    first = assert_exact(estimator)
    assert assert_exact(estimator.fit(1.0 - 0.5 * rows)) != first
    wide = around(tiny_machine(seed=1))
    before = assert_exact(wide)
    assert assert_exact(wide.compress(rank=1)) != before
    assert assert_exact(wide) == before


def test_a_file_keeps_base_rates_and_scores(tmp_path):
    rows = binary_rows(20) * np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    fitted = MPORBM((2, 2), rank=2, n_iter=0, init="random", random_state=0).fit(rows)
    rate = (rows.sum(axis=0) + 0.5) / (len(rows) + 1.0)
    assert_allclose(expit(fitted.base_bias_), rate, rtol=1e-12)
    assert not fitted.visible_bias_.any()
    fitted.save(tmp_path / "model")
    loaded = mporbm.load(tmp_path / "model")
    assert_array_equal(loaded.base_bias_, fitted.base_bias_)
    assert_array_equal(loaded.score_samples(rows), fitted.score_samples(rows))
    assert_array_equal(fitted.compress().base_bias_, fitted.base_bias_)
    # An estimator that has never seen data has none.
    model().save(tmp_path / "model")
    assert not hasattr(mporbm.load(tmp_path / "model"), "base_bias_")


N_COPIES = 6


@functools.cache
def copies():
    """Tiny machines side by side, 24 hidden units together, whose log Z is the sum of theirs."""
    tiny = tiny_machine("dense")
    w = np.zeros((N_COPIES, *VISIBLE, N_COPIES, *HIDDEN))
    for k in range(N_COPIES):
        w[k, :, :, k] = np.asarray(tiny.coupling.to_matrix()).reshape(*VISIBLE, *HIDDEN)
    b, c = (
        np.broadcast_to(bias, (N_COPIES, *bias.shape))
        for bias in (tiny.visible_bias, tiny.hidden_bias)
    )
    return around(Machine(DenseCoupling(w, 3), b, c)), N_COPIES * float(exact.log_partition(tiny))


SIZES = {"n_chains": 100, "n_temperatures": 50}


def test_log_z_of_a_larger_machine_is_estimated_and_always_the_same():
    estimator, value = copies()
    found = estimator.log_partition(**SIZES)
    assert abs(found.value - value) < 4.0 * found.standard_error
    assert abs(found.reverse - value) < 4.0 * found.standard_error
    assert 0.0 < found.standard_error < 0.2
    assert 1.0 <= found.effective_sample_size <= SIZES["n_chains"]
    assert found == estimator.log_partition("ais", **SIZES)
    other = estimator.log_partition(random_state=1, **SIZES)
    assert other != found
    assert other == estimator.log_partition(random_state=1, **SIZES)


def test_few_effective_chains_warn():
    estimator, _ = copies()
    with pytest.warns(LikelihoodWarning, match=r"effective sample size of \d\.\d of 100 chains"):
        estimator.log_partition(n_chains=100, n_temperatures=1)


def test_scores_of_a_larger_machine_are_always_the_same(monkeypatch):
    estimator, value = copies()
    rows = np.random.default_rng(0).integers(0, 2, (5, N_COPIES, *VISIBLE))
    found = estimator.log_partition(**SIZES)
    calls = []

    def annealed(key, machine, base, **sizes):
        calls.append(sizes)
        return log_partition(key, machine, base, **SIZES)

    monkeypatch.setattr("mporbm.estimators.likelihood.log_partition", annealed)
    scores = estimator.score_samples(rows)
    assert_allclose(scores, -estimator.free_energy(rows) - found.value, rtol=1e-12)
    assert_allclose(scores, -estimator.free_energy(rows) - value, atol=1.0)
    assert_array_equal(estimator.score_samples(rows), scores)
    # Once for all samples and calls.
    assert len(calls) == 1
    assert_array_equal(around(estimator.machine_).score_samples(rows), scores)
    assert len(calls) == 2


def test_annealing_starts_at_the_base_rates_of_the_data(monkeypatch):
    rows = binary_rows(20)
    fitted = MPORBM((2, 2), rank=2, n_iter=0, init="random", random_state=0).fit(rows)
    bases = []

    def recorded(key, machine, base, **sizes):
        bases.append(base)
        return LogPartition(0.0, 0.0, 100.0, 0.0)

    monkeypatch.setattr("mporbm.estimators.likelihood.log_partition", recorded)
    fitted.log_partition("ais")
    assert_array_equal(bases[0], fitted.base_bias_)


def test_a_search_takes_the_likelihood_as_its_score():
    rng = np.random.default_rng(0)
    rows = rng.random((40, *VISIBLE)) < np.array([[0.05, 0.9], [0.8, 0.1], [0.95, 0.3]])
    search = GridSearchCV(
        MPORBM((2, 2), rank=2, n_iter=0, random_state=0),
        {"init": ["random", "data"]},
        cv=2,
        error_score="raise",
    ).fit(rows)
    assert search.best_params_ == {"init": "data"}
    random, data = search.cv_results_["mean_test_score"]
    assert data > random
    # Without weights every state is as likely as any other.
    assert_allclose(random, -6.0 * np.log(2.0), rtol=0.05)
    assert_allclose(search.score(rows), search.best_estimator_.score_samples(rows).mean())


def test_infinite_values_are_ignored_where_they_are_unknown():
    rows = binary_rows(5)
    wild = np.where(MASK, rows, np.inf)
    options = {"n_gibbs": N_GIBBS, "random_state": 0}
    assert_array_equal(
        model().complete(wild, MASK, **options), model().complete(rows, MASK, **options)
    )


def test_spread_of_gaussian_units_far_from_zero():
    """In single precision, where squares of the values would leave nothing of the variance."""
    near = gaussian().machine_
    far = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), near)
    shift = jnp.full(VISIBLE, 5000.0, jnp.float32)
    # The hidden bias undoes what the shift does to the hidden fields.
    moved = eqx.tree_at(
        lambda m: (m.visible_bias, m.hidden_bias),
        far,
        (far.visible_bias + shift, far.hidden_bias - far.coupling.apply_transpose(shift)),
    )
    model_far = copy.copy(gaussian())
    model_far.machine_ = moved
    rows = np.zeros((200, *VISIBLE), np.float32)
    nothing = np.zeros(VISIBLE, bool)
    options = {"n_gibbs": 50, "return_std": True, "random_state": 0}
    _, expected = gaussian().complete(rows, nothing, **options)
    _, found = model_far.complete(rows, nothing, **options)
    assert_allclose(found.mean(axis=0), expected.mean(axis=0), rtol=0.15)


@pytest.mark.parametrize("noise", [1e-19, 1e-46])
def test_the_least_noise_is_none(noise):
    rows = np.full((3, *VISIBLE), 0.5, np.float32)
    for estimator in (model(), gaussian()):
        cleaned = estimator.denoise(rows, noise, n_gibbs=N_GIBBS)
        assert np.isfinite(cleaned).all()


@pytest.mark.slow
def test_a_loaded_model_draws_the_same(tmp_path):
    """Also without a random_state: the seed that was drawn is kept."""
    fitted = MPORBM(HIDDEN, rank=2, n_iter=1).fit(binary_rows(20))
    fitted.save(tmp_path / "model.safetensors")
    again = mporbm.load(tmp_path / "model.safetensors")
    for estimator in (fitted, again):
        estimator.set_params(feature="state")
    assert_array_equal(again.transform(binary_rows(20)), fitted.transform(binary_rows(20)))
