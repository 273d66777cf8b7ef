"""What the estimators give, against NumPy, enumeration and each other."""

import copy
import functools
import itertools
import pickle
import warnings

import numpy as np
import pandas
import pytest
from scipy.special import expit, logit, logsumexp
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.neural_network import BernoulliRBM

import mporbm
from mporbm import MPORBM, RBM, MvRBM, TvRBM
from mporbm.estimators.mporbm import count_weights
from mporbm.learning.start import automatic_rank
from mporbm.machine import exact
from mporbm.tensor import linear_index, max_ranks
from mporbm.training.safetensors_io import FileFormatError
from reproduction.settings import PAPER

VISIBLE, HIDDEN = (4, 3), (2, 2)
X = np.random.default_rng(0).random((20, *VISIBLE)) < np.linspace(0.1, 0.9, 12).reshape(VISIBLE)
FLAT = X.reshape(len(X), -1)
REAL = np.random.default_rng(1).normal(size=X.shape)
TRAINING = {"n_iter": 2, "batch_size": 10, "learning_rate": 0.1, "random_state": 0}
N_GIBBS = 30

# One shape for all, as every new one compiles; together they see most of the options.
AS_THEY_ARE = {"visible_units": "gaussian", "hidden_units": "bernoulli", "standardize": False}
ESTIMATORS = {
    "RBM": RBM(HIDDEN, negative_phase="pcd", **TRAINING),
    "MvRBM": MvRBM(HIDDEN, scheme="su", **TRAINING),
    "TvRBM": TvRBM(4, rank=2, scheme="su", negative_phase="fpcd", **TRAINING),
    "MPORBM": MPORBM(HIDDEN, rank=2, **TRAINING),
    "periodic": MPORBM(
        HIDDEN, rank=2, boundary="periodic", scheme="su", negative_phase="pt", **TRAINING
    ),
    "two-site": MPORBM(HIDDEN, rank=2, scheme="two-site", negative_phase="pcd", **TRAINING),
    "gaussian": MPORBM(HIDDEN, rank=2, **AS_THEY_ARE, **TRAINING),
}
FOUR = ("RBM", "MvRBM", "TvRBM", "MPORBM")
every = pytest.mark.parametrize("name", ESTIMATORS)
each_class = pytest.mark.parametrize("name", FOUR)
trains = pytest.mark.parametrize("name", ["MPORBM", "periodic"])


def data(name):
    return REAL if name == "gaussian" else X


@functools.cache
def fitted(name):
    """A fitted estimator that tests share, and so must not change."""
    return clone(ESTIMATORS[name]).fit(data(name))


def variant(name, **parameters):
    """A copy of a fitted estimator with other parameters."""
    return copy.copy(fitted(name)).set_params(**parameters)


def start(estimator, samples=X):
    """An estimator that has not learnt anything yet."""
    return clone(estimator).set_params(n_iter=0).fit(samples)


def field(model, samples):
    flat = samples.reshape(len(samples), -1)
    return flat @ model.weight_matrix() + model.hidden_bias_.ravel()


def relative_error(model, weights):
    return np.linalg.norm(model.weight_matrix() - weights) / np.linalg.norm(weights)


# Input


@each_class
def test_tensors_and_flat_rows_give_the_same_model(name):
    model = fitted(name)
    flat = clone(model).set_params(visible_shape=VISIBLE).fit(FLAT)
    np.testing.assert_array_equal(model.weight_matrix(), flat.weight_matrix())
    np.testing.assert_array_equal(model.visible_bias_, flat.visible_bias_)
    for samples in (X, FLAT):
        np.testing.assert_array_equal(model.transform(X), flat.transform(samples))
        np.testing.assert_array_equal(model.score_samples(X), model.score_samples(samples))


def test_types_of_samples_do_not_matter():
    model = fitted("MPORBM")
    for samples in (X.astype(np.uint8), X.astype(np.float32), X.tolist()):
        np.testing.assert_array_equal(model.transform(X), model.transform(samples))


def test_visible_shape_is_inferred():
    assert fitted("MPORBM").visible_shape_ == VISIBLE
    assert start(MPORBM(), FLAT).visible_shape_ == (FLAT.shape[1],)


def test_hidden_shape_is_that_of_the_samples_if_these_are_small():
    assert start(MPORBM()).hidden_bias_.shape == X.shape[1:]
    assert start(RBM()).hidden_bias_.shape == X.shape[1:]
    assert start(TvRBM()).hidden_bias_.shape == (X[0].size,)
    large = np.zeros((2, 40, 40, 10), bool)
    shape = MPORBM(rank=1, n_iter=0).fit(large).hidden_bias_.shape
    assert shape == (16, 16, 4)


# Features


@every
def test_transform_is_the_formula(name):
    expected = field(fitted(name), data(name))
    np.testing.assert_allclose(
        variant(name, feature="field").transform(data(name)), expected, atol=1e-12
    )
    np.testing.assert_allclose(fitted(name).transform(data(name)), expit(expected), atol=1e-12)


def test_states_are_drawn_with_the_probability():
    n_draws = 4096
    samples = np.repeat(X[:1], n_draws, axis=0)
    states = variant("MPORBM", feature="state").transform(samples)
    assert set(np.unique(states)) == {0.0, 1.0}
    p = fitted("MPORBM").transform(X[:1])[0]
    standard_error = np.sqrt(p * (1.0 - p) / n_draws)
    assert (np.abs(states.mean(axis=0) - p) < 5.0 * standard_error).all()


@each_class
def test_tensor_output_has_the_hidden_shape(name):
    model = variant(name, output="tensor")
    features = model.transform(X)
    assert features.shape == (len(X), *model.hidden_bias_.shape)
    np.testing.assert_array_equal(features.reshape(len(X), -1), fitted(name).transform(X))


# Parameters


@trains
def test_weight_matrix_is_the_contraction_of_the_cores(name):
    model = fitted(name)
    tensor = np.einsum("aijb,bkla->ikjl", *model.cores_)
    shape = model.weight_matrix().shape
    np.testing.assert_allclose(model.weight_matrix(), tensor.reshape(shape), atol=1e-12)
    np.testing.assert_allclose(
        model.weight_matrix(order="F"), tensor.reshape(shape, order="F"), atol=1e-12
    )


@each_class
def test_fortran_order_is_the_order_of_the_paper(name):
    model = fitted(name)
    c, f = model.weight_matrix(), model.weight_matrix(order="F")
    hidden = model.hidden_bias_.shape
    for i, j in itertools.product(np.ndindex(VISIBLE), np.ndindex(hidden)):
        entry = f[linear_index(i, VISIBLE, order="F"), linear_index(j, hidden, order="F")]
        assert entry == c[linear_index(i, VISIBLE), linear_index(j, hidden)]


@pytest.mark.parametrize(
    ("estimator", "n_parameters"),
    [
        (RBM((10, 10)), 28 * 28 * 10 * 10),
        (MvRBM((10, 10)), 2 * 28 * 10),
        (TvRBM(100, rank=40), (28 + 28 + 100) * 40),
        (MPORBM((10, 10), rank=40), 2 * 28 * 10 * 40),
    ],
    ids=FOUR,
)
def test_weights_are_counted_as_in_the_paper(estimator, n_parameters, rng):
    images = rng.random((50, 28, 28)) < 0.5
    assert start(estimator, images).n_parameters_ == n_parameters


def test_a_single_rank_is_a_cap():
    sizes = np.multiply(VISIBLE, HIDDEN)
    for boundary in ("open", "periodic"):
        model = start(MPORBM(HIDDEN, rank=1000, boundary=boundary))
        assert model.ranks_ == max_ranks(sizes.tolist(), boundary)
    assert fitted("MPORBM").ranks_ == (2,)
    assert fitted("periodic").ranks_ == (2, 2)


def test_ranks_of_a_sequence_are_exact():
    assert start(MPORBM(HIDDEN, rank=[5])).ranks_ == (5,)
    assert start(MPORBM(HIDDEN, rank=(3, 2), boundary="periodic")).ranks_ == (3, 2)


def test_training_starts_at_the_base_rates_of_the_data():
    rate = (X.sum(axis=0) + 0.5) / (len(X) + 1.0)
    model = start(MPORBM(HIDDEN, rank=2))
    np.testing.assert_allclose(model.visible_bias_, logit(rate), atol=1e-12)
    gaussian = start(MPORBM(HIDDEN, rank=2, **AS_THEY_ARE), REAL)
    np.testing.assert_allclose(gaussian.visible_bias_, REAL.mean(axis=0), atol=1e-12)


def test_training_can_start_without_biases():
    model = start(MPORBM(HIDDEN, rank=2, init="random"))
    assert not model.visible_bias_.any()
    assert not model.hidden_bias_.any()


@each_class
def test_constant_samples_have_a_start(name):
    model = start(ESTIMATORS[name], np.ones_like(X))
    assert np.isfinite(model.weight_matrix()).all()
    assert np.isfinite(model.visible_bias_).all()


# Energies and scores


@pytest.mark.parametrize("name", ["MPORBM", "gaussian"])
def test_reconstructions_and_free_energies_are_those_of_the_machine(name):
    model, samples = fitted(name), data(name)
    machine = model.machine_
    passed = machine.visible_mean(machine.hidden_mean(samples))
    np.testing.assert_allclose(model.reconstruct(samples), passed, atol=1e-12)
    np.testing.assert_allclose(model.free_energy(samples), machine.free_energy(samples), rtol=1e-12)


def log_weight(model, flat):
    """The log of the sum of exp(-E(V, H)) over all H, listed."""
    b, c, w = model.visible_bias_.ravel(), model.hidden_bias_.ravel(), model.weight_matrix()
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=len(c))))
    return logsumexp((flat @ b)[:, None] + hidden @ c + flat @ w @ hidden.T, axis=1)


@each_class
def test_pseudo_likelihood_of_few_units_is_exact(name):
    model, expected = fitted(name), np.zeros(len(X))
    for unit in range(FLAT.shape[1]):
        both = []
        for value in (False, True):
            rest = FLAT.copy()
            rest[:, unit] = value
            both.append(log_weight(model, rest))
        expected += np.where(FLAT[:, unit], both[1], both[0]) - np.logaddexp(*both)
    np.testing.assert_allclose(model.pseudo_log_likelihood(X), expected, rtol=1e-10)


def test_pseudo_likelihood_is_for_binary_units():
    with pytest.raises(ValueError, match=r"pseudo_log_likelihood: .*Gaussian.*score_samples"):
        fitted("gaussian").pseudo_log_likelihood(REAL)


@each_class
def test_score_is_the_exact_log_probability_of_a_small_machine(name):
    model = fitted(name)
    everything = np.array(list(itertools.product([0.0, 1.0], repeat=FLAT.shape[1])))
    expected = log_weight(model, FLAT) - logsumexp(log_weight(model, everything))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    np.testing.assert_allclose(model.score(X), expected.mean(), rtol=1e-10)


def test_score_of_gaussian_units_is_the_exact_log_density():
    """Of a mixture of normal distributions, one for each hidden state."""
    model = fitted("gaussian")
    hidden = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    mean = hidden @ model.weight_matrix().T + model.visible_bias_.ravel()
    log_p = hidden @ model.hidden_bias_.ravel() + (mean**2).sum(axis=1) / 2.0
    density = norm.logpdf(REAL.reshape(len(REAL), 1, -1), mean).sum(axis=2)
    expected = logsumexp(log_p - logsumexp(log_p) + density, axis=1)
    np.testing.assert_allclose(model.score_samples(REAL), expected, rtol=1e-10)


# Sampling


@pytest.mark.parametrize("name", ["MPORBM", "gaussian"])
def test_samples_have_the_visible_shape(name):
    model = fitted(name)
    for drawn in (model.sample(7, N_GIBBS), model.gibbs(data(name)[:7], N_GIBBS)):
        assert drawn.shape == (7, *VISIBLE)
        assert np.isin(drawn, (0.0, 1.0)).all() == (name != "gaussian")


def test_samples_are_reproducible():
    model = fitted("MPORBM")
    draws = (
        lambda **seed: model.sample(20, N_GIBBS, **seed),
        lambda **seed: model.gibbs(X, N_GIBBS, **seed),
    )
    for draw in draws:
        np.testing.assert_array_equal(draw(random_state=1), draw(random_state=1))
        assert not np.array_equal(draw(random_state=1), draw(random_state=2))
        assert not np.array_equal(draw(), draw())


def test_no_gibbs_step_changes_nothing():
    np.testing.assert_array_equal(fitted("MPORBM").gibbs(X, 0), X)


def strong_machine(rng):
    """A tiny machine far from independent units."""
    source = BernoulliRBM()
    source.components_ = 2.0 * rng.normal(size=(2, 4))
    source.intercept_visible_, source.intercept_hidden_ = rng.normal(size=4), rng.normal(size=2)
    return MPORBM.from_rbm(source, visible_shape=(2, 2), hidden_shape=(2, 1))


def test_samples_follow_the_distribution_of_the_model(rng):
    model, n_samples = strong_machine(rng), 5000
    expected = n_samples * np.asarray(exact.visible_distribution(model.machine_))

    def distance(n_gibbs):
        states = model.sample(n_samples, n_gibbs, random_state=0).reshape(n_samples, -1)
        counts = np.bincount((states @ [8, 4, 2, 1]).astype(int), minlength=16)
        return ((counts - expected) ** 2 / expected).sum()

    limit = chi2.ppf(1.0 - 1e-6, df=15)
    assert distance(100) < limit < distance(0)


def test_gaussian_samples_have_the_mean_of_the_model():
    model = fitted("gaussian")
    samples = model.sample(4096, N_GIBBS, random_state=0)
    standard_error = samples.std(axis=0) / np.sqrt(len(samples))
    mean = exact.expectations(model.machine_).visible
    assert (np.abs(samples.mean(axis=0) - mean) < 5.0 * standard_error).all()


# Training


@every
def test_training_moves_the_weights(name):
    model = fitted(name)
    assert model.n_iter_ == len(model.history_) == 2
    assert [entry["epoch"] for entry in model.history_] == [1, 2]
    assert np.isfinite(model.weight_matrix()).all()
    assert relative_error(model, start(ESTIMATORS[name], data(name)).weight_matrix()) > 0.0


# With those of ESTIMATORS: every scheme, negative phase and boundary, and without the gauge.
@pytest.mark.parametrize(
    "options",
    [
        {"scheme": "aop", "negative_phase": "fpcd", "boundary": "periodic"},
        {"scheme": "su", **PAPER, "negative_phase": "pcd", "gauge": None},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_options_go_together(options):
    model = MPORBM(HIDDEN, rank=2, **TRAINING, **options).fit(X)
    norms = [entry["weight_norm"] for entry in model.history_]
    assert len(norms) == 2
    assert norms[0] != norms[1]
    assert np.isfinite(model.weight_matrix()).all()
    assert max(model.ranks_) <= 2


def test_a_seed_fixes_the_training():
    again = clone(ESTIMATORS["MPORBM"]).fit(X)
    np.testing.assert_array_equal(again.weight_matrix(), fitted("MPORBM").weight_matrix())
    other = clone(ESTIMATORS["MPORBM"]).set_params(random_state=1).fit(X)
    assert not np.array_equal(again.weight_matrix(), other.weight_matrix())


def test_warm_start_goes_on():
    model = clone(ESTIMATORS["MPORBM"]).set_params(warm_start=True).fit(X)
    learnt = model.weight_matrix()
    np.testing.assert_array_equal(learnt, fitted("MPORBM").weight_matrix())
    np.testing.assert_array_equal(model.set_params(n_iter=0).fit(X).weight_matrix(), learnt)
    assert relative_error(model.set_params(n_iter=2).fit(X), learnt) > 0.0
    anew = model.set_params(warm_start=False).fit(X)
    np.testing.assert_array_equal(anew.weight_matrix(), learnt)


@pytest.mark.parametrize(
    ("changes", "samples", "message"),
    [
        ({}, X[:, :2], r"X: expected shape \(n_samples, 4, 3\) .*got samples of shape \(2, 3\)"),
        ({}, FLAT[:, :11], "X has 11 features"),
        ({"hidden_shape": (1, 2)}, X, r"hidden_shape=\(1, 2\): expected \(2, 2\), to go on"),
        ({"visible_shape": (3, 4)}, FLAT, r"visible_shape=\(3, 4\): expected \(4, 3\), to go on"),
        ({"visible_shape": (0, 4)}, FLAT, r"visible_shape\[0\]=0: expected"),
    ],
)
def test_a_refused_warm_start_changes_nothing(changes, samples, message):
    model = variant("MPORBM", warm_start=True, **changes)
    with pytest.raises(ValueError, match=message):
        model.fit(samples)
    assert (model.visible_shape_, model.n_features_in_) == (VISIBLE, FLAT.shape[1])
    np.testing.assert_array_equal(model.transform(X), fitted("MPORBM").transform(X))


def test_another_machine_is_what_training_goes_on_from():
    model = clone(ESTIMATORS["MPORBM"]).fit(X)
    other = start(MPORBM(HIDDEN, rank=2, random_state=1))
    model.set_machine(other.machine_)
    np.testing.assert_array_equal(model.weight_matrix(), other.weight_matrix())
    model.set_params(learning_rate=1e-9).partial_fit(X)
    assert relative_error(model, other.weight_matrix()) < 1e-3


def test_back_offs_are_not_part_of_a_pickle():
    model = clone(ESTIMATORS["MPORBM"]).fit(X)
    model._continuation = model._continuation._replace(rate_factor=0.25)
    again = pickle.loads(pickle.dumps(model))
    for continued, rate in ((model, 0.025), (again, 0.1)):
        assert continued.partial_fit(X).history_[-1]["learning_rate"] == pytest.approx(rate)


def test_partial_fit_goes_on():
    model = clone(ESTIMATORS["MPORBM"]).fit(X)
    learnt, base, score = model.weight_matrix(), model.base_bias_, model.score(X)
    model.partial_fit(X)
    assert model.n_iter_ == len(model.history_) == 3
    assert relative_error(model, learnt) > 0.0
    # log Z is not the one from before.
    expected = exact.log_probability(model.machine_, X).mean()
    np.testing.assert_allclose(model.score(X), expected, rtol=1e-10)
    assert model.score(X) != score
    np.testing.assert_array_equal(model.base_bias_, base)


# Conversion


def test_an_rbm_of_full_rank_stays_the_same():
    rbm = fitted("RBM")
    model = MPORBM.from_rbm(rbm)
    np.testing.assert_allclose(model.transform(X), rbm.transform(X), atol=1e-12)
    assert relative_error(model, rbm.weight_matrix()) < 1e-12
    assert model.truncation_error_ < 1e-12


def test_an_rbm_of_scikit_learn_stays_the_same():
    rbm = BernoulliRBM(4, n_iter=2, random_state=0).fit(FLAT)
    model = MPORBM.from_rbm(rbm, visible_shape=VISIBLE, hidden_shape=HIDDEN)
    np.testing.assert_allclose(model.transform(X), rbm.transform(FLAT), atol=1e-12)
    lower = MPORBM.from_rbm(rbm, rank=2, visible_shape=VISIBLE, hidden_shape=HIDDEN)
    assert lower.ranks_ == (2,)
    assert 0.0 < relative_error(lower, rbm.components_.T) <= 1.000001 * lower.truncation_error_


@pytest.mark.parametrize("options", [{"rank": 2}, {"tolerance": 0.6}])
def test_the_truncation_error_bounds_that_of_an_rbm(options):
    rbm = fitted("RBM")
    model = MPORBM.from_rbm(rbm, **options)
    assert model.ranks_ < MPORBM.from_rbm(rbm).ranks_
    assert 0.0 < relative_error(model, rbm.weight_matrix()) <= 1.000001 * model.truncation_error_
    assert model.truncation_error_ <= options.get("tolerance", 1.0)


@trains
def test_compression_without_a_limit_changes_nothing(name):
    model = fitted(name).compress()
    np.testing.assert_allclose(model.transform(X), fitted(name).transform(X), atol=1e-12)
    assert model.boundary == "open"


@trains
@pytest.mark.parametrize("options", [{"rank": 1}, {"tolerance": 0.9}])
def test_the_truncation_error_bounds_that_of_compression(name, options):
    model = fitted(name).compress(**options)
    weights = fitted(name).weight_matrix()
    assert model.ranks_ < fitted(name).compress().ranks_
    assert 0.0 < relative_error(model, weights) <= 1.000001 * model.truncation_error_
    assert model.truncation_error_ <= options.get("tolerance", 1.0)
    assert fitted(name).weight_matrix().tolist() == weights.tolist()


@pytest.mark.parametrize(
    "convert",
    [
        lambda: MPORBM.from_rbm(fitted("RBM"), rank=2),
        lambda: fitted("periodic").compress(rank=2),
    ],
    ids=["from_rbm", "compress"],
)
def test_a_converted_machine_goes_on_training(convert):
    # As the shared MPORBM trains, which is compiled.
    options = {"scheme": "aop", "negative_phase": "cd", "warm_start": True}
    model = convert().set_params(**options)
    weights = model.weight_matrix()
    np.testing.assert_array_equal(
        copy.copy(model).set_params(n_iter=0).fit(X).weight_matrix(), weights
    )
    for train, n_iter in ((model.partial_fit, 1), (model.fit, 2)):
        before = model.weight_matrix()
        train(X)
        assert model.n_iter_ == n_iter
        assert model.ranks_ == (2,)
        assert relative_error(model, before) > 0.0


# Files


@every
def test_a_file_gives_the_model_back(name, tmp_path):
    model, samples = fitted(name), data(name)
    model.save(tmp_path / "model")
    loaded = mporbm.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert loaded.n_iter_ == model.n_iter_
    assert loaded.n_features_in_ == model.n_features_in_
    assert loaded.n_parameters_ == model.n_parameters_
    np.testing.assert_array_equal(loaded.transform(samples), model.transform(samples))
    np.testing.assert_array_equal(loaded.weight_matrix(), model.weight_matrix())
    np.testing.assert_array_equal(loaded.visible_bias_, model.visible_bias_)
    np.testing.assert_array_equal(loaded.base_bias_, model.base_bias_)


def test_a_file_keeps_feature_names(tmp_path):
    names = [f"pixel {k}" for k in range(FLAT.shape[1])]
    model = start(RBM(HIDDEN, visible_shape=VISIBLE), pandas.DataFrame(FLAT, columns=names))
    model.save(tmp_path / "model")
    loaded = mporbm.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_a_file_keeps_the_truncation_error(tmp_path):
    model = fitted("MPORBM").compress(rank=1)
    model.save(tmp_path / "model")
    assert mporbm.load(tmp_path / "model").truncation_error_ == model.truncation_error_


class Bomb:
    exploded = False

    def __reduce__(self):
        return setattr, (Bomb, "exploded", True)


def test_loading_executes_nothing(tmp_path, monkeypatch):
    (tmp_path / "bomb").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileFormatError, match="bomb: expected a model file of mporbm"):
        mporbm.load(tmp_path / "bomb")
    assert not Bomb.exploded
    fitted("MPORBM").save(tmp_path / "model")
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.delattr(pickle, name)
    assert mporbm.load(tmp_path / "model").n_iter_ == 2


def test_other_settings_may_go_on_with_the_same_machine():
    model = variant("MPORBM")
    for changes in (
        {"negative_phase": "pcd"},
        {"gauge": None, "rule": "plain"},
        {"batch_size": 20},
    ):
        before = model.weight_matrix()
        model.set_params(**changes).partial_fit(X)
        assert np.isfinite(model.weight_matrix()).all()
        assert (model.weight_matrix() != before).any()


@pytest.mark.slow
def test_a_model_file_does_not_say_where_to_write(tmp_path):
    model = variant("MPORBM", checkpoint=tmp_path / "checkpoint")
    model.save(tmp_path / "model")
    assert mporbm.load(tmp_path / "model").checkpoint is None


@pytest.mark.parametrize("estimator", [MPORBM, TvRBM])
def test_more_weights_than_a_dense_machine_has_are_told(estimator):
    data = np.random.default_rng(0).random((20, 6, 4)) < 0.3
    hidden = (3, 3) if estimator is MPORBM else 9
    few = estimator(hidden, rank=2, n_iter=1, random_state=0)
    many = estimator(hidden, rank=12, n_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few.fit(data)
        # A rank that nobody asked for says nothing.
        estimator(hidden, n_iter=1, random_state=0).fit(data)
    text = r"rank=12: \d+ weights, more than the 216 of a dense machine; choose a lower rank"
    with pytest.warns(UserWarning, match=text):
        many.fit(data)
    assert many.n_parameters_ > 216


@pytest.mark.parametrize(
    ("n_samples", "shape", "boundary", "expected"),
    [
        # 4x4 -> 4x4: 32 weights for each unit of rank, and at most rank 16.
        (10, (4, 4), "open", 1),
        (63, (4, 4), "open", 1),
        (64, (4, 4), "open", 2),
        (200, (4, 4), "open", 6),
        (10**6, (4, 4), "open", 20),
        (None, (4, 4), "open", 20),
        # Of three cores the middle one has the square of the rank: 4 r + 4 r^2 + 4 r.
        (48, (2, 2, 2), "open", 2),
        (59, (2, 2, 2), "open", 2),
        (60, (2, 2, 2), "open", 3),
        # A ring of two cores has 2 * 16 r^2.
        (127, (4, 4), "periodic", 1),
        (128, (4, 4), "periodic", 2),
    ],
)
def test_automatic_ranks(n_samples, shape, boundary, expected):
    assert automatic_rank(n_samples, lambda r: count_weights(r, shape, shape, boundary)) == expected


@pytest.mark.parametrize("boundary", ["open", "periodic"])
def test_the_default_rank_makes_no_more_weights_than_there_are_samples(boundary):
    for n_samples in (40, 150):
        data = np.random.default_rng(0).random((n_samples, 4, 4)) < 0.3
        model = MPORBM(boundary=boundary, n_iter=1, random_state=0).fit(data)
        (rank,) = set(model.ranks_)
        more = MPORBM(rank=rank + 1, boundary=boundary, n_iter=1, random_state=0).fit(data)
        assert model.n_parameters_ <= n_samples < more.n_parameters_ or rank == 1
    # One batch says nothing of how many samples there will be.
    assert MPORBM(random_state=0).partial_fit(data).ranks_ == (16,)


def test_the_default_rank_of_a_cp_coupling():
    data = np.random.default_rng(0).random((100, 4, 4)) < 0.3
    model = TvRBM(n_iter=1, random_state=0).fit(data)
    # 4 + 4 + 16 weights for each term.
    assert model.n_parameters_ == 4 * 24
    assert TvRBM(n_iter=1, random_state=0).fit(data[:20]).n_parameters_ == 24
