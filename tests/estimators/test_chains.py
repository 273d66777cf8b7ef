"""Samples start where the chains of the training have ended."""

import equinox as eqx
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mporbm
from mporbm import MPORBM, ClassRBM
from mporbm.machine import MPOCoupling
from mporbm.tensor import MPO
from mporbm.training import FileFormatError

ROWS = np.random.default_rng(0).random((30, 4, 3)) < 0.4


def fitted(phase, **parameters):
    options = {"hidden_shape": (2, 2), "rank": 2, "n_iter": 2, "batch_size": 10, "random_state": 0}
    return MPORBM(negative_phase=phase, **{**options, **parameters}).fit(ROWS)


def two_modes(n_hidden=3):
    """A machine whose units are all on or all off, and hardly ever change sides."""
    model = fitted("pcd", hidden_shape=(1, n_hidden))
    cores = [np.ones((1, 4, 1, 1)), np.full((1, 3, n_hidden, 1), 20.0)]
    machine = eqx.tree_at(
        lambda m: (m.coupling, m.visible_bias, m.hidden_bias),
        model.machine_,
        (
            MPOCoupling(MPO(cores)),
            np.full((4, 3), -10.0 * n_hidden),
            np.full((1, n_hidden), -120.0),
        ),
    )
    model.set_machine(machine)
    return model


@pytest.mark.parametrize("phase", ["pcd", "fpcd", "pt"])
def test_samples_without_a_step_are_the_chains_each_as_often(phase):
    model = fitted(phase)
    assert model.chains_.shape == (10, 4, 3)
    assert model.chains_.dtype == np.uint8
    drawn = model.sample(20, n_gibbs=0)
    found, counts = np.unique(drawn.reshape(20, -1), axis=0, return_counts=True)
    states, expected = np.unique(model.chains_.reshape(10, -1), axis=0, return_counts=True)
    assert_array_equal(found, states)
    assert_array_equal(counts, 2 * expected)


def test_contrastive_divergence_leaves_no_chains():
    assert fitted("cd").chains_ is None


def test_modes_that_chains_cannot_leave_are_those_of_the_training():
    model = two_modes()
    model.chains_ = np.repeat(np.array([0, 1, 1, 1], np.uint8), 12).reshape(4, 4, 3)
    drawn = model.sample(100, n_gibbs=5, random_state=1).reshape(100, -1)
    assert set(drawn.mean(axis=1)) == {0.0, 1.0}
    assert drawn[:, 0].mean() == 0.75
    # Independent units are never near both.
    del model.chains_
    drawn = model.sample(100, n_gibbs=5, random_state=1)
    assert len(set(drawn.reshape(100, -1).mean(axis=1))) == 1


def test_files_keep_the_chains(tmp_path):
    model = fitted("pcd")
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors")
    assert_array_equal(again.chains_, model.chains_)
    assert_array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))


@pytest.mark.parametrize(
    "chains", [np.zeros((5, 3, 4), np.uint8), np.full((5, 4, 3), 2, np.uint8), np.zeros((0, 4, 3))]
)
def test_files_with_chains_of_something_else_are_refused(tmp_path, chains):
    model = fitted("pcd")
    model.chains_ = chains
    model.save(tmp_path / "m.safetensors")
    with pytest.raises(FileFormatError, match="chains"):
        mporbm.load(tmp_path / "m.safetensors")


def test_another_machine_has_no_chains():
    model = fitted("pcd")
    model.set_machine(model.machine_)
    assert not hasattr(model, "chains_")
    assert model.sample(2).shape == (2, 4, 3)


def test_compressed_machines_keep_them():
    model = fitted("pcd")
    assert_array_equal(model.compress(rank=1).chains_, model.chains_)


def test_chains_of_classifiers_hold_labels():
    options = {"objective": "generative", "negative_phase": "pcd", "n_iter": 2, "random_state": 0}
    model = ClassRBM(4, **options).fit(ROWS, np.arange(30) % 3)
    assert model.chains_.shape == (30, 15)
    assert_array_equal(model.chains_[:, 12:].sum(axis=1), 1.0)
    assert model.sample(5).shape == (5, 4, 3)


def test_gaussian_chains_are_real():
    model = fitted("pcd", visible_units="gaussian", hidden_units="bernoulli")
    assert model.chains_.dtype == model.machine_.coupling.dtype
    assert model.sample(3).shape == (3, 4, 3)


def test_steps_by_default():
    """Few from the chains of the training, many from independent units."""
    model = fitted("pcd")
    assert_array_equal(model.sample(5, random_state=0), model.sample(5, 100, random_state=0))
    model = fitted("cd")
    assert_array_equal(model.sample(5, random_state=0), model.sample(5, 1000, random_state=0))
