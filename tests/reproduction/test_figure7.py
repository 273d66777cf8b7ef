"""Figure 7: the learning rate is chosen on validation images, for each feature and distance."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.neighbors import KNeighborsClassifier

from reproduction import figure7, mnist
from reproduction.scale import Scale
from reproduction_support import fakes

N_TRAIN, N_ASKED = 20, 10
ASKED = {"n_train": N_TRAIN, "n_asked": N_ASKED, "n_iter": 2, "offline": True, "seed": 0}
WAYS = [f"{feature}, {distance}" for feature, distance in figure7.COLUMNS]


@pytest.fixture
def images(monkeypatch):
    """As many random images as are asked for, and what was chosen of them."""
    rng = np.random.default_rng(0)
    values = rng.integers(256, size=(N_TRAIN + 2 * N_ASKED, 28, 28)).astype(np.uint8)
    labels = np.arange(len(values)) % 2
    monkeypatch.setattr(mnist, "_load", lambda name: (values, labels))
    return mnist.choose(0, N_TRAIN, N_ASKED, N_ASKED, offline=True)


def error(known, asked, train, test, way):
    """As scikit-learn classifies hidden features."""
    feature, distance = way.split(", ")
    if feature == "probability":
        known, asked = expit(known), expit(asked)
    oracle = KNeighborsClassifier(1, metric=distance).fit(known, train.labels)
    return 100 * np.mean(oracle.predict(asked) != test.labels)


class Rigged:
    """A machine whose features depend on nothing but its learning rate."""

    n_parameters_ = 7

    def set_params(self, **parameters):
        self.learning_rate, self.n_iter_ = parameters["learning_rate"], parameters["n_iter"]
        assert parameters["feature"] == "field"
        assert parameters["random_state"] == ASKED["seed"]
        return self

    def fit(self, X):
        assert X.shape == (N_TRAIN, 28, 28)
        if self.learning_rate == 0.005:
            self.n_iter_ -= 1
        return self

    def transform(self, X):
        weights = np.random.default_rng([int(1e4 * self.learning_rate)]).normal(size=(784, 3))
        return X.reshape(len(X), -1) @ weights / 28


def test_the_rate_is_that_of_validation_images(images, monkeypatch):
    train, validation, test = images
    monkeypatch.setattr(figure7, "_machine", lambda rule, rank: Rigged())
    outcome = figure7.run("plain", 3, **ASKED)
    assert list(outcome["columns"]) == WAYS
    rates = set()
    for way, found in outcome["columns"].items():
        errors = {}
        for rate in (0.02, 0.005):
            model = SimpleNamespace(learning_rate=rate)
            known, *asked = (Rigged.transform(model, part.binary) for part in images)
            errors[rate] = [
                error(known, X, train, part, way)
                for X, part in zip(asked, (validation, test), strict=True)
            ]
        best = min(errors, key=lambda rate: errors[rate][0])
        assert (found["validation"], found["error"]) == pytest.approx(errors[best])
        assert found["rate"] == best
        assert found["stopped"] is (best == 0.005)
        rates.add(best)
    # The choice is not the same for all of them.
    assert rates == {0.02, 0.005}
    assert outcome["parameters"] == 7


@pytest.mark.slow
def test_a_run(images):
    outcome = figure7.run("gauge", 2, **ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.figure7_run("gauge", 2, **ASKED))
    assert outcome["parameters"] == 2 * 28 * 10 * 2
    train, validation, test = images
    model = figure7._machine("gauge", 2).set_params(n_iter=2, random_state=0, feature="field")
    model.fit(train.binary)
    known, *asked = (model.transform(part.binary) for part in images)
    for way, found in outcome["columns"].items():
        expected = [
            error(known, X, train, part, way)
            for X, part in zip(asked, (validation, test), strict=True)
        ]
        assert [found["validation"], found["error"]] == pytest.approx(expected)


def test_machines_are_those_of_the_paper():
    plain, ours = (figure7._machine(rule, 5).get_params() for rule in ("plain", "gauge"))
    assert (plain["rank"], plain["hidden_shape"]) == (5, (10, 10))
    differences = {name for name in plain if plain[name] != ours[name]}
    assert differences == {"gauge", "init"}
    assert (plain["gauge"], plain["init"]) == (None, "random")
    assert figure7._machine("RBM", 0).get_params()["hidden_shape"] == 100


def test_baselines(images):
    train, _, test = images
    outcome = figure7.run("baselines", 0, **ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.figure7_run("baselines", 0, **ASKED))
    for name, pair in {
        "raw values": (train.values, test.values),
        "binary images": (train.binary, test.binary),
    }.items():
        known, asked = (X.reshape(len(X), -1).astype(float) for X in pair)
        oracle = KNeighborsClassifier(1).fit(known, train.labels)
        assert outcome[name] == pytest.approx(100 * np.mean(oracle.predict(asked) != test.labels))


# Verdicts


def verdicts(errors, scale=None, raw=(8.0, 8.0)):
    """Of given errors, two splits each: by the rule and the rank."""
    scale = Scale(full=True, seeds=2) if scale is None else scale
    return figure7._verdicts(
        scale, lambda rule, rank, n_train, column: errors(rule, rank), list(raw)
    )


@pytest.mark.parametrize(("gap", "holds"), [(0.5, True), (0.51, False), (-1.0, True)])
def test_a_low_rank_is_as_good_as_a_dense_machine_or_not(gap, holds):
    def errors(rule, rank):
        # Rank 40 is better, but not low.
        error = {0: 10.0, 5: 10.0 + gap, 40: 1.0}.get(rank, 20.0)
        return [error, error]

    for found in verdicts(errors)[:3]:
        assert found["holds"] is holds
        assert (
            f"our rule at rank 5 is {'within' if holds else 'not within'} 0.5 points"
            in (found["text"])
        )
        assert found["text"].startswith("MNIST, 3000 images, ")


def test_the_worst_rank_is_compared_with_raw_values():
    def errors(rule, rank):
        return [rank / 40 + 1, rank / 40 + 2] if rule == "gauge" else [6.0, 6.0]

    _, _, _, worst, *ranks = verdicts(errors)
    assert "ours at its worst rank, 200," in worst["text"]
    assert "1-NN on raw values" in worst["text"]
    assert worst["holds"] is None
    assert verdicts(errors, raw=(10.0, 11.0))[3]["holds"] is True
    # And every rank with the paper's rule.
    assert [
        found["text"].count(f"ours at rank {rank} ")
        for found, rank in zip(ranks, figure7.ranks(Scale(full=True)), strict=True)
    ] == [1] * 7
    assert ranks[0]["holds"] is None
    assert ranks[0]["text"].startswith("probabilities, Euclidean, 3000 images: ")
