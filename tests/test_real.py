"""What real-valued tensor data are compared with, against closed forms and scikit-learn."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import FactorAnalysis

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmarks."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.fixture
def methods(load):
    return load("real_methods")


def related(rng, n, size=8, rank=2):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, size)) + rng.normal(size=(n, size))


def test_gaussian_models_are_those_of_scikit_learn(methods, rng):
    train, test = np.split(related(rng, 300), [250])
    for estimate, oracle in (
        (methods.shrunk, LedoitWolf()),
        (methods.factors(2), FactorAnalysis(2, max_iter=3000, tol=1e-8, svd_method="lapack")),
    ):
        found = methods.fit_gaussian(train, estimate).log_density(test).mean()
        assert found == pytest.approx(oracle.fit(train).score(test), abs=2e-3)
    alone = methods.fit_gaussian(train, methods.independent).covariance
    assert_allclose(alone, np.diag(train.var(axis=0)))


def test_holes_are_filled_by_conditional_means(methods, rng):
    samples = related(rng, 20)
    model = methods.fit_gaussian(samples, methods.factors(2))
    holes = rng.random(samples.shape) < 0.3
    holes[0], holes[1] = True, False
    filled, deviation = model.complete(np.where(holes, np.nan, samples))
    assert_allclose(filled[0], model.mean)
    assert_allclose(deviation[0] ** 2, np.diag(model.covariance))
    assert_allclose(filled[~holes], samples[~holes])
    precision = np.linalg.inv(model.covariance)
    for row, out, width, hole in zip(samples, filled, deviation, holes, strict=True):
        # By blocks of the inverse instead of those of the covariance.
        inner = np.linalg.inv(precision[np.ix_(hole, hole)])
        shift = inner @ precision[np.ix_(hole, ~hole)] @ (row - model.mean)[~hole]
        assert_allclose(out[hole], model.mean[hole] - shift)
        assert_allclose(width[hole] ** 2, np.diag(inner))


def test_holes_in_training_hardly_matter_with_many_samples(methods, rng):
    samples = related(rng, 4000)
    whole = methods.fit_gaussian(samples, methods.factors(2))
    holes = rng.random(samples.shape) < 0.3
    found = methods.fit_gaussian(np.where(holes, np.nan, samples), methods.factors(2))
    scale = np.diag(whole.covariance).max()
    assert np.abs(found.covariance - whole.covariance).max() < 0.1 * scale
    assert np.abs(found.mean - whole.mean).max() < 0.1


def test_low_rank_matrices_are_completed(methods, rng):
    matrix = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 300))
    holes = rng.random(matrix.shape) < 0.2
    shown = np.where(holes, np.nan, matrix)
    found = methods.soft_impute(shown, 0.1, n_iter=1000)
    assert np.sqrt(np.mean((found - matrix)[holes] ** 2)) < 0.02
    train, test = np.split(matrix.T, [250])
    hidden = holes.T[250:]
    filled = methods.by_components(2)(train, np.where(hidden, np.nan, test), 0)
    assert_allclose(filled, test, atol=1e-8)


def test_the_method_that_is_better_is_chosen(methods, rng):
    samples = related(rng, 200)
    holes = rng.random((50, 8)) < 0.2
    test = np.where(holes, np.nan, samples[:50])
    kinds = [methods.by_gaussian(methods.independent), methods.by_gaussian(methods.factors(2))]
    found, _ = methods.chosen(kinds)(samples[50:], test, 0)
    assert_allclose(found, kinds[1](samples[50:], test, 0)[0])


def test_patches_of_disjoint_folds_do_not_overlap(load):
    data = load("real_data")
    places = np.argwhere(np.ones((40, 30)))
    pixels = data.Pixels(np.zeros((len(places), 1)), np.zeros(len(places)), places)
    tested = []
    for train, test in data.pixel_folds(pixels, 4, disjoint=True):
        distances = np.abs(places[train][:, None] - places[test][None]).max(axis=2)
        assert distances.min() == 2 * data.REACH + 1
        tested += test.tolist()
    assert sorted(tested) == list(range(len(places)))
    for train, test in data.pixel_folds(pixels, 4, disjoint=False):
        assert 4 * len(train) == len(train) + len(test) == len(places)
        assert not {*train} & {*test}


def test_scores_are_a_table(load):
    module = load("real_scores")
    scores = module.Scores()

    def refused():
        raise ValueError("no holes,\n please")

    for value in (1.0, 3.0):
        scores.add("one", lambda value=value: {"rmse": value})
        scores.add("other", refused)
    assert scores["one"]["rmse"] == [1.0, 3.0]
    assert scores.skipped == {"other": "no holes, please"}
    lines = module.table("task", scores).splitlines()
    assert lines[0] == "| task | rmse | seconds |"
    assert lines[2].startswith("| one | 2.000 ± 12.706 | ")
    assert lines[3] == "| other | skipped: no holes, please |"
