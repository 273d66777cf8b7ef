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
from mporbm.learning import Batch
from mporbm.learning.maximum_likelihood import LEAST_VARIANCE, FactorModel, log_likelihood
from mporbm.tensor import MPO

ROWS = np.random.default_rng(0).normal(size=(9, *VISIBLE))


def centred(machine):
    """The same machine in the gauge where hidden units have the mean 0, and another mean."""
    return FactorModel.of(machine).into(machine)


def penalty(machine, known):
    """What the least variance takes from the log-likelihood."""
    return 0.5 * LEAST_VARIANCE * np.where(known, 1.0 / machine.visible_units.variance, 0.0)


@pytest.mark.parametrize("kind", ["dense", "kronecker", "cp", "mpo"])
@pytest.mark.parametrize("complete", [True, False])
def test_the_likelihood_is_the_exact_one(kind, complete, rng):
    machine = centred(factor_model(kind))
    rows = np.where(complete | (rng.random(ROWS.shape) < 0.7), ROWS, np.nan)
    mean, covariance = joint(machine)
    expected = []
    for row in rows.reshape(len(rows), -1):
        seen = ~np.isnan(row)
        own = multivariate_normal(mean[:6][seen], covariance[:6, :6][np.ix_(seen, seen)])
        expected.append(own.logpdf(row[seen]) - penalty(machine, seen.reshape(VISIBLE)).sum())
    found = log_likelihood(machine, Batch.equal(jnp.asarray(rows)), complete)
    assert_allclose(found, np.mean(expected), rtol=1e-10)


@pytest.mark.parametrize("complete", [True, False])
def test_its_gradient_is_that_of_finite_differences(complete, rng):
    machine = centred(factor_model())
    rows = jnp.asarray(np.where(complete | (rng.random(ROWS.shape) < 0.7), ROWS, np.nan))
    model = FactorModel.of(machine)

    @eqx.filter_jit
    def value(model):
        return log_likelihood(model.into(machine), Batch.equal(rows), complete)

    slope = jax.grad(value)(model)
    for leaf in range(len(jax.tree.leaves(model))):
        leaves, tree = jax.tree.flatten(model)
        direction = rng.normal(size=leaves[leaf].shape)

        def moved(by, leaf=leaf, direction=direction, leaves=leaves, tree=tree):
            own = [x + by * direction if k == leaf else x for k, x in enumerate(leaves)]
            return float(value(jax.tree.unflatten(tree, own)))

        numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5
        assert_allclose((jax.tree.leaves(slope)[leaf] * direction).sum(), numeric, rtol=1e-5)


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
