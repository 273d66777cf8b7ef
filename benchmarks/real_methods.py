"""What real-valued tensor data are completed with elsewhere, beside the baselines of the library.

Methods are functions ``(train, test, seed)`` as in `mporbm.evaluation.baselines`. Gaussian models
learn from samples with holes by expectation maximisation: holes are filled by their conditional
means, and their conditional covariance is added to that of the filled samples.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.covariance import ledoit_wolf

from mporbm.evaluation.baselines import Baseline, complete_by_neighbours, unit_moments
from mporbm.evaluation.holes import make_splits

Rows = NDArray[Any]
N_EM = 15
"""Rounds of expectation maximisation where training samples have holes."""
N_FACTOR_STEPS = 300
LEAST_NOISE = 1e-6
"""The smallest variance of a unit that factors do not explain, in that of the unit."""


class Gaussian(NamedTuple):
    """A normal distribution of flat samples."""

    mean: Rows
    covariance: Rows

    def complete(self, samples: Rows) -> tuple[Rows, Rows]:
        """Fill each NaN with its conditional mean; also give its standard deviation."""
        filled, deviation, _ = self.filled(samples.reshape(len(samples), -1))
        return filled.reshape(samples.shape), deviation.reshape(samples.shape)

    def filled(self, rows: Rows) -> tuple[Rows, Rows, Rows]:
        """Fill flat samples, with standard deviations and the sum of conditional covariances."""
        filled, deviation = rows.copy(), np.zeros_like(rows)
        added = np.zeros_like(self.covariance)
        for chosen, holes, gain, left in self._conditionals(rows):
            known = rows[np.ix_(chosen, ~holes)] - self.mean[~holes]
            filled[np.ix_(chosen, holes)] = self.mean[holes] + known @ gain.T
            deviation[np.ix_(chosen, holes)] = np.sqrt(np.maximum(np.diag(left), 0.0))
            added[np.ix_(holes, holes)] += len(chosen) * left
        return filled, deviation, added

    def _conditionals(self, rows: Rows) -> list[tuple[Rows, Rows, Rows, Rows]]:
        """List patterns of holes: whose they are, themselves, gain, and covariance that is left."""
        patterns, owners = np.unique(np.isnan(rows), axis=0, return_inverse=True)
        found = []
        for number, holes in enumerate(patterns):
            if not holes.any():
                continue
            crossed = self.covariance[np.ix_(~holes, holes)]
            inner = self.covariance[np.ix_(~holes, ~holes)]
            gain = cho_solve(cho_factor(inner), crossed).T if len(inner) else crossed.T
            left = self.covariance[np.ix_(holes, holes)] - gain @ crossed
            found.append((np.flatnonzero(owners == number), holes, gain, left))
        return found

    def log_density(self, samples: Rows) -> Rows:
        """Compute the log-density of samples without holes, in nats."""
        rows = samples.reshape(len(samples), -1) - self.mean
        factor = np.linalg.cholesky(self.covariance)
        solved = np.linalg.solve(factor, rows.T)
        constant = rows.shape[1] * np.log(2.0 * np.pi) / 2.0 + np.log(np.diag(factor)).sum()
        return np.asarray(-0.5 * (solved**2).sum(axis=0) - constant)


Estimate = Callable[[Rows, Rows], Rows]
"""A covariance, of the expected one and of samples with their holes filled."""


def fit_gaussian(train: Rows, estimate: Estimate) -> Gaussian:
    """Learn a Gaussian, by expectation maximisation if there are holes."""
    rows = train.reshape(len(train), -1)
    mean, deviation = unit_moments(rows)
    found = Gaussian(mean, np.diag(deviation**2))
    for _ in range(N_EM if np.isnan(rows).any() else 1):
        filled, _, added = found.filled(rows)
        mean = filled.mean(axis=0)
        expected = ((filled - mean).T @ (filled - mean) + added) / len(rows)
        found = Gaussian(mean, estimate(expected, filled))
    return found


def independent(expected: Rows, filled: Rows) -> Rows:
    """Keep the variances alone."""
    return np.diag(np.diag(expected))


def shrunk(expected: Rows, filled: Rows) -> Rows:
    """Shrink towards a multiple of the identity, by Ledoit and Wolf."""
    _, share = ledoit_wolf(filled)
    identity = np.trace(expected) / len(expected) * np.eye(len(expected))
    return np.asarray((1.0 - share) * expected + share * identity)


def factors(rank: int) -> Estimate:
    """Make a covariance of factors and noise of each unit (factor analysis, Barber 21.2.2)."""

    def estimate(expected: Rows, filled: Rows) -> Rows:
        variances = np.diag(expected)
        noise = variances.copy()
        for _ in range(N_FACTOR_STEPS):
            before, root = noise, np.sqrt(noise)
            values, vectors = np.linalg.eigh(expected / np.outer(root, root))
            found = vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:] - 1.0, 0.0))
            loadings = root[:, None] * found
            noise = np.maximum(variances - (loadings**2).sum(axis=1), LEAST_NOISE * variances)
            if np.abs(np.log(noise / before)).max() < 1e-3:
                break
        return np.asarray(loadings @ loadings.T + np.diag(noise))

    return estimate


def by_gaussian(estimate: Estimate) -> Baseline:
    """Complete by the conditional means of a Gaussian."""
    return lambda train, test, seed: fit_gaussian(train, estimate).complete(test)


def by_components(rank: int) -> Baseline:
    """Complete by the principal components that fit the known cells of each sample best."""

    def complete(train: Rows, test: Rows, seed: int) -> Rows:
        rows = train.reshape(len(train), -1)
        mean, _ = unit_moments(rows)
        holes = np.isnan(rows)
        filled, components = np.where(holes, 0.0, rows - mean), np.empty(0)
        for _ in range(100 if holes.any() else 1):
            left, values, right = np.linalg.svd(filled, full_matrices=False)
            components = right[:rank]
            if holes.any():
                filled[holes] = ((left[:, :rank] * values[:rank]) @ components)[holes]
        asked = test.reshape(len(test), -1)
        answer = asked.copy()
        for row, out in zip(asked, answer, strict=True):
            known = ~np.isnan(row)
            found, *_ = np.linalg.lstsq(components[:, known].T, (row - mean)[known], rcond=None)
            out[~known] = (mean + found @ components)[~known]
        return answer.reshape(test.shape)

    return complete


def by_neighbours(k: int) -> Baseline:
    """Complete by the mean of the k nearest training samples."""
    return lambda train, test, seed: complete_by_neighbours(train, test, seed, k)


def iterative_defaults(train: Rows, test: Rows, seed: int) -> Rows:
    """Complete by scikit-learn's `IterativeImputer` as it comes."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (it adds the class)
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = IterativeImputer(random_state=seed).fit(train.reshape(len(train), -1))
        return np.asarray(model.transform(test.reshape(len(test), -1))).reshape(test.shape)


def soft_impute(matrix: Rows, penalty: float, n_iter: int = 200) -> Rows:
    """Fill a matrix with holes by the least sum of squares and singular values (Mazumder 2010)."""
    holes = np.isnan(matrix)
    filled = np.where(holes, 0.0, matrix)
    for _ in range(n_iter):
        # The smaller side is all that is decomposed.
        values, vectors = np.linalg.eigh(filled @ filled.T)
        roots = np.sqrt(np.maximum(values, 1e-30))
        kept = vectors * np.maximum(1.0 - penalty / roots, 0.0)
        found = kept @ (vectors.T @ filled)
        change = np.sqrt(np.mean((found - filled)[holes] ** 2))
        filled[holes] = found[holes]
        if change < 1e-4 * np.sqrt(np.mean(found**2)):
            break
    return np.asarray(found)


def chosen(methods: Sequence[Baseline]) -> Baseline:
    """Choose the method that is best in a fifth of the training samples, by the holes of the test.

    As large a share of their cells is hidden as is unknown in the test samples.
    """

    def complete(train: Rows, test: Rows, seed: int) -> Rows | tuple[Rows, Rows]:
        share = float(np.clip(np.isnan(test).mean(), 0.05, 0.9))
        split = make_splits(train, share=share, random_state=seed)[0]

        def error(method: Baseline) -> float:
            answer = method(split.train, split.test, seed)
            filled = answer[0] if isinstance(answer, tuple) else answer
            return float(np.mean((filled - split.truth)[split.hidden] ** 2))

        best = min(methods, key=error) if len(methods) > 1 else methods[0]
        return best(train, test, seed)

    return complete
