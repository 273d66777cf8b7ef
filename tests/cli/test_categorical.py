"""Commands with groups of units in either layer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mporbm
from mporbm import MPORBM, Alphabet
from mporbm.machine import Categorical

NUMBERS = np.random.default_rng(0).integers(3, size=(20, 4))
STATES = np.eye(3)[NUMBERS]
OPTIONS = ["--hidden-shape", "2,2", "--rank", 2, "--visible-units", "categorical"]
OPTIONS += ["--hidden-units", "categorical", "--n-iter", 3, "--batch-size", 10, "--seed", 0]


@pytest.fixture
def model(ok, tmp_path):
    np.save(tmp_path / "states.npy", STATES)
    ok("fit", tmp_path / "states.npy", "-o", tmp_path / "m.safetensors", *OPTIONS)
    return tmp_path / "m.safetensors"


def test_categorical_hidden_units_are_asked_for_by_name(ok, model, tmp_path):
    estimator = mporbm.load(model)
    assert type(estimator.machine_.hidden_units) is Categorical
    data, out = tmp_path / "states.npy", tmp_path / "out.npy"
    ok("transform", model, data, "-o", out, "--output", "tensor")
    assert_allclose(np.load(out).sum(axis=2), np.ones((20, 2)), rtol=1e-5)
    ok("sample", model, "-o", out, "-n", 5, "--n-gibbs", 10, "--force")
    assert_array_equal(np.load(out).sum(axis=2), np.ones((5, 4)))
    gaps = STATES.copy()
    gaps[:, 2] = np.nan
    np.save(tmp_path / "gaps.npy", gaps)
    ok("complete", model, tmp_path / "gaps.npy", "-o", out, "--n-gibbs", 10, "--force")
    filled = np.load(out)
    assert_array_equal(filled[:, [0, 1, 3]], STATES[:, [0, 1, 3]])
    assert_allclose(filled[:, 2].sum(axis=1), np.ones(20), rtol=1e-5)
    facts = ok("score", model, data)
    assert_allclose(facts["log_probability"], estimator.score(STATES), rtol=1e-4)


def test_models_with_an_alphabet_take_and_give_symbols(ok, tmp_path):
    coding = Alphabet().fit(NUMBERS)
    options = {"visible_units": "categorical", "n_iter": 3, "random_state": 0}
    estimator = MPORBM((2, 2), rank=2, **options).fit(coding.transform(NUMBERS))
    estimator.coding_ = coding
    path, data, out = tmp_path / "m.safetensors", tmp_path / "data.npy", tmp_path / "out.npy"
    estimator.save(path)
    np.save(data, NUMBERS)
    ok("transform", path, data, "-o", out)
    assert_allclose(np.load(out), estimator.transform(STATES), rtol=1e-5)
    ok("sample", path, "-o", out, "-n", 5, "--n-gibbs", 10, "--force")
    drawn = np.load(out)
    assert drawn.dtype == NUMBERS.dtype
    assert drawn.shape == (5, 4)
    assert set(np.unique(drawn)) <= {0, 1, 2}
