"""The classifiers: what they tell against formulas and enumeration, and scikit-learn's promises."""

import copy
import functools
import io

import joblib
import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import mporbm
from mporbm import ClassRBM, MPOClassRBM
from mporbm.cli.files import read_model
from mporbm.training import PackedBits
from mporbm.training.safetensors_io import FileFormatError
from strategies import assert_distributed, label_distribution, state_numbers

VISIBLE, HIDDEN = (3, 2), (2, 2)
LABELS = np.array(["cat", "dog", "eel"])
RNG = np.random.default_rng(0)
Y = np.repeat(LABELS, 10)
RATES = RNG.uniform(0.1, 0.9, size=(3, *VISIBLE))
X = RNG.random((30, *VISIBLE)) < np.repeat(RATES, 10, axis=0)
REAL = X + 0.1 * RNG.normal(size=X.shape)
TRAINING = {"n_iter": 30, "batch_size": 10, "learning_rate": 0.5, "random_state": 0}

# One shape for all, as every new one compiles; together they see all options.
ESTIMATORS = {
    "ClassRBM": ClassRBM(4, objective="generative", negative_phase="pcd", **TRAINING),
    "MPOClassRBM": MPOClassRBM(HIDDEN, rank=2, **TRAINING),
    "discriminative": MPOClassRBM(
        HIDDEN, rank=2, objective="discriminative", scheme="su", boundary="periodic", **TRAINING
    ),
    "gaussian": MPOClassRBM(
        HIDDEN,
        rank=2,
        visible_units="gaussian",
        standardize=False,
        gauge=None,
        scheme="su",
        **TRAINING,
    ),
}
every = pytest.mark.parametrize("name", ESTIMATORS)


def data(name):
    return REAL if name == "gaussian" else X


@functools.cache
def fitted(name):
    """A fitted estimator that tests share, and so must not change."""
    return clone(ESTIMATORS[name]).fit(data(name), Y)


def fields(model, samples):
    """``W^T(V) + C + U_y``: (samples, classes, hidden units)."""
    field = samples.reshape(len(samples), -1) @ model.weight_matrix() + model.hidden_bias_.ravel()
    return field[:, None] + model.label_weights_.reshape(len(model.classes_), -1)


# Labels and features


@every
def test_probabilities_are_the_formula(name):
    model, samples = fitted(name), data(name)
    logits = model.label_bias_ + np.logaddexp(0.0, fields(model, samples)).sum(axis=2)
    expected = softmax(logits, axis=1)
    assert_allclose(model.predict_proba(samples), expected, rtol=1e-9)
    assert_allclose(model.predict_log_proba(samples), np.log(expected), rtol=1e-9)
    assert_array_equal(model.predict(samples), LABELS[expected.argmax(axis=1)])
    assert model.score(samples, Y) == (model.predict(samples) == Y).mean()


@every
def test_features_sum_the_label_out(name):
    model, samples = fitted(name), data(name)
    p = model.predict_proba(samples)
    expected = np.einsum("ny,nyj->nj", p, expit(fields(model, samples)))
    assert_allclose(model.transform(samples), expected, rtol=1e-9)
    mean_field = np.einsum("ny,nyj->nj", p, fields(model, samples))
    by_field = copy.copy(model).set_params(feature="field").transform(samples)
    assert_allclose(by_field, mean_field, rtol=1e-9, atol=1e-12)


def test_tensors_flat_rows_and_packed_bits_are_the_same():
    model = fitted("MPOClassRBM")
    flat = X.reshape(len(X), -1)
    other = clone(model).set_params(visible_shape=VISIBLE).fit(flat, Y)
    packed = PackedBits(np.packbits(flat, axis=1) >> 2, 6, VISIBLE)
    for samples in (flat, packed):
        assert_array_equal(other.predict_proba(samples), model.predict_proba(X))
    start = clone(other).set_params(n_iter=0)
    one, two = (clone(start).fit(samples, Y).predict_proba(X) for samples in (X, packed))
    assert_array_equal(one, two)


def test_labels_of_any_type():
    model = fitted("MPOClassRBM")
    assert_array_equal(model.classes_, LABELS)
    for labels in (np.array([3, 5, 7]), np.array([-1.0, 0.0, 1.0]), LABELS.astype(object)):
        other = clone(model).fit(X, labels[np.searchsorted(LABELS, Y)])
        assert_array_equal(other.classes_, labels)
        assert other.predict(X).dtype == labels.dtype
        expected = labels[np.searchsorted(LABELS, model.predict(X))]
        assert_array_equal(other.predict(X), expected)
    series = pandas.Series(Y, dtype="category")
    assert_array_equal(clone(model).fit(X, series).predict(X), model.predict(X))


# Samples


def test_samples_of_all_classes_and_of_one():
    model, n = fitted("MPOClassRBM"), 20_000
    joint = label_distribution(model.machine_).sum(axis=2)
    drawn = model.sample(n, n_gibbs=20, random_state=0)
    assert drawn.shape == (n, *VISIBLE)
    assert_distributed(drawn, joint.sum(axis=1))
    of_one = model.sample(n, y="dog", n_gibbs=20, random_state=0)
    assert_distributed(of_one, joint[:, 1] / joint[:, 1].sum())
    with pytest.raises(AssertionError, match="chi-squared"):
        assert_distributed(of_one, joint.sum(axis=1))
    y = np.tile(LABELS, n // 3 + 1)[:n]
    each = model.sample(n, y=y, n_gibbs=20, random_state=0)
    for label, p in zip(LABELS, joint.T, strict=True):
        assert_distributed(each[y == label], p / p.sum())


# Training


@every
def test_training_is_recorded(name):
    model = fitted(name)
    assert model.n_iter_ == len(model.history_) == 30
    p = model.predict_log_proba(data(name))[np.arange(30), np.searchsorted(LABELS, Y)]
    assert_allclose(model.history_[-1]["score"], p.mean(), rtol=1e-9)
    assert np.isfinite([entry["free_energy"] for entry in model.history_]).all()


def test_a_seed_fixes_the_training():
    model = fitted("MPOClassRBM")
    again = clone(model).fit(X, Y)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    other = clone(model).set_params(random_state=1).fit(X, Y)
    assert not np.array_equal(other.predict_proba(X), model.predict_proba(X))


def test_the_start_knows_how_frequent_the_classes_are():
    start = clone(ESTIMATORS["MPOClassRBM"]).set_params(n_iter=0).fit(X[:25], Y[:25])
    assert_allclose(softmax(start.label_bias_), np.array([10.5, 10.5, 5.5]) / 26.5, rtol=1e-9)
    random = clone(start).set_params(init="random").fit(X, Y)
    assert_array_equal(random.label_bias_, np.zeros(3))


def test_weights_count():
    """A sample of weight 0 is as if it were not there."""
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(batch_size=30, init="random")
    weight = np.where(np.arange(30) < 20, 1.0, 0.0)
    others = np.where(np.arange(30) < 20, Y, LABELS[np.arange(30) % 3])
    one, two = (clone(model).fit(X, y, sample_weight=weight) for y in (Y, others))
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(clone(model).fit(X, others).predict_proba(X), one.predict_proba(X))


def test_early_stopping_watches_the_labels():
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(early_stopping=True)
    model.fit(X, Y, X_val=X[::3], y_val=Y[::3])
    scores = [entry["validation_score"] for entry in model.history_]
    p = model.predict_log_proba(X[::3])[np.arange(10), np.searchsorted(LABELS, Y[::3])]
    assert_allclose(max(scores), p.mean(), rtol=1e-9)
    aside = clone(model).fit(X, Y)
    assert "validation_score" in aside.history_[-1]


def test_warm_start_and_partial_fit_go_on():
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(warm_start=True).fit(X, Y)
    learnt = model.predict_proba(X)
    assert_array_equal(model.set_params(n_iter=0).fit(X, Y).predict_proba(X), learnt)
    # A part of the data may lack a class.
    model.partial_fit(X[:20], Y[:20])
    assert_array_equal(model.classes_, LABELS)
    assert not np.array_equal(model.predict_proba(X), learnt)
    first = clone(model).partial_fit(X[:20], Y[:20], classes=LABELS)
    assert first.predict_proba(X).shape == (30, 3)
    assert first.partial_fit(X[10:], Y[10:]).n_iter_ == 2


def test_a_checkpoint_is_gone_on_from(tmp_path):
    model = clone(ESTIMATORS["ClassRBM"])
    path = tmp_path / "run.safetensors"
    model.set_params(n_iter=1, checkpoint=path).fit(X, Y)
    resumed = model.set_params(n_iter=30).fit(X, Y)
    assert_array_equal(resumed.predict_proba(X), fitted("ClassRBM").predict_proba(X))
    with pytest.raises(ValueError, match=r"expected a checkpoint of this training.*data"):
        model.fit(X, Y[::-1])


def test_the_automatic_rate_learns():
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(learning_rate="auto").fit(X, Y)
    assert model.history_[-1]["score"] > model.history_[0]["score"]
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize(
    ("name", "share", "discriminative"),
    [("ClassRBM", 1.0, False), ("MPOClassRBM", 0.01, True), ("discriminative", 0.0, True)],
)
def test_the_exact_objective_rises(name, share, discriminative):
    codes = np.searchsorted(LABELS, Y)

    def objective(model):
        joint = label_distribution(model.machine_).sum(axis=2)
        log_joint = np.log(joint[state_numbers(X), codes])
        log_visible = np.log(joint[state_numbers(X)].sum(axis=1))
        return (share * log_joint + discriminative * (log_joint - log_visible)).mean()

    start = clone(ESTIMATORS[name]).set_params(n_iter=0).fit(X, Y)
    assert objective(fitted(name)) > objective(start) + 0.05


@pytest.mark.parametrize(
    ("visible", "hidden"), [((3, 2), (3, 2)), ((40, 30), (26, 20)), ((1000,), (500,))]
)
def test_hidden_units_are_as_many_as_visible_ones_up_to_some_hundred(visible, hidden):
    model = MPOClassRBM(n_iter=0, rank=1).fit(np.zeros((2, *visible)), [0, 1])
    assert model.hidden_bias_.shape == hidden


# Files


@every
def test_a_file_gives_the_model_back(name, tmp_path):
    model, path = fitted(name), tmp_path / "model.safetensors"
    model.save(path)
    again = mporbm.load(path)
    assert type(again) is type(model)
    assert_array_equal(again.predict_proba(data(name)), model.predict_proba(data(name)))
    assert_array_equal(again.predict(data(name)), model.predict(data(name)))
    assert again.history_ == model.history_
    assert again.classes_.dtype == model.classes_.dtype
    assert again.n_parameters_ == model.n_parameters_


@pytest.mark.parametrize(
    "labels", [np.array([7, 3, 5]), np.array([0.0, 1.0, 2.0]), LABELS.astype(object)]
)
def test_files_keep_the_type_of_labels(labels, tmp_path):
    y = labels[np.searchsorted(LABELS, Y)]
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(n_iter=0).fit(X, y)
    model.save(tmp_path / "model.safetensors")
    again = mporbm.load(tmp_path / "model.safetensors")
    assert again.classes_.dtype == labels.dtype
    assert_array_equal(again.classes_, np.unique(labels))


def test_a_file_without_its_classes_is_refused(tmp_path):
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(n_iter=0).fit(X, Y)
    model.classes_ = LABELS[:2]
    model.save(tmp_path / "model.safetensors")
    with pytest.raises(FileFormatError, match="2 labels for 3 classes"):
        mporbm.load(tmp_path / "model.safetensors")


def test_the_command_line_says_that_it_knows_no_labels(tmp_path):
    fitted("MPOClassRBM").save(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="expected a model without labels, got MPOClassRBM"):
        read_model(tmp_path / "model.safetensors", False)


def test_parameters_are_counted():
    assert fitted("ClassRBM").n_parameters_ == 6 * 4 + 3 * 4
    cores = sum(core.size for core in fitted("MPOClassRBM").cores_)
    assert fitted("MPOClassRBM").n_parameters_ == cores + 3 * 4


# scikit-learn

# The objective with the smallest program: the checks compile one for each of their shapes.
SMALL = {"objective": "discriminative", "n_iter": 5, "batch_size": 10, "random_state": 0}


# The checks draw normal samples.
@pytest.mark.filterwarnings("ignore:X. expected values from 0 to 1:UserWarning")
# One check passes -1 for every parameter, to see that the constructor only stores it.
@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_all_checks_of_scikit_learn_pass():
    checks = check_estimator(MPOClassRBM(hidden_shape=(2,), rank=2, **SMALL), on_skip=None)
    others = [check for check in checks if check["status"] != "passed"]
    assert len(others) < len(checks)
    assert all("SCIPY_ARRAY_API" in str(check["exception"]) for check in others), others


def test_a_pickle_gives_the_model_back():
    file = io.BytesIO()
    joblib.dump(fitted("MPOClassRBM"), file)
    file.seek(0)
    model = joblib.load(file)
    assert_array_equal(model.predict_proba(X), fitted("MPOClassRBM").predict_proba(X))
    assert model.partial_fit(X[:20], Y[:20]).n_iter_ == 31


# Bad input


def fit(**parameters):
    return clone(ESTIMATORS["MPOClassRBM"]).set_params(n_iter=0, **parameters).fit


FITS = [
    ({"objective": "both"}, (X, Y), ValueError, "objective='both': .*'discriminative' or 'hybr"),
    ({"generative_weight": 0.0}, (X, Y), ValueError, "generative_weight=0.0: expected a finite"),
    ({"generative_weight": "a"}, (X, Y), TypeError, "generative_weight='a': expected a real num"),
    ({"scheme": "two-site"}, (X, Y), ValueError, "scheme='two-site': expected 'aop' or 'su'"),
    ({"rank": 0}, (X, Y), ValueError, "rank=0: expected an integer of at least 1"),
    ({}, (X,), ValueError, "MPOClassRBM requires y to be passed.*expected one label for each"),
    ({}, (X, Y[1:]), ValueError, "y: expected 30 labels, one for each sample, got 29"),
    ({}, (X, np.linspace(0, 1, 30)), ValueError, "Unknown label type: continuous"),
    ({}, (X, np.full(30, np.nan)), ValueError, "Input y contains NaN"),
    ({}, (lambda: iter([X]), Y), ValueError, "X: expected an array of samples, got a stream"),
]


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
@pytest.mark.parametrize(
    ("parameters", "arguments", "error", "message"), FITS, ids=[case[3] for case in FITS]
)
def test_message_of_a_fit(parameters, arguments, error, message):
    with pytest.raises(error, match=message):
        fit(**parameters)(*arguments)


CALLS = [
    (lambda model: model.partial_fit(X, Y[::-1] + "s"), "y: expected labels among .*got 'eels'"),
    (lambda model: model.sample(2, y="cow"), "y: expected labels among .*'eel'.*got 'cow'"),
    (lambda model: model.sample(2, y=["cat"]), "y: expected 2 labels, one for each sample, got 1"),
    (lambda model: model.sample(0), "n_samples=0: expected an integer of at least 1"),
    (lambda model: model.predict(X[:, :2]), r"X: expected shape \(n_samples, 3, 2\)"),
    (
        lambda model: clone(model).fit(X, Y, X_val=X, y_val=Y[1:]),
        "y_val: expected 30 labels, one for each sample, got 29",
    ),
    (
        lambda model: clone(model).fit(X, Y, X_val=X),
        "y_val: expected 30 labels, one for each sample, got None",
    ),
    (
        lambda model: clone(model).fit(X, Y, y_val=Y),
        "X_val: expected the samples that y_val labels, got None",
    ),
    (
        lambda model: clone(model).fit(X, Y, X_val=X, y_val=np.full(30, "cow")),
        "y_val: expected labels among .*got 'cow'",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[case[1] for case in CALLS])
def test_message_of_a_call(call, message):
    with pytest.raises(ValueError, match=message):
        call(fitted("MPOClassRBM"))


def test_labels_that_a_file_cannot_hold_are_refused(tmp_path):
    model = clone(ESTIMATORS["MPOClassRBM"]).set_params(n_iter=0).fit(X, Y)
    model.classes_ = np.array([b"cat", b"dog", b"eel"], object)
    with pytest.raises(TypeError, match="classes_: expected labels that a file can hold"):
        model.save(tmp_path / "model.safetensors")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform"])
def test_an_estimator_that_is_not_fitted_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(MPOClassRBM(), method)(X)
    with pytest.raises(AttributeError, match="label_weights_ before it is fitted"):
        _ = MPOClassRBM().label_weights_
