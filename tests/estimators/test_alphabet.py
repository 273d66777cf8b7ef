"""Symbols as one-hot states: exact round trips, errors that say where, and model files."""

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import mporbm
from mporbm import MPORBM, RBM, Alphabet
from mporbm.estimators import alphabet as module
from mporbm.training import FileFormatError, safetensors_io

SEQUENCES = ["GATTACA", "GA-TACA", "CATTAGA"]
WORDS = np.array([["ala", "gly"], ["gly", "trp"], ["ala", "trp"]])
NUMBERS = np.array([[[3, -1], [7, 3]], [[7, 7], [-1, 3]]], np.int8)


@given(st.lists(st.text("ab-Zé\U0001f600", min_size=4, max_size=4), min_size=1, max_size=6))
def test_strings_come_back_exactly(strings):
    coding = Alphabet().fit(strings)
    states = coding.transform(strings)
    symbols = sorted(set("".join(strings)))
    assert coding.alphabet_.tolist() == symbols
    assert states.dtype == bool
    assert states.shape == (len(strings), *coding.shape_) == (len(strings), 4, len(symbols))
    expected = [[[s == symbol for symbol in symbols] for s in string] for string in strings]
    assert_array_equal(states, expected)
    flat = states.reshape(len(states), -1)
    for given_states in (states, flat, flat.astype(np.int8), states.astype(np.float32)):
        assert coding.inverse_transform(given_states).tolist() == strings


@pytest.mark.parametrize("samples", [WORDS, NUMBERS, NUMBERS.astype(">i4"), NUMBERS.astype("u1")])
def test_arrays_come_back_in_their_shape_and_type(samples):
    coding = Alphabet().fit(samples)
    assert coding.sample_shape_ == samples.shape[1:]
    states = coding.transform(samples)
    assert states.shape == (*samples.shape, 3)
    assert (states.sum(axis=-1) == 1).all()
    decoded = coding.inverse_transform(states)
    assert decoded.dtype == samples.dtype
    assert_array_equal(decoded, samples)
    assert_array_equal(coding.transform(samples.reshape(len(samples), -1)), states)


def test_an_alphabet_has_the_order_that_it_is_given_in():
    coding = Alphabet("TGCA-").fit(SEQUENCES)
    assert coding.shape_ == (7, 5)
    assert_array_equal(coding.transform(["TGCA-TT"])[0, :5], np.eye(5, dtype=bool))
    same = Alphabet(np.array(list("TGCA-"))).fit(SEQUENCES)
    assert_array_equal(same.transform(SEQUENCES), coding.transform(SEQUENCES))
    numbers = Alphabet([7, 3, -1, 5]).fit(NUMBERS)
    assert numbers.alphabet_.dtype == np.int8
    assert_array_equal(numbers.inverse_transform(numbers.transform(NUMBERS)), NUMBERS)
    assert_array_equal(numbers.transform([[[5, 7], [7, 7]]])[0, 0, 0], [False, False, False, True])


def test_strings_may_come_in_any_container():
    wanted = Alphabet().fit_transform(SEQUENCES)
    frame = pandas.DataFrame([list(sequence) for sequence in SEQUENCES])
    for samples in (np.array(SEQUENCES), np.array(SEQUENCES, object), pandas.Series(SEQUENCES)):
        coding = Alphabet().fit(samples)
        assert_array_equal(coding.transform(samples), wanted)
        # Characters of strings that were seen as strings may come one by one.
        assert_array_equal(coding.transform(frame), wanted)
        assert coding.inverse_transform(wanted).tolist() == SEQUENCES
    letters = Alphabet().fit(frame)
    assert_array_equal(letters.transform(SEQUENCES), wanted)
    assert_array_equal(letters.inverse_transform(wanted), frame.to_numpy().astype(str))


def test_probabilities_give_the_likeliest_symbol():
    coding = Alphabet("ab").fit(["ab"])
    assert coding.inverse_transform([[[0.4, 0.6], [0.5, 0.5]]]).tolist() == ["ba"]
    with pytest.raises(ValueError, match=r"probabilities from 0 to 1, got -2 to 3; .*categorical"):
        coding.inverse_transform([[[3.0, -2.0], [0.5, 0.5]]])
    with pytest.raises(ValueError, match="one state of each site, got 2 at site 1; pass prob"):
        coding.inverse_transform([[[True, False], [True, True]]])
    with pytest.raises(ValueError, match=r"expected shape \(n_samples, 2, 2\) or \(n_samples, 4\)"):
        coding.inverse_transform(np.ones((1, 3, 2)))


def test_masks_are_those_of_all_states():
    coding = Alphabet("ACGT").fit(["ACGT"])
    known = np.array([True, False, False, True])
    assert_array_equal(coding.transform_mask(known), np.repeat(known[:, None], 4, axis=1))
    assert coding.transform_mask(np.ones((5, 4), bool)).shape == (5, 4, 4)
    with pytest.raises(ValueError, match=r"mask: expected bool of shape \(4,\)"):
        coding.transform_mask(np.ones(3, bool))


FAULTS = {
    "unequal": (["GATT", "GAT"], r"equal length, got 4 characters in sample 0 and 3 in sample 1"),
    "empty": ([], r"at least one sample with at least one symbol, got shape \(0,\)"),
    "nothing": (["", ""], "at least one symbol in each sample, got empty strings"),
    "numbers": ([[1.5]], r"X: expected strings or integers, got dtype float64; convert the symb"),
    "missing": (np.array(["GA", None], object), r"expected strings or integers, got NoneType"),
    "one": (np.arange(3), r"one sample along the first axis, got shape \(3,\)"),
    "ragged": ([["a"], ["a", "b"]], "strings of equal length, or an array"),
    "gap": ([["a", ""]], "symbols of 1 to 64 characters, got one of 0"),
    "long": ([["a", "b" * 65]], "symbols of 1 to 64 characters, got one of 65"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_samples_that_are_none_are_refused(fault):
    samples, message = FAULTS[fault]
    with pytest.raises((TypeError, ValueError), match=message):
        Alphabet().fit(samples)


@pytest.mark.parametrize(
    ("alphabet", "samples", "message"),
    [
        ("", ["A"], "alphabet: expected strings, as the samples have, got none"),
        ("ABA", ["A"], "alphabet: expected each symbol once, got 'A' twice"),
        ([1, 2], ["A"], "alphabet: expected strings, as the samples have, got 1"),
        ("AB", [[1, 2]], "alphabet: expected integers, as the samples have, got 'A'"),
        ([True, 2], [[1, 2]], "alphabet: expected integers, as the samples have, got True"),
        ([0, 300], np.zeros((2, 2), np.uint8), "integers that uint8 can hold.*got 0 to 300"),
        (["A", "CC"], ["A"], "alphabet: expected symbols of 1 to 1 characters, got one of 2"),
        (["A" * 65], WORDS, "alphabet: expected symbols of at most 64 characters, got one of 65"),
    ],
)
def test_alphabets_that_are_none_are_refused(alphabet, samples, message):
    with pytest.raises(ValueError, match=message):
        Alphabet(alphabet).fit(samples)


def test_unknown_symbols_are_named_with_their_place(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 8)
    coding = Alphabet("ACGT").fit(["ACGT"])
    message = "alphabet 'ACGT', got 'N' at site 2 of sample 1; replace it, or fit with an alphabet"
    with pytest.raises(ValueError, match=message):
        coding.transform(["ACGT", "ACNT"])
    with pytest.raises(ValueError, match="got '-' at site 2 of sample 1"):
        Alphabet("ACGT").fit(SEQUENCES)
    numbers = Alphabet().fit(NUMBERS)
    with pytest.raises(ValueError, match=r"alphabet \[-1, 3, 7\], got 4 at site \(1, 0\) of sampl"):
        numbers.transform([[[3, 3], [4, 3]]])
    with pytest.raises(ValueError, match="X: expected integers, as the alphabet has, got strings"):
        numbers.transform([[["a", "b"], ["a", "b"]]])
    with pytest.raises(ValueError, match="or strings of 4 characters, as in fit, got samples of"):
        coding.transform(["ACG"])


def test_it_is_a_transformer():
    coding = Alphabet("ACGT-")
    assert clone(coding).alphabet == "ACGT-"
    with pytest.raises(NotFittedError):
        coding.transform(SEQUENCES)
    assert coding.fit(SEQUENCES).n_features_in_ == 7
    assert coding.__sklearn_tags__().input_tags.string
    machine = MPORBM((2, 2), rank=2, visible_units="categorical", n_iter=2, random_state=0)
    pipeline = make_pipeline(Alphabet(), machine).fit(SEQUENCES)
    assert np.isfinite(pipeline.score(SEQUENCES))
    assert pipeline.transform(SEQUENCES).shape == (3, 4)


@pytest.fixture
def model():
    coding = Alphabet("ACGT-").fit(SEQUENCES)
    model = RBM(3, visible_units="categorical", n_iter=2, random_state=0)
    model.fit(coding.transform(SEQUENCES)).coding_ = coding
    return model


def test_machines_draw_sequences_and_fill_gaps(model):
    coding = model.coding_
    drawn = coding.inverse_transform(model.sample(5, random_state=0))
    assert {len(s) for s in drawn} == {7}
    assert set("".join(drawn)) <= set("ACGT-")
    known = np.array([True] * 4 + [False] * 3)
    states = coding.transform(SEQUENCES)
    completed = model.complete(states, coding.transform_mask(known), random_state=0)
    assert [s[:4] for s in coding.inverse_transform(completed)] == [s[:4] for s in SEQUENCES]


@pytest.mark.parametrize("samples", [SEQUENCES, WORDS, NUMBERS], ids=["text", "words", "numbers"])
def test_model_files_keep_alphabets(samples, tmp_path):
    coding = Alphabet().fit(samples)
    states = coding.transform(samples)
    model = RBM(3, visible_units="categorical", n_iter=1, random_state=0).fit(states)
    model.coding_ = coding
    model.save(tmp_path / "m.safetensors")
    again = mporbm.load(tmp_path / "m.safetensors").coding_
    assert type(again) is Alphabet
    assert_array_equal(again.transform(samples), states)
    decoded = again.inverse_transform(states)
    assert decoded.dtype == coding.inverse_transform(states).dtype
    assert_array_equal(decoded, np.asarray(samples))


HOSTILE = {
    "more sites than units": {"sample_shape_": [10**9, 10**9]},
    "another number of values": {"n_features_in_": 10**12},
    "no list": {"alphabet_": "ACGT-"},
    "no symbols": {"alphabet_": []},
    "other symbols": {"alphabet_": [1, 2, 3, 4, 5]},
    "symbols in symbols": {"alphabet_": [["A"], "C", "G", "T", "-"]},
    "fewer symbols": {"alphabet_": ["A", "C"]},
    "a symbol twice": {"alphabet_": ["A", "C", "G", "T", "T"]},
    "a long symbol": {"alphabet_": ["A", "C", "G", "T", "-" * 10**6]},
    "words in strings": {"alphabet_": ["A", "C", "G", "T", "--"]},
    "text that is a number": {"is_text_": 1},
    "text of two modes": {"sample_shape_": [7, 1]},
}


@pytest.mark.parametrize("fault", [*HOSTILE, "type"])
def test_alphabets_that_make_no_sense_are_refused(fault, model, tmp_path):
    path = tmp_path / "m.safetensors"
    model.save(path)
    arrays, header = safetensors_io.read(path, "model")
    if fault == "type":
        header["coding"]["dtype"] = "<U1000000000"
    else:
        header["coding"]["fitted"] |= HOSTILE[fault]
    safetensors_io.write(path, "model", arrays, header)
    with pytest.raises(FileFormatError, match="corrupted model file"):
        mporbm.load(path)
