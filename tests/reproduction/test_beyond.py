"""Deep machines and machines with labels: what is learnt from which images, and chosen by which."""

import numpy as np
import pytest

from reproduction import beyond, generation, mnist
from reproduction_support import fakes

ASKED = {"n_train": 40, "n_iter": 1, "n_validation": 12, "n_test": 15, "offline": True, "seed": 0}


@pytest.fixture
def images(monkeypatch):
    """Bars whose place tells their label, with noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 4
    values = np.where(rng.random((80, 28, 28)) < 0.05, 200, 0).astype(np.uint8)
    for image, label in zip(values, labels, strict=True):
        image[6 * label : 6 * label + 4, 4:24] = 250
    monkeypatch.setattr(mnist, "_load", lambda name: (values, labels))


@pytest.mark.parametrize(
    "machine", [pytest.param("MPODBN", marks=pytest.mark.slow), "ClassRBM", "baselines"]
)
def test_a_run(images, monkeypatch, machine):
    monkeypatch.setattr(generation, "N_GIBBS", 2)
    monkeypatch.setattr(beyond, "N_GIBBS_SAMPLES", 2)
    outcome = beyond.run(machine, **ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.beyond_run(machine, **ASKED))
    assert all(0.0 <= error < 60.0 for error in outcome["error"].values())
    n_weights = {"MPODBN": 2 * 40 * (28 * 14 + 14 * 14), "ClassRBM": 400 * (784 + 4)}
    assert outcome["parameters"] == n_weights.get(machine, 784 * 4)


def test_machines_have_the_same_layers_and_epochs():
    made = {name: make(7) for name, make in beyond.MACHINES.items()}
    epochs = {
        name: model.n_iter * (len(model.hidden_shapes) if name != "MPORBM" else 1)
        + getattr(model, "n_iter_fine_tuning", 0)
        for name, model in made.items()
    }
    assert {*epochs.values()} == {21}
    assert made["DBN"].hidden_shapes == [196, 196]
    assert made["MPODBN"].hidden_shapes == made["MPODBM"].hidden_shapes == [(14, 14)] * 2
    assert made["MPORBM"].hidden_shape == (14, 14)


def test_features_are_chosen_by_validation_images(rng):
    """The better features on test images are not taken if validation images prefer others."""
    labels = np.arange(60) % 2
    parts = [mnist.Images(np.zeros((60, 1)), labels)] * 3
    good, bad = labels[:, None] + 0.01 * rng.random((60, 1)), rng.random((60, 1))
    features = [[good, good, bad], [good, bad, good]]
    errors = beyond._errors(features, parts)
    assert errors.keys() == {"1-NN", "linear"}
    assert all(error > 20.0 for error in errors.values())
    assert beyond._errors(features[::-1], parts) == errors
    assert max(beyond._errors([[good, good, good]], parts).values()) < 5.0
