"""CONTRIBUTING followed literally: each of its examples is run, fitted, saved, loaded and used.

Each also stands the tests of its family that CONTRIBUTING names, in short.
"""

import json
import re
import sys
from pathlib import Path
from types import ModuleType

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mporbm
from mporbm.cli import main
from mporbm.estimators.model_file import ESTIMATORS
from mporbm.learning import NEGATIVE_PHASES, SCHEMES, Batch
from mporbm.machine import COUPLINGS, UNITS, exact
from reproduction.settings import PAPER
from strategies import VISIBLE, assert_distributed, exact_samples, random_machine, tiny_machine

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
REGISTRIES = (COUPLINGS, UNITS, NEGATIVE_PHASES, SCHEMES, ESTIMATORS)
TRAINING = {"rank": 2, "n_iter": 2, "batch_size": 12, "random_state": 0}
FLAGS = ["--rank", "2", "--n-iter", "2", "--batch-size", "12", "--seed", "0"]
"""30 samples in batches of 12: the last one is filled up."""
BITS = np.random.default_rng(0).random((30, *VISIBLE)) < 0.3
PLAIN = {"scheme": "su", "gauge": None, **PAPER}
"""The rule that compiles fastest."""
EXAMPLES = {
    "coupling": ("LowRankRBM", {}, BITS, ["--model", "lowrankrbm"]),
    "kind of units": ("MPORBM", {"visible_units": "spin", **PLAIN}, 2.0 * BITS - 1.0, []),
    "negative phase": ("MPORBM", {"negative_phase": "restarting", **PLAIN}, BITS, []),
    "scheme": (
        "MPORBM",
        {"scheme": "back-and-forth", "gauge": None, **PAPER},
        BITS.reshape(30, 3, 1, 2),
        [],
    ),
}
"""For each extension the estimator that uses it, its parameters, data, and other options."""


def example(name: str) -> str:
    """The code that CONTRIBUTING has for something that is added."""
    sections = re.split(r"^## ", CONTRIBUTING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (section,) = (text for text in sections if text.startswith(f"How to add a {name}\n"))
    (code,) = re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    return code


@pytest.fixture(scope="module")
def added():
    """Each example as a module of its own; registries are as before in the end."""
    before = [dict(registry) for registry in REGISTRIES]
    modules = {}
    for number, name in enumerate(EXAMPLES):
        module = modules[name] = ModuleType(f"added_{number}")
        sys.modules[module.__name__] = module
        exec(compile(example(name), f"{CONTRIBUTING.name}: {name}", "exec"), module.__dict__)
    yield modules
    for registry, names in zip(REGISTRIES, before, strict=True):
        for name in registry.keys() - names.keys():
            del registry[name]
    for module in modules.values():
        del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def fitted(added):
    """An estimator for each example that was fitted with it."""
    models = {}
    for name, (kind, parameters, samples, _) in EXAMPLES.items():
        estimator = getattr(mporbm, kind, None) or ESTIMATORS[kind]
        models[name] = estimator(**TRAINING, **parameters).fit(samples)
    return models


def run(capsys, *arguments):
    """What a command that works prints as JSON."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--json"])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    return json.loads(printed.out)


def test_every_registry_has_an_example(added):
    for registry in REGISTRIES:
        assert any(cls.__module__.startswith("added_") for cls in registry.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_added_learns_and_is_kept(name, fitted, tmp_path):
    model, (_, parameters, samples, _) = fitted[name], EXAMPLES[name]
    assert model.n_iter_ == TRAINING["n_iter"]
    start = model.__class__(**{**TRAINING, "n_iter": 0}, **parameters).fit(samples)
    assert not np.array_equal(model.weight_matrix(), start.weight_matrix())
    model.save(tmp_path / "model.safetensors")
    again = mporbm.load(tmp_path / "model.safetensors")
    assert again.get_params() == model.get_params()
    assert type(again.machine_.visible_units) is type(model.machine_.visible_units)
    assert_array_equal(again.transform(samples), model.transform(samples))


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_added_is_known_to_the_command_line(name, fitted, tmp_path, capsys):
    _, parameters, samples, flags = EXAMPLES[name]
    data, path = tmp_path / "data.npy", tmp_path / "model.safetensors"
    np.save(data, samples)
    for parameter, value in parameters.items():
        flags = [*flags, f"--{parameter.replace('_', '-')}", value or "none"]
    assert run(capsys, "fit", data, *FLAGS, *flags, "-o", path)["n_iter"] == TRAINING["n_iter"]
    told = run(capsys, "inspect", path)
    assert told["class"] == type(fitted[name]).__name__
    assert parameters.items() <= told["parameters"].items()
    run(capsys, "transform", path, data, "-o", tmp_path / "features.npy")
    assert_array_equal(np.load(tmp_path / "features.npy"), fitted[name].transform(samples))


def test_the_coupling_is_what_its_formula_says(added, rng):
    factors = rng.normal(size=(*VISIBLE, 3)), rng.normal(size=(2, 2, 3))
    coupling = added["coupling"].LowRankCoupling(*factors)
    matrix = factors[0].reshape(-1, 3) @ factors[1].reshape(-1, 3).T
    for form in (coupling, coupling.to_mpo()):
        assert_allclose(form.to_matrix(), matrix, atol=1e-12)
    visible = rng.normal(size=(5, *VISIBLE))
    fields = visible.reshape(5, -1) @ matrix
    assert_allclose(coupling.apply_transpose(visible).reshape(5, -1), fields, atol=1e-12)
    with pytest.raises(ValueError, match="hidden_factor: expected a last axis"):
        added["coupling"].LowRankCoupling(factors[0], factors[1][..., :2])


def test_the_units_are_those_of_a_sum_over_their_states(added, fitted):
    model = fitted["kind of units"]
    numbers = jnp.arange(2 ** np.prod(VISIBLE))
    states = model.machine_.visible_units.states(numbers, VISIBLE, float)
    assert_allclose(np.exp(model.score_samples(np.asarray(states))).sum(), 1.0, rtol=1e-6)
    units, fields = added["kind of units"].Spin(), np.array([-3.0, 0.0, 0.4])
    weights = np.exp(np.array([[-1.0], [1.0]]) * fields)
    assert_allclose(units.log_partition(fields), np.log(weights.sum(axis=0)), rtol=1e-12)
    assert_allclose(units.mean(fields), (weights[1] - weights[0]) / weights.sum(axis=0), rtol=1e-12)
    # Alone, a spin that was flipped with probability 0.1 is what it was seen as with 0.9.
    seen = units.observe(jnp.array([1.0, -1.0]), jnp.array(True), jnp.array(0.1))
    assert_allclose(units.mean(seen.field), [0.8, -0.8], rtol=1e-12)
    samples = EXAMPLES["kind of units"][2][:4]
    completed = model.complete(samples, np.arange(2) == np.zeros((3, 1)), n_gibbs=10)
    assert_array_equal(completed[..., 0], samples[..., 0])
    assert np.all(np.abs(completed[..., 1]) < 1.0)


def test_the_negative_phase_is_stationary(added, key, rng):
    machine, n = tiny_machine(), 20_000
    phase = added["negative phase"].RestartingCD(2, restart_rate=0.5)
    data, chains = (jnp.asarray(exact_samples(machine, n, rng)) for _ in range(2))
    _, samples = eqx.filter_jit(phase.step)(key, machine, chains, Batch(data, jnp.full(n, 1 / n)))
    assert_distributed(samples.visible, exact.visible_distribution(machine))


def test_the_scheme_goes_there_and_back(added, rng):
    coupling = COUPLINGS["kronecker"]([rng.normal(size=(2, 2)) for _ in range(4)])
    groups = added["scheme"].BackAndForth().groups(random_machine(coupling, rng))
    assert groups == ((0,), (1,), (2,), (3,), (2,), (1,))
