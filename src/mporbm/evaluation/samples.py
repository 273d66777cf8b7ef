"""How near samples of a model are to data: by their neighbours, moments and classes."""

from typing import NamedTuple

import numpy as np

from .neighbours import nearest

Array = np.ndarray
MOST_COMPARED = 5000
"""How many samples of either kind are compared with each other by their neighbours, at most."""
MOST_UNITS = 1000
"""How many units pairs are made of, at most."""
N_NEIGHBOURS = 3
"""How many training samples decide the class of a sample."""
N_SIMULATIONS = 1000
"""How many sets of exact samples the expected distance of class shares is the mean of."""
ROWS = 4096
"""How many samples are added up at once."""


class AdversarialAccuracy(NamedTuple):
    """How often the nearest neighbour of a sample is of its own kind, real or synthetic.

    Samples of the distribution of the data have 0.5 for both. Less than that for both is a sampler
    that repeats the data; more is one whose samples can be told from them.
    """

    truth: float
    """The share of real samples that are nearer to another real one than to a synthetic one."""
    synthetic: float
    """The share of synthetic samples that are nearer to another synthetic one."""
    standard_error: float
    """The standard deviation of either, had both kinds one distribution."""
    ties: float
    """The share of samples that are as near to one kind as to the other, counted as one half."""
    n_compared: int
    """How many samples there were of either kind."""


class Agreement(NamedTuple):
    """How statistics of samples, y, follow those of the data, x; NaN where one does not vary."""

    data: Array
    """The statistics of the data."""
    samples: Array
    """The statistics of the samples, in the same order."""
    correlation: float
    """The correlation coefficient of x and y."""
    slope: float
    """The slope of y over x by least squares: below 1 if samples vary less than the data."""
    reference_correlation: float
    """The correlation between two parts of the data, which exact samples would reach."""
    reference_slope: float
    """The slope between two parts of the data."""


class ClassCoverage(NamedTuple):
    """Which classes the samples are of, as their nearest neighbours in the data say."""

    classes: Array
    """The classes, sorted."""
    data_shares: Array
    """The share of each class in the labels of the data."""
    sample_shares: Array
    """The share of each class in the samples."""
    distance: float
    """The total variation distance of both, ``sum_c |p_c - q_c| / 2``."""
    expected_distance: float
    """The mean distance of as many exact samples, from sampling noise alone."""
    reference_distance: float
    """The distance of real samples labelled in the same way, each without itself."""

    @property
    def rarest(self) -> np.generic:
        """The class that the fewest samples are of."""
        found: np.generic = self.classes[np.argmin(self.sample_shares)]
        return found

    @property
    def missing(self) -> Array:
        """The classes that no sample is of."""
        return np.asarray(self.classes[self.sample_shares == 0.0])


class SampleMeasures(NamedTuple):
    """All that is measured of samples."""

    adversarial: AdversarialAccuracy
    means: Agreement
    covariances: Agreement
    classes: ClassCoverage | None
    """None if the data have no labels."""


def measure_samples(
    data: Array, samples: Array, labels: Array | None = None, seed: int = 0
) -> SampleMeasures:
    """Measure how near samples of a model are to data, which should be others than it learnt from.

    Parameters
    ----------
    data, samples
        Real samples (n, ...) and synthetic ones (m, ...), at least two of either.
    labels
        The class (n,) of each real sample.
    seed
        Chooses what is compared where not everything is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data, samples = rng.random((2, 500, 4, 4)) < 0.5
    >>> found = measure_samples(data, samples)
    >>> abs(found.adversarial.truth - 0.5) < 3 * found.adversarial.standard_error
    True
    """
    real = _check_samples("data", data)
    drawn = _check_samples("samples", samples)
    if real.shape[1:] != drawn.shape[1:]:
        raise ValueError(
            f"samples: expected samples of shape {real.shape[1:]}, as data has, got "
            f"{drawn.shape[1:]}."
        )
    means, covariances = moment_agreement(real, drawn, seed)
    classes = None
    if labels is not None:
        classes = class_coverage(real, _check_labels(labels, len(real)), drawn, seed)
    return SampleMeasures(adversarial_accuracy(real, drawn, seed), means, covariances, classes)


def adversarial_accuracy(data: Array, samples: Array, seed: int = 0) -> AdversarialAccuracy:
    """Compute the nearest-neighbour adversarial accuracy (Yale et al. 2020), by squared distances.

    With n real samples T and n synthetic ones S, ``truth = (1/n) sum_i 1[d_TS(i) > d_TT(i)]``,
    where ``d_TS(i)`` is the distance of real sample i from the nearest of S, and ``d_TT(i)`` from
    the nearest of the others of T; synthetic likewise. Equal distances, which discrete data have,
    count as one half: as losses, they would hold exact samples for ones that repeat the data.
    Larger sets are drawn from until both have one size.
    """
    rng = np.random.default_rng(seed)
    n = min(len(data), len(samples), MOST_COMPARED)
    sets = [rows[_draw(rng, len(rows), n)] for rows in (data, samples)]
    shares, ties, neighbours = [], [], []
    for kind, own in enumerate(sets):
        inside, near = nearest(own, own, left_out=np.arange(n))
        outside, far = nearest(sets[1 - kind], own)
        wins, equal = (far > near)[:, 0], (far == near)[:, 0]
        shares.append(float(wins.mean() + 0.5 * equal.mean()))
        ties.append(float(equal.mean()))
        # Numbers in both sets together, the real ones first.
        pooled = np.where(wins | equal, inside[:, 0] + kind * n, outside[:, 0] + (1 - kind) * n)
        neighbours.append(pooled)
    error = null_error(np.concatenate(neighbours))
    return AdversarialAccuracy(shares[0], shares[1], error, float(np.mean(ties)), n)


def null_error(neighbours: Array) -> float:
    """Compute the standard deviation of an adversarial accuracy if kinds are given at random.

    Of N = 2n samples, n are called real, each choice being equally likely, and
    ``truth = (1/n) sum_i x_i x_nn(i)``, where x_i is 1 for real ones. The mean of a product of k
    different x is ``p_k = n (n-1) .. (n-k+1) / N (N-1) .. (N-k+1)``; how many of the terms of the
    square have 2, 3 and 4 different ones follows from mutual and shared neighbours (Schilling
    1986; Henze 1988).

    Parameters
    ----------
    neighbours
        The number of the nearest neighbour of each sample, real and synthetic ones together.
    """
    total = len(neighbours)
    n = total // 2
    n_mutual = int(np.sum(neighbours[neighbours] == np.arange(total)))
    counts = np.bincount(neighbours, minlength=total)
    n_shared = int(np.sum(counts * (counts - 1)))
    two, three = total + n_mutual, n_shared + 2 * (total - n_mutual)
    left = np.arange(4)
    _, p2, p3, p4 = np.cumprod((n - left) / np.maximum(total - left, 1))
    square = two * p2 + three * p3 + (total**2 - two - three) * p4
    return float(np.sqrt(max(square - (total * p2) ** 2, 0.0)) / n)


def moment_agreement(data: Array, samples: Array, seed: int = 0) -> tuple[Agreement, Agreement]:
    """Compare the means of units, and the covariances ``C_ij``, i < j, of pairs of them.

    For reference, as many random rows of the data as there are samples, but at most one half, are
    compared with the rest. Of many units some are drawn.
    """
    rng = np.random.default_rng(seed)
    real, drawn = (rows.reshape(len(rows), -1) for rows in (data, samples))
    units = np.sort(_draw(rng, real.shape[1], min(real.shape[1], MOST_UNITS)))
    order = rng.permutation(len(real))
    n_apart = min(len(drawn), len(real) // 2)
    of_data, of_samples = _moments(real, units), _moments(drawn, units)
    of_rest = _moments(real, units, np.sort(order[n_apart:]))
    of_part = _moments(real, units, np.sort(order[:n_apart]))
    means, covariances = (
        Agreement(x, y, *_line(x, y), *_line(rest, part))
        for x, y, rest, part in zip(of_data, of_samples, of_rest, of_part, strict=True)
    )
    return means, covariances


def class_coverage(data: Array, labels: Array, samples: Array, seed: int = 0) -> ClassCoverage:
    """Label samples by their 3 nearest neighbours, and compare shares of classes with the labels'.

    The neighbour that is nearest decides where all three disagree. Exact samples are simulated by
    multinomial numbers of both labels and samples with the shares of the labels. They do not know
    the mistakes of the classifier, which the reference, real samples labelled by the others, has.
    """
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(labels, return_inverse=True)

    def shares(asked: Array, left_out: Array | None = None) -> Array:
        n_others = len(data) - (left_out is not None)
        numbers, _ = nearest(data, asked, min(N_NEIGHBOURS, n_others), left_out)
        votes = codes[numbers]
        agreeing = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
        winners = votes[np.arange(len(votes)), np.argmax(agreeing, axis=1)]
        return np.asarray(np.bincount(winners, minlength=len(classes)) / len(asked))

    expected, found = np.bincount(codes) / len(codes), shares(samples)
    again = _draw(rng, len(data), min(len(data), len(samples), MOST_COMPARED))
    simulated = [
        rng.multinomial(n, expected, N_SIMULATIONS) / n for n in (len(labels), len(samples))
    ]
    return ClassCoverage(
        classes,
        expected,
        found,
        distance=_total_variation(expected, found),
        expected_distance=_total_variation(*simulated),
        reference_distance=_total_variation(expected, shares(data[again], again)),
    )


def _total_variation(first: Array, second: Array) -> float:
    """Compute the distance of shares (n_classes,), or the mean one of several pairs of them."""
    return 0.5 * float(np.abs(first - second).sum(axis=-1).mean())


def _draw(rng: np.random.Generator, n: int, size: int) -> Array:
    """Draw some of the numbers below n, each once; all of them in order if they are as many."""
    return np.arange(n) if size == n else rng.choice(n, size, replace=False)


def _moments(rows: Array, units: Array, numbers: Array | None = None) -> tuple[Array, Array]:
    """Compute means of units, and covariances of pairs of them, of all rows or of some."""
    numbers = np.arange(len(rows)) if numbers is None else numbers
    blocks = [numbers[start : start + ROWS] for start in range(0, len(numbers), ROWS)]

    # From the first row: units that do not vary then have covariances of exactly 0.
    first = np.asarray(rows[numbers[0]][units], np.float64)
    means, products = np.zeros(len(units)), np.zeros((len(units), len(units)))
    for block in blocks:
        means += (rows[block][:, units] - first).sum(axis=0) / len(numbers)
    for block in blocks:
        centred = rows[block][:, units] - first - means
        products += centred.T @ centred
    pairs = np.triu_indices(len(units), 1)
    return first + means, products[pairs] / max(len(numbers) - 1, 1)


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Compute the correlation of x and y and the slope of y over x; NaN if one does not vary."""
    if len(x) == 0 or np.ptp(x) == 0.0:
        return float("nan"), float("nan")
    varies = np.ptp(y) > 0.0
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    return (float(x @ y / np.sqrt((x @ x) * (y @ y))) if varies else float("nan")), slope


def _check_samples(name: str, value: Array) -> Array:
    """Return an array of at least two samples (n, ...) of finite numbers."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name}: expected an array of real numbers, got dtype {array.dtype}.")
    if array.ndim < 2 or len(array) < 2 or 0 in array.shape:
        raise ValueError(
            f"{name}: expected two samples or more in the first axis, got shape {array.shape}."
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or inf.")
    return array


def _check_labels(value: Array, n: int) -> Array:
    """Return a label for each of n samples."""
    labels = np.asarray(value)
    if labels.shape != (n,) or labels.dtype.kind not in "biufU":
        raise ValueError(
            f"labels: expected a number or a string for each of {n} samples, got shape "
            f"{labels.shape} and dtype {labels.dtype}."
        )
    return labels
