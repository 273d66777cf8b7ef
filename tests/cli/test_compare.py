"""`mporbm compare`: what it prints is what `measure_samples` finds."""

import numpy as np
import pytest
from PIL import Image

from mporbm.evaluation.samples import measure_samples

LABELS = np.array(["even", "odd"])[np.arange(20) % 2]


@pytest.fixture
def labels(tmp_path):
    np.save(tmp_path / "labels.npy", LABELS)
    return tmp_path / "labels.npy"


def assert_found(facts, found):
    assert facts["adversarial_accuracy"] == found.adversarial._asdict()
    for name in ("means", "covariances"):
        fields = found._asdict()[name]._asdict()
        assert facts[name] == {key: fields[key] for key in fields if key not in ("data", "samples")}
    if found.classes is None:
        assert "classes" not in facts
        return
    classes = facts["classes"]
    assert classes["names"] == found.classes.classes.tolist()
    assert classes["data_shares"] == found.classes.data_shares.tolist()
    assert classes["sample_shares"] == found.classes.sample_shares.tolist()
    assert classes["rarest"] == found.classes.rarest
    assert classes["missing"] == found.classes.missing.tolist()
    for name in ("distance", "expected_distance", "reference_distance"):
        assert classes[name] == getattr(found.classes, name)


@pytest.mark.parametrize("kind", ["plain", "grey", "planes"])
def test_samples_that_were_written(ok, trained, labels, tmp_path, kind):
    model, out = getattr(trained, kind), tmp_path / "samples.npy"
    ok("sample", model.path, "-o", out, "-n", 30, "--n-gibbs", 5, "--seed", 3)
    written = ("--samples", out, "--labels", labels, "--seed", 3)
    facts = ok("compare", model.path, model.data, *written)
    states = model.estimator.sample(30, 5, random_state=3) > 0.5
    # Numbers of several bits are compared as numbers, and others as bits.
    real, drawn = model.samples, states
    if kind == "planes":
        drawn = model.coding.inverse_transform(states)
    elif kind == "grey":
        real = model.coded
    assert_found(facts, measure_samples(real, drawn, LABELS, seed=3))
    assert (facts["n_data"], facts["n_samples"]) == (20, 30)
    # The same are drawn where none are given.
    now = ("-n", 30, "--n-gibbs", 5, "--labels", labels, "--seed", 3)
    assert ok("compare", model.path, model.data, *now) == facts


def test_samples_as_bits_or_images_or_rows_are_the_same(ok, trained, tmp_path):
    model = trained.grey
    bits = np.random.default_rng(1).random((25, 3, 2)) < 0.5
    np.save(tmp_path / "bits.npy", bits)
    np.save(tmp_path / "flat.npy", np.where(bits, 180, 40).reshape(25, 6))
    (tmp_path / "images").mkdir()
    for number, image in enumerate(bits):
        Image.fromarray(np.where(image, 200, 30).astype(np.uint8)).save(
            tmp_path / "images" / f"{number:02}.png"
        )
    facts = [
        ok("compare", model.path, model.data, "--samples", tmp_path / name)
        for name in ("bits.npy", "flat.npy", "images")
    ]
    assert facts[0] == facts[1] == facts[2]
    assert_found(facts[0], measure_samples(model.coded, bits))


def test_the_table(run, trained, labels, tmp_path):
    model = trained.plain
    np.save(tmp_path / "samples.npy", np.zeros((40, 3, 2), bool))
    arguments = ["compare", model.path, model.data, "--labels", labels]
    ended = run(*arguments, "--samples", tmp_path / "samples.npy")
    assert ended.code == 0
    found = measure_samples(model.samples, np.zeros((40, 3, 2), bool), LABELS)
    near, classes = found.adversarial, found.classes
    lines = {line[:34].strip(): line[34:].split() for line in ended.out.splitlines()}
    assert lines["adversarial accuracy, real"][0] == f"{near.truth:.3f}"
    error = f"{near.standard_error:.3f}"
    assert lines["adversarial accuracy, synthetic"] == [
        f"{near.synthetic:.3f}",
        "0.500",
        "±",
        error,
    ]
    # Samples that are all the same have no correlation.
    assert lines["covariances, correlation"][0] == "nan"
    assert lines["covariances, slope"][0] == "0.000"
    assert f"{classes.distance:.3f}" in ended.out
    assert f"{classes.expected_distance:.3f} (data labelled alike" in ended.out
    assert str(classes.missing[0]) in ended.out
    assert ended.out.endswith("40 samples, 20 of the data\n")
    facts = run(*arguments, "--samples", tmp_path / "samples.npy", "--json").out
    assert '"correlation": null' in facts
    assert "NaN" not in facts


def test_the_picture(ok, trained, labels, tmp_path):
    for name, more in {"a.png": ["--labels", labels], "b.svg": [], "c.pdf": []}.items():
        out = tmp_path / name
        drawn = ("-n", 5, "--n-gibbs", 1, "--seed", 0, "--picture", out)
        ok("compare", trained.plain.path, trained.plain.data, *drawn, *more)
        assert out.stat().st_size > 1000
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > image.height


@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_refusals(refused, trained, tmp_path):
    model = trained.plain
    arrays = {
        "short": np.zeros((1, 3, 2), bool),
        "wide": np.zeros((5, 3, 3), bool),
        "unknown": np.full((5, 3, 2), np.nan),
        "bytes": np.full((5, 3, 2), 200, np.uint8),
        "labels": np.arange(7),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    for more, expected in {
        ("--samples", "short"): "/short.npy: expected two samples or more in the first axis",
        ("--samples", "wide"): "/wide.npy: expected shape (5, 3, 2), as the model has learnt from",
        ("--samples", "unknown"): "/unknown.npy: expected finite numbers, got NaN or inf",
        (
            "--samples",
            "bytes",
        ): "/bytes.npy: expected values from 0 to 1 for Bernoulli visible units",
        ("--samples", "none"): "/none.npy: expected an array",
        ("--labels", "labels"): "/labels.npy: expected a number or a string for each of 20 samples",
    }.items():
        message = refused("compare", model.path, model.data, more[0], tmp_path / f"{more[1]}.npy")
        assert message.startswith(f"{tmp_path}{expected}"), message
    message = refused("compare", model.path, model.data, "-n", 1, "--n-gibbs", 1)
    assert message == "n_samples=1: expected at least 2 to compare."
    message = refused("compare", model.path, model.data, "--picture", tmp_path / "p.jpg")
    assert "expected a name that ends in .png" in message
    message = refused("compare", trained.grey.path, tmp_path / "unknown.npy")
    assert message.startswith(f"{tmp_path}/unknown.npy: expected finite numbers")
    message = refused("compare", trained.planes.path, tmp_path / "bytes.npy")
    assert message.startswith(f"{tmp_path}/bytes.npy: expected whole numbers from 0 to 3")
