"""1-nearest-neighbour classification against scikit-learn's and plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from mporbm.evaluation import neighbours


@pytest.fixture
def data(rng):
    """Training samples and labels, and samples to classify; distances differ from each other."""
    train = rng.normal(size=(40, 3, 4)) + rng.normal(size=(3, 4))
    return train, rng.integers(3, size=40) * 7, rng.normal(size=(50, 3, 4))


@pytest.mark.parametrize("distance", neighbours.DISTANCES)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_classify_is_that_of_scikit_learn(data, distance, scale):
    train, labels, samples = data
    # Lengths matter for one of the distances only.
    train, samples = scale * train * np.linspace(0.1, 3.0, 40)[:, None, None], scale * samples
    oracle = KNeighborsClassifier(1, metric=distance, algorithm="brute")
    oracle.fit(train.reshape(40, -1), labels)
    expected = oracle.predict(samples.reshape(50, -1))
    assert len(np.unique(expected)) == 3
    assert_array_equal(neighbours.classify(train, labels, samples, distance), expected)


def test_blocks_do_not_matter(data, monkeypatch):
    train, _, samples = data
    monkeypatch.setattr(neighbours, "BLOCK", 7)
    found = neighbours.classify(train, np.arange(40), samples)
    differences = train[None] - samples[:, None]
    assert_array_equal(found, np.argmin((differences**2).sum(axis=(2, 3)), axis=1))


def test_distances_are_not_the_same(data):
    train, labels, samples = data
    train = train * np.linspace(0.1, 3.0, 40)[:, None, None]
    euclidean, cosine = (
        neighbours.classify(train, labels, samples, distance) for distance in neighbours.DISTANCES
    )
    assert (euclidean != cosine).any()


def test_the_distance_of_binary_samples_is_the_number_of_different_bits(rng):
    train, samples = rng.random((30, 60)) < 0.5, rng.random((20, 60)) < 0.5
    numbers = neighbours.classify(train, np.arange(30), samples)
    differences = (train[None] != samples[:, None]).sum(axis=2)
    assert_array_equal(differences[np.arange(20), numbers], differences.min(axis=1))


def test_a_sample_of_zeros_is_as_far_as_a_right_angle():
    train = np.array([[0.0, 0.0], [1.0, 2.0]])
    oracle = KNeighborsClassifier(1, metric="cosine").fit(train, [0, 1])
    samples = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert_array_equal(oracle.predict(samples), [1, 1])
    assert_array_equal(neighbours.classify(train, np.array([0, 1]), samples, "cosine"), [1, 1])


@pytest.mark.parametrize("distance", neighbours.DISTANCES)
def test_each_sample_is_left_out(data, distance):
    train, labels, _ = data
    wrong = 0
    for k in range(len(train)):
        others = np.arange(len(train)) != k
        found = neighbours.classify(train[others], labels[others], train[k : k + 1], distance)
        wrong += found[0] != labels[k]
    expected = 100 * wrong / len(train)
    assert 0 < expected < 100
    assert neighbours.leave_one_out_error_rate(train, labels, distance) == pytest.approx(expected)


def test_error_rates_are_in_per_cent(rng):
    labels = np.repeat([3, 5, 8], [2, 10, 30])
    predicted = rng.choice([3, 5, 8], size=42)
    n_wrong = sum(a != b for a, b in zip(predicted, labels, strict=True))
    assert neighbours.error_rate(predicted, labels) == pytest.approx(100 * n_wrong / 42)
    balanced = 100 * (1 - balanced_accuracy_score(labels, predicted))
    assert neighbours.balanced_error_rate(predicted, labels) == pytest.approx(balanced)
    assert abs(balanced - 100 * n_wrong / 42) > 1.0


def test_the_commonest_label():
    assert neighbours.majority_label(np.array([9, 4, 4, 2, 9, 4])) == 4


@pytest.mark.parametrize("distance", neighbours.DISTANCES)
def test_samples_of_many_values_are_compared_piece_by_piece(distance, rng, monkeypatch):
    train, samples = rng.normal(size=(20, 4, 7)), rng.normal(size=(30, 4, 7))
    labels = np.arange(20)
    whole = neighbours.classify(train, labels, samples, distance)
    alone = neighbours.leave_one_out_error_rate(train, labels // 2, distance)
    monkeypatch.setattr(neighbours, "COLUMNS", 5)
    np.testing.assert_array_equal(neighbours.classify(train, labels, samples, distance), whole)
    assert neighbours.leave_one_out_error_rate(train, labels // 2, distance) == alone
