"""Table 4: everything is chosen on validation samples; test samples are used once."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from mporbm import MPORBM
from mporbm.evaluation import neighbours
from reproduction import classification, tasks
from reproduction.settings import PAPER
from reproduction.tasks import TASKS, Task, split
from reproduction_support import fakes

FLAT = Task(
    *("Flat", dict, (3, 2), (2, 2), ((3, 2), (2, 2))), n_bits=1, rank=2, n_iter=4, codings=("bits",)
)
DEEP = Task(
    *("Deep", dict, (3, 2, 2), (2, 2, 1), ((3, 4), (2, 2))),
    n_bits=2,
    rank=2,
    n_iter=4,
    codings=("bits", "values"),
)
GRAY = replace(DEEP, title="Gray", codings=("bits", "gray", "values"))
BITS = replace(DEEP, title="Bits", codings=("bits",))
WAYS = ("probability, euclidean", "field, euclidean", "field, cosine")


def noisy(task, seed=0):
    """Samples around a prototype of each of three classes, 12 of each."""
    rng = np.random.default_rng(seed)
    labels, levels = np.arange(36) % 3, 2**task.n_bits
    values = rng.integers(levels, size=(3, 3, 2))[labels]
    hit = rng.random(values.shape) < 0.3
    values = np.where(hit, rng.integers(levels, size=values.shape), values)
    return SimpleNamespace(data=values.astype(np.uint8), target=labels, source="nowhere")


@pytest.fixture
def run(monkeypatch):
    """Do a run of a small task, maybe with other samples."""

    def call(task, machine, data=None, seed=0):
        tasks.samples.cache_clear()
        data = noisy(task) if data is None else data
        monkeypatch.setitem(TASKS, task.title, replace(task, load=lambda: data))
        return classification.run(task.title, machine, seed)

    yield call
    tasks.samples.cache_clear()


def with_other_test_samples(task, seed=0):
    """The same data but for what is only used in the end."""
    data = noisy(task)
    test = split(data.target, seed, task.train_share).test
    data.data[test] = 2**task.n_bits - 1 - data.data[test]
    return data


def untested(outcome):
    """An outcome without what test samples may change."""
    if isinstance(outcome, dict):
        return {k: untested(v) for k, v in outcome.items() if k not in ("error", "balanced")}
    return outcome


MACHINES = [(FLAT, "gauge"), (FLAT, "untrained"), (DEEP, "CD-SU")]
OTHERS = [(FLAT, "RBM"), (FLAT, "TvRBM"), (FLAT, "CD-AOP"), (BITS, "MvRBM")]
"""Machines that go the same ways as the first ones."""


def test_every_machine_is_trained_here():
    assert {machine for _, machine in MACHINES + OTHERS} == classification.MACHINES.keys()


@pytest.mark.parametrize(
    ("task", "machine"),
    [*MACHINES, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in OTHERS)],
    ids=lambda x: x if isinstance(x, str) else x.title,
)
def test_a_machine_is_chosen_without_the_test_samples(run, monkeypatch, task, machine):
    candidates = []
    collect = classification._candidates

    def collected(*args):
        found = collect(*args)
        candidates.extend(found)
        return found

    monkeypatch.setattr(classification, "_candidates", collected)
    outcome = fakes.as_kept(run(task, machine))
    if task is FLAT:
        assert fakes.form(outcome) == fakes.form(fakes.classification_run("Flat", machine, 0))
    assert outcome["columns"].keys() == {*WAYS}
    assert_best(task, outcome["chosen"], candidates)
    bits = [c for c in candidates if c["coding"] == "bits"]
    for way in WAYS:
        assert_best(
            task,
            outcome["columns"][way],
            [c for c in bits if f"{c['feature']}, {c['distance']}" == way],
        )
    assert outcome["parameters"] == bits[0]["parameters"]
    # Every machine looks at what it may: settings, epochs, features and distances.
    settings = {"RBM": [("auto",)], "gauge": [("auto", "data"), ("auto", "random")]}
    settings["untrained"] = [()]
    expected = settings.get(machine, [(rate,) for rate in task.rates])
    n_looks = 1 if machine == "untrained" else 2
    assert len(candidates) == len(task.codings) * len(expected) * n_looks * 2 * 2
    assert {tuple(c["settings"].values()) for c in candidates} == {*expected}
    assert {c["coding"] for c in candidates} == {*task.codings}
    # Validation and choice stay, whatever the test samples are.
    other = run(task, machine, with_other_test_samples(task))
    assert untested(fakes.as_kept(other)) == untested(outcome)
    assert other["chosen"]["error"] != outcome["chosen"]["error"]


def assert_best(task, found, candidates):
    """The first of those with the lowest error on validation samples was tested."""
    data = noisy(task)
    y, parts = data.target, split(data.target, 0, task.train_share)
    assert {len(parts.train), len(parts.validation), len(parts.test)} == {18, 9}

    def errors(candidate, part):
        features = candidate["features"]
        predicted = neighbours.classify(
            features[parts.train], y[parts.train], features[part], candidate["distance"]
        )
        wrong = predicted != y[part]
        classes = [wrong[y[part] == label].mean() for label in range(3)]
        return 100 * wrong.mean(), 100 * np.mean(classes)

    left_out = [
        neighbours.leave_one_out_error_rate(
            c["features"][parts.train], y[parts.train], c["distance"]
        )
        for c in candidates
    ]
    validation = [errors(c, parts.validation)[0] for c in candidates]
    order = sorted(range(len(candidates)), key=lambda k: (validation[k], left_out[k], k))
    best = candidates[order[0]]
    assert found["validation"] == pytest.approx([validation[order[0]], left_out[order[0]]])
    assert found["choice"] == {name: best[name] for name in found["choice"]}
    names = {"coding", "feature", "distance", "settings", "n_iter", "stopped"}
    assert found["choice"].keys() == names
    assert (found["error"], found["balanced"]) == pytest.approx(errors(best, parts.test))


def candidates_of(task, machine):
    """Samples, their split, and what a machine makes of them."""
    data = noisy(task)
    parts = split(data.target, 0, 0.5)
    found = classification._candidates(task, machine, "bits", data.data, data.target, parts, 0)
    return data.data, parts, found


def paper_way(**options):
    return MPORBM(
        (2, 2),
        rank=2,
        scheme="aop",
        gauge=None,
        **PAPER,
        init="random",
        random_state=0,
        feature="field",
        **options,
    )


def test_features_are_those_of_the_paper():
    """Algorithm 1 as it is written, for as many epochs as it says."""
    data, parts, found = candidates_of(FLAT, "CD-AOP")
    (candidate,) = [
        c
        for c in found
        if (c["settings"]["learning_rate"], c["n_iter"]) == (FLAT.rates[0], 1)
        and (c["feature"], c["distance"]) == ("field", "euclidean")
    ]
    model = paper_way(learning_rate=FLAT.rates[0], n_iter=1).fit(data[parts.train])
    assert_allclose(candidate["features"], model.transform(data))


def test_an_untrained_machine_has_the_cores_it_starts_with():
    data, parts, (_, _, candidate, _) = candidates_of(FLAT, "untrained")
    assert candidate["feature"] == "field"
    model = paper_way(n_iter=0).fit(data[parts.train])
    assert_allclose(candidate["features"], model.transform(data), atol=1e-9)


@pytest.mark.filterwarnings("ignore::mporbm.training.loop.DivergenceWarning")
def test_a_divergence_is_told():
    _, _, found = candidates_of(replace(FLAT, rates=(1e6, 0.01)), "CD-AOP")
    assert len(found) == 2 * 2 * 2 * 2
    for candidate in found:
        assert candidate["stopped"] is (candidate["settings"]["learning_rate"] == 1e6)
        assert np.isfinite(candidate["features"]).all()


def test_probabilities_are_those_of_the_fields():
    _, _, found = candidates_of(FLAT, "gauge")
    probability, _, field, _ = (c["features"] for c in found[:4])
    assert_allclose(probability, expit(field))


@pytest.mark.parametrize("task", [*TASKS.values(), FLAT, DEEP], ids=lambda task: task.title)
def test_all_machines_make_the_same_number_of_updates(task):
    expected = classification._epochs(task, "CD-AOP")
    assert expected[-1] == task.n_iter
    assert classification._epochs(task, "gauge") == expected
    n_cores = len(task.visible_shape)
    for machine in ("RBM", "MvRBM", "TvRBM", "CD-SU"):
        # An epoch of the alternating scheme has an update of each core.
        assert classification._epochs(task, machine) == tuple(n_cores * n for n in expected)


class Counting:
    """A machine that counts its epochs, which are its features."""

    n_parameters_ = 1

    def __init__(self):
        self.parameters, self.n_epochs = {}, 0

    def set_params(self, **parameters):
        self.parameters |= parameters
        return self

    def fit(self, X):
        assert self.parameters["warm_start"] is True
        self.n_iter_ = self.parameters["n_iter"]
        self.n_epochs += self.n_iter_
        return self

    def transform(self, X):
        assert self.parameters["feature"] == "field"
        return np.full((len(X), 1), float(self.n_epochs))


@pytest.mark.parametrize("machine", ["CD-SU", "gauge"])
def test_epochs_are_counted_from_the_start(monkeypatch, machine):
    monkeypatch.setattr(classification, "_estimator", lambda *asked: Counting())
    _, _, found = candidates_of(FLAT, machine)
    expected = (2, 8) if machine == "CD-SU" else (1, 4)
    assert {c["n_iter"] for c in found} == {*expected}
    for candidate in found:
        if candidate["feature"] == "field":
            assert (candidate["features"] == candidate["n_iter"]).all()
        assert candidate["stopped"] is False


def test_schemes_are_those_of_the_names():
    for machine in ("MvRBM", "TvRBM", "CD-SU", "CD-AOP", "untrained"):
        model = classification._estimator(DEEP, machine, "bits")
        parameters = model.get_params()
        assert parameters["scheme"] == ("aop" if machine in ("CD-AOP", "untrained") else "su")
        assert (parameters["gauge"], parameters["init"]) == (None, "random")
    ours = classification._estimator(DEEP, "gauge", "values")
    units = {"visible_units": "gaussian", "hidden_units": "bernoulli", "standardize": False}
    assert ours.get_params() == MPORBM((2, 2, 1), rank=2, **units, **PAPER).get_params()


def test_gray_code_is_for_those_that_are_compared_in_the_end():
    for machine in ("RBM", "MvRBM", "gauge"):
        assert classification._codings(GRAY, machine) == ("bits", "gray", "values")
    for machine in ("TvRBM", "CD-SU", "CD-AOP", "untrained"):
        assert classification._codings(GRAY, machine) == ("bits", "values")
    large = TASKS["coil100"]
    assert classification._codings(large, "RBM") == ("values",)
    assert "bits" in classification._codings(TASKS["arcene"], "RBM")


def test_a_matrix_has_as_many_rows_with_bits_and_without():
    for coding, shape in {"bits": (3, 4), "gray": (3, 4), "values": (3, 2)}.items():
        model = classification._estimator(GRAY, "MvRBM", coding)
        assert (model.visible_shape, model.hidden_shape) == (shape, (2, 2))
        assert model.visible_units == ("gaussian" if coding == "values" else "bernoulli")


def test_an_rbm_that_is_too_large_has_only_values(run, monkeypatch):
    def candidates(task, machine, coding, rows, labels, parts, seed):
        features = np.asarray(rows).reshape(len(rows), -1)
        found = {"coding": coding, "feature": "field", "distance": "euclidean", "settings": {}}
        found |= {"stopped": False}
        return [{**found, "n_iter": 3, "features": features, "errors": (0.0, 0.0), "parameters": 9}]

    monkeypatch.setattr(classification, "_candidates", candidates)
    assert run(DEEP, "RBM")["parameters"] == 9
    monkeypatch.setattr(classification, "LARGEST_DENSE", DEEP.n_dense_weights - 1)
    outcome = run(DEEP, "RBM")
    assert outcome["columns"] == dict.fromkeys(WAYS)
    assert outcome["parameters"] == 0
    assert outcome["chosen"]["choice"]["coding"] == "values"
    assert outcome.keys() == fakes.classification_run("Deep", "RBM", 0).keys()


# Without a machine


@pytest.mark.parametrize("task", [FLAT, GRAY], ids=lambda task: task.title)
def test_baselines(run, task):
    outcome = run(task, "baselines")
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.classification_run(task.title, "baselines", 0))
    found, data = outcome["baselines"], noisy(task)
    parts = split(data.target, 0, 0.5)
    y, truth = data.target[parts.train], data.target[parts.test]
    expected = {("raw values", distance): data.data for distance in neighbours.DISTANCES}
    if task is GRAY:
        # Each bit by itself, in the order of the values.
        codes = {"bits": data.data, "gray": data.data ^ (data.data >> 1)}
        for coding, code in codes.items():
            planes = np.stack([code >> 1 & 1, code & 1], axis=-1)
            expected |= {(coding, distance): planes for distance in neighbours.DISTANCES}
    names = [f"1-NN on {coding}, {distance}" for coding, distance in expected]
    assert list(found) == [*names, "majority class"]
    for (coding, distance), given in expected.items():
        predicted = neighbours.classify(given[parts.train], y, given[parts.test], distance)
        errors = found[f"1-NN on {coding}, {distance}"]
        assert errors["error"] == pytest.approx(100 * np.mean(predicted != truth))
        balanced = neighbours.balanced_error_rate(predicted, truth)
        assert errors["balanced"] == pytest.approx(balanced)
    assert found["majority class"] == pytest.approx({"error": 200 / 3, "balanced": 200 / 3})
