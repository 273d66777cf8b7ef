"""Deep estimators: scikit-learn's promises, stages and their checkpoints, files, inference."""

import functools
import warnings

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import mporbm
from mporbm import DBM, DBN, MPODBM, MPODBN, MPORBM
from mporbm.learning import DrawnStates
from mporbm.machine import UNITS, Bernoulli, exact
from mporbm.sampling.deep import belief_bound
from mporbm.training import FileFormatError, checkpoint
from mporbm.training import safetensors_io as storage
from strategies import all_states
from tables import check_messages

UNTRAINED = {"n_iter": 0, "n_iter_fine_tuning": 0, "batch_size": 10, "random_state": 0}
HALVES = np.arange(24) % 2
"""Of each sample, which half is bright."""
X = np.random.default_rng(0).random((24, 3, 2)) < np.where(
    (np.arange(2) < 1) == HALVES[:, None, None], 0.9, 0.1
)
MASK = np.array([[True, False]] * 3)
COMMON = {"rank": 2, "scheme": "su", "batch_size": 12, "n_iter": 2, "n_iter_fine_tuning": 2}
COMMON |= {"hidden_shapes": ((2, 2), (2, 1)), "random_state": 0}
DENSE = {name: value for name, value in COMMON.items() if name not in ("rank", "scheme")}
RULE = {"rule": "centred", "negative_phase": "pcd", "schedule": "linear", "momentum": 0.0}
ESTIMATORS = [MPODBN(**COMMON), MPODBM(**COMMON), DBN(**DENSE), DBM(**DENSE)]
TENSORS = ESTIMATORS[:2]
by_name = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
tensors = pytest.mark.parametrize("estimator", TENSORS, ids=lambda e: type(e).__name__)


@functools.cache
def fitted_class(kind):
    return next(clone(e) for e in ESTIMATORS if type(e) is kind).fit(X)


def fitted(estimator):
    """The fitted estimator, which tests share and so must not change."""
    return fitted_class(type(estimator))


def assert_same(one, other):
    """The same parameters to the last bit, and the same history but for the time it took."""
    leaves = [jax.tree.leaves(model.machine_) for model in (one, other)]
    for a, b in zip(*leaves, strict=True):
        assert_array_equal(a, b)
    histories = [[{**e, "seconds": None} for e in model.history_] for model in (one, other)]
    assert histories[0] == histories[1]


# scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [
        # Untrained: every check has other shapes to compile for. What is the same in training is
        # checked with the machines that they are made of.
        MPODBN([(2,), (2,)], rank=2, **UNTRAINED),
        pytest.param(MPODBM([(2,), (2,)], rank=2, **UNTRAINED), marks=pytest.mark.slow),
        pytest.param(DBN([2], **UNTRAINED), marks=pytest.mark.slow),
        pytest.param(DBM([2], **UNTRAINED), marks=pytest.mark.slow),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore:X. expected values from 0 to 1:UserWarning")
@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_all_checks_of_scikit_learn_pass(estimator):
    checks = check_estimator(estimator, on_skip=None)
    others = [check for check in checks if check["status"] != "passed"]
    assert len(others) < len(checks)
    assert all("SCIPY_ARRAY_API" in str(check["exception"]) for check in others), others


@by_name
def test_parameters_are_stored_and_cloned(estimator):
    assert clone(estimator).get_params() == estimator.get_params()
    assert type(estimator)().get_params()["hidden_shapes"] is None
    assert type(estimator)([(3,)]).hidden_shapes == [(3,)]


@pytest.mark.slow
def test_features_serve_a_classifier():
    pipeline = make_pipeline(clone(TENSORS[0]).set_params(n_iter=40), KNeighborsClassifier(1))
    assert pipeline.fit(X, HALVES).score(X, HALVES) > 0.8


# Stages


@pytest.mark.parametrize("kind", [MPODBN, MPODBM])
def test_one_layer_is_the_plain_machine(kind):
    settings = {name: COMMON[name] for name in ("rank", "scheme", "batch_size", "n_iter")}
    settings |= RULE | {"n_gibbs": 1, "random_state": 0}
    plain = MPORBM((2, 2), **settings).fit(X)
    deep = kind([(2, 2)], n_iter_fine_tuning=0, **settings).fit(X)
    assert_allclose(deep.transform(X), plain.transform(X), rtol=1e-12)
    assert_allclose(deep.score_samples(X), plain.score_samples(X), rtol=1e-12)
    assert_allclose(deep.reconstruct(X), plain.reconstruct(X), rtol=1e-12)
    answers = [model.complete(X, MASK, n_gibbs=10, random_state=1) for model in (deep, plain)]
    assert_allclose(*answers, rtol=1e-12)
    assert [e["score"] for e in deep.history_] == [e["score"] for e in plain.history_]


def test_samples_to_watch_may_be_flat():
    short = {"n_iter": 1, "n_iter_fine_tuning": 0}
    dbm = clone(ESTIMATORS[3]).set_params(**short)
    assert_same(*(clone(dbm).fit(X, X_val=held) for held in (X[:6], X[:6].reshape(6, -1))))


def test_each_layer_learns_states_of_the_one_below():
    settings = {name: COMMON[name] for name in ("rank", "scheme", "batch_size", "n_iter")} | RULE
    first = MPORBM((2, 2), output="tensor", random_state=0, **settings).fit(X)
    hidden = first.transform(X)
    second = MPORBM((2, 1), random_state=first._seed + 1, **settings)

    def specify(seed, source):
        start = second._start(seed, source)
        return second._specify(start, source, seed, objective=DrawnStates())

    second._fit_specified(hidden, None, None, specify)
    deep = clone(TENSORS[0]).set_params(n_iter_fine_tuning=0).fit(X)
    for found, expected in zip(deep.layers_, (first, second), strict=True):
        for one, other in zip(
            jax.tree.leaves(found), jax.tree.leaves(expected.machine_), strict=True
        ):
            assert_array_equal(one, other)
    assert_allclose(deep.transform(X), second.transform(hidden))
    assert deep.machine_.recognition[0] is deep.machine_.generation[0]


@by_name
def test_a_layer_starts_as_the_one_below_upside_down(estimator):
    shapes = {"hidden_shapes": ((2, 2), (3, 2)), "n_iter": 0, "n_iter_fine_tuning": 0}
    lower, upper = clone(estimator).set_params(**shapes).fit(X).layers_
    weights = np.asarray(lower.coupling.to_matrix())
    assert_array_equal(upper.coupling.to_matrix(), weights.T)
    random = clone(estimator).set_params(**shapes, init="random").fit(X).layers_
    assert (np.asarray(random[1].coupling.to_matrix()) != random[0].coupling.to_matrix().T).any()


@pytest.mark.slow
@tensors
def test_the_history_tells_the_stages(estimator):
    model = fitted(estimator)
    stages = [entry["stage"] for entry in model.history_]
    assert stages == ["layer 1"] * 2 + ["layer 2"] * 2 + ["fine-tuning"] * 2
    assert model.n_iter_ == 6
    assert all(np.isfinite(entry["score"]) for entry in model.history_)


@tensors
def test_fine_tuning_moves_every_layer(estimator):
    before = clone(estimator).set_params(n_iter_fine_tuning=0).fit(X)
    after = fitted(estimator)
    for one, other in zip(before.layers_, after.layers_, strict=True):
        assert (np.asarray(one.coupling.to_matrix()) != other.coupling.to_matrix()).all()
        assert (np.asarray(one.visible_bias) != other.visible_bias).any()


@pytest.mark.parametrize(
    "n_written",
    [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(5, marks=pytest.mark.slow)],
)
@tensors
def test_a_killed_training_goes_on_as_if_nothing_had_happened(
    estimator, n_written, tmp_path, monkeypatch
):
    """Killed in the first layer, in the second, and while all layers learn together."""
    model = clone(estimator).set_params(checkpoint=tmp_path / "run")
    save, count = checkpoint.save, iter(range(1, 100))

    def killed(*arguments):
        save(*arguments)
        if next(count) == n_written:
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", killed)
        with pytest.raises(RuntimeError, match="killed"):
            model.fit(X)
    # Of every epoch of a layer there is one, for it has two.
    assert len(list(tmp_path.iterdir())) == n_written
    assert_same(clone(model).fit(X), fitted(estimator))


def test_a_training_without_a_seed_goes_on_with_the_one_that_it_had(tmp_path):
    model = clone(TENSORS[0]).set_params(checkpoint=tmp_path / "run", random_state=None)
    assert_same(clone(model).fit(X), clone(model).fit(X))


@pytest.mark.parametrize("changed", [{"momentum": 0.1}, {"hidden_shapes": ((2, 2), (1, 1))}])
def test_checkpoints_of_other_trainings_are_refused(changed, tmp_path):
    model = clone(TENSORS[0]).set_params(checkpoint=tmp_path / "run", n_iter_fine_tuning=0)
    model.fit(X)
    with pytest.raises(ValueError, match="expected a checkpoint of this training, got one"):
        clone(model).set_params(**changed).fit(X)


@pytest.mark.slow
@tensors
def test_a_progress_bar_for_every_stage(estimator, capsys):
    clone(estimator).set_params(verbose=1).fit(X)
    shown = capsys.readouterr().err
    assert shown.count("2/2") >= 3
    assert "all layers together" in shown


@pytest.mark.slow
def test_validation_samples_are_watched_at_every_stage():
    model = clone(TENSORS[1]).fit(X, X_val=X[:6], sample_weight=np.ones(24))
    assert all("validation_score" in entry for entry in model.history_)


# Inference


@by_name
def test_a_file_gives_the_model_back(estimator, tmp_path):
    dense = not hasattr(estimator, "rank")
    untrained = clone(estimator).set_params(n_iter=0, n_iter_fine_tuning=0)
    model, path = untrained.fit(X) if dense else fitted(estimator), tmp_path / "model"
    model.save(path)
    again = mporbm.load(path)
    assert again.get_params() == model.get_params()
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.score_samples(X), model.score_samples(X))
    assert again.history_ == model.history_
    for one, other in zip(
        jax.tree.leaves(model.machine_), jax.tree.leaves(again.machine_), strict=True
    ):
        assert_array_equal(one, other)
    arrays, header = storage.read(path, "model")
    for lacking in ("machines", "visible_shape"):
        rest = {name: value for name, value in header.items() if name != lacking}
        storage.write(path, "model", arrays, rest)
        with pytest.raises(FileFormatError, match="incomplete or corrupted model file"):
            mporbm.load(path)


@tensors
@pytest.mark.parametrize("units", ["categorical", "gaussian"])
@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_file_keeps_the_units_of_every_layer(estimator, units, n_layers, tmp_path):
    shapes = COMMON["hidden_shapes"][:n_layers]
    model = clone(estimator).set_params(visible_units=units, hidden_shapes=shapes, n_iter=0)
    model.set_params(n_iter_fine_tuning=0).fit(np.eye(2)[HALVES.reshape(8, 3)])
    model.save(tmp_path / "model")
    again = mporbm.load(tmp_path / "model")
    kinds = [[type(m.visible_units) for m in e.layers_] for e in (model, again)]
    assert kinds[0] == kinds[1] == [UNITS[units], Bernoulli][:n_layers]


@tensors
def test_features_come_in_every_form(estimator):
    model = clone(estimator).set_params(n_iter=0, n_iter_fine_tuning=0).fit(X)
    probability = model.transform(X)
    assert probability.shape == (24, 2)
    field = model.set_params(feature="field").transform(X)
    assert_allclose(probability, 1 / (1 + np.exp(-field)), rtol=1e-10)
    state = model.set_params(feature="state", output="tensor").transform(X)
    assert state.shape == (24, 2, 1)
    assert set(np.unique(state)) <= {0.0, 1.0}


@tensors
def test_samples_and_answers_have_the_shape_of_the_data(estimator):
    model = fitted(estimator)
    sample = model.sample(5, n_gibbs=3, random_state=0)
    assert sample.shape == (5, 3, 2)
    assert set(np.unique(sample)) <= {0.0, 1.0}
    assert_array_equal(sample, model.sample(5, n_gibbs=3, random_state=0))
    assert model.reconstruct(X).shape == X.shape
    for method in ("gibbs", "mean-field", "reconstruct"):
        mean, std = model.complete(X, MASK, method=method, n_gibbs=5, return_std=True)
        assert_array_equal(mean[:, MASK], X[:, MASK])
        assert (std[:, MASK] == 0.0).all()
        assert (std[:, ~MASK] > 0.0).all()
    assert model.denoise(X, noise=0.1, n_gibbs=5).shape == X.shape
    assert 0.0 < model.estimate_noise(X) <= 0.5
    drawn = model.posterior_samples(X, MASK, n_samples=2, n_gibbs=3)
    assert drawn.shape == (24, 2, 3, 2)
    assert_array_equal(drawn[:, 1][:, MASK], X[:, MASK])


@pytest.mark.slow
@tensors
def test_gaussian_data_have_real_samples(estimator):
    real = np.random.default_rng(0).normal(size=(24, 3, 2))
    model = clone(estimator).set_params(visible_units="gaussian", learning_rate=0.1, n_iter=0)
    model.fit(real)
    assert np.isfinite(model.score_samples(real)).all()
    # A posterior between the noisy values and what the model expects, with a smaller variance.
    mean, std = model.denoise(real, noise=0.5, n_gibbs=5, return_std=True)
    assert (np.abs(mean - real) < np.abs(real) + 2.0).all()
    assert (std < 0.5).all()
    assert (std > 0.3).all()


def test_the_score_of_a_boltzmann_machine_is_a_bound():
    model = clone(TENSORS[1]).set_params(n_iter=30).fit(X)
    machine = model.machine_
    visible = all_states(model.layers_[0])
    even = np.asarray(exact.visible_distribution(machine)).reshape(64, -1)
    log_p = np.log(even.sum(axis=1))
    score = model.score_samples(visible)
    assert (score <= log_p + 1e-10).all()
    # Tight where the model has its mass; of states that it hardly ever shows, mean field may find
    # one of several ways to explain them.
    assert np.exp(log_p) @ (log_p - score) < 0.02
    annealed = model.log_partition("ais", n_temperatures=200)
    assert_allclose(annealed.value, exact.log_partition(machine), atol=5 * annealed.standard_error)


def test_ranks_and_layers_of_a_stack():
    model = fitted(TENSORS[0])
    assert model.ranks_ == ((2,), (2,))
    assert [machine.hidden_shape for machine in model.layers_] == [(2, 2), (2, 1)]
    assert model.n_parameters_ == sum(m.coupling.n_parameters for m in model.layers_)
    with pytest.raises(AttributeError, match="MPODBN has no layers_ before it is fitted"):
        _ = MPODBN().layers_


# Bad input

WRONG = [
    ({"hidden_shapes": (2, 2)}, ValueError, r"hidden_shapes\[0\]=\(2,\): expected 2 modes"),
    ({"hidden_shapes": [(2, 2), (2,)]}, ValueError, r"hidden_shapes\[1\]=\(2,\): expected 2 modes"),
    ({"hidden_shapes": []}, ValueError, r"hidden_shapes: expected a non-empty sequence of shapes"),
    ({"hidden_shapes": 4}, TypeError, r"hidden_shapes: expected a non-empty sequence of shapes"),
    ({"hidden_shapes": [(2, 0)]}, ValueError, r"hidden_shapes\[0\]\[1\]=0: expected .* at least 1"),
    ({"n_iter_fine_tuning": -1}, ValueError, "n_iter_fine_tuning=-1: expected .* at least 0"),
    ({"n_iter_fine_tuning": 1.5}, TypeError, "n_iter_fine_tuning=1.5: expected an integer"),
    ({"scheme": "all"}, ValueError, "scheme='all': expected"),
    ({"rank": 0}, ValueError, "rank=0: expected"),
    ({"feature": "mean"}, ValueError, "feature='mean': expected"),
    ({"output": "rows"}, ValueError, "output='rows': expected"),
    ({"checkpoint": 5}, TypeError, "checkpoint=5: expected the path of a file or None, got int"),
]


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_bad_parameters_are_named():
    def fit(estimator, changed):
        clone(estimator).set_params(**{"n_iter_fine_tuning": 0, **changed}).fit(X)

    check_messages(
        (functools.partial(fit, estimator, changed), error, message)
        for changed, error, message in WRONG
        for estimator in TENSORS
    )


def test_bad_samples_are_named():
    model = clone(TENSORS[0])
    with pytest.raises(ValueError, match=r"X: expected an array, .* got a stream; each layer"):
        model.fit(lambda: iter([X]))
    with pytest.raises(TypeError, match="expected the keywords X_val and sample_weight, got w"):
        model.fit(X, w=1)
    with pytest.raises(ValueError, match=r"X: expected shape \(n_samples, 3, 2\)"):
        fitted(TENSORS[0]).transform(np.zeros((4, 2, 2)))
    with pytest.raises(ValueError, match=r"X: expected values from 0 to 1 .* X / 255"):
        model.fit(255 * X.astype(int))


def test_the_bound_of_a_deep_boltzmann_machine_is_watched():
    model = MPODBM([(2, 2), (2, 1)], rank=2, n_iter=2, n_iter_fine_tuning=3, random_state=0).fit(X)
    last = model.history_[-1]
    assert last["stage"] == "fine-tuning"
    assert_allclose(last["log_likelihood"], model.score(X), rtol=1e-5)


def test_the_bound_of_a_belief_network_is_watched():
    model = fitted(ESTIMATORS[0])
    last = model.history_[-1]
    assert last["stage"] == "fine-tuning"
    assert last["log_partition_error"] == 0.0
    keys = jax.random.split(jax.random.key(1), 300)
    rows = jax.numpy.asarray(X, model.machine_.top.coupling.dtype)
    passes = [float(belief_bound(key, model.machine_, rows, 1).mean()) for key in keys]
    expected = np.mean(passes) - float(exact.log_partition(model.machine_.top))
    # It is watched by four passes.
    assert abs(last["log_likelihood"] - expected) < 5.0 * np.std(passes) / 2.0
    assert np.std(passes) < 0.5


def test_the_likelihood_of_a_network_of_one_layer_is_exact():
    model = DBN(**{**DENSE, "hidden_shapes": ((3,),)}).fit(X)
    expected = exact.log_probability(model.machine_.top, np.asarray(X, np.float32)).mean()
    assert_allclose(model.history_[-1]["log_likelihood"], expected, rtol=1e-5)


# Where chains have ended


@by_name
def test_chains_are_of_the_layer_that_has_them(estimator, tmp_path):
    model = fitted(estimator)
    assert model.chains_.shape[1:] == model.machine_.undirected.visible_shape
    assert set(np.unique(model.chains_)) <= {0, 1}
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors")
    assert_array_equal(again.chains_, model.chains_)
    assert_array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))
    assert_array_equal(model.sample(5, random_state=1), model.sample(5, 100, random_state=1))
    again.chains_ = again.chains_[:, None]
    again.save(tmp_path / "m.safetensors")
    with pytest.raises(FileFormatError, match="chains"):
        mporbm.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize("kind", [DBN, DBM])
def test_only_a_belief_network_ends_in_its_last_layer(kind):
    model = kind(**{**DENSE, "n_iter_fine_tuning": 0}).fit(X)
    assert (model.chains_ is None) == (kind is DBM)
    assert model.sample(3).shape == (3, 3, 2)


def test_samples_without_a_step_are_data_of_the_chains():
    model = fitted(ESTIMATORS[1])
    drawn = model.sample(len(model.chains_), n_gibbs=0).reshape(-1, 6)
    assert sorted(drawn.tolist()) == sorted(model.chains_[:, :6].tolist())


def test_samples_without_a_step_are_drawn_from_the_chains_above():
    model = mporbm.MPODBN(**COMMON).fit(X)
    model.chains_ = model.chains_[:1]
    n = 4000
    drawn = model.sample(n, n_gibbs=0, random_state=0)
    mean = model.machine_.generation[0].visible_mean(np.asarray(model.chains_, np.float32))[0]
    assert (np.abs(drawn.mean(axis=0) - mean) < 5.0 * np.sqrt(mean * (1 - mean) / n)).all()


@by_name
def test_both_directions_of_annealing_find_log_z(estimator):
    model = fitted(estimator)
    found = model.log_partition("ais", n_temperatures=50)
    true = model.log_partition("exact").value
    assert abs(found.value - true) < 5.0 * found.standard_error + 0.01
    assert found.forward != found.value != found.reverse


@pytest.mark.parametrize("kind", [DBM, MPODBM])
def test_a_single_layer_may_have_tensors_as_data(kind):
    model = kind(((2, 2),), n_iter=2, n_iter_fine_tuning=2, random_state=0).fit(X)
    assert np.isfinite(model.history_[-1]["log_likelihood"])


@pytest.mark.parametrize("kind", [MPODBN, MPODBM])
def test_ranks_of_stacks_are_by_the_number_of_samples(kind):
    """As of one machine, if asked for; what came out does not warn."""
    assert kind().rank == 20
    options = {"rank": "auto", "n_iter": 1, "n_iter_fine_tuning": 0, "random_state": 0}
    images = np.random.default_rng(0).random((150, 6, 6)) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind([(3, 3), (2, 2)], **options).fit(images)
    alone = MPORBM((3, 3), n_iter=1).fit(images)
    assert model.ranks_[0] == alone.ranks_ == (4,)


def test_chains_of_real_data_are_as_small_as_those_of_binary_ones():
    model = DBN(**{**DENSE, "visible_units": "gaussian"}).fit(np.asarray(X, float))
    assert model.chains_.dtype == np.uint8
