"""Log-likelihoods: data, machines of equal sizes, what a run measures, and what tables tell."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mporbm.estimators.likelihood import LikelihoodWarning
from mporbm.sampling import LogPartition
from reproduction import datasets, densities, likelihood, likelihood_tables, mnist
from reproduction.densities import DENSITIES, Density, Design, Parts, as_images, draw_pixels
from reproduction.likelihood_figures import curves, draw_nats
from reproduction.scale import Scale
from reproduction_support import fakes

FULL = Scale(full=True)


@pytest.fixture
def small(monkeypatch):
    """Bars of 5x4 pixels with noise, as a data set of its own."""
    rng = np.random.default_rng(0)
    images = rng.random((90, 5, 4)) < 0.1
    images[np.arange(90), rng.integers(5, size=90)] = True
    parts = Parts(images[:60], images[60:])
    design = Design("MPORBM", (3, 2), 2)
    density = Density("Bars", lambda: parts, "Bars.", (3,), (design,), (design, design))
    monkeypatch.setitem(DENSITIES, "bars", density)
    return parts


# Data


def test_pixels_are_drawn_by_their_values():
    """The share of ones is value / 255; five standard deviations are allowed."""
    images = np.broadcast_to(np.array([0, 1, 100, 254, 255], np.uint8), (40_000, 5))
    drawn = draw_pixels(np.random.default_rng(1), images)
    rates = images[0] / 255.0
    assert (np.abs(drawn.mean(axis=0) - rates) <= 5 * np.sqrt(rates * (1 - rates) / 40_000)).all()
    assert not drawn[:, 0].any()
    assert drawn[:, 4].all()


def test_both_binarisations_are_of_the_same_images(monkeypatch):
    grey = np.random.default_rng(0).integers(256, size=(50, 28, 28)).astype(np.uint8)
    parts = {"train": grey, "test": 255 - grey}

    class Bunch:
        def __init__(self, subset):
            self.data = parts[subset]

    monkeypatch.setattr(densities, "load_mnist", Bunch)
    clear, drawn = (DENSITIES[name].load() for name in ("mnist", "mnist-stochastic"))
    assert_array_equal(clear.train, grey > 127)
    assert_array_equal(clear.test, 255 - grey > 127)
    again = DENSITIES["mnist-stochastic"].load()
    for first, second, whole in zip(drawn[:2], again[:2], clear[:2], strict=True):
        # The same draw for every machine and every seed.
        assert_array_equal(first, second)
        assert 0.6 < (first == whole).mean() < 0.9
    assert (drawn.test != drawn.train).mean() > 0.4


def test_test_samples_are_others(monkeypatch):
    """No sample is on both sides, and those of Alphadigits are split class by class."""
    labels = np.repeat(np.arange(3), 39)
    images = np.arange(117)[:, None, None]
    monkeypatch.setattr(datasets, "load_alphadigits", lambda return_X_y: (images, labels))
    train, test, validation = DENSITIES["alphadigits"].load()
    assert_array_equal(np.bincount(labels[train.ravel()]), [29] * 3)
    assert_array_equal(np.bincount(labels[test.ravel()]), [5] * 3)
    assert_array_equal(np.bincount(labels[validation.ravel()]), [5] * 3)
    assert len({*train.ravel(), *test.ravel(), *validation.ravel()}) == 117

    class Bunch:
        def __init__(self, subset):
            self.data = {"train": np.arange(8), "valid": np.arange(10, 30)}[subset]

    monkeypatch.setattr(datasets, "load_connect_four", Bunch)
    train, test, _ = DENSITIES["connect-four"].load()
    assert_array_equal(train, np.arange(8))
    assert len({*test}) == 10
    assert {*test} < {*range(10, 30)}
    assert_array_equal(DENSITIES["connect-four"].load().test, test)

    values = np.zeros((5000, 28, 28), np.uint8)
    values[:, 0, 0] = 255
    monkeypatch.setattr(mnist, "_load", lambda name: (values, np.zeros(5000)))
    assert [len(part) for part in DENSITIES["digits"].load()[:2]] == [4000, 1000]


def test_boards_stand_upright():
    """The first square of a column is at the bottom, and empty squares are white."""
    board = np.tile(np.eye(3)[1], (1, 7, 6, 1))
    board[0, 2, 0] = np.eye(3)[0]
    board[0, 6, 1] = np.eye(3)[2]
    (image,) = as_images(board)
    assert image.shape == (6, 7, 3)
    assert_allclose(image[5, 2], densities.PALETTE[0])
    assert_allclose(image[4, 6], densities.PALETTE[2])
    assert (image == 1.0).all(axis=-1).sum() == 40


# Machines of equal sizes


def made_up(data, effective=40.0, n_seeds=2):
    """Outcomes of all machines of a data set."""
    asked = {"n_iter": [*DENSITIES[data].n_iter], "n_temperatures": None, "pictures": False}
    return {
        d: [
            fakes.likelihood_run(
                data,
                d.kind,
                d.hidden_shape,
                d.rank,
                d.scheme,
                seed=seed,
                effective=effective,
                **asked,
            )
            for seed in range(n_seeds)
        ]
        for d in DENSITIES[data].designs
    }


@pytest.mark.parametrize("data", DENSITIES)
def test_every_mporbm_has_a_dense_machine_of_equal_weights(data):
    found = made_up(data)
    pairs = dict(likelihood_tables.equal_weights(found))
    assert [d for d in found if d.kind == "MPORBM"] == [*pairs]
    for first, second in pairs.items():
        n, m = (found[design][0]["parameters"] for design in (first, second))
        assert 0.97 < n / m < 1.031
    first, second = DENSITIES[data].shown
    assert pairs[first] == second
    alike = likelihood_tables.equal_units(found)
    assert all(a.n_hidden == b.n_hidden for a, b in alike)
    assert data == "digits" or first in dict(alike)


def test_sizes_of_the_machines_of_mnist():
    found = made_up("mnist")
    counts = {design.label: found[design][0]["parameters"] for design in found}
    assert counts["RBM 500"] == 392_000
    assert (counts["RBM 64"], counts["MPORBM 20x25, rank 40"]) == (50_176, 50_400)
    assert (counts["RBM 91"], counts["MPORBM 32x32, rank 40"]) == (71_344, 71_680)
    assert counts["MvRBM 20x25"] == 1_260
    assert counts["TvRBM 500, rank 90"] == 50_040


@pytest.mark.parametrize("kind", ["RBM", "MvRBM", "TvRBM", "MPORBM"])
def test_machines_are_built_as_they_are_called(kind):
    sizes = {"RBM": (6,), "TvRBM": (6,)}.get(kind, (3, 2, 2))
    design = Design(kind, sizes, 3 if kind in ("TvRBM", "MPORBM") else None)
    images = np.random.default_rng(0).random((20, 4, 3, 2)) < 0.5
    model = design.build().set_params(**likelihood.TRAINING, n_iter=1).fit(images)
    assert model.n_parameters_ == fakes.n_weights(kind, (4, 3, 2), sizes, design.rank)
    assert type(model).__name__ == kind
    assert design.label.startswith(kind)


# Runs

ASKED = {"data": "bars", "kind": "MPORBM", "hidden_shape": [3, 2], "rank": 2, "scheme": "aop"}
ASKED |= {"n_iter": [3], "n_temperatures": 500, "pictures": True, "seed": 0}


def test_a_run(small):
    outcome = likelihood.run(**ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.likelihood_run(**ASKED))
    # Six hidden units: log Z is known. Five standard errors, and what single precision leaves.
    tolerance = 5 * outcome["standard_error"] + 1e-3
    assert abs(outcome["nats"] - outcome["exact"]) < tolerance
    assert abs(outcome["forward"] - outcome["exact"]) < 2 * tolerance
    assert abs(outcome["reverse"] - outcome["exact"]) < 2 * tolerance
    assert outcome["effective_sample_size"] > 100
    assert outcome["parameters"] == 2 * (5 * 3 + 4 * 2)
    assert (outcome["epochs"], outcome["sizes"]) == (3, [60, 30])
    assert outcome["training_seconds"] > 0


def test_a_run_that_is_not_to_be_trusted_is_kept_without_a_warning(small, monkeypatch):
    few = LogPartition(0.0, 1.0, 2.0, 0.0)
    monkeypatch.setattr("mporbm.estimators.likelihood.log_partition", lambda *_, **__: few)
    model = Design("RBM", (2,)).build().set_params(n_iter=1).fit(small.train)
    with pytest.warns(LikelihoodWarning):
        model.log_partition("ais")
    outcome = likelihood.run(**{**ASKED, "pictures": False})
    assert outcome["effective_sample_size"] == 2.0
    assert outcome["pictures"] is None


def test_epochs_are_chosen_by_validation_samples(small, monkeypatch):
    """Twelve of the training samples are learnt by heart, and no others but them validate."""
    density = dataclasses.replace(
        DENSITIES["bars"],
        load=lambda: Parts(small.train[:12], small.test, small.train[:12]),
    )
    monkeypatch.setitem(DENSITIES, "bars", density)
    asked = {**ASKED, "n_iter": [1, 60], "pictures": False, "n_temperatures": 100}
    assert likelihood.run(**asked)["epochs"] == 60
    # Their negatives are the less likely, the more is learnt.
    parts = Parts(small.train[:12], small.test, ~small.train[:12])
    monkeypatch.setitem(DENSITIES, "bars", dataclasses.replace(density, load=lambda: parts))
    assert likelihood.run(**asked)["epochs"] == 1


@pytest.mark.parametrize("units", ["bernoulli", "categorical"])
def test_independent_units(units):
    """Sample by sample and unit by unit, with half a sample of each state added."""
    rng = np.random.default_rng(0)
    train, test = np.eye(3)[rng.integers(3, size=(2, 40, 4, 2))].astype(np.uint8)
    train[:, 0, 0] = [0, 1, 0]
    n_states = 3 if units == "categorical" else 2
    rate = (train.sum(axis=0) + 0.5) / (len(train) + 0.5 * n_states)
    terms = test * np.log(rate)
    if units == "bernoulli":
        terms = np.where(test, np.log(rate), np.log1p(-rate))
    expected = terms.reshape(len(test), -1).sum(axis=1).mean()
    assert_allclose(likelihood.independent(train, test, units), expected, rtol=1e-5)


def test_what_is_run():
    quick, full = (likelihood.runs(scale) for scale in (Scale(), FULL))
    assert {run.configuration["data"] for run in quick} == {"digits"}
    assert {run.configuration["kind"] for run in quick} == {"RBM", "MPORBM"}
    assert {run.configuration["data"] for run in full} == DENSITIES.keys() - {"digits"}
    assert {run.configuration["seed"] for run in full} == {0, 1, 2}
    assert {run.configuration["kind"] for run in full} == {"RBM", "MvRBM", "TvRBM", "MPORBM"}
    assert {run.configuration["n_temperatures"] for run in full} == {2000}
    with_pictures = [run for run in full if run.configuration["pictures"]]
    assert len(with_pictures) == 2 * 5
    assert all(run.cost > 0 for run in full)
    settings = likelihood.TRAINING
    assert (settings["rule"], settings["negative_phase"]) == ("centred", "pcd")
    assert (settings["schedule"], settings["momentum"]) == ("linear", 0.0)
    assert settings["batch_size"] == 100


# Tables


def cells(table):
    return {
        row["label"]: dict(zip(table["columns"], row["cells"], strict=True))
        for row in table["rows"]
    }


def test_a_table_and_what_it_tells():
    found = made_up("mnist-stochastic", n_seeds=3)
    table, summary = likelihood_tables.table("name", DENSITIES["mnist-stochastic"], found)
    rows = cells(table)
    ours, dense = (found[design] for design in DENSITIES["mnist-stochastic"].shown)
    nats = [entry["nats"] for entry in ours]
    row = rows["MPORBM 20x25, rank 40"]
    assert row["test"]["mean"] == pytest.approx(np.mean(nats))
    assert row["weights"] == {"count": 50_400}
    assert row["hidden units"] == {"count": 500}
    assert row["ESS"] == {"count": 40}
    assert rows["independent units"]["test"] == {"value": -200.0}
    published = rows["RBM 500, CD-25, Salakhutdinov & Murray 2008"]
    assert published["test"] is None
    assert published["from a paper, or older"]["value"] == -86.3
    assert rows["RBM 500, package rbms"]["from a paper, or older"]["value"] == -91.7
    differences = np.subtract(nats, [entry["nats"] for entry in dense])
    assert len(summary) == 2
    assert summary[0]["text"].startswith("Equal weights (50\N{THIN SPACE}400 and 50\N{THIN SPACE}")
    assert f"{abs(differences.mean()):.2f} nats" in summary[0]["text"]
    assert summary[1]["text"].startswith("Equal hidden units (")
    assert "RBM 500 = " in summary[1]["text"]
    assert {entry["text"] for entry in summary} < {entry["text"] for entry in table["verdicts"]}
    # Two machines at equal weights and at equal units, and the time.
    assert len(table["verdicts"]) == 2 + 2 + 1
    (note,) = (note for note in table["notes"] if "enumerated" in note)
    assert note.startswith("RBM 16: ")
    assert "off by 0.12 nats or less" in note


def test_higher_likelihood_is_better():
    found = made_up("digits", n_seeds=3)
    ours, dense = DENSITIES["digits"].shown
    for gain, holds in ((5.0, True), (-5.0, False)):
        for k, (mine, theirs) in enumerate(zip(found[ours], found[dense], strict=True)):
            mine["nats"] = theirs["nats"] + gain + 0.1 * k
        table, (entry,) = likelihood_tables.table("name", DENSITIES["digits"], found)
        assert entry["holds"] is holds
        assert table["verdicts"][0] == entry


def test_what_is_not_to_be_trusted_is_marked_and_decides_nothing():
    found = made_up("digits", n_seeds=3)
    ours, dense = DENSITIES["digits"].shown
    for mine, theirs in zip(found[ours], found[dense], strict=True):
        mine["nats"] = theirs["nats"] + 50.0
    found[ours][1]["effective_sample_size"] = 9.9
    table, (entry,) = likelihood_tables.table("name", DENSITIES["digits"], found)
    assert entry["holds"] is None
    assert entry["text"].endswith("An effective sample size is below 10: not to be trusted.")
    row = cells(table)[ours.label]
    for column in ("test", "forwards", "backwards", "training"):
        assert row[column]["note"] == "not to be trusted"
        # Words are never the best of a column.
        assert row[column].keys() == {"text", "note"}
    assert row["ESS"] == {"count": 9}
    assert "mean" in cells(table)[dense.label]["test"]


def test_the_dense_machine_of_equal_time():
    found = made_up("mnist")
    ours = DENSITIES["mnist"].shown[0]
    for design, outcomes in found.items():
        for outcome in outcomes:
            outcome["training_seconds"] = 1.0 + design.n_hidden
            outcome["nats"] = -200.0 + design.n_hidden / 10
    (last,) = likelihood_tables._per_second(found, ours)
    assert "(501 s and 501 s of training)" in last["text"]
    assert "RBM 500 = 0.00 nats" in last["text"]
    for outcome in found[ours]:
        outcome["training_seconds"] = 70.0
    (last,) = likelihood_tables._per_second(found, ours)
    assert "RBM 64 = 43.60 nats" in last["text"]
    for outcome in found[ours]:
        outcome["training_seconds"] = 0.5
    assert likelihood_tables._per_second(found, ours) == []


def test_a_training_that_diverged_is_named():
    density, found = DENSITIES["digits"], made_up("digits")
    table, _ = likelihood_tables.table("name", density, found)
    assert not any("diverged" in note for note in table["notes"])
    found[density.shown[1]][1]["epochs"] = 7
    table, _ = likelihood_tables.table("name", density, found)
    (note,) = (note for note in table["notes"] if "diverged" in note)
    assert note == "RBM 20: a training was stopped as diverged after 7 epochs."


# Pictures


def test_curves_join_machines_that_differ_in_one_size():
    found = made_up("mnist")
    joined = curves(found)
    assert [*joined] == ["RBM", "MvRBM 20x25", "TvRBM 500", "MPORBM 20x25", "MPORBM 32x32"]
    assert [design.rank for design in joined["MPORBM 20x25"]] == [10, 20, 40]
    axes = draw_nats(found).axes
    for axis, measure in zip(axes, ("parameters", "training_seconds"), strict=True):
        assert axis.get_xscale() == "log"
        lines = {line.get_label(): line for line in axis.containers}
        assert lines.keys() == joined.keys()
        places = sorted(likelihood_tables.mean(found[d], measure) for d in joined["RBM"])
        assert_allclose(np.asarray(lines["RBM"][0].get_xdata(), float), places)


def test_points_that_are_not_to_be_trusted_are_hollow():
    found = made_up("digits")
    found[DENSITIES["digits"].shown[0]][0]["effective_sample_size"] = 3.0
    for axis in draw_nats(found).axes:
        hollow = [line for line in axis.lines if line.get_markerfacecolor() == "white"]
        assert len(hollow) == 1
