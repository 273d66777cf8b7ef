"""Completion and denoising: questions, their answers, and the PSNR of these."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from reproduction import generation, mnist
from reproduction.generation import decode, encode, questions
from reproduction_support import fakes
from reproduction_support.fakes import plain_psnr

N_VALIDATION, N_TEST = 6, 12
ASKED = {"n_iter": 2, "n_validation": N_VALIDATION, "n_test": N_TEST, "offline": True, "seed": 0}


@pytest.fixture
def images(monkeypatch):
    """Bars of random length at random places, as many as are asked for."""
    rng = np.random.default_rng(0)
    values = np.zeros((50 + N_VALIDATION + N_TEST, 28, 28), np.uint8)
    for image, (row, column) in zip(values, rng.integers(4, 16, (len(values), 2)), strict=True):
        image[row : row + rng.integers(4, 12), column : column + 4] = 200
    loaded = {"offline": values, "train": values, "test": values[::-1].copy()}
    monkeypatch.setattr(mnist, "_load", lambda name: (loaded[name], np.arange(len(values)) % 10))
    return loaded


# Questions and answers


def test_pictures_are_kept_as_text(rng):
    images = rng.random((3, 28, 28))
    text = encode(images)
    assert json.loads(json.dumps(text)) == text
    assert_allclose(decode(text), images, atol=0.5 / 255 + 1e-12)
    binary = images > 0.5
    assert_array_equal(decode(encode(binary)), binary)


def test_halves_are_given(rng):
    images = rng.random((4, 28, 28)) < 0.5
    asked = questions(rng, images)
    assert list(asked) == ["right", "bottom", "10%", "15%", "20%"]
    rows, columns = np.indices((28, 28))
    for half, mask in {"right": columns >= 14, "bottom": rows >= 14}.items():
        assert_array_equal(asked[half].mask, mask)
        assert_array_equal(asked[half].given[:, mask], images[:, mask])
        assert not asked[half].given[:, ~mask].any()
        assert asked[half].noise is None


def test_noise_is_salt_and_pepper_of_the_density_that_is_said(rng):
    images = np.broadcast_to(np.arange(28) < 7, (2000, 28, 28))
    asked = questions(rng, images)
    for name, noise in {"10%": 0.10, "15%": 0.15, "20%": 0.20}.items():
        question = asked[name]
        assert (question.mask, question.noise) == (None, noise)
        # A pixel that is hit is right in one of two cases, be it black or white.
        for part in (np.s_[..., :7], np.s_[..., 7:]):
            wrong = question.given[part] != images[part]
            deviation = math.sqrt(noise / 2 * (1 - noise / 2) / wrong.size)
            assert abs(wrong.mean() - noise / 2) < 5 * deviation
    changed = [asked[name].given != images for name in ("10%", "20%")]
    assert (changed[0] & ~changed[1]).any()


class Rigged:
    """A machine that answers the better, the closer its weight decay is to 0.06."""

    n_parameters_ = 7
    made = None

    def set_params(self, n_iter, weight_decay, random_state):
        self.weight_decay = weight_decay
        self.made.append((n_iter, weight_decay, random_state))
        return self

    def fit(self, X):
        assert X.shape == (50, 28, 28)
        return self

    def complete(self, given, mask, **how):
        return self._answer(given, how)

    def denoise(self, given, *, salt_and_pepper, **how):
        assert salt_and_pepper in (0.10, 0.15, 0.20)
        return self._answer(given, how)

    def _answer(self, given, how):
        assert how.pop("random_state") == 0
        assert how.pop("n_gibbs", 50 if how["method"] == "gibbs" else None) in (None, 50)
        # Test images are asked by other methods, and answered the other way round.
        sign = 1.0 if how["method"] == "mean-field" else -1.0
        return np.full(given.shape, 0.5 - sign * (0.3 - abs(self.weight_decay - 0.06)))


@pytest.fixture
def rigged(monkeypatch):
    monkeypatch.setattr(Rigged, "made", [])
    monkeypatch.setitem(generation.MACHINES, "RBM", Rigged)
    return Rigged.made


def test_the_decay_is_that_of_validation_images(images, rigged):
    outcome = generation.run("RBM", **{**ASKED, "offline": False})
    assert rigged == [(2, decay, 0) for decay in (0.03, 0.06, 0.1, 0.15)]
    assert outcome["weight_decay"] == 0.06
    _, validation, test = mnist.choose(0, 50, N_VALIDATION, N_TEST, offline=False)
    expected = plain_psnr(np.full(validation.binary.shape, 0.2), validation.binary)
    assert outcome["validation"] == pytest.approx(expected)
    expected = plain_psnr(np.full(test.binary.shape, 0.8), test.binary)
    assert outcome["psnr"]["one pass"] == pytest.approx(dict.fromkeys(fakes.QUESTIONS, expected))


def test_there_is_no_choice_offline(images, rigged):
    assert generation.run("RBM", **ASKED)["weight_decay"] == 0.1
    assert len(rigged) == 1


def test_seeds_ask_other_questions(images, rigged):
    first, again, other = (generation.run("RBM", **{**ASKED, "seed": k}) for k in (0, 0, 1))
    assert first == again
    assert other["given"]["20%"] != first["given"]["20%"]


# A real machine


@pytest.mark.slow
def test_a_run(images, monkeypatch):
    monkeypatch.setattr(generation, "N_GIBBS", 3)
    outcome = generation.run("MvRBM", **ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.generation_run("MvRBM", **ASKED))
    assert outcome["parameters"] == 560
    test = mnist.choose(0, 50, N_VALIDATION, N_TEST, offline=True)[2].binary
    original = decode(outcome["original"])
    assert_array_equal(original, test[:10])
    for name, text in outcome["pictures"].items():
        answer, given = decode(text), decode(outcome["given"][name])
        assert answer.shape == given.shape == (10, 28, 28)
        assert 0.0 <= answer.min() < answer.max() <= 1.0
        if name in ("right", "bottom"):
            known = np.s_[:, :, 14:] if name == "right" else np.s_[:, 14:]
            assert_array_equal(answer[known], original[known])
            assert_array_equal(given[known], original[known])
            assert (given != original).any()
        assert (answer != given).any()
    for found in outcome["psnr"].values():
        assert found.keys() == {*fakes.QUESTIONS}
        # More than half of the pixels are right.
        assert all(3.0 < value < 60.0 for value in found.values())


def test_machines_are_those_of_table_5():
    parameters = {name: make().get_params() for name, make in generation.MACHINES.items()}
    assert parameters["MPORBM"]["rank"] == parameters["TvRBM"]["rank"] == 40
    hidden = {name: found["hidden_shape"] for name, found in parameters.items()}
    assert hidden == {"RBM": 100, "MvRBM": (10, 10), "TvRBM": 100, "MPORBM": (10, 10)}


def test_baselines(images):
    outcome = generation.run("baselines", **ASKED)
    assert fakes.as_kept(outcome) == outcome
    assert fakes.form(outcome) == fakes.form(fakes.generation_run("baselines", **ASKED))
    train, _, test = mnist.choose(0, 50, N_VALIDATION, N_TEST, offline=True)
    asked = questions(np.random.default_rng([0, 1]), test.binary)
    mean = np.broadcast_to(train.binary.mean(axis=0), test.binary.shape)
    rows, columns = np.indices((28, 28))
    known = {"right": columns >= 14, "bottom": rows >= 14}
    for name, question in asked.items():
        answer = mean.copy()
        if name in known:
            answer[:, known[name]] = test.binary[:, known[name]]
        found = {way: outcome["psnr"][way][name] for way in outcome["psnr"]}
        assert found["mean training image"] == pytest.approx(plain_psnr(answer, test.binary))
        assert found["given as it is"] == pytest.approx(plain_psnr(question.given, test.binary))
