"""Measures of samples against plain loops, and what they say of good and bad samplers."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from mporbm.evaluation import neighbours, samples
from mporbm.evaluation.samples import (
    adversarial_accuracy,
    class_coverage,
    measure_samples,
    moment_agreement,
    null_error,
)


def digits(rng, n, classes=(0, 1, 2)):
    """Draw noisy binary images of some classes, and their labels."""
    patterns = np.random.default_rng(42).random((3, 5, 4)) < 0.5
    labels = rng.choice(classes, n)
    return patterns[labels] ^ (rng.random((n, 5, 4)) < 0.04), labels


def squared(first, second):
    """All squared distances, by a loop."""
    rows = [row.reshape(-1).astype(float) for row in first]
    others = [row.reshape(-1).astype(float) for row in second]
    return np.array([[np.sum((a - b) ** 2) for b in others] for a in rows])


# Neighbours


@pytest.mark.parametrize("kind", ["binary", "grey", "real"])
@pytest.mark.parametrize("block", [3, 256])
def test_neighbours_are_those_of_all_distances(rng, monkeypatch, kind, block):
    monkeypatch.setattr(neighbours, "BLOCK", block)
    monkeypatch.setattr(neighbours, "COLUMNS", 5)
    train, asked = rng.normal(size=(40, 3, 4)), rng.normal(size=(17, 3, 4))
    if kind == "binary":
        train, asked = train > 0.0, asked > 0.0
    elif kind == "grey":
        train, asked = (np.clip(99 + 60 * x, 0, 255).astype(np.uint8) for x in (train, asked))
    distances = squared(asked, train)
    numbers, found = neighbours.nearest(train, asked, k=3)
    # A stable order: the first of those that are equally near.
    order = np.argsort(distances, axis=1, kind="stable")[:, :3]
    assert_allclose(found, np.take_along_axis(distances, order, axis=1), rtol=1e-12, atol=1e-12)
    assert_array_equal(numbers, order)
    left_out = rng.permutation(40)[:17]
    distances[np.arange(17), left_out] = np.inf
    numbers, _ = neighbours.nearest(train, asked, k=3, left_out=left_out)
    assert_array_equal(numbers, np.argsort(distances, axis=1, kind="stable")[:, :3])


# Adversarial accuracy


@pytest.mark.parametrize("block", [3, 256])
def test_adversarial_accuracy_is_that_of_a_loop(rng, monkeypatch, block):
    monkeypatch.setattr(neighbours, "BLOCK", block)
    real, drawn = rng.random((31, 9)) < 0.5, rng.random((31, 9)) < 0.6
    found = adversarial_accuracy(real, drawn)
    ties = []
    for own, other, share in ((real, drawn, found.truth), (drawn, real, found.synthetic)):
        wins = 0.0
        for i in range(31):
            inside = min(np.sum(own[i] != own[j]) for j in range(31) if j != i)
            outside = min(np.sum(own[i] != other[j]) for j in range(31))
            wins += float(outside > inside) + 0.5 * float(outside == inside)
            ties.append(outside == inside)
        assert share == pytest.approx(wins / 31)
    assert 0.1 < found.ties == pytest.approx(np.mean(ties))
    assert found.n_compared == 31


@pytest.mark.parametrize("seed", range(3))
def test_the_error_is_that_of_all_ways_to_call_samples_real(seed):
    points = np.random.default_rng(seed).normal(size=(8, 2))
    distances = squared(points, points)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argmin(distances, axis=1)
    shares = [
        np.mean([nearest[i] in real for i in real]) for real in itertools.combinations(range(8), 4)
    ]
    assert null_error(nearest) == pytest.approx(np.std(shares))
    assert np.std(shares) > 0.1


def test_the_error_of_two_pairs():
    """Of four samples, two pairs of mutual neighbours: truth is 1 in 2 of 6 cases, else 0."""
    assert null_error(np.array([1, 0, 3, 2])) == pytest.approx(np.sqrt(1 / 3 * 2 / 3))


@pytest.mark.parametrize("kind", ["binary", "few bits", "real"])
def test_one_distribution_has_one_half_within_the_error(rng, kind):
    """Over 40 pairs of sets, means are within 4 of their standard errors, and so is the spread."""
    scores = []
    for _ in range(40):
        pool = rng.normal(size=(2, 60, 5 if kind == "few bits" else 20))
        real, drawn = pool if kind == "real" else pool > 0.5
        found = adversarial_accuracy(real, drawn)
        # With n - 1 others against n the mean is a little below one half.
        scores.append((np.array([found.truth, found.synthetic]) - 59 / 119) / found.standard_error)
    assert abs(np.mean(scores)) < 4 / np.sqrt(80)
    # Ties make the spread smaller, never larger.
    assert np.std(scores) < 1.3
    assert np.std(scores) > (0.7 if kind == "real" else 0.1)


def test_repeated_data_are_near_0(rng):
    real = rng.random((300, 40)) < 0.5
    found = adversarial_accuracy(real, real[rng.permutation(300)])
    assert (found.truth, found.synthetic) == (0.0, 0.0)
    noisy = real ^ (rng.random(real.shape) < 0.01)
    found = adversarial_accuracy(real, noisy)
    assert max(found.truth, found.synthetic) < 0.02


def test_samples_that_differ_are_near_1(rng):
    real, drawn = rng.normal(size=(2, 300, 20))
    found = adversarial_accuracy(real, drawn + 3.0)
    assert min(found.truth, found.synthetic) > 0.98


def test_a_sampler_with_one_of_two_modes_has_two_thirds(rng):
    """In its mode a third of the neighbours are real, and of the other mode all are.

    An error of 0.1 is more than four standard errors of 400 samples.
    """
    centres = np.repeat([10.0, -10.0], 200)[:, None]
    real, drawn = rng.normal(size=(2, 400, 3))
    found = adversarial_accuracy(real + centres, drawn + 10.0)
    assert found.truth == pytest.approx(0.5 + 0.5 / 3, abs=0.1)
    assert found.synthetic == pytest.approx(2 / 3, abs=0.1)


def test_the_error_is_that_of_the_neighbours_found(rng):
    real, drawn = rng.normal(size=(2, 30, 3))
    distances = squared([*real, *drawn], [*real, *drawn])
    np.fill_diagonal(distances, np.inf)
    error = adversarial_accuracy(real, drawn).standard_error
    assert error == pytest.approx(null_error(np.argmin(distances, axis=1)))


def test_larger_sets_are_drawn_from(rng, monkeypatch):
    monkeypatch.setattr(samples, "MOST_COMPARED", 50)
    real, drawn = rng.normal(size=(2, 200, 3))
    first = adversarial_accuracy(real, drawn, seed=1)
    assert first.n_compared == 50
    assert first == adversarial_accuracy(real, drawn, seed=1)
    assert first != adversarial_accuracy(real, drawn, seed=2)
    assert adversarial_accuracy(real, drawn[:20]).n_compared == 20


# Moments


@pytest.mark.parametrize("rows", [7, 4096])
@pytest.mark.parametrize("binary", [True, False])
def test_moments_are_those_of_numpy(rng, monkeypatch, rows, binary):
    monkeypatch.setattr(samples, "ROWS", rows)
    mixing = rng.normal(size=(6, 6))
    real, drawn = rng.normal(size=(60, 6)) @ mixing + 2.0, rng.normal(size=(40, 6)) @ mixing
    if binary:
        real, drawn = real > 1.0, drawn > 0.5
    means, covariances = moment_agreement(real.reshape(60, 2, 3), drawn.reshape(40, 2, 3))
    pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    for part, array in (("data", real), ("samples", drawn)):
        assert_allclose(getattr(means, part), array.mean(axis=0), atol=1e-12)
        expected = [np.cov(array[:, i], array[:, j])[0, 1] for i, j in pairs]
        assert_allclose(getattr(covariances, part), expected, atol=1e-12)
    for found in (means, covariances):
        assert found.correlation == pytest.approx(np.corrcoef(found.data, found.samples)[0, 1])
        assert found.slope == pytest.approx(np.polyfit(found.data, found.samples, 1)[0])


def test_samples_of_the_distribution_reach_the_reference(rng):
    """30 units that 5 sources drive: a covariance of 2000 samples is off by some 3 %."""
    mixing = rng.normal(size=(5, 30))
    real, drawn = rng.normal(size=(2, 2000, 5)) @ mixing
    _, found = moment_agreement(real, drawn)
    assert found.correlation > 0.98
    assert found.reference_correlation > 0.98
    assert found.slope == pytest.approx(1.0, abs=0.15)
    assert found.reference_slope == pytest.approx(1.0, abs=0.15)
    _, alone = moment_agreement(real, rng.permuted(drawn, axis=0))
    assert abs(alone.correlation) < 0.3
    assert abs(alone.slope) < 0.05
    _, flat = moment_agreement(real, 0.5 * drawn)
    assert flat.slope == pytest.approx(0.25 * found.slope)
    assert flat.correlation == pytest.approx(found.correlation)


def test_a_few_samples_are_compared_with_a_small_part(rng):
    real = rng.normal(size=(400, 10)) @ rng.normal(size=(10, 10))
    _, few = moment_agreement(real, real[:8])
    _, many = moment_agreement(real, real)
    assert few.reference_correlation < many.reference_correlation


def test_many_units_are_drawn_from(rng, monkeypatch):
    monkeypatch.setattr(samples, "MOST_UNITS", 5)
    real, drawn = rng.normal(size=(2, 50, 4, 4))
    means, covariances = moment_agreement(real, drawn, seed=3)
    assert (len(means.data), len(covariances.data)) == (5, 10)
    units = [int(np.argmin(abs(real.reshape(50, 16).mean(axis=0) - m))) for m in means.data]
    assert units == sorted({*units})
    assert_allclose(means.samples, drawn.reshape(50, 16).mean(axis=0)[units])
    assert_array_equal(moment_agreement(real, drawn, seed=3)[0].data, means.data)


@pytest.mark.parametrize("value", [True, 0.1])
def test_samples_that_are_all_one_have_no_correlation(rng, value):
    real = rng.random((30, 7)) < 0.3
    _, found = moment_agreement(real, np.full((20, 7), value))
    assert np.isnan(found.correlation)
    assert found.slope == 0.0
    _, alone = moment_agreement(real[:, :1], real[:, :1])
    assert np.isnan([alone.correlation, alone.slope, alone.reference_slope]).all()


# Classes


def test_classes_are_those_of_scikit_learn(rng):
    train, labels = rng.normal(size=(80, 3, 2)), rng.integers(3, size=80) * 4
    asked = rng.normal(size=(50, 3, 2))
    oracle = KNeighborsClassifier(3).fit(train.reshape(80, -1), labels)
    numbers = oracle.kneighbors(asked.reshape(50, -1), return_distance=False)
    predicted = oracle.predict(asked.reshape(50, -1))
    # scikit-learn takes the smallest label where all differ, and here the nearest one decides.
    split = np.array([len({*labels[row]}) == 3 for row in numbers])
    predicted[split] = labels[numbers[split, 0]]
    assert split.any()
    found = class_coverage(train, labels, asked)
    assert found.classes.tolist() == [0, 4, 8]
    assert_allclose(found.sample_shares, [np.mean(predicted == k) for k in (0, 4, 8)])
    assert_allclose(found.data_shares, [np.mean(labels == k) for k in (0, 4, 8)])
    differences = np.abs(found.sample_shares - found.data_shares)
    assert found.distance == pytest.approx(0.5 * differences.sum())


def test_a_class_that_is_dropped_is_missed(rng):
    data, labels = digits(rng, 600)
    drawn, _ = digits(rng, 400, classes=(0, 2))
    found = class_coverage(data, np.array(["a", "b", "c"])[labels], drawn)
    assert found.missing.tolist() == ["b"]
    assert found.rarest == "b"
    assert found.distance == pytest.approx(found.data_shares[1])
    assert found.distance > 5 * found.expected_distance
    assert found.reference_distance < 3 * found.expected_distance


def test_the_reference_labels_each_sample_by_others(rng):
    data, labels = rng.normal(size=(60, 2)), np.repeat([0, 1], [40, 20])
    distances = squared(data, data)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1)[:, :3]
    share = np.mean(labels[order].sum(axis=1) >= 2)
    found = class_coverage(data, labels, rng.normal(size=(90, 2)))
    assert found.reference_distance == pytest.approx(abs(share - 1 / 3))
    assert found.reference_distance > 0.0


def test_exact_samples_are_as_far_as_expected(rng):
    """The mean over 30 sets; the scatter of a distance is about half of its mean."""
    found = []
    for _ in range(30):
        data, labels = digits(rng, 200)
        found.append(class_coverage(data, labels, digits(rng, 100)[0]))
    mean, expected = (
        np.mean([getattr(f, n) for f in found]) for n in ("distance", "expected_distance")
    )
    assert mean == pytest.approx(expected, rel=0.35)
    assert all(len(f.missing) == 0 for f in found)


def test_the_expected_distance_of_two_classes():
    """|p - q| of two binomial shares is nearly that of a normal number: its mean is known."""
    labels = np.repeat([0, 1], [300, 700])
    data = np.arange(1000.0)[:, None]
    found = class_coverage(data, labels, data[::4])
    deviation = np.sqrt(0.3 * 0.7 * (1 / 1000 + 1 / 250))
    # 1000 simulations: an error of 2.4 % of the mean.
    assert found.expected_distance == pytest.approx(np.sqrt(2 / np.pi) * deviation, rel=0.1)


# Everything


def test_everything_is_measured(rng):
    data, labels = digits(rng, 300)
    drawn, _ = digits(rng, 200)
    found = measure_samples(data, drawn, labels, seed=4)
    assert found.adversarial == adversarial_accuracy(data, drawn, 4)
    for one, other in zip(
        (found.means, found.covariances), moment_agreement(data, drawn, 4), strict=True
    ):
        assert_array_equal(one.samples, other.samples)
        assert one[2:] == other[2:]
    assert found.classes is not None
    assert found.classes[3:] == class_coverage(data, labels, drawn, 4)[3:]
    assert abs(found.adversarial.truth - 0.5) < 4 * found.adversarial.standard_error
    assert measure_samples(data, drawn).classes is None


def test_two_samples_are_enough():
    found = measure_samples(np.eye(2), np.eye(2) + 1.0, np.array([0, 1]))
    assert found.adversarial.n_compared == 2
    assert np.isfinite(found.adversarial.standard_error)


X = np.zeros((4, 3))


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
@pytest.mark.parametrize(
    ("data", "drawn", "labels", "error", "message"),
    [
        (X.astype(complex), X, None, TypeError, "data: expected an array of real numbers, got dty"),
        (X, [["a"]], None, TypeError, "samples: expected an array of real numbers, got dtype"),
        (X[:1], X, None, ValueError, r"data: expected two samples or more .* got shape \(1, 3\)"),
        (X, X[:, 0], None, ValueError, r"samples: expected two samples or more .* shape \(4,\)"),
        (X[:, :0], X, None, ValueError, r"data: expected .* got shape \(4, 0\)"),
        (X, X[:, :2], None, ValueError, r"samples: expected samples of shape \(3,\).*got \(2,\)"),
        (X, X + np.nan, None, ValueError, "samples: expected finite numbers, got NaN or inf"),
        (X, X, [1, 2], ValueError, r"labels: expected .* each of 4 samples, got shape \(2,\)"),
        (X, X, [None] * 4, ValueError, "labels: expected a number or a string .* dtype object"),
    ],
)
def test_bad_input_is_refused(data, drawn, labels, error, message):
    with pytest.raises(error, match=f"^{message}"):
        measure_samples(data, drawn, labels)
