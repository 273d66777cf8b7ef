"""A test of imputation on anyone's data: known cells are hidden, completed, and scored."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from .baselines import BASELINES, Array, Baseline, Completion, unit_moments
from .holes import Split, make_splits
from .statistics import Interval, interval, paired

DISCRETE = ("bernoulli", "categorical")
"""The kinds of visible units whose values are no real numbers."""
LEAST_PROBABILITY = 1e-6
"""Probabilities nearer to 0 and 1 are taken as this near: the log score of an error is finite."""
MEASURES = {
    "rmse": "RMSE",
    "coverage": "coverage",
    "log_score": "nats",
    "error_rate": "wrong",
}
"""What may be measured of a method, and how the columns of the table are called."""


@dataclass(frozen=True)
class MethodScores:
    """What one method reached: a value for each split, and their mean with its 95 % interval."""

    name: str
    rmse: Interval
    """The root of the mean squared error of the hidden cells."""
    difference: Interval | None
    """The RMSE of this method minus that of the machine, split by split; None for the machine."""
    coverage: Interval | None
    """The share of hidden cells within the central interval ``mean +- z std`` of real values."""
    log_score: Interval | None
    """Mean log-probability of a hidden binary cell, in nats: 0 is perfect, higher is better."""
    error_rate: Interval | None
    """The share of hidden binary cells, or of hidden categorical units, whose state is wrong."""
    seconds: float
    """The mean time of learning and completion."""
    values: dict[str, list[float]]
    """The value of every measure in every split."""

    def to_dict(self) -> dict[str, object]:
        """Give all numbers as dictionaries and lists."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value._asdict() if isinstance(value, Interval) else value
            for name, value in found.items()
        }


@dataclass(frozen=True)
class ImputationResult:
    """What `imputation_test` found; as text it is a table in Markdown."""

    methods: tuple[MethodScores, ...]
    """The machine first, then the baselines."""
    visible_units: str
    standardize: bool
    level: float
    n_splits: int
    n_hidden: int
    """How many cells were hidden and scored, all splits together."""

    def to_dict(self) -> dict[str, object]:
        """Give all numbers as dictionaries and lists that JSON can hold."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found | {"methods": [method.to_dict() for method in self.methods]}

    def to_markdown(self) -> str:
        """Lay out one row for each method, with the measures that there are."""
        shown = [name for name in MEASURES if any(getattr(m, name) for m in self.methods)]
        headings = ["method", *(self._heading(name) for name in shown), "difference", "seconds"]
        lines = [headings, ["---", *["---:"] * (len(headings) - 1)]]
        for method in self.methods:
            cells = [_text(getattr(method, name)) for name in (*shown, "difference")]
            lines.append([method.name, *cells, f"{method.seconds:.1f}"])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _heading(self, name: str) -> str:
        heading = MEASURES[name]
        if name == "rmse" and self.standardize:
            return f"standardised {heading}"
        return f"{heading} of {self.level:.0%}" if name == "coverage" else heading

    def __str__(self) -> str:
        return self.to_markdown()


def imputation_test(
    estimator: object,
    X: object,
    *,
    share: float = 0.2,
    training_share: float = 0.0,
    n_splits: int = 5,
    baselines: Sequence[str] | Mapping[str, Baseline] = tuple(BASELINES),
    standardize: bool = False,
    level: float = 0.8,
    complete_options: Mapping[str, object] | None = None,
    random_state: object = None,
) -> ImputationResult:
    """Test how well a machine fills in cells that it does not see, beside what people use.

    The samples are split into `n_splits` shuffled folds. For each fold a clone of the estimator
    learns from all other samples; then a share of the known cells of the fold is hidden, completed,
    and compared with what was hidden. Baselines learn from the same samples and fill the same
    holes. Every sample is tested once; intervals tell how results depend on the choice of the
    split, because training samples overlap (`statistics.interval`).

    Parameters
    ----------
    estimator
        An estimator that has not learnt yet, with ``fit(X)`` and ``complete(X, return_std=True,
        random_state=seed)``; it is cloned, and given a random state if it has none. Its
        ``visible_units`` say what is measured; without that attribute values are real.
    X
        Samples (n, ...). NaN is a cell that is not known: it stays so, and is never scored.
    share
        The share of the known cells of test samples that is hidden. Of categorical units, one-hot
        along the last mode, all cells are hidden together.
    training_share
        The share of the known cells of the training samples that is hidden, too, so that methods
        learn from samples with holes.
    n_splits
        The number of folds.
    baselines
        Names, of ``"mean"`` of each unit, ``"iterative"`` regressions and ``"knn"`` by
        scikit-learn, and masked ``"cp"``; or functions ``(train, test, seed)`` by their names, as
        in `mporbm.evaluation.baselines`.
    standardize
        Whether to measure errors of real values in standard deviations of each unit in training,
        so that units of all scales count alike; baselines then see standardised samples, too.
        Without it errors are in units of the data, and large units count most. The machine sees
        samples as they are.
    level
        The probability of the central intervals whose coverage is measured, for real values. They
        are normal ones, from the mean and standard deviation that a method gives.
    complete_options
        More arguments of `complete`, such as ``{"n_gibbs": 1000}``.
    random_state
        A seed. The same seed makes the same splits and holes, for any estimator and baselines.

    Returns
    -------
    `ImputationResult`
        One row for each method: print it for a table.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import MPORBM
    >>> from mporbm.evaluation.imputation import imputation_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1, 1)) + 0.5 * rng.normal(size=(60, 3, 4))
    >>> model = MPORBM((2, 2), rank=2, visible_units="gaussian", n_iter=2, random_state=0)
    >>> found = imputation_test(model, X, n_splits=2, baselines=("mean",), random_state=0)
    >>> [method.name for method in found.methods], found.n_hidden
    (['MPORBM', 'mean'], 144)
    """
    units = str(getattr(estimator, "visible_units", "gaussian"))
    _check_estimator(estimator)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level}: expected a probability between 0 and 1, such as 0.8.")
    if standardize and units in DISCRETE:
        raise ValueError(
            f"standardize=True: expected real visible units, got visible_units={units!r}, whose "
            f"values have one scale; leave it False."
        )
    own, functions = type(estimator).__name__, _named(baselines)
    if own in functions:
        raise ValueError(f"baselines: expected other names than {own!r}, that of the estimator.")
    if standardize:
        functions = {name: in_deviations(method) for name, method in functions.items()}
    splits = make_splits(
        _check_samples(X, units),
        share=share,
        training_share=training_share,
        n_splits=n_splits,
        one_hot=units == "categorical",
        random_state=random_state,
    )
    methods = {own: completion_by(estimator, complete_options), **functions}
    return measure_methods(methods, splits, units, standardize, level)


def completion_by(
    estimator: object, complete_options: Mapping[str, object] | None = None
) -> Baseline:
    """Make a function ``(train, test, seed)`` of an estimator, as baselines are."""

    def complete(train: Array, test: Array, seed: int) -> Completion:
        model = clone(estimator)
        if model.get_params(deep=False).get("random_state", seed) is None:
            model.set_params(random_state=seed)
        model.fit(train)
        options = {"random_state": seed, **(complete_options or {})}
        answer = model.complete(test, return_std=True, **options)
        return np.asarray(answer[0]), np.asarray(answer[1])

    return complete


def measure_methods(
    methods: Mapping[str, Baseline],
    splits: Sequence[Split],
    visible_units: str = "gaussian",
    standardize: bool = False,
    level: float = 0.8,
) -> ImputationResult:
    """Let methods fill the same holes, and score them; the first is what others are compared to."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in methods}
    for split in splits:
        scale = unit_moments(split.train)[1] if standardize else np.ones(split.truth.shape[1:])
        for name, method in methods.items():
            started = time.perf_counter()
            # Copies: what a method does to its samples is nothing to the others.
            answer = method(split.train.copy(), split.test.copy(), split.seed)
            seconds = time.perf_counter() - started
            filled, deviation = _check_answer(name, answer, split)
            scores = _scores(split, filled, deviation, scale, visible_units, level)
            for measure, value in {**scores, "seconds": seconds}.items():
                found[name].setdefault(measure, []).append(value)
    reference = next(iter(methods))
    rows = [
        MethodScores(
            name,
            difference=None
            if name == reference
            else paired(values["rmse"], found[reference]["rmse"]),
            seconds=float(np.mean(values.pop("seconds"))),
            values=values,
            rmse=interval(values["rmse"]),
            **{
                name: _interval(values.get(name))
                for name in ("coverage", "log_score", "error_rate")
            },
        )
        for name, values in found.items()
    ]
    n_hidden = sum(int(split.hidden.sum()) for split in splits)
    return ImputationResult(tuple(rows), visible_units, standardize, level, len(splits), n_hidden)


def _interval(values: Sequence[float] | None) -> Interval | None:
    return None if values is None else interval(values)


def _scores(
    split: Split, filled: Array, deviation: Array | None, scale: Array, units: str, level: float
) -> dict[str, float]:
    """Score the hidden cells of a split."""
    truth, hidden = split.truth, split.hidden
    if units in DISCRETE:
        filled = np.clip(filled, 0.0, 1.0)
    error = ((filled - truth) / scale)[hidden]
    scores = {"rmse": float(np.sqrt(np.mean(error**2)))}
    if units == "bernoulli":
        found = np.clip(filled[hidden], LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        asked = truth[hidden]
        scores["log_score"] = float(np.mean(asked * np.log(found) + (1 - asked) * np.log1p(-found)))
        scores["error_rate"] = float(np.mean((found > 0.5) != (asked > 0.5)))
    elif units == "categorical":
        units_hidden = hidden.all(axis=-1)
        wrong = filled.argmax(axis=-1) != truth.argmax(axis=-1)
        scores["error_rate"] = float(wrong[units_hidden].mean())
    elif deviation is not None:
        width = norm.ppf(0.5 + level / 2.0) * (deviation / scale)[hidden]
        scores["coverage"] = float(np.mean(np.abs(error) <= width))
    return scores


def in_deviations(method: Baseline) -> Baseline:
    """Let a method see samples in standard deviations of each unit from its mean in training."""

    def complete(train: Array, test: Array, seed: int) -> Completion:
        mean, scale = unit_moments(train)
        answer = method((train - mean) / scale, (test - mean) / scale, seed)
        if isinstance(answer, tuple):
            return answer[0] * scale + mean, answer[1] * scale
        return np.asarray(answer * scale + mean)

    return complete


def _named(baselines: Sequence[str] | Mapping[str, Baseline]) -> dict[str, Baseline]:
    """Return baselines by their names."""
    if isinstance(baselines, Mapping):
        return dict(baselines)
    names = [baselines] if isinstance(baselines, str) else list(baselines)
    for name in names:
        if name not in BASELINES:
            raise ValueError(
                f"baselines: expected names of {', '.join(BASELINES)}, got {name!r}; pass "
                f"functions of your own as a dictionary."
            )
    return {name: BASELINES[name] for name in names}


def _check_estimator(estimator: object) -> None:
    missing = [n for n in ("fit", "complete", "get_params") if not hasattr(estimator, n)]
    if missing or isinstance(estimator, type):
        raise TypeError(
            f"estimator: expected an estimator with fit and complete, such as MPORBM(...), got "
            f"{estimator!r}" + (f" without {', '.join(missing)}." if missing else "; call it.")
        )


def _check_samples(value: object, units: str) -> Array:
    """Return samples in double precision, finite where they are not NaN."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"X: expected an array of real numbers, got dtype {array.dtype}; mark unknown cells by "
            f"NaN."
        )
    if array.ndim < 2 or len(array) < 2 or 0 in array.shape:
        raise ValueError(f"X: expected two samples or more, (n, ...), got shape {array.shape}.")
    samples = array.astype(np.float64)
    if np.isinf(samples).any():
        raise ValueError("X: expected finite numbers, and NaN where they are not known, got inf.")
    known = samples[~np.isnan(samples)]
    if units in DISCRETE and known.size and (known.min() < 0.0 or known.max() > 1.0):
        raise ValueError(
            f"X: expected values from 0 to 1 for visible_units={units!r}, got {known.min():g} to "
            f"{known.max():g}; scale them, or set visible_units='gaussian'."
        )
    return samples


def _check_answer(name: str, answer: Completion, split: Split) -> tuple[Array, Array | None]:
    """Return filled samples, and their standard deviations if there are any."""
    filled, deviation = answer if isinstance(answer, tuple) else (answer, None)
    for array in (filled, deviation):
        if array is None:
            continue
        if array.shape != split.test.shape:
            raise ValueError(
                f"{name}: expected completed samples of shape {split.test.shape}, got "
                f"{array.shape}."
            )
        if not np.isfinite(array[split.hidden]).all():
            raise ValueError(
                f"{name}: expected a finite number in every hidden cell, got NaN or inf."
            )
    return filled, deviation


def _text(value: Interval | None) -> str:
    return "" if value is None else f"{value.mean:.3f} ({value.low:.3f} to {value.high:.3f})"
