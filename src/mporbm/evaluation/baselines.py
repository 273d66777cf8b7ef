"""What people complete tensor data with: the yardsticks that `imputation_test` measures against.

Each is a function ``(train, test, seed)`` of samples (n, ...) in which NaN is unknown. It learns
from `train`, fills the holes of `test`, and returns the filled samples, or these and the standard
deviation of every cell.
"""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

Array = np.ndarray
Completion = Array | tuple[Array, Array]
Baseline = Callable[[Array, Array, int], Completion]
CP_RANKS = (1, 2, 3, 4, 6, 8, 12, 20, 30)
"""The ranks that masked CP chooses from, the smallest first."""
PATIENCE = 3
"""How many ranks in a row may be no better until no larger one is tried."""
CP_RIDGES = (0.1, 3.0)
"""The weights of the squared factors of CP to choose from; the known cells have variance 1."""
MOST_PREDICTORS = 200
"""How many other units predict a unit in iterative imputation, at most."""
N_ROUNDS = 10
"""How often iterative imputation goes through all units."""


def complete_by_means(train: Array, test: Array, seed: int = 0) -> tuple[Array, Array]:
    """Fill holes with the mean of each unit in training; its deviation there is the error."""
    mean, deviation = unit_moments(train)
    return np.where(np.isnan(test), mean, test), np.broadcast_to(deviation, test.shape)


def complete_by_regressions(train: Array, test: Array, seed: int = 0) -> Array:
    """Fill holes by chained Bayesian ridge regressions: scikit-learn's `IterativeImputer`.

    It goes through all units `N_ROUNDS` times, also where the training samples have no holes.
    By default scikit-learn would then stop after the first time, and lose accuracy in `test`.
    Answers stay within the range of each unit in training: without that, chains of regressions
    learnt from samples with holes may run away.
    """
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (it adds the class)
    from sklearn.impute import IterativeImputer

    rows, n_units = _flat(train), train[0].size
    low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
    varies = high > low
    imputer = IterativeImputer(
        max_iter=N_ROUNDS,
        tol=0.0,
        min_value=np.where(varies, low, -np.inf),
        max_value=np.where(varies, high, np.inf),
        n_nearest_features=MOST_PREDICTORS if n_units > MOST_PREDICTORS else None,
        keep_empty_features=True,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        imputer.fit(rows)
        return np.asarray(imputer.transform(_flat(test))).reshape(test.shape)


def complete_by_neighbours(train: Array, test: Array, seed: int = 0, k: int = 5) -> Array:
    """Fill holes with the mean of the k nearest training samples: scikit-learn's `KNNImputer`."""
    from sklearn.impute import KNNImputer

    imputer = KNNImputer(n_neighbors=k, keep_empty_features=True).fit(_flat(train))
    return np.asarray(imputer.transform(_flat(test))).reshape(test.shape)


def complete_by_cp(
    train: Array, test: Array, seed: int = 0, ranks: Sequence[int] = CP_RANKS
) -> Array:
    """Fill holes by masked CP (PARAFAC), chosen on cells that are hidden in training samples.

    What is chosen is the rank and the ridge. Samples of training and test are one tensor, because
    CP has a row of factors for each. Units are centred by their means in training.
    """
    mean, _ = unit_moments(train)
    both = np.concatenate([train, test]) - mean
    scale = np.sqrt(np.nanmean(both**2)) or 1.0
    both /= scale
    rng = np.random.default_rng(seed)
    # As large a share as is unknown in the test samples, in a fifth of the training samples.
    share = float(np.clip(np.isnan(test).mean(), 0.05, 0.9))
    rows = rng.permutation(len(train))[: max(len(train) // 5, 1)]
    hidden = np.zeros(both.shape, bool)
    hidden[rows] = rng.random((len(rows), *both.shape[1:])) < share
    # A rank of as many as there are units makes any samples at all.
    useful = [rank for rank in ranks if rank <= max(train[0].size, min(ranks))]
    rank, ridge = choose_cp(both, hidden & ~np.isnan(both), useful, seed=seed)
    found = from_factors(masked_cp(both, rank, ridge=ridge, seed=seed))[len(train) :]
    return np.where(np.isnan(test), found * scale + mean, test)


def choose_cp(
    tensor: Array,
    hidden: Array,
    ranks: Sequence[int] = CP_RANKS,
    ridges: Sequence[float] = CP_RIDGES,
    seed: int = 0,
) -> tuple[int, float]:
    """Choose rank and ridge of masked CP by the error where cells are hidden, small ranks first."""
    best, least = (ranks[0], ridges[0]), np.inf
    shown, truth = np.where(hidden, np.nan, tensor), tensor[hidden]
    for ridge in ridges if hidden.any() else ():
        smallest, n_worse = np.inf, 0
        for rank in sorted(ranks):
            found = from_factors(masked_cp(shown, rank, ridge=ridge, seed=seed))[hidden]
            error = float(np.mean((found - truth) ** 2))
            n_worse = 0 if error < smallest else n_worse + 1
            smallest = min(smallest, error)
            if error < least:
                best, least = (rank, ridge), error
            if n_worse == PATIENCE:
                break
    return best


def masked_cp(
    tensor: Array,
    rank: int,
    *,
    ridge: float = CP_RIDGES[0],
    n_iter: int = 100,
    tolerance: float = 1e-4,
    seed: int = 0,
) -> list[Array]:
    """Fit a CP decomposition to the known cells of a tensor, by alternating least squares.

    Minimises ``sum_known (X - sum_r a_r o b_r o ..)^2 + ridge sum_k |A_k|^2``, one factor matrix
    after the other, until the sum falls by less than a share `tolerance` in one pass.

    Parameters
    ----------
    tensor
        Values of which NaN is unknown.

    Returns
    -------
    factor matrices ``(I_k, rank)``, one for each mode
    """
    rng, modes = np.random.default_rng(seed), range(tensor.ndim)
    known = ~np.isnan(tensor)
    values = np.where(known, tensor, 0.0)
    masks, rows = ([_unfolded(a, k) for k in modes] for a in (known.astype(np.float64), values))
    factors = [rng.normal(size=(size, rank)) / np.sqrt(rank) for size in tensor.shape]
    square, before = float(np.sum(values**2)), np.inf
    upper, lower = np.triu_indices(rank)
    for _ in range(n_iter):
        for k in modes:
            others = _khatri_rao([factors[j] for j in modes if j != k])
            grams = np.empty((tensor.shape[k], rank, rank))
            grams[:, upper, lower] = masks[k] @ (others[:, upper] * others[:, lower])
            grams[:, lower, upper] = grams[:, upper, lower]
            targets = rows[k] @ others
            solved = np.linalg.solve(grams + ridge * np.eye(rank), targets[..., None])
            factors[k] = solved[..., 0]
        fitted = np.einsum("ir,irs,is->", factors[-1], grams, factors[-1])
        loss = square - 2.0 * float(np.sum(targets * factors[-1])) + float(fitted)
        loss += ridge * sum(float(np.sum(factor**2)) for factor in factors)
        if before - loss < tolerance * loss:
            break
        before = loss
    return factors


def from_factors(factors: Sequence[Array]) -> Array:
    """Compute the full tensor of CP factors."""
    flat = factors[0] @ _khatri_rao(factors[1:]).T
    return np.asarray(flat.reshape([len(factor) for factor in factors]))


def unit_moments(samples: Array) -> tuple[Array, Array]:
    """Compute the mean and the deviation of the known values of each unit.

    A unit of which nothing is known has the mean 0, and one that does not vary the deviation 1.
    """
    known = ~np.isnan(samples)
    n_known = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, samples, 0.0).sum(axis=0) / n_known
    square = (np.where(known, samples - mean, 0.0) ** 2).sum(axis=0)
    deviation = np.sqrt(square / n_known)
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)


def _khatri_rao(factors: Sequence[Array]) -> Array:
    """Multiply the rows of factor matrices with each other, the last mode running fastest."""
    result = factors[0]
    for factor in factors[1:]:
        result = (result[:, None, :] * factor[None]).reshape(-1, factor.shape[1])
    return result


def _unfolded(tensor: Array, mode: int) -> Array:
    """Put a mode first, and make one of all others."""
    return np.moveaxis(tensor, mode, 0).reshape(tensor.shape[mode], -1)


def _flat(samples: Array) -> Array:
    return samples.reshape(len(samples), -1)


BASELINES: dict[str, Baseline] = {
    "mean": complete_by_means,
    "iterative": complete_by_regressions,
    "knn": complete_by_neighbours,
    "cp": complete_by_cp,
}
"""The baselines that have a name."""
