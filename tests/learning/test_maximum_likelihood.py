"""Factor models that are learnt, against finite differences, scikit-learn and planted ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

from machine.test_gaussian import VISIBLE, factor_model, joint
from mporbm import MPORBM, RBM
from mporbm.learning import Batch, ContrastiveDivergence, MaximumLikelihood, Simultaneous
from mporbm.learning.maximum_likelihood import (
    LEAST_VARIANCE,
    FactorModel,
    Moments,
    log_likelihood,
)
from mporbm.machine import exact, gaussian
from mporbm.precision import converted, double_precision
from mporbm.tensor import MPO

ROWS = np.random.default_rng(0).normal(size=(9, *VISIBLE))


def centred(machine):
    """The same machine in the gauge where hidden units have the mean 0, and another mean."""
    return FactorModel.of(machine).into(machine)


def penalty(machine):
    """What the least variance takes from the log-likelihood."""
    return 0.5 * LEAST_VARIANCE * float((1.0 / machine.visible_units.variance).sum())


def observed_log_density(machine, rows):
    """The mean log-probability of what is not NaN, by the joint normal distribution."""
    mean, covariance = joint(machine)
    found = []
    for row in rows.reshape(len(rows), -1):
        seen = ~np.isnan(row)
        own = multivariate_normal(mean[:6][seen], covariance[:6, :6][np.ix_(seen, seen)])
        found.append(own.logpdf(row[seen]))
    return np.mean(found)


@pytest.mark.parametrize("kind", ["dense", "kronecker", "cp", "mpo"])
def test_the_likelihood_is_the_exact_one(kind):
    machine = centred(factor_model(kind))
    found = log_likelihood(machine, Moments.of(Batch.equal(jnp.asarray(ROWS))))
    assert_allclose(found, observed_log_density(machine, ROWS) - penalty(machine), rtol=1e-10)


def moved(model, leaf, direction, by):
    leaves, tree = jax.tree.flatten(model)
    own = [x + by * direction if k == leaf else x for k, x in enumerate(leaves)]
    return jax.tree.unflatten(tree, own)


def slopes_agree(machine, rows, moments, rng):
    """Whether the gradient is that of what was observed, by finite differences."""
    model = FactorModel.of(machine)
    slope = eqx.filter_jit(jax.grad(lambda m: log_likelihood(m.into(machine), moments)))(model)
    agree = []
    for leaf, part in enumerate(jax.tree.leaves(slope)):
        direction = rng.normal(size=part.shape)

        def value(by, leaf=leaf, direction=direction):
            other = moved(model, leaf, direction, by).into(machine)
            return observed_log_density(other, rows) - penalty(other)

        numeric = (value(1e-4) - value(-1e-4)) / 2e-4
        agree.append(np.isclose((part * direction).sum(), numeric, rtol=1e-5, atol=1e-7))
    return all(agree)


@pytest.mark.parametrize("n", [9, 1], ids=["many", "few"])
def test_gradients_are_those_of_what_was_observed(n, rng):
    """Also where there are fewer samples than units; but not with means in place of NaN."""
    machine, share = centred(factor_model()), 1.0
    for _ in range(2):
        rows = np.where(rng.random((n, *VISIBLE)) < share, ROWS[:n], np.nan)
        moments = Moments.expected(machine, Batch.equal(jnp.asarray(rows)))
        assert slopes_agree(machine, rows, moments, rng)
        share = 0.6
    filled = gaussian.given(machine, jnp.asarray(rows), jnp.asarray(~np.isnan(rows))).visible_mean
    imputed = Batch.equal(jnp.where(jnp.isnan(rows), filled, rows))
    assert not slopes_agree(machine, rows, Moments.of(imputed), rng)


def test_holes_do_not_lead_astray(rng):
    """With a third of the values missing the likelihood of complete samples is nearly the same."""
    loadings = rng.normal(size=(12, 2))
    rows = rng.normal(size=(800, 2)) @ loadings.T + 0.5 * rng.normal(size=(800, 12)) + 7.0
    holes = np.where(rng.random(rows.shape) < 1 / 3, np.nan, rows)
    options = {"visible_units": "gaussian", "n_iter": 30, "random_state": 0}
    whole, part = (RBM(2, **options).fit(X) for X in (rows, holes))
    assert abs(whole.score(rows) - part.score(rows)) < 0.1
    # What was observed is scored by the closed form, features are posterior means.
    some = holes[:20]
    density = part.score_samples(some)
    states = part.scaling_.coded(some.reshape(-1, 12))
    with double_precision():
        machine = converted(part.machine_, jnp.float64)
        found = gaussian.given(machine, jnp.asarray(states), ~jnp.isnan(states))
        expected = found.log_density - exact.log_partition(machine)
    known = ~np.isnan(some)
    expected = np.asarray(expected) - (known * np.log(part.scaling_.scale_)).sum(axis=1)
    assert_allclose(density, expected, rtol=1e-8)
    assert_allclose(part.transform(some), found.hidden, rtol=1e-6, atol=1e-9)


def test_weights_without_a_distribution_shrink_until_there_is_one(key):
    algorithm = MaximumLikelihood(Simultaneous(), ContrastiveDivergence())
    start = algorithm.init(key, factor_model(share=1.5), 1).machine
    assert_allclose(start.coupling.to_matrix(), factor_model(share=0.5).coupling.to_matrix())
    kept = algorithm.init(key, factor_model(share=0.9), 1).machine
    assert_allclose(kept.coupling.to_matrix(), factor_model(share=0.9).coupling.to_matrix())


def test_rounding_and_lower_ranks_leave_a_distribution(rng):
    """Data of two factors without noise, whose variances differ by millions, and a coarse rank."""
    rows = 1e3 * rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6))
    with pytest.warns(UserWarning, match="standardize=False"):
        model = RBM(3, visible_units="gaussian", n_iter=30, standardize=False).fit(rows)
    assert np.isfinite(model.score(rows))
    rows = (rng.normal(size=(500, 3)) @ rng.normal(size=(3, 30))).reshape(-1, 6, 5)
    model = MPORBM((6, 5), rank=8, visible_units="gaussian", n_iter=5, random_state=0).fit(rows)
    smaller = model.compress(rank=2)
    assert np.isfinite(smaller.score(rows))
    assert np.isfinite(smaller.sample(3)).all()


def test_what_was_learnt_has_another_shape(rng):
    rows = rng.normal(size=(100, 6)) * [1, 10, 100, 1, 1, 1] + 50.0
    dense = RBM(4, visible_units="gaussian", n_iter=5, random_state=0).fit(rows)
    tensor = MPORBM.from_rbm(dense, visible_shape=(3, 2), hidden_shape=(2, 2))
    assert_allclose(tensor.score(rows), dense.score(rows), rtol=1e-6)


def test_nothing_that_does_not_count_counts(rng):
    """Samples of weight 0, and the range of hidden fields, which is no sign of divergence."""
    rows = rng.normal(size=(100, 8))
    far, weight = np.concatenate([1e7 * rows[:5], rows]), np.repeat([0.0, 1.0], [5, 100])
    options = {"visible_units": "gaussian", "n_iter": 10, "random_state": 0}
    with_far = RBM(2, **options).fit(far, sample_weight=weight)
    assert abs(with_far.score(rows) - RBM(2, **options).fit(rows).score(rows)) < 0.05
    alike = rng.normal(size=(300, 1)) + 1e-3 * rng.normal(size=(300, 30))
    assert not RBM(3, **{**options, "n_iter": 30}).fit(alike).diverged_


def test_noise_is_found_whatever_the_unit_of_measurement(rng):
    clean = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 8))
    noisy = clean + 0.3 * rng.normal(size=clean.shape)
    for unit in (1e-8, 1.0, 1e12):
        model = RBM(3, visible_units="gaussian", n_iter=10, random_state=0).fit(unit * clean)
        assert 0.25 < model.estimate_noise(unit * noisy) / unit < 0.35


def test_ranks_are_those_of_the_number_of_samples(rng):
    rows = rng.normal(size=(2000, 6, 5))
    model = MPORBM(visible_units="gaussian", n_iter=1, random_state=0).fit(rows)
    assert model.ranks_ == (20,)


def test_incomplete_validation_samples_can_stop(rng):
    rows = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 12))
    held = np.where(rng.random((50, 12)) < 0.2, np.nan, rows[:50])
    options = {"visible_units": "gaussian", "n_iter": 8, "random_state": 0}
    model = RBM(2, early_stopping=True, **options).fit(rows[50:], X_val=held)
    assert np.isfinite([entry["validation_score"] for entry in model.history_]).all()


def test_dense_machines_are_factor_analysis(rng):
    """The same family of distributions: the same likelihood on what is learnt from."""
    loadings = rng.normal(size=(12, 3))
    rows = rng.normal(size=(400, 3)) @ loadings.T + rng.normal(size=(400, 12)) * 0.7 + 3.0
    ours = RBM(3, visible_units="gaussian", random_state=0).fit(rows)
    theirs = FactorAnalysis(3, tol=1e-8, max_iter=5000, svd_method="lapack").fit(rows)
    assert_allclose(ours.score(rows), theirs.score(rows), atol=2e-3)
    ours_holes = rows.copy()
    ours_holes[:, :4] = np.nan
    c = theirs.get_covariance()
    gain = c[:4, 4:] @ np.linalg.inv(c[4:, 4:])
    expected = theirs.mean_[:4] + (rows[:, 4:] - theirs.mean_[4:]) @ gain.T
    found, std = ours.complete(ours_holes, return_std=True)
    assert_allclose(found[:, :4], expected, atol=0.05)
    spread = np.sqrt(np.diag(c[:4, :4] - gain @ c[4:, :4]))
    assert_allclose(std[:, :4], np.broadcast_to(spread, (400, 4)), rtol=0.02)
    assert not std[:, 4:].any()


def test_planted_variances_are_found(rng):
    """By an MPO of the planted ranks: twenty units, of which two factors tell."""
    shape = (5, 4)
    cores = rng.normal(size=(1, 5, 2, 2)), rng.normal(size=(2, 4, 1, 1))
    weights = np.array(MPO(cores).to_matrix())
    s = rng.uniform(0.3, 2.0, 20)
    strongest = np.linalg.svd(np.sqrt(s)[:, None] * weights)[1][0]
    weights *= 0.95 / strongest
    covariance = np.linalg.inv(np.diag(1.0 / s) - weights @ weights.T)
    rows = rng.multivariate_normal(rng.normal(size=20), covariance, 5000).reshape(-1, *shape)
    model = MPORBM((2, 1), rank=2, visible_units="gaussian", n_iter=30, random_state=0).fit(rows)
    learnt = model.machine_.visible_units.variance * model.scaling_.scale_**2
    assert_allclose(np.ravel(learnt), s, rtol=0.1)
    exactly = multivariate_normal(rows.reshape(-1, 20).mean(axis=0), covariance)
    assert abs(model.score(rows) - exactly.logpdf(rows.reshape(-1, 20)).mean()) < 0.02
