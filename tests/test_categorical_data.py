"""What `benchmarks/categorical.py` measures, and its data where MPORBM_DATA names a folder."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal

# Benchmarks are no part of the source distribution, tests are.
categorical = pytest.importorskip("benchmarks.categorical")
real_data = pytest.mark.skipif(
    not os.environ.get("MPORBM_DATA"), reason="MPORBM_DATA is not set: no real data"
)
SMALL = "connect4, MPORBM 3x2, rank 2, 1 epochs, 1000 samples a batch"


def test_cases_are_read_from_their_names():
    name = "proteins, MPORBM 20x10, rank 7, rectified hidden, 3 epochs, 2 Gibbs steps, step 0.5"
    model = categorical.build(name, 4)
    assert (model.hidden_shape, model.rank, model.n_iter) == ((20, 10), 7, 3)
    assert (model.hidden_units, model.n_gibbs, model.learning_rate) == ("rectified", 2, 0.5)
    assert (model.visible_units, model.random_state) == ("categorical", 4)
    model = categorical.build("connect4, RBM 50, bernoulli", 0)
    assert (model.visible_units, model.hidden_shape, model.n_iter) == ("bernoulli", (50,), 40)
    for name in categorical.CASES:
        categorical.build(name, 0)
    with pytest.raises(ValueError, match="CASE: expected a name such as"):
        categorical.build("proteins, MPORBM", 0)


def test_intervals_are_those_of_the_mean():
    run = {"weights": 6, "seconds": 1.0, "training": -1.0, "effective_sample_size": 9.0}
    run |= {"forward": -2.0, "reverse": -2.0, "valid_samples": 1.0}
    table = categorical.show({"proteins, RBM 2": [{**run, "test": t} for t in (-1.0, -2.0, -3.0)]})
    # Student's t of two degrees of freedom is 4.303, the standard error 1 / sqrt(3).
    assert "| proteins, RBM 2 | 6 | 1 | -2.0000 ± 2.4841 | -2.0000 ± 0.0000 |" in table
    assert table.endswith("| 9 or more | 100.0 % |")


@real_data
def test_proteins_are_split_alike_for_every_seed():
    train, test = categorical.load("proteins, RBM 2", False)
    assert (train.shape, test.shape) == ((37012, 27, 20), (9253, 27, 20))
    assert (train.sum(axis=2) == 1).all()
    learnt, held_out = categorical.load("proteins, RBM 2", True)
    assert_array_equal(np.concatenate([learnt, held_out]), train)


@real_data
def test_samples_of_positions_have_one_state_for_each_square():
    train, test = categorical.load(SMALL, False)
    assert (train.shape, test.shape) == ((16000, 42, 3), (4000, 42, 3))
    for rows in (train, test):
        assert (rows.sum(axis=2) == 1).all()
    model = categorical.build(SMALL, 0).fit(train)
    drawn = model.sample(200, random_state=0)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert (drawn.sum(axis=2) == 1).all()
