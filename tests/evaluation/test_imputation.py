"""The test of imputation against machines whose answers are known, and scikit-learn by hand."""

import json
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

from mporbm import MPORBM
from mporbm.evaluation import baselines
from mporbm.evaluation.baselines import choose_cp, from_factors, masked_cp, unit_moments
from mporbm.evaluation.holes import make_splits
from mporbm.evaluation.imputation import imputation_test, measure_methods
from tables import check_messages

SHAPE = (2, 3)


def covariance(rng):
    """Make a covariance of six units that depend on each other."""
    loadings = rng.normal(size=(6, 2))
    return loadings @ loadings.T + 0.3 * np.eye(6)


def conditional(rows, mean, cov):
    """Give the conditional mean and deviation of each NaN under a Gaussian, in closed form."""
    filled, deviation = rows.copy(), np.zeros_like(rows)
    for row, out, width in zip(rows, filled, deviation, strict=True):
        holes = np.isnan(row)
        gain = cov[np.ix_(holes, ~holes)] @ np.linalg.inv(cov[np.ix_(~holes, ~holes)])
        out[holes] = mean[holes] + gain @ (row[~holes] - mean[~holes])
        left = cov[np.ix_(holes, holes)] - gain @ cov[np.ix_(~holes, holes)]
        width[holes] = np.sqrt(np.diag(left))
    return filled, deviation


class Oracle(BaseEstimator):
    """Knows the Gaussian that made the data; its deviations are wrong by a factor."""

    visible_units = "gaussian"

    def __init__(self, mean=None, cov=None, factor=1.0):
        self.mean, self.cov, self.factor = mean, cov, factor

    def fit(self, X):
        return self

    def complete(self, X, return_std, random_state):
        assert return_std
        filled, deviation = conditional(X.reshape(len(X), -1), self.mean, self.cov)
        return filled.reshape(X.shape), self.factor * deviation.reshape(X.shape)


class Spy(BaseEstimator):
    """Remembers what it was shown, and answers with a constant."""

    seen: list = []  # noqa: RUF012 (clones share it)

    def __init__(self, visible_units="gaussian", value=0.5, random_state=None):
        self.visible_units, self.value, self.random_state = visible_units, value, random_state

    def fit(self, X):
        self.seen.append({"train": X.copy(), "seed": self.random_state})
        X[:] = -1.0
        return self

    def complete(self, X, return_std, random_state, **options):
        self.seen[-1] |= {"test": X.copy(), "options": options, "asked": random_state}
        answer = np.full(X.shape, self.value)
        X[:] = -1.0
        return answer, np.ones(answer.shape)


@pytest.fixture
def spy():
    Spy.seen.clear()
    return Spy


def gaussian_data(n, seed=0):
    rng = np.random.default_rng(seed)
    mean, cov = rng.normal(size=6), covariance(rng)
    return rng.multivariate_normal(mean, cov, n).reshape(n, *SHAPE), mean, cov


# A machine that knows the truth


@pytest.mark.parametrize(("factor", "level"), [(1.0, 0.8), (1.0, 0.5), (0.5, 0.8), (2.0, 0.8)])
def test_coverage_is_that_of_the_normal_distribution(factor, level):
    data, mean, cov = gaussian_data(2000)
    found = imputation_test(
        Oracle(mean, cov, factor), data, baselines=(), level=level, random_state=1
    ).methods[0]
    # Intervals that are `factor` times as wide cover as much as this.
    z = factor * math.sqrt(2.0) * _inverse_erf(level)
    expected = math.erf(z / math.sqrt(2.0))
    # 2400 cells, of which those of one sample depend on each other.
    assert found.coverage.mean == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 2400))
    assert (abs(found.coverage.mean - level) < 0.04) == (factor == 1.0)


def _inverse_erf(value):
    low, high = 0.0, 6.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if math.erf(middle) < value else (low, middle)
    return low


@pytest.mark.parametrize("standardize", [False, True])
def test_nothing_is_better_than_the_truth(standardize):
    """Ten times 30 samples to learn from, so that what is learnt is less than what is known."""
    differences = {}
    for seed in range(10):
        data, mean, cov = gaussian_data(60, seed)
        found = imputation_test(
            Oracle(mean, cov), data, n_splits=2, standardize=standardize, random_state=seed
        )
        machine, *others = found.methods
        for method in others:
            differences.setdefault(method.name, []).append(method.difference.mean)
            expected = method.rmse.mean - machine.rmse.mean
            assert method.difference.mean == pytest.approx(expected)
    assert list(differences) == ["mean", "iterative", "knn", "cp"]
    assert all(np.mean(values) > 0.0 for values in differences.values()), differences
    assert max(differences, key=lambda name: np.mean(differences[name])) == "mean"


@pytest.mark.parametrize("standardize", [False, True])
def test_means_are_as_wrong_as_the_units_vary(standardize):
    data, mean, cov = gaussian_data(2000)
    _, found = imputation_test(
        Oracle(mean, cov), data, standardize=standardize, baselines="mean", random_state=0
    ).methods
    deviation = 1.0 if standardize else math.sqrt(np.trace(cov) / 6)
    assert found.rmse.mean == pytest.approx(deviation, rel=0.06)
    assert found.coverage.mean == pytest.approx(0.8, abs=0.04)


def test_standardised_errors_do_not_depend_on_scales():
    data, mean, cov = gaussian_data(200)
    scale = np.array([1.0, 1e3, 1e-3, 10.0, 0.1, 7.0])
    options = {"standardize": True, "n_splits": 2, "random_state": 0}
    found = imputation_test(Oracle(mean, cov), data, **options)
    other = imputation_test(
        Oracle(mean * scale, cov * np.outer(scale, scale)), data * scale.reshape(SHAPE), **options
    )
    for one, two in zip(found.methods, other.methods, strict=True):
        assert_allclose(two.values["rmse"], one.values["rmse"], rtol=1e-6)
        assert two.coverage == one.coverage


# Baselines by hand


@pytest.mark.parametrize("training_share", [0.0, 0.2])
def test_baselines_are_those_of_scikit_learn(training_share):
    data, _, _ = gaussian_data(120)
    splits = make_splits(data, training_share=training_share, n_splits=3, random_state=0)
    found = measure_methods(baselines.BASELINES, splits)
    for number, split in enumerate(splits):
        train, test = (part.reshape(len(part), 6) for part in (split.train, split.test))
        bounds = {"min_value": np.nanmin(train, axis=0), "max_value": np.nanmax(train, axis=0)}
        regressions = IterativeImputer(max_iter=10, tol=0.0, random_state=split.seed, **bounds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            regressions.fit(train)
        expected = {
            "mean": np.where(np.isnan(test), np.nanmean(train, axis=0), test),
            "iterative": regressions.transform(test),
            "knn": KNNImputer().fit(train).transform(test),
        }
        for method in found.methods:
            if method.name in expected:
                error = (expected[method.name].reshape(split.truth.shape) - split.truth)[
                    split.hidden
                ]
                rmse = np.sqrt(np.mean(error**2))
                assert method.values["rmse"][number] == pytest.approx(rmse), method.name


def test_more_rounds_of_regressions_than_by_default_fill_better():
    data, _, _ = gaussian_data(300)
    for split in make_splits(data, share=0.4, n_splits=2, random_state=0):
        train, test = (part.reshape(len(part), 6) for part in (split.train, split.test))
        once = IterativeImputer(random_state=0).fit(train).transform(test).reshape(test.shape)
        filled = baselines.complete_by_regressions(train, test)
        truth, hidden = split.truth.reshape(test.shape), split.hidden.reshape(test.shape)
        errors = [np.mean((answer - truth)[hidden] ** 2) for answer in (filled, once)]
        assert errors[0] < errors[1]


def planted(rng, shape=(30, 8, 7), rank=2):
    return from_factors([rng.normal(size=(size, rank)) for size in shape])


def test_masked_cp_recovers_a_planted_tensor(rng):
    tensor = planted(rng)
    holes = rng.random(tensor.shape) < 0.3
    shown = np.where(holes, np.nan, tensor)
    options = {"ridge": 1e-6, "n_iter": 2000, "tolerance": 1e-9}
    found = from_factors(masked_cp(shown, 2, **options))
    assert np.sqrt(np.mean((found - tensor)[holes] ** 2)) < 1e-3 * tensor.std()
    noisy = np.where(holes, np.nan, tensor + 0.3 * rng.normal(size=tensor.shape))
    hidden = ~holes & (rng.random(tensor.shape) < 0.1)
    assert choose_cp(noisy, hidden, (1, 2, 3, 4))[0] == 2


def test_every_factor_of_masked_cp_is_a_least_squares_solution(rng):
    tensor = planted(rng, (6, 5, 4)) + 0.5 * rng.normal(size=(6, 5, 4))
    tensor[rng.random(tensor.shape) < 0.3] = np.nan
    factors = masked_cp(tensor, 2, ridge=0.7, tolerance=0.0, n_iter=500)

    def loss(factors):
        square = np.nansum((from_factors(factors) - tensor) ** 2)
        return square + 0.7 * sum(np.sum(factor**2) for factor in factors)

    least = loss(factors)
    for k, factor in enumerate(factors):
        for _ in range(5):
            step = 1e-3 * rng.normal(size=factor.shape)
            moved = [*factors[:k], factor + step, *factors[k + 1 :]]
            # Its gradient is zero: what is left is the square of the step.
            assert -1e-9 < loss(moved) - least < 1e3 * np.sum(step**2)


def test_units_without_known_or_varying_values_have_moments():
    data = np.array([[1.0, np.nan, 5.0], [3.0, np.nan, 5.0]])
    mean, deviation = unit_moments(data)
    assert_array_equal(mean, [2.0, 0.0, 5.0])
    assert_array_equal(deviation, [1.0, 1.0, 1.0])
    for method in baselines.BASELINES.values():
        answer = method(np.tile(data, (3, 1)), np.array([[np.nan, np.nan, 5.0]] * 2), 0)
        assert np.isfinite(answer[0] if isinstance(answer, tuple) else answer).all()


# Holes, seeds and leaks


@pytest.mark.parametrize("training_share", [0.0, 0.3])
def test_hidden_cells_are_never_shown(spy, rng, training_share):
    data = rng.normal(size=(23, *SHAPE)) + 100.0
    data[rng.random(data.shape) < 0.2] = np.nan
    kept = data.copy()
    baseline_spy = []

    def baseline(train, test, seed):
        baseline_spy.append((train.copy(), test.copy()))
        train[:], answer = 7.0, np.nan_to_num(test)
        test[:] = 7.0
        return answer

    found = imputation_test(
        spy(),
        data,
        training_share=training_share,
        n_splits=4,
        baselines={"a": baseline, "b": baseline},
        random_state=0,
    )
    assert_array_equal(data, kept)
    options = {"training_share": training_share, "n_splits": 4, "random_state": 0}
    tested = []
    for number, split in enumerate(make_splits(data, **options)):
        seen = spy.seen[number]
        shown = np.concatenate([seen["train"], seen["test"]])
        assert shown.shape == data.shape
        # Values are all different, so that each tells which cell it is of.
        values = shown[~np.isnan(shown)]
        hidden = split.truth[split.hidden]
        assert len({*values}) == len(values)
        assert not {*values} & {*hidden}
        assert {*values} <= {*data[~np.isnan(data)]}
        n_training = (~np.isnan(data)).sum() - (~np.isnan(split.truth)).sum()
        n_unlearnt = round(training_share * n_training)
        assert (~np.isnan(seen["train"])).sum() == n_training - n_unlearnt
        tested += hidden.tolist()
        for train, test in baseline_spy[2 * number : 2 * number + 2]:
            assert_array_equal(train, seen["train"])
            assert_array_equal(test, seen["test"])
    assert len({*tested}) == len(tested) == found.n_hidden
    assert found.methods[1].values == found.methods[2].values


def test_unknown_cells_are_never_scored(spy, rng):
    data = rng.normal(size=(40, *SHAPE))
    unknown = rng.random(data.shape) < 0.3
    splits = make_splits(np.where(unknown, np.nan, data), n_splits=4, random_state=0)
    n_hidden = 0
    for split in splits:
        assert np.isfinite(split.truth[split.hidden]).all()
        assert np.isnan(split.test[split.hidden]).all()
        assert_array_equal(split.test[~split.hidden], split.truth[~split.hidden])
        n_hidden += split.hidden.sum()
    assert n_hidden == pytest.approx(0.2 * (~unknown).sum(), abs=2)
    found = imputation_test(
        spy(value=0.0), np.where(unknown, np.nan, data), n_splits=4, random_state=0
    )
    errors = [np.sqrt(np.mean(split.truth[split.hidden] ** 2)) for split in splits]
    assert_allclose(found.methods[0].values["rmse"], errors)
    assert found.n_hidden == n_hidden


def test_the_same_seed_gives_the_same_numbers(spy, rng):
    data = rng.normal(size=(30, *SHAPE))
    first, again, other = (
        imputation_test(spy(), data, n_splits=3, random_state=seed, training_share=0.1)
        for seed in (5, 5, 6)
    )
    values = [[method.values for method in found.methods] for found in (first, again, other)]
    assert values[0] == values[1] != values[2]
    seeds = [seen["seed"] for seen in spy.seen]
    assert seeds[:3] == seeds[3:6]
    assert len({*seeds[:3]}) == 3
    assert [seen["asked"] for seen in spy.seen] == seeds


def test_the_estimator_keeps_what_it_was_given(spy, rng):
    estimator = spy(random_state=11)
    imputation_test(
        estimator,
        rng.normal(size=(10, 4)),
        n_splits=2,
        baselines=(),
        complete_options={"n_gibbs": 7},
    )
    assert [seen["seed"] for seen in spy.seen] == [11, 11]
    assert [seen["options"] for seen in spy.seen] == [{"n_gibbs": 7}] * 2
    assert vars(estimator) == {"visible_units": "gaussian", "value": 0.5, "random_state": 11}


# Kinds of units


def test_binary_values_are_scored_by_their_probabilities(spy, rng):
    data = rng.random((50, *SHAPE)) < 0.3
    found = imputation_test(spy("bernoulli", 0.25), data, n_splits=2, random_state=0)
    machine = found.methods[0]
    splits = make_splits(data.astype(float), n_splits=2, random_state=0)
    for number, split in enumerate(splits):
        ones = split.truth[split.hidden].mean()
        score = ones * math.log(0.25) + (1 - ones) * math.log(0.75)
        assert machine.values["log_score"][number] == pytest.approx(score)
        assert machine.values["error_rate"][number] == pytest.approx(ones)
        rmse = math.sqrt(ones * 0.75**2 + (1 - ones) * 0.25**2)
        assert machine.values["rmse"][number] == pytest.approx(rmse)
    assert all(method.coverage is None for method in found.methods)
    assert all(np.isfinite(method.log_score.mean) for method in found.methods)
    assert "nats" in str(found)
    assert "coverage" not in str(found)


def test_categorical_units_are_hidden_as_one(spy, rng):
    data = np.eye(3)[rng.integers(3, size=(40, 5))]
    data[:, 0] = np.eye(3)[1]
    data[3, 2, 1] = np.nan
    found = imputation_test(spy("categorical"), data, n_splits=4, random_state=0)
    wrong = []
    for split in make_splits(data, n_splits=4, one_hot=True, random_state=0):
        whole = split.hidden.all(axis=-1)
        assert_array_equal(split.hidden.any(axis=-1), whole)
        known = int((~np.isnan(split.truth)).all(axis=-1).sum())
        assert whole.sum() == round(0.2 * known)
        # A constant is state 0.
        wrong.append(np.mean(split.truth.argmax(axis=-1)[whole] != 0))
    assert_allclose(found.methods[0].values["error_rate"], wrong)
    assert found.methods[0].log_score is None
    assert found.methods[1].error_rate.mean < found.methods[0].error_rate.mean


def test_a_real_machine_takes_part():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(80, 1, 1)) + 0.5 * rng.normal(size=(80, 3, 4))
    model = MPORBM((2, 2), rank=2, visible_units="gaussian", n_iter=3)
    options = {"complete_options": {"method": "mean-field"}, "baselines": "mean"}
    first, again = (
        imputation_test(model, data, n_splits=2, random_state=0, **options) for _ in range(2)
    )
    assert first.methods[0].values == again.methods[0].values
    assert 0.0 < first.methods[0].rmse.mean < 1.5
    assert not hasattr(model, "machine_")


# Reports


def test_a_result_is_a_table_and_json():
    data, mean, cov = gaussian_data(60)
    found = imputation_test(Oracle(mean, cov), data, n_splits=3, standardize=True, random_state=0)
    lines = str(found).splitlines()
    assert lines[0] == ("| method | standardised RMSE | coverage of 80% | difference | seconds |")
    assert len(lines) == 2 + 5
    assert {line.count("|") for line in lines} == {6}
    assert lines[2].startswith("| Oracle | 0.")
    read = json.loads(json.dumps(found.to_dict()))
    assert read["methods"][0]["difference"] is None
    assert read["methods"][2]["rmse"]["n"] == 3
    assert read["methods"][2]["coverage"] is None
    assert (read["n_splits"], read["standardize"], read["n_hidden"]) == (3, True, 72)


X = np.random.default_rng(0).random((8, 4))


def run(estimator=None, data=X, **options):
    return lambda: imputation_test(estimator or Spy(), data, **options)


class Broken(Spy):
    def complete(self, X, return_std, random_state):
        return X, X


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_bad_input_is_refused():
    binary, one_hot = Spy("bernoulli"), Spy("categorical")
    check_messages(
        [
            (run(object()), TypeError, "estimator: expected .* without fit, complete"),
            (run(Spy), TypeError, "estimator: expected an estimator .*; call it"),
            (run(data=[["a"]]), TypeError, "X: expected an array of real numbers, got dtype"),
            (run(data=X[0]), ValueError, r"X: expected two samples or more, .* shape \(4,\)"),
            (run(data=X + np.inf), ValueError, "X: expected finite numbers, and NaN .* got inf"),
            (run(binary, 2 * X), ValueError, "X: expected values from 0 to 1 .*'bernoulli'"),
            (run(binary, standardize=True), ValueError, "standardize=True: expected real visible"),
            (run(one_hot, standardize=True), ValueError, "standardize=True: .*'categorical'"),
            (run(share=0.0), ValueError, r"share=0.0: expected a share between 0 and 1"),
            (run(share="1"), TypeError, "share='1': expected a number between 0 and 1"),
            (run(share=0.01), ValueError, "share=0.01: expected a share that hides a cell"),
            (run(training_share=1.0), ValueError, "training_share=1.0: expected a share from 0"),
            (run(n_splits=1), ValueError, "n_splits=1: expected 2 folds or more"),
            (run(n_splits=9), ValueError, "n_splits=9: .* as many as the 8 samples of X"),
            (run(n_splits=2.0), TypeError, "n_splits=2.0: expected an integer"),
            (run(level=80), ValueError, "level=80: expected a probability between 0 and 1"),
            (run(baselines=("svd",)), ValueError, "baselines: expected names of mean.* got 'svd'"),
            (run(baselines={"Spy": min}), ValueError, "baselines: expected other names than 'Spy'"),
            (run(Broken()), ValueError, "Broken: expected a finite number in every hidden cell"),
            (
                run(baselines={"short": lambda train, test, seed: test[:1]}, n_splits=2),
                ValueError,
                r"short: expected completed samples of shape \(4, 4\), got \(1, 4\)",
            ),
        ]
    )
