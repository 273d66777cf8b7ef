"""The estimators keep scikit-learn's promises: checks, search, pipelines, callbacks, pickles."""

import functools
import io
import pickle

import joblib
import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

from mporbm import MPORBM, RBM, MvRBM, TvRBM

SMALL = {"n_iter": 1, "batch_size": 10, "random_state": 0}

HALVES = np.arange(24) % 2
"""Of each image, which half is bright."""
X = np.random.default_rng(0).random((24, 4, 4)) < np.where(
    (np.arange(4) < 2) == HALVES[:, None, None], 0.9, 0.1
)
ESTIMATOR = MPORBM((2, 2), rank=2, scheme="su", batch_size=12, n_iter=2, random_state=0)


@functools.cache
def fitted():
    """A fitted estimator that tests share, and so must not change."""
    return clone(ESTIMATOR).fit(X)


@pytest.mark.parametrize(
    "estimator",
    [
        # The others differ in their couplings only, and take as long.
        pytest.param(RBM(hidden_shape=2, **SMALL), marks=pytest.mark.slow),
        pytest.param(MvRBM(hidden_shape=(2,), **SMALL), marks=pytest.mark.slow),
        pytest.param(TvRBM(hidden_shape=2, rank=2, **SMALL), marks=pytest.mark.slow),
        MPORBM(hidden_shape=(2,), rank=2, **SMALL),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
# The checks draw normal samples.
@pytest.mark.filterwarnings("ignore:X. expected values from 0 to 1:UserWarning")
# One check passes -1 for every parameter, to see that the constructor only stores it.
@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_all_checks_of_scikit_learn_pass(estimator):
    checks = check_estimator(estimator, on_skip=None)
    others = [check for check in checks if check["status"] != "passed"]
    assert len(others) < len(checks)
    assert all("SCIPY_ARRAY_API" in str(check["exception"]) for check in others), others


@pytest.mark.slow
def test_a_grid_search_takes_tensors():
    pipeline = Pipeline([("rbm", clone(ESTIMATOR)), ("knn", KNeighborsClassifier(1))])
    grid = {"rbm__rank": [1, 2], "rbm__feature": ["probability", "field"]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=1, error_score="raise").fit(X, HALVES)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.9
    assert search.best_estimator_["rbm"].ranks_ == (search.best_params_["rbm__rank"],)
    assert (search.predict(X) == HALVES).all()


def test_a_clone_has_the_parameters_and_not_what_was_learnt():
    cloned = clone(fitted())
    assert cloned.get_params() == ESTIMATOR.get_params()
    with pytest.raises(NotFittedError):
        cloned.transform(X)


@pytest.mark.parametrize("estimator", [RBM(), MvRBM(), TvRBM(), MPORBM()])
def test_parameters_can_be_set_by_name(estimator):
    before = estimator.get_params()
    changed = {**before, "n_iter": 7, "hidden_shape": (3,)}
    assert estimator.set_params(**changed).get_params() == changed
    assert type(estimator)(**changed).get_params() == changed


def test_pandas_gets_the_names_of_the_features():
    frame = pandas.DataFrame(X.reshape(len(X), -1), index=np.arange(len(X)) + 100)
    model = clone(ESTIMATOR).set_params(visible_shape=X.shape[1:], n_iter=0).fit(frame)
    plain = model.transform(frame)
    named = model.set_output(transform="pandas").transform(frame)
    assert list(named.columns) == list(model.get_feature_names_out())
    assert list(named.columns) == [f"mporbm{k}" for k in range(4)]
    assert list(named.index) == list(frame.index)
    np.testing.assert_array_equal(named.to_numpy(), plain)


class Recorder:
    """Remembers what scikit-learn tells a callback, and stops after some epochs."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events, self.models, self.features = [], [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name} {context.task_id}")

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator):
        self.events.append(f"end {context.task_name} {context.task_id}")
        if context.task_name == "epoch":
            self.models.append(fitted_estimator)
            self.features.append(fitted_estimator.transform(X))
        return len(self.models) == self.stop_after

    def teardown(self, estimator, context):
        self.events.append("teardown")


def test_a_callback_sees_every_epoch():
    recorder = Recorder()
    model = clone(ESTIMATOR).set_callbacks(recorder).fit(X)
    epochs = [f"{what} epoch {k}" for k in range(2) for what in ("begin", "end")]
    assert recorder.events == ["setup", "begin fit 0", *epochs, "end fit 0", "teardown"]
    assert [seen.n_iter_ for seen in recorder.models] == [1, 2]
    assert [len(seen.history_) for seen in recorder.models] == [1, 2]
    assert not np.array_equal(*recorder.features)
    np.testing.assert_array_equal(recorder.features[-1], model.transform(X))
    # To be watched changes nothing.
    np.testing.assert_array_equal(model.transform(X), fitted().transform(X))


def test_a_callback_stops_the_training():
    recorder = Recorder(stop_after=1)
    model = clone(ESTIMATOR).set_callbacks(recorder).fit(X)
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(recorder.features[0], model.transform(X))


def test_scikit_learn_shows_its_progress_bar(capsys):
    clone(ESTIMATOR).set_callbacks(ProgressBar()).fit(X)
    shown = capsys.readouterr()
    assert "MPORBM" in shown.out
    assert "100%" in shown.out
    assert not shown.err


def test_verbose_shows_a_progress_bar(capsys):
    clone(ESTIMATOR).fit(X)
    assert not capsys.readouterr().err
    clone(ESTIMATOR).set_params(verbose=1).fit(X)
    shown = capsys.readouterr()
    assert "2/2" in shown.err
    assert "operations a product" in shown.err
    assert not shown.out


def test_users_see_what_they_can_call():
    """Tab completion lists no hooks of subclasses."""
    names = {name for name in dir(ESTIMATOR) if not name.startswith("_")}
    of_scikit_learn = {name for name in names if name.startswith(("get_", "set_"))}
    assert names - of_scikit_learn - ESTIMATOR.get_params().keys() == {
        *("fit", "partial_fit", "fit_transform", "transform", "check_parameters", "coupling"),
        *("sample", "gibbs", "reconstruct", "complete", "denoise", "posterior_samples"),
        *("estimate_noise", "free_energy", "score_samples", "pseudo_log_likelihood", "score"),
        *("log_partition", "weight_matrix", "from_rbm", "compress", "save", "coupling_options"),
    }


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("passed", [through_pickle, through_joblib])
def test_a_pickle_gives_the_model_back(passed):
    model = passed(fitted())
    np.testing.assert_array_equal(model.transform(X), fitted().transform(X))
    assert model.get_params() == fitted().get_params()
    assert model.history_ == fitted().history_
    assert model.partial_fit(X).n_iter_ == fitted().n_iter_ + 1
