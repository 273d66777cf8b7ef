"""Standardisation: as a transformer, and by estimators of Gaussian units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import StandardScaler

import mporbm
from mporbm import MPORBM, RBM, Standardize

X = np.random.default_rng(0).normal(100.0, [1.0, 5.0, 20.0], (60, 4, 3))
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


@pytest.mark.parametrize("rows", [X, HOLES])
def test_units_are_scaled_as_by_scikit_learn(rows):
    ours, theirs = Standardize().fit(rows), StandardScaler().fit(rows.reshape(60, -1))
    flat = rows.reshape(60, -1)
    assert_allclose(ours.transform(rows).reshape(60, -1), theirs.transform(flat), atol=1e-9)
    assert_allclose(ours.inverse_transform(ours.transform(rows)), rows, rtol=1e-12)


@pytest.mark.parametrize(
    ("modes", "shared"), [((), (0, 1, 2)), ((-1,), (0, 1)), ((0,), (0, 2)), (None, (0,))]
)
def test_modes_share_a_scale(modes, shared):
    scaling = Standardize(modes).fit(HOLES)
    assert_allclose(
        scaling.mean_, np.broadcast_to(np.nanmean(HOLES, shared, keepdims=True), (1, 4, 3))[0]
    )
    expected = np.nanstd(HOLES, shared, keepdims=True)
    assert_allclose(scaling.scale_, np.broadcast_to(expected, (1, 4, 3))[0])


@pytest.mark.parametrize("constant", [0.1, 1e12 / 3.0, 0.0])
def test_constant_units_have_scale_1(constant):
    """Also where sums over many samples round."""
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    rows[:, 1] = constant
    assert Standardize().fit(rows).scale_[1] == 1.0


def test_infinite_values_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        Standardize().fit([[1.0, np.inf], [0.0, 1.0]])
    with pytest.raises(ValueError, match="squares are finite"):
        Standardize().fit([[1e160, 1.0], [-1e160, 1.0]])


def test_a_refusal_leaves_what_was_learnt():
    model = RBM(3, visible_units="gaussian", n_iter=2, random_state=0).fit(X)
    before = model.score(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(1e3 * X, sample_weight=[1.0])
    assert model.score(X) == before


def test_a_stream_that_begins_with_few_samples_warns():
    with pytest.warns(UserWarning, match="the first array of a stream, which has 3 samples"):
        RBM(3, visible_units="gaussian", n_iter=1).fit(lambda: iter([X[:3], X[3:]]))


def test_modes_that_samples_do_not_have_are_refused():
    with pytest.raises(ValueError, match=r"modes=\(2,\): expected integers from -2 to 1"):
        Standardize((2,)).fit(X)


def test_files_are_standardised_as_they_are_read(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    scaling = Standardize().fit(mapped)
    rows = scaling.transform(mapped)
    assert not isinstance(rows, np.ndarray)
    assert_allclose(np.asarray(rows[3:5]), scaling.transform(X)[3:5])


@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
def test_methods_speak_the_units_of_the_data(hidden):
    """The same machine learns from data in any units, and answers in them."""
    options = {"visible_units": "gaussian", "hidden_units": hidden, "n_iter": 5, "random_state": 0}
    one = MPORBM((2, 2), rank=2, **options).fit(X)
    stretch, shift = np.array([0.01, 3.0, 1000.0]), 5.0
    other = MPORBM((2, 2), rank=2, **options).fit(X * stretch + shift)
    near = {"rtol": 2e-3, "atol": 1e-3}

    def moved(rows):
        return rows * stretch + shift

    assert_allclose(one.transform(X), other.transform(moved(X)), **near)
    assert_allclose(moved(one.reconstruct(X)), other.reconstruct(moved(X)), **near)
    draws = [model.sample(7, n_gibbs=3, random_state=0) for model in (one, other)]
    assert_allclose(moved(draws[0]), draws[1], **near)
    answers = [
        model.complete(rows, return_std=True, n_gibbs=20, random_state=0)
        for model, rows in ((one, HOLES), (other, moved(HOLES)))
    ]
    assert_allclose(moved(answers[0][0]), answers[1][0], **near)
    assert_allclose(answers[0][1] * stretch, answers[1][1], **near)
    volume = 4.0 * np.log(stretch).sum()
    assert_allclose(one.free_energy(X) + volume, other.free_energy(moved(X)), rtol=1e-3, atol=1e-3)
    if hidden == "gaussian":
        assert_allclose(one.score_samples(HOLES)[0], _raw(one, HOLES[0]), rtol=1e-6)


def _raw(model, row):
    """The log-density of what was observed, from the covariance of the machine."""
    w, s = np.asarray(model.weight_matrix(), float), np.ravel(model.machine_.visible_units.variance)
    scale, mean = model.scaling_.scale_.ravel(), model.scaling_.mean_.ravel()
    covariance = np.linalg.inv(np.diag(1.0 / s.astype(float)) - w @ w.T) * np.outer(scale, scale)
    centre = mean + scale * s * np.ravel(model.visible_bias_)
    seen = ~np.isnan(row.ravel())
    part = covariance[np.ix_(seen, seen)]
    rest = row.ravel()[seen] - centre[seen]
    return -0.5 * (rest @ np.linalg.solve(part, rest) + np.linalg.slogdet(2 * np.pi * part)[1])


def test_a_file_keeps_the_scale(tmp_path):
    model = RBM(3, visible_units="gaussian", n_iter=3, random_state=0).fit(X)
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors")
    assert_allclose(again.score_samples(X), model.score_samples(X), rtol=1e-12)
    assert again.get_params() == model.get_params()


def test_data_far_from_standardised_warn():
    options = {"visible_units": "gaussian", "standardize": False, "n_iter": 0}
    with pytest.warns(UserWarning, match=r"standardize=False, got means up to 10\d"):
        RBM(3, **options).fit(X)


def test_what_two_gaussian_layers_cannot_be_asked_is_refused():
    model = MPORBM((2, 2), rank=2, visible_units="gaussian")
    with pytest.raises(ValueError, match="partial_fit: expected hidden_units='bernoulli'"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="scheme='two-site': expected 'aop'"):
        MPORBM((2, 2), visible_units="gaussian", scheme="two-site").fit(X)


def test_streams_learn_what_arrays_teach():
    options = {"visible_units": "gaussian", "n_iter": 20, "random_state": 0}
    rows = np.concatenate([X] * 4) + np.random.default_rng(2).normal(size=(240, 4, 3))
    whole = RBM(2, **options).fit(rows)
    stream = RBM(2, **options).fit(lambda: iter(np.array_split(rows, 3)))
    assert abs(whole.score(rows) - stream.score(rows)) < 0.02


@pytest.mark.parametrize("hidden", ["bernoulli", "gaussian"])
def test_noise_is_that_of_the_data(hidden, rng):
    """One noise on all units, whatever the scale of each, is found and cleaned away."""
    loadings = rng.normal(size=(3, 12)) * np.tile([1.0, 5.0, 20.0], 4)
    rows = (rng.normal(size=(3000, 3)) @ loadings + 0.1 * rng.normal(size=(3000, 12))) + 50.0
    options = {"visible_units": "gaussian", "n_iter": 15, "random_state": 0}
    model = RBM(3, hidden_units=hidden, **options).fit(rows)
    noisy = rows[:800] + 2.0 * rng.normal(size=(800, 12))
    if hidden == "gaussian":
        # Binary units leave much of the data to noise.
        assert abs(model.estimate_noise(noisy) - 2.0) < 0.2
    clean = model.denoise(noisy, 2.0, n_gibbs=50, random_state=0)
    before, after = (np.mean((found - rows[:800]) ** 2) for found in (noisy, clean))
    assert after < (0.5 if hidden == "gaussian" else 1.0) * before
    if hidden == "gaussian":
        covariance = np.cov(rows.T)
        gain = covariance @ np.linalg.inv(covariance + 4.0 * np.eye(12))
        wiener = rows.mean(axis=0) + (noisy - rows.mean(axis=0)) @ gain.T
        assert np.sqrt(np.mean((clean - wiener) ** 2)) < 0.2
