"""Every command gives what the methods of the estimators give."""

import json
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from unittest import mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.base import clone

import mporbm
from mporbm import MPODBM, MPODBN, MPORBM
from mporbm.cli import files, main
from mporbm.machine.singular_values import singular_values_by_cut

KINDS = ("plain", "grey", "planes")
CHAIN = ["--n-gibbs", "10", "--seed", "3"]
MASK = np.array([[True, False], [False, True], [True, True]])


@pytest.fixture(params=KINDS)
def model(request, trained):
    return getattr(trained, request.param)


def decoded(model, values, binary=False):
    """Units or their probabilities as the data had them."""
    values = values > 0.5 if binary else values
    return values if model.coding is None else model.coding.inverse_transform(values)


def coded_mask(model, mask):
    return mask if model.coding is None else model.coding.transform_mask(mask)


# fit


@pytest.mark.parametrize("kind", [*KINDS, "dense"])
def test_fit_is_that_of_the_estimator(trained, same, kind):
    model = getattr(trained, kind)
    same(model.estimator, model.expected)
    silent = {"verbose": 0, "checkpoint": None}
    parameters = [m.get_params() | silent for m in (model.estimator, model.expected)]
    assert parameters[0] == parameters[1]


def test_a_model_remembers_its_coding(trained):
    assert not hasattr(trained.plain.estimator, "coding_")
    for model in (trained.grey, trained.planes):
        remembered = model.estimator.coding_
        assert str(remembered) == str(model.coding)
        assert_array_equal(np.asarray(remembered.transform(model.samples)), np.asarray(model.coded))
        assert_array_equal(remembered.inverse_transform(model.coded), decoded(model, model.coded))


@pytest.mark.parametrize("kind", ["mvrbm", "tvrbm"])
def test_fit_of_the_other_machines(ok, trained, tmp_path, same, kind):
    name = {"mvrbm": "MvRBM", "tvrbm": "TvRBM"}[kind]
    hidden = {"mvrbm": "2,2", "tvrbm": "4"}[kind]
    out = tmp_path / "m.safetensors"
    # What they start with tells them apart; training takes its time to compile.
    options = ["--model", kind, "--hidden-shape", hidden, "--n-iter", 0, "--seed", 5]
    facts = ok("fit", trained.plain.data, "-o", out, *options)
    shape = tuple(map(int, hidden.split(",")))
    expected = getattr(mporbm, name)(shape, n_iter=0, random_state=5).fit(trained.plain.samples)
    same(mporbm.load(out), expected)
    assert facts["class"] == name
    assert facts["hidden_shape"] == list(shape)
    assert facts["n_parameters"] == expected.n_parameters_


def test_fit_says_what_it_did_and_draws_it(run, trained, tmp_path, same):
    out, picture = tmp_path / "m.safetensors", tmp_path / "curves.png"
    arguments = ["fit", trained.plain.data, "-o", out, *trained.plain.options]
    ended = run(*arguments, "--picture", picture)
    assert ended.code == 0
    assert ended.out == f"{out}: MPORBM 3x2 -> 2x2, 20 weights, 3 epochs\n"
    assert "3/3" in ended.err
    assert_image(picture)
    assert {path.name for path in tmp_path.iterdir()} == {"m.safetensors", "curves.png"}
    same(mporbm.load(out), trained.plain.expected)


def test_validation_samples_are_watched(ok, run, trained, tmp_path):
    model, out = trained.plain, tmp_path / "m.safetensors"
    np.savez(tmp_path / "val.npz", other=model.samples, held=~model.samples)
    options = [*model.options, "--x-val", f"{tmp_path}/val.npz:held"]
    facts = ok("fit", model.data, "-o", out, *options)
    expected = clone(model.expected).fit(model.samples, X_val=~model.samples)
    score = expected.history_[-1]["validation_score"]
    assert facts["last"]["validation_score"] == score
    assert f"validation {score:.2f}" in run("inspect", out).out


# Reading and writing samples


def write_images(folder, arrays, names=None):
    folder.mkdir(exist_ok=True)
    for number, array in enumerate(arrays):
        name = f"{number:02}" if names is None else names[number]
        Image.fromarray(array).save(folder / f"{name}.png")
    return folder


def test_missing_values_are_learnt_from_and_scored(ok, refused, trained, tmp_path, same):
    rows = trained.plain.samples.astype(float)
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = np.nan
    data, path, out = (tmp_path / name for name in ("X.npy", "m.safetensors", "o.npy"))
    np.save(data, rows)
    ok("fit", data, "-o", path, "--x-val", data, *trained.plain.options)
    settings = {"rank": 2, "n_iter": 3, "batch_size": 10, "random_state": 0}
    expected = MPORBM((2, 2), **settings).fit(rows, X_val=rows)
    same(mporbm.load(path), expected)
    ok("transform", path, data, "-o", out)
    assert_array_equal(np.load(out), expected.transform(rows))
    facts = ok("score", path, data)
    assert_allclose(facts["log_probability"], expected.score(rows), rtol=1e-6)
    message = refused("score", path, data, "--pseudo")
    assert message.startswith(f"{data}: expected finite numbers, got NaN")
    assert "transform and score_samples take samples with missing values" in message


def test_samples_of_any_file_are_the_same(ok, trained, tmp_path):
    samples = trained.plain.samples
    expected = trained.plain.estimator.transform(samples)
    np.savez(tmp_path / "one.npz", x=samples)
    np.savez_compressed(tmp_path / "two.npz", x=samples, y=1.0)
    np.save(tmp_path / "flat.npy", samples.reshape(20, -1))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(samples.astype(np.float32)))
    write_images(tmp_path / "images", samples)
    names = ("one.npz", "one.npz:x", "two.npz:x", "flat.npy", "fortran.npy", "images")
    for number, name in enumerate(names):
        out = tmp_path / f"{number}.npy"
        facts = ok("transform", trained.plain.path, tmp_path / name, "-o", out)
        assert facts == {"output": str(out), "shape": [20, 4], "dtype": "float64"}
        assert_array_equal(np.load(out), expected)


def test_one_image_is_one_sample(ok, trained, tmp_path):
    write_images(tmp_path / "images", trained.grey.samples)
    ok("transform", trained.grey.path, tmp_path / "images" / "07.png", "-o", tmp_path / "o.npy")
    expected = trained.grey.estimator.transform(trained.grey.coded[7:8])
    assert_array_equal(np.load(tmp_path / "o.npy"), expected)


def test_images_come_in_the_order_of_their_names(tmp_path):
    images = np.arange(3 * 6, dtype=np.uint8).reshape(3, 3, 2)
    folder = write_images(tmp_path / "images", images, ("b", "c", "a"))
    (folder / "notes.txt").write_text("no image")
    (folder / "._b.png").write_text("what macOS leaves")
    assert_array_equal(files.read_array(str(folder)), images[[2, 0, 1]])


@pytest.mark.parametrize(
    ("dtype", "shape", "mode"),
    [
        ("bool", (3, 2), "1"),
        ("uint8", (3, 2), "L"),
        ("uint8", (3, 2, 3), "RGB"),
        ("uint16", (3, 2), "I;16"),
    ],
)
def test_images_survive_being_written_and_read(tmp_path, rng, dtype, shape, mode):
    largest = 1 if dtype == "bool" else np.iinfo(dtype).max
    images = rng.integers(largest, size=(12, *shape), endpoint=True).astype(dtype)
    files.write_array(tmp_path / "images", images, scaled=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images"]
    assert len(list((tmp_path / "images").iterdir())) == 12
    with Image.open(tmp_path / "images" / "03.png") as image:
        assert (image.format, image.mode) == ("PNG", mode)
    found = files.read_array(str(tmp_path / "images"))
    assert found.dtype == dtype
    assert_array_equal(found, images)


def test_real_numbers_up_to_1_are_shades_of_grey(tmp_path):
    images = np.zeros((2, 2, 2))
    images[1] = [[0.5, 1.0], [0.25, 0.0]]
    files.write_array(tmp_path / "grey", images)
    assert_array_equal(
        files.read_array(str(tmp_path / "grey")), [np.zeros((2, 2)), [[128, 255], [64, 0]]]
    )
    # An image that is dark among others is dark.
    images[1] *= 200
    files.write_array(tmp_path / "levels", images + 0.6)
    assert_array_equal(
        files.read_array(str(tmp_path / "levels")), [np.ones((2, 2)), [[101, 201], [51, 1]]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_images_becomes_another_one(ok, trained, tmp_path, kind):
    model = getattr(trained, kind)
    folder = write_images(tmp_path / "in", model.samples)
    np.save(tmp_path / "mask.npy", MASK)
    options = ["--mask", tmp_path / "mask.npy", "--binary", *CHAIN]
    ok("complete", model.path, folder, "-o", tmp_path / "out", *options)
    ok("complete", model.path, model.data, "-o", tmp_path / "out.npy", *options)
    found = files.read_array(str(tmp_path / "out"))
    assert found.shape == (20, 3, 2)
    assert_array_equal(found[:, MASK], model.samples[:, MASK])
    assert_allclose(found, np.load(tmp_path / "out.npy"), atol=0.5)


def test_colour_images_become_colour_images(ok, tmp_path, rng):
    images = rng.integers(2, size=(4, 3, 2, 3), dtype=np.uint8)
    folder, model = write_images(tmp_path / "in", images), tmp_path / "m.safetensors"
    options = ["--bit-planes", 1, "--hidden-shape", "1,1,1", "--n-iter", 0, "--seed", 0]
    assert ok("fit", folder, "-o", model, *options)["visible_shape"] == [3, 2, 3]
    # A grey mask is for all colours of a pixel.
    Image.fromarray(MASK).save(tmp_path / "mask.png")
    # Means of whole numbers, though not above 1, are no shares of white.
    options = ["--mask", tmp_path / "mask.png", "--method", "reconstruct"]
    picture = ["--picture", tmp_path / "strips.svg"]
    ok("complete", model, folder, "-o", tmp_path / "out", *options, *picture)
    found = files.read_array(str(tmp_path / "out"))
    assert found.shape == images.shape
    assert_array_equal(found[:, MASK], images[:, MASK])
    assert_image(tmp_path / "strips.svg")


# transform


@pytest.mark.parametrize(
    ("kind", "feature", "output"),
    [(kind, "probability", output) for kind in KINDS for output in ("flat", "tensor")]
    + [("grey", "field", "flat"), ("plain", "state", "tensor")],
)
def test_transform(ok, trained, tmp_path, kind, feature, output):
    model, out = getattr(trained, kind), tmp_path / "f.npy"
    ok(
        *("transform", model.path, model.data, "-o", out),
        *("--feature", feature, "--output", output),
    )
    estimator = mporbm.load(model.path).set_params(feature=feature, output=output)
    assert_array_equal(np.load(out), estimator.transform(model.coded))


# complete


@pytest.mark.parametrize(
    ("kind", "method"),
    [(kind, "gibbs") for kind in KINDS] + [("grey", "mean-field"), ("plain", "reconstruct")],
)
@pytest.mark.parametrize("binary", [False, True])
def test_complete(ok, trained, tmp_path, kind, method, binary):
    model, out, mask = getattr(trained, kind), tmp_path / "c.npy", tmp_path / "mask.npy"
    np.save(mask, MASK)
    options = ["--mask", mask, "--method", method, *CHAIN, *(["--binary"] if binary else [])]
    ok("complete", model.path, model.data, "-o", out, *options)
    filled = model.estimator.complete(
        np.asarray(model.coded),
        coded_mask(model, MASK),
        method=method,
        n_gibbs=10,
        binary=binary,
        random_state=3,
    )
    found = np.load(out)
    assert_array_equal(found, np.where(MASK, model.samples, decoded(model, filled, binary)))
    if binary and model.coding is None:
        assert found.dtype == bool


def test_known_values_stay_and_unknown_ones_do_not_matter(ok, model, tmp_path):
    hidden = np.where(MASK, model.samples, model.samples.dtype.type(0))
    np.save(tmp_path / "mask.npy", MASK)
    np.save(tmp_path / "hidden.npy", hidden)
    found = []
    for name in (model.data, tmp_path / "hidden.npy"):
        out = tmp_path / f"{len(found)}.npy"
        ok("complete", model.path, name, "-o", out, "--mask", tmp_path / "mask.npy", *CHAIN)
        found.append(np.load(out))
        assert_array_equal(found[-1][:, MASK], model.samples[:, MASK])
    assert_array_equal(*found)


HALVES = {"left": np.s_[:, :1], "right": np.s_[:, 1:], "top": np.s_[:1], "bottom": np.s_[1:]}


def masks(tmp_path, samples):
    """The left half as known, said in all ways that there are."""
    left = np.zeros((3, 2), bool)
    left[:, :1] = True
    np.save(tmp_path / "left.npy", left)
    np.save(tmp_path / "flat.npy", left.ravel())
    np.save(tmp_path / "one.npy", left[None].astype(np.uint8))
    np.save(tmp_path / "each.npy", np.broadcast_to(left, samples.shape))
    np.savez(tmp_path / "each.npz", mask=np.broadcast_to(left, samples.shape))
    Image.fromarray(left).save(tmp_path / "bits.png")
    Image.fromarray(left.astype(np.uint8) * 7).save(tmp_path / "grey.png")
    write_images(tmp_path / "folder", np.broadcast_to(left, samples.shape))
    names = ("left.npy", "flat.npy", "one.npy", "each.npy", "each.npz", "bits.png", "grey.png")
    return [tmp_path / name for name in (*names, "folder")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "planes"])
def test_what_is_known_can_be_said_in_many_ways(ok, trained, tmp_path, kind):
    model, out = getattr(trained, kind), tmp_path / "out.npy"
    ok("complete", model.path, model.data, "-o", out, "--known", "left", *CHAIN)
    expected = np.load(out)
    missing = model.samples.astype(float)
    missing[:, :, 1:] = np.nan
    np.save(tmp_path / "nan.npy", missing)
    ok("complete", model.path, tmp_path / "nan.npy", "-o", out, *CHAIN, "--force")
    assert_array_equal(np.load(out), expected)
    for mask in masks(tmp_path, model.samples):
        ok("complete", model.path, model.data, "-o", out, "--mask", mask, *CHAIN, "--force")
        assert_array_equal(np.load(out), expected, err_msg=str(mask))


@pytest.mark.parametrize("half", HALVES)
def test_the_half_that_is_known(ok, trained, tmp_path, half):
    samples, out = trained.plain.samples, tmp_path / "out.npy"
    known = np.zeros((3, 2), bool)
    known[HALVES[half]] = True
    facts = ok("complete", trained.plain.path, trained.plain.data, "-o", out, "--known", half)
    found = np.load(out)
    assert_array_equal(found[:, known], samples[:, known])
    assert ((found[:, ~known] > 0) & (found[:, ~known] < 1)).all()
    # The other half is there to compare with.
    error = ((found - samples) ** 2).mean(axis=(1, 2))
    assert_allclose(facts["psnr"], np.mean(-10 * np.log10(error)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"), [("denoise", "grey"), *(("complete", kind) for kind in KINDS)]
)
def test_several_versions_of_each_sample(ok, trained, tmp_path, name, kind):
    model, out = getattr(trained, kind), tmp_path / "out.npy"
    evidence = {"complete": ["--known", "left"], "denoise": ["--noise", "0.1"]}[name]
    options = [*evidence, "--n-samples", 3, *CHAIN, "--picture", tmp_path / "p.png"]
    facts = ok(name, model.path, model.data, "-o", out, *options)
    known = np.zeros((3, 2), bool)
    known[:, :1] = name == "complete"
    said = {"mask": coded_mask(model, known)} if name == "complete" else {"noise": 0.1}
    coded = np.asarray(model.coded)
    drawn = model.estimator.posterior_samples(
        coded, **said, n_samples=3, n_gibbs=10, random_state=3
    )
    versions = decoded(model, drawn.reshape(60, *drawn.shape[2:]), binary=True)
    expected = np.where(known, model.samples[:, None], versions.reshape(20, 3, 3, 2))
    assert facts["shape"] == [20, 3, 3, 2]
    assert_array_equal(np.load(out), expected)
    assert_image(tmp_path / "p.png")


def test_standard_deviations_are_those_of_the_units(ok, model, tmp_path):
    out, std = tmp_path / "out.npy", tmp_path / "std.npy"
    known = np.zeros((3, 2), bool)
    known[:, :1] = True
    options = ["--known", "left", "--std", std, *CHAIN]
    ok("complete", model.path, model.data, "-o", out, *options)
    _, expected = model.estimator.complete(
        np.asarray(model.coded),
        coded_mask(model, known),
        n_gibbs=10,
        return_std=True,
        random_state=3,
    )
    assert_array_equal(np.load(std), expected)


# denoise


@pytest.mark.parametrize(
    ("kind", "level"),
    [("plain", None), ("grey", None), ("planes", "noise"), ("grey", "salt_and_pepper")],
)
def test_denoise(ok, trained, tmp_path, kind, level):
    model, out = getattr(trained, kind), tmp_path / "out.npy"
    noise = {} if level is None else {level: 0.2}
    options = [] if level is None else [f"--{level.replace('_', '-')}", 0.2]
    facts = ok("denoise", model.path, model.data, "-o", out, *options, *CHAIN)
    coded = np.asarray(model.coded)
    clean = model.estimator.denoise(coded, **noise, n_gibbs=10, random_state=3)
    assert_array_equal(np.load(out), decoded(model, clean))
    assert facts.get("estimated_noise") == (
        model.estimator.estimate_noise(coded) if level is None else None
    )


@pytest.mark.parametrize("method", ["mean-field", "reconstruct"])
def test_other_ways_to_denoise(ok, trained, tmp_path, method):
    model, out = trained.plain, tmp_path / "out.npy"
    options = ["--method", method, *CHAIN, "--binary"]
    ok("denoise", model.path, model.data, "-o", out, *options)
    clean = model.estimator.denoise(
        model.samples, method=method, n_gibbs=10, binary=True, random_state=3
    )
    assert_array_equal(np.load(out), clean)


def test_the_true_samples_tell_the_psnr(ok, trained, tmp_path, rng):
    model, out = trained.grey, tmp_path / "out.npy"
    noisy = np.where(rng.random((20, 3, 2)) < 0.1, 255 - model.samples, model.samples)
    np.save(tmp_path / "noisy.npy", noisy.astype(np.uint8))
    np.save(tmp_path / "true.npy", model.samples.reshape(20, 6))
    options = ["--original", tmp_path / "true.npy", "--picture", tmp_path / "p.pdf", *CHAIN]
    facts = ok("denoise", model.path, tmp_path / "noisy.npy", "-o", out, *options)
    error = ((np.load(out) - model.samples) ** 2).mean(axis=(1, 2))
    peak = float(model.samples.max()) - float(model.samples.min())
    assert_allclose(facts["psnr"], np.mean(10 * np.log10(peak**2 / error)))
    assert_image(tmp_path / "p.pdf")


def test_bits_stay_bits_though_grey_levels_were_learnt(ok, trained, tmp_path):
    """Data that are binary already are not spread to the levels of the training data."""
    model, out = trained.grey, tmp_path / "out.npy"
    np.save(tmp_path / "bits.npy", model.coded)
    ok("complete", model.path, tmp_path / "bits.npy", "-o", out, "--known", "left", *CHAIN)
    known = np.zeros((3, 2), bool)
    known[:, :1] = True
    expected = model.estimator.complete(model.coded, known, n_gibbs=10, random_state=3)
    assert_array_equal(np.load(out), expected)


@pytest.mark.slow
def test_flat_samples_of_a_coded_tensor(ok, trained, tmp_path):
    samples, flat = trained.grey.samples, tmp_path / "flat.npy"
    np.save(flat, samples.reshape(20, 6))
    model, out = tmp_path / "m.safetensors", tmp_path / "out.npy"
    ok("fit", flat, "-o", model, "--visible-shape", "3,2", *trained.grey.options)
    for data, path in ((flat, model), (trained.grey.data, trained.grey.path)):
        ok("complete", path, data, "-o", out, "--known", "top", *CHAIN, "--force")
        found = np.load(out)
        assert_array_equal(found[:, :1], samples[:, :1])
        again = tmp_path / "again.npy"
        ok("complete", model, trained.grey.data, "-o", again, "--known", "top", *CHAIN, "--force")
        assert_array_equal(np.load(again), found)


# sample


def test_sample(ok, model, tmp_path):
    out, picture = tmp_path / "s.npy", tmp_path / "s.png"
    ok("sample", model.path, "-o", out, "-n", 40, *CHAIN, "--picture", picture)
    drawn = model.estimator.sample(40, 10, random_state=3)
    found = np.load(out)
    assert_array_equal(found, decoded(model, drawn, binary=True))
    assert_image(picture)
    ok("sample", model.path, "-o", tmp_path / "s", "-n", 40, *CHAIN)
    images = files.read_array(str(tmp_path / "s"))
    assert_allclose(images, found, atol=0.5)
    assert (images.dtype == bool) == (model.coding is None)


# score


def test_score(ok, model, tmp_path):
    out = tmp_path / "scores.npy"
    facts = ok("score", model.path, model.data, "-o", out)
    expected = model.estimator.score_samples(model.coded)
    assert_array_equal(np.load(out), expected)
    z = model.estimator.log_partition()
    assert facts["log_probability"] == expected.mean()
    assert_allclose(facts["standard_error"], expected.std(ddof=1) / np.sqrt(20))
    assert facts["log_partition"] == {
        "value": z.value,
        "standard_error": 0.0,
        "effective_sample_size": None,
        "forward": z.value,
        "reverse": z.value,
        "exact": True,
    }
    assert facts["n_samples"] == 20


def test_score_by_annealed_importance_sampling(ok, run, trained):
    model = trained.plain
    options = {"n_chains": 16, "n_temperatures": 20}
    z = model.estimator.log_partition("ais", **options, random_state=7)
    expected = (-model.estimator.free_energy(model.samples) - z.value).mean()
    arguments = ["score", model.path, model.data, "--method", "ais", "--seed", 7]
    arguments += ["--n-chains", 16, "--n-temperatures", 20]
    facts = ok(*arguments)
    assert facts["log_probability"] == expected
    assert facts["log_partition"]["value"] == z.value
    assert facts["log_partition"]["effective_sample_size"] == z.effective_sample_size
    said = run(*arguments)
    assert said.code == 0
    scores = -model.estimator.free_energy(model.samples)
    error = np.hypot(scores.std(ddof=1) / np.sqrt(len(scores)), z.standard_error)
    assert f"log-probability {expected:.2f} ± {error:.2f} " in said.out
    assert f"log Z {z.value:.2f} (± {z.standard_error:.2f}, " in said.out


def test_pseudo_log_likelihood(ok, model, tmp_path):
    facts = ok("score", model.path, model.data, "--pseudo", "-o", tmp_path / "s.npy")
    expected = model.estimator.pseudo_log_likelihood(model.coded)
    assert_array_equal(np.load(tmp_path / "s.npy"), expected)
    assert facts["pseudo_log_likelihood"] == expected.mean()
    assert "log_partition" not in facts


# inspect, compress, draw


def test_inspect(ok, run, model):
    facts, estimator = ok("inspect", model.path), model.estimator
    assert facts["class"] == "MPORBM"
    assert facts["visible_shape"] == list(estimator.visible_shape_)
    assert facts["hidden_shape"] == list(estimator.machine_.hidden_shape)
    assert facts["ranks"] == list(estimator.ranks_)
    assert facts["n_parameters"] == estimator.n_parameters_
    assert facts["history"] == estimator.history_
    assert facts["coding"] == (None if model.coding is None else str(model.coding))
    assert facts["parameters"]["random_state"] == 0
    for name, values in singular_values_by_cut(estimator.machine_.coupling).items():
        assert facts["singular_values"][name] == values.tolist()
    plan = estimator.machine_.coupling.plan(estimator.batch_size)
    assert facts["plan"]["groups"] == list(plan.groups)
    assert facts["plan"]["n_operations"] == plan.n_operations
    said = run("inspect", model.path)
    assert said.code == 0
    assert str(plan).split(",")[0] in said.out
    for word in ("MPORBM", "bernoulli", "n_iter=3", "singular values", "reconstruction error"):
        assert word in said.out


@pytest.mark.parametrize("kind", [MPODBN, MPODBM])
def test_deep_models_are_scored_and_inspected(ok, run, tmp_path, kind):
    rng, path, data = np.random.default_rng(0), tmp_path / "deep.safetensors", tmp_path / "x.npy"
    samples = rng.random((30, 4, 3)) < 0.3
    np.save(data, samples)
    model = kind([(2, 2), (2, 1)], rank=2, n_iter=2, n_iter_fine_tuning=2, random_state=0)
    model.fit(samples).save(path)
    facts = ok("score", path, data, "--method", "exact")
    assert_allclose(facts["log_probability"], model.score(samples), rtol=1e-6)
    facts = ok("inspect", path)
    assert facts["visible_shape"] == [4, 3]
    assert facts["n_parameters_dense"] == 12 * 4 + 4 * 2
    assert "4x3 -> 2x2 -> 2x1" in run("inspect", path).out


def test_inspect_draws_pictures(ok, trained, tmp_path):
    folder = tmp_path / "pictures"
    ok("inspect", trained.plain.path, "--pictures", folder)
    names = {"receptive-fields.png", "singular-values.png", "training.png"}
    assert {path.name for path in folder.iterdir()} == names
    for name in names:
        assert_image(folder / name)


@pytest.mark.parametrize("kind", ["plain", "planes", "dense"])
def test_compress(ok, trained, tmp_path, same, kind):
    model, out = getattr(trained, kind), tmp_path / "small.safetensors"
    facts = ok("compress", model.path, "-o", out, "--rank", 1)
    if kind == "dense":
        expected = MPORBM.from_rbm(model.estimator, rank=1)
    else:
        expected = model.estimator.compress(rank=1)
    small = mporbm.load(out)
    same(small, expected)
    assert facts["ranks"] == [1] * len(small.ranks_)
    assert facts["n_parameters"] == expected.n_parameters_ < facts["n_parameters_before"]
    assert facts["truncation_error"] == expected.truncation_error_ == small.truncation_error_
    assert str(getattr(small, "coding_", None)) == str(model.coding)
    ok("transform", out, model.data, "-o", tmp_path / "f.npy")
    assert_array_equal(np.load(tmp_path / "f.npy"), expected.transform(model.coded))


def test_compress_to_a_tolerance(ok, run, trained, tmp_path, same):
    out = tmp_path / "small.safetensors"
    ok("compress", trained.dense.path, "-o", out, "--tolerance", 0.5, "--hidden-shape", "4,1")
    options = {"tolerance": 0.5, "hidden_shape": (4, 1)}
    same(mporbm.load(out), MPORBM.from_rbm(trained.dense.estimator, **options))
    # It has not been trained, so there is no training to show.
    said = run("inspect", out, "--pictures", tmp_path / "pictures")
    assert "W changed by at most" in said.out
    names = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert names == {"receptive-fields.png", "singular-values.png"}


@pytest.mark.parametrize("what", ["coupling", "energy", "hidden_mean", "visible_mean", "gradient"])
def test_draw(ok, trained, tmp_path, what):
    out = tmp_path / "network.svg"
    facts = ok("draw", trained.plain.path, "-o", out, "--what", what, "--core", 1)
    assert facts == {"output": str(out), "what": what}
    assert_image(out)


def assert_image(path):
    """A picture that can be shown, and is not empty."""
    content = path.read_bytes()
    if path.suffix == ".svg":
        assert ElementTree.fromstring(content).tag.endswith("svg")
    elif path.suffix == ".pdf":
        assert content.startswith(b"%PDF")
        assert content.rstrip().endswith(b"%%EOF")
    else:
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert len(np.unique(np.asarray(image.convert("L")))) > 1


# What they print


COMMANDS = {
    "fit": ["{data}", "-o", "{out}.safetensors", "--hidden-shape", "2,2", "--n-iter", "0"],
    "transform": ["{model}", "{data}", "-o", "{out}.npy"],
    "complete": ["{model}", "{data}", "-o", "{out}.npy", "--known", "left"],
    "denoise": ["{model}", "{data}", "-o", "{out}.npy"],
    "sample": ["{model}", "-o", "{out}.npy", "-n", "40"],
    "score": ["{model}", "{data}", "-o", "{out}.npy"],
    "compare": ["{model}", "{data}", "-n", "40", "--n-gibbs", "2", "--picture", "{out}.png"],
    "inspect": ["{model}"],
    "compress": ["{model}", "-o", "{out}.safetensors", "--rank", "1"],
    "draw": ["{model}", "-o", "{out}.png"],
}


@pytest.fixture(params=COMMANDS)
def example(request, trained, tmp_path):
    """Some command and its arguments."""
    places = {"data": trained.plain.data, "model": trained.plain.path, "out": tmp_path / "out"}
    return [request.param, *(word.format(**places) for word in COMMANDS[request.param])]


def test_json_is_one_object_and_nothing_else(run, example):
    ended = run(*example, "--json")
    assert (ended.code, ended.err) == (0, "")
    assert isinstance(json.loads(ended.out), dict)
    assert ended.out.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("example", sorted(COMMANDS.keys() - {"inspect"}), indirect=True)
def test_quiet_prints_nothing(run, example):
    ended = run(*example, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


@pytest.mark.slow
def test_results_go_to_the_standard_output(run, example, tmp_path):
    ended = run(*example)
    assert ended.code == 0
    assert ended.out
    assert "━" not in ended.out
    # Progress goes elsewhere, and nothing else does.
    words = ("━", "epochs", "operations a product")
    assert all(any(word in line for word in words) for line in ended.err.splitlines())
    if "-o" in example and example[0] != "score":
        assert ended.out.startswith(f"{tmp_path}/out.")


def test_nothing_is_overwritten_unless_forced(run, refused, example, tmp_path):
    if example[0] == "inspect":
        example += ["--pictures", tmp_path / "pictures"]
    assert run(*example).code == 0
    message = refused(*example)
    assert message.endswith("exists already; pass --force to overwrite it.")
    assert run(*example, "--force").code == 0


@pytest.mark.parametrize("suffix", [".npy", ""])
def test_forced_outputs_are_replaced(ok, trained, tmp_path, suffix):
    out = tmp_path / f"out{suffix}"
    arguments = ["sample", trained.plain.path, "-o", out, "--n-gibbs", 1, "--seed", 1]
    ok(*arguments, "-n", 64)
    if not suffix:
        (out / "portrait.png").write_bytes(b"not one of ours")
    ok(*arguments, "-n", 40, "--force")
    if suffix:
        assert np.load(out).shape == (40, 3, 2)
    else:
        numbers = {f"{number:02}.png" for number in range(40)}
        assert {path.name for path in out.iterdir()} == {*numbers, "portrait.png"}


def test_names_of_files_are_printed_as_they_are(run, trained, tmp_path):
    out = tmp_path / "[red]:smile:.npy"
    ended = run("transform", trained.plain.path, trained.plain.data, "-o", out)
    assert (ended.code, ended.out) == (0, f"{out}: 20x4 float64\n")


@pytest.mark.filterwarnings("default:X. expected values from 0 to 1:UserWarning")
def test_warnings_are_one_line(run, trained, tmp_path):
    np.save(tmp_path / "x.npy", trained.plain.samples * 2.0)
    ended = run("transform", trained.plain.path, tmp_path / "x.npy", "-o", tmp_path / "o.npy")
    assert ended.code == 0
    assert ended.err.startswith("mporbm: warning: X: expected values from 0 to 1")
    assert ended.err.count("\n") == 1


# Help


def test_the_version_is_printed(run):
    ended = run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"{mporbm.__version__}\n", "")


def test_help(run):
    for words in ([], *([name] for name in COMMANDS), ["sweep"], ["launch"]):
        for option in ("--help", "-h"):
            ended = run(*words, option)
            assert (ended.code, ended.err) == (0, "")
            assert f"Usage: {' '.join(['mporbm', *words])} " in ended.out
        # Without arguments help is what is needed.
        bare = run(*words)
        assert bare.code == 2
        assert "Usage: mporbm" in bare.out + bare.err
        assert "Traceback" not in bare.err


def test_help_does_not_wait_for_jax():
    script = "import sys\nfrom mporbm.cli import main\ntry: main(['--help'])\n"
    script += "except SystemExit: print({'jax', 'sklearn', 'optuna', 'PIL'} & set(sys.modules))"
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("set()\n")


def test_commands_keep_what_they_compile(ok, trained, tmp_path, monkeypatch):
    enable = mock.Mock()
    monkeypatch.setattr(mporbm, "enable_compilation_cache", enable)
    ok("inspect", trained.plain.path)
    assert enable.call_args_list == [mock.call()]
    ok("fit", trained.plain.data, "-o", tmp_path / "m.safetensors", "--n-iter", 0)
    assert enable.call_args_list == [mock.call()] * 2


def test_main_leaves_warnings_as_they_were(trained):
    before = warnings.showwarning
    with pytest.raises(SystemExit):
        main(["inspect", str(trained.plain.path), "--json"])
    assert warnings.showwarning is before
