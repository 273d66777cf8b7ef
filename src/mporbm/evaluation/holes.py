"""Samples split into folds to learn from and to complete, with known cells hidden."""

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

Array = np.ndarray


class Split(NamedTuple):
    """Samples to learn from, and others of which some known cells are hidden."""

    train: Array
    """Training samples; NaN is unknown."""
    test: Array
    """Test samples; NaN is unknown or hidden."""
    truth: Array
    """The test samples before cells were hidden."""
    hidden: Array
    """True at the cells that are scored, all of them known."""
    seed: int
    """For whatever learns from this split."""


def make_splits(
    X: Array,
    *,
    share: float = 0.2,
    training_share: float = 0.0,
    n_splits: int = 5,
    one_hot: bool = False,
    random_state: object = None,
) -> list[Split]:
    """Split samples into shuffled folds, and hide a share of the known cells of each fold.

    What is hidden depends on the seed and on which cells are known. `one_hot` hides all cells
    along the last mode together.
    """
    _check_share("share", share)
    _check_share("training_share", training_share, zero=True)
    if isinstance(n_splits, bool) or not isinstance(n_splits, int | np.integer):
        raise TypeError(f"n_splits={n_splits!r}: expected an integer, such as 5.")
    if not 2 <= n_splits <= len(X):
        raise ValueError(
            f"n_splits={n_splits}: expected 2 folds or more, and at most as many as the "
            f"{len(X)} samples of X."
        )
    seeds = check_random_state(random_state).randint(2**31, size=n_splits + 1)
    folds = KFold(n_splits, shuffle=True, random_state=int(seeds[-1]))
    return [
        _split(X[train], X[test], share, training_share, one_hot, int(seed))
        for seed, (train, test) in zip(seeds[:-1], folds.split(X), strict=True)
    ]


def _split(
    train: Array, truth: Array, share: float, training_share: float, one_hot: bool, seed: int
) -> Split:
    rng = np.random.default_rng(seed)
    hidden = _holes(~np.isnan(truth), share, one_hot, rng)
    unlearnt = _holes(~np.isnan(train), training_share, one_hot, rng)
    if not hidden.any():
        raise ValueError(
            f"share={share}: expected a share that hides a cell of every fold, got one of test "
            f"samples {truth.shape} with {int((~np.isnan(truth)).sum())} known cells; use a larger "
            f"share or fewer splits."
        )
    test = np.where(hidden, np.nan, truth)
    return Split(np.where(unlearnt, np.nan, train), test, truth, hidden, seed)


def _holes(known: Array, share: float, one_hot: bool, rng: np.random.Generator) -> Array:
    """Choose a share of the known cells, or of the known one-hot units."""
    places = known.all(axis=-1) if one_hot else known
    numbers = np.flatnonzero(places)
    hidden = np.zeros(places.size, bool)
    hidden[rng.choice(numbers, round(share * len(numbers)), replace=False)] = True
    found = hidden.reshape(places.shape)
    return np.broadcast_to(found[..., None], known.shape) if one_hot else found


def _check_share(name: str, value: float, zero: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name}={value!r}: expected a number between 0 and 1, such as 0.2.")
    if not (0.0 < value < 1.0 or (zero and value == 0.0)):
        least = "from 0 to below 1" if zero else "between 0 and 1"
        raise ValueError(f"{name}={value}: expected a share {least}, such as 0.2.")
