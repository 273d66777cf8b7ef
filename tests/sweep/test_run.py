"""A run measures its training on samples that it has not seen."""

import threading
import time
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from mporbm import MPORBM, RBM, Binarize, BitPlanes
from mporbm.evaluation.run_cache import read_outcome
from mporbm.sweep import Run, Samples

COMMON = {"n_iter": 2, "batch_size": 10}


@pytest.fixture
def samples(rng):
    x, y = rng.random((30, 3, 2)) < 0.4, rng.integers(3, size=30)
    return Samples(x, ~x[:12], y, y[:12])


# Samples


def test_a_seed_chooses_validation_samples(rng):
    x, y = rng.random((21, 3)), np.arange(21)
    samples = Samples(x, y=y, validation_fraction=0.25)
    for seed in (0, 1):
        parts = samples.split(seed)
        assert (len(parts.X), len(parts.X_val)) == (15, 6)
        assert_array_equal(np.sort(np.concatenate([parts.y, parts.y_val])), y)
        assert_array_equal(parts.X, x[parts.y])
        assert_array_equal(parts.X_val, x[parts.y_val])
        assert_array_equal(samples.split(seed).y_val, parts.y_val)
    assert not np.array_equal(samples.split(0).y_val, samples.split(1).y_val)


def test_given_validation_samples_stay(samples):
    assert samples.split(3) is samples


def test_samples_are_left_to_learn_from(rng):
    with pytest.raises(ValueError, match=r"validation_fraction=0.9: .* but there are 5 in all"):
        Samples(rng.random((5, 2)), validation_fraction=0.9)


def test_fingerprints_tell_samples_apart(rng):
    x = rng.integers(4, size=(3000, 2), dtype=np.uint8)
    changed, y = x.copy(), np.arange(3000)
    changed[-1, -1] += 1
    variants = [
        Samples(x),
        Samples(changed),
        Samples(x.astype(np.int8)),
        Samples(x.reshape(1500, 4)),
        Samples(x, validation_fraction=0.2),
        Samples(x, x),
        Samples(x, changed),
        Samples(x, y=y),
        Samples(x, y=y[::-1]),
        Samples(x, x, y, y),
    ]
    assert len({samples.fingerprint() for samples in variants}) == len(variants)
    assert Samples(np.asfortranarray(x)).fingerprint() == variants[0].fingerprint()
    # With samples for validation none are set aside.
    assert Samples(x, x, validation_fraction=0.3).fingerprint() == variants[5].fingerprint()


# Runs


def test_outcomes_are_kept_and_failures_are_not(tmp_path, samples, monkeypatch):
    made = []

    def train(run, samples):
        made.append(run.seed)
        if len(made) == 1:
            raise ValueError("it cannot\n be done")
        return {"status": "done", "measures": {"reconstruction_error": 0.5}}

    monkeypatch.setattr(Run, "train", train)
    run = Run({"rank": 2}, 3, MPORBM())
    reason = "ValueError: it cannot be done"
    assert run.perform(samples, tmp_path, "a") == {"status": "failed", "reason": reason}
    assert list(tmp_path.iterdir()) == []
    outcome = run.perform(samples, tmp_path, "a")
    assert (outcome["status"], outcome["measures"]) == ("done", {"reconstruction_error": 0.5})
    assert run.perform(samples, tmp_path, "a") == outcome == read_outcome(run.path(tmp_path, "a"))
    assert made == [3, 3]
    # A spoilt file is made again.
    run.path(tmp_path, "a").write_text("{")
    assert run.perform(samples, tmp_path, "a")["status"] == "done"
    assert made == [3, 3, 3]


def test_mistakes_of_the_program_are_not_taken_for_failures(tmp_path, samples, monkeypatch):
    monkeypatch.setattr(Run, "train", mock.Mock(side_effect=AttributeError("no such thing")))
    with pytest.raises(AttributeError, match="no such thing"):
        Run({}, 0, MPORBM()).perform(samples, tmp_path, "a")


def test_one_process_waits_for_what_another_one_makes(tmp_path, samples, monkeypatch):
    made, begun = [], threading.Event()

    def train(run, samples):
        begun.set()
        time.sleep(0.3)
        made.append(threading.get_ident())
        return {"status": "done", "measures": {}}

    monkeypatch.setattr(Run, "train", train)
    run, found = Run({}, 0, MPORBM()), []
    thread = threading.Thread(target=lambda: found.append(run.perform(samples, tmp_path, "a")))
    thread.start()
    begun.wait()
    found.append(run.perform(samples, tmp_path, "a"))
    thread.join()
    assert found[0] == found[1]
    assert len(made) == 1


def test_what_was_asked_makes_the_name(tmp_path):
    run = Run({"rank": 2, "momentum": 0.5}, 0, MPORBM())
    paths = [run.path(tmp_path, "a"), run.path(tmp_path, "b")]
    paths += [Run(options, 0, RBM()).path(tmp_path, "a") for options in ({"rank": 2}, {"rank": 3})]
    paths.append(Run(run.options, 1, MPORBM()).path(tmp_path, "a"))
    assert len({*paths}) == 5
    swapped = Run({"momentum": 0.5, "rank": 2}, 0, RBM())
    assert swapped.path(tmp_path, "a") == paths[0]


SLOW_KINDS = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("grey", "planes")]


@pytest.mark.parametrize("kind", ["plain", *SLOW_KINDS])
def test_measures_are_those_of_the_estimator(rng, kind):
    coding = {"plain": None, "grey": Binarize(100.0), "planes": BitPlanes(2)}[kind]
    hidden = (2, 2, 1) if kind == "planes" else (2, 2)
    x = rng.integers(256, size=(30, 3, 2), dtype=np.uint8) // {"planes": 64}.get(kind, 1)
    x = x > 99 if kind == "plain" else x
    y = rng.integers(3, size=30)
    estimator = MPORBM(hidden, rank=2, **COMMON)
    found = Run({}, 5, estimator, coding).train(Samples(x, y=y, validation_fraction=0.3))

    parts = Samples(x, y=y, validation_fraction=0.3).split(5)
    learnt, held = parts.X, parts.X_val
    if coding is not None:
        coding.fit(learnt)
        learnt, held = coding.transform(learnt), coding.transform(held)
    model = MPORBM(hidden, rank=2, **COMMON, random_state=5).fit(learnt)
    nearest = KNeighborsClassifier(1).fit(model.transform(learnt), parts.y)
    wrong = nearest.predict(model.transform(held)) != parts.y_val
    error = ((np.asarray(held, float) - model.reconstruct(held)) ** 2).mean()
    assert found["measures"] == {
        "pseudo_log_likelihood": pytest.approx(model.pseudo_log_likelihood(held).mean()),
        "reconstruction_error": pytest.approx(error),
        "nearest_neighbour_error": pytest.approx(100 * wrong.mean()),
    }
    assert (found["status"], found["n_iter"]) == ("done", 2)
    assert found["n_parameters"] == model.n_parameters_
    # The estimator of the run is as it was.
    assert not hasattr(estimator, "machine_")
    assert estimator.random_state is None


def test_gaussian_units_have_no_pseudo_likelihood(rng):
    estimator = RBM((2,), visible_units="gaussian", **COMMON)
    found = Run({}, 0, estimator).train(Samples(rng.normal(size=(20, 4))))
    assert found["measures"].keys() == {"reconstruction_error"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mporbm.training.DivergenceWarning")
def test_divergence_is_told(samples):
    estimator = RBM((2,), learning_rate=1e6, **COMMON)
    found = Run({}, 0, estimator).train(samples)
    assert (found["status"], found["n_iter"]) == ("diverged", 0)
    stopping = RBM((2,), learning_rate=1e6, early_stopping=True, **COMMON)
    assert Run({}, 0, stopping).train(samples)["status"] == "diverged"


def test_an_early_stop_is_no_divergence(samples):
    """By the samples that the sweep compares by, not by others that are set aside."""
    options = {"early_stopping": True, "n_iter_no_change": 1, "learning_rate": 0.5}
    estimator = RBM((2,), n_iter=50, batch_size=10, **options)
    found = Run({}, 0, estimator).train(samples)
    assert found["status"] == "done"
    assert 1 < found["n_iter"] < 50
    model = RBM((2,), n_iter=50, batch_size=10, random_state=0, **options)
    model.fit(samples.X, X_val=samples.X_val)
    assert found["n_iter"] == model.n_iter_
