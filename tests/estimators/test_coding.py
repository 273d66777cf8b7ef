"""Codings: exact round trips, expected values against all bit patterns, machines on top."""

import functools
import itertools
import math

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_estimator

from mporbm import MPORBM, Binarize, BitPlanes
from mporbm.estimators import batches, boltzmann, inputs
from mporbm.training import PackedBits, watch
from mporbm.training import sources as data
from mporbm.training.sources import file_behind
from reproduction.settings import PAPER
from strategies import HIDDEN, seeds, shapes

N_BITS = 2
CODING = BitPlanes(N_BITS)
VALUES = np.random.default_rng(0).binomial(3, [0.2, 0.5, 0.8], (20, 3)).astype(np.uint8)
"""Samples that are (3, 2) in bits."""
MODEL = MPORBM(
    HIDDEN,
    rank=2,
    scheme="su",
    gauge=None,
    **PAPER,
    n_iter=2,
    batch_size=5,
    learning_rate=0.1,
    random_state=0,
)


@pytest.fixture
def mapped(tmp_path):
    """A function that puts an array into a file."""

    def mapped(array, mode="r"):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode=mode)

    return mapped


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few samples."""
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 64)


def bits_of(values, n_bits):
    """The bits, one by one, the highest first."""
    return np.stack([values.astype(int) >> k & 1 for k in range(n_bits)][::-1], axis=-1)


# Bit planes


TYPES = [
    *[("bool", 1), ("int8", 7), ("uint8", 8), ("int16", 15), ("uint16", 16), ("int32", 31)],
    *[("uint32", 32), ("int64", 32), ("uint64", 32), ("float16", 11), ("float32", 24)],
    *[("float64", 32), (">u2", 16), (">i4", 31)],
]
"""Types, and the number of bits up to which they hold every value."""


@st.composite
def values(draw):
    """Samples of whole numbers of any type, and the bits they need or more."""
    dtype, holds = draw(st.sampled_from(TYPES))
    n_bits = draw(st.integers(1, 32))
    shape = draw(shapes(draw(st.integers(1, 4))))
    rng = np.random.default_rng(draw(seeds))
    samples = rng.integers(2 ** min(n_bits, holds), size=(draw(st.integers(1, 6)), *shape))
    return samples.astype(dtype), n_bits


@given(values(), st.booleans())
def test_values_come_back_exactly(drawn, gray):
    samples, n_bits = drawn
    coding = BitPlanes(n_bits, gray=gray).fit(samples)
    coded = coding.transform(samples)
    assert isinstance(coded, PackedBits)
    assert coded.codes.dtype.itemsize <= np.min_scalar_type(2**n_bits - 1).itemsize
    bits = coded.unpacked()
    flat = bits.reshape(len(samples), -1)
    for given_bits in (coded, bits, flat, flat.astype(np.int8), coded.reshape(len(samples), -1)):
        decoded = coding.inverse_transform(given_bits)
        assert decoded.dtype == samples.dtype
        assert_array_equal(decoded, samples)
    certain = coding.inverse_transform(bits.astype(float))
    assert certain.dtype == np.float64
    assert_array_equal(certain, samples.astype(float))
    # Tensors and flattened rows are the same.
    assert_array_equal(coding.transform(samples.reshape(len(samples), -1)), bits)


@given(values())
def test_bits_are_those_of_the_values(drawn):
    samples, n_bits = drawn
    flat = samples.reshape(len(samples), -1)
    bits = BitPlanes(n_bits).fit_transform(flat).unpacked()
    assert_array_equal(bits, bits_of(flat, n_bits))
    gray = BitPlanes(n_bits, gray=True).fit_transform(flat).unpacked()
    assert_array_equal(gray[..., 0], bits[..., 0])
    assert_array_equal(gray[..., 1:], bits[..., 1:] ^ bits[..., :-1])


def test_neighbours_differ_in_one_bit_of_gray_code():
    bits = BitPlanes(5, gray=True).fit_transform(np.arange(32)[:, None]).unpacked()
    assert ((bits[1:] != bits[:-1]).sum(axis=(1, 2)) == 1).all()


@pytest.mark.parametrize("gray", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_expected_values_are_those_of_all_bit_patterns(gray, dtype, rng):
    n_bits = 4
    p = rng.random((3, 2, n_bits)).astype(dtype)
    coding = BitPlanes(n_bits, gray=gray).fit(np.zeros((1, 2), np.uint8))
    expected = np.zeros((3, 2))
    for pattern in itertools.product([False, True], repeat=n_bits):
        bits = np.broadcast_to(pattern, p.shape)
        probability = np.where(bits, p, 1.0 - p).prod(axis=-1)
        expected += probability * coding.inverse_transform(bits)
    for one in (p, p.reshape(3, -1)):
        assert_allclose(coding.inverse_transform(one), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("coding", "shape", "coded"),
    [
        (BitPlanes(), (80, 80), (80, 80, 8)),
        (BitPlanes(), (128, 128, 3), (128, 128, 24)),
        (BitPlanes(), (4, 4, 4), (4, 4, 32)),
        (BitPlanes(), (4, 4, 5), (4, 4, 5, 8)),
        (BitPlanes(10, shape=(100, 100, 10)), (10000,), (100, 100, 10)),
    ],
)
def test_the_shape_of_coded_samples(coding, shape, coded, rng):
    samples = rng.integers(2**coding.n_bits, size=(2, *shape))
    bits = clone(coding).fit_transform(samples)
    assert bits.shape == (2, *coded)
    assert_array_equal(
        bits.unpacked().reshape(*samples.shape, coding.n_bits), bits_of(samples, coding.n_bits)
    )


def test_what_comes_in_as_a_list_or_a_frame_is_coded_too():
    expected = bits_of(VALUES, N_BITS)
    for samples in (VALUES.tolist(), pandas.DataFrame(VALUES)):
        assert_array_equal(clone(CODING).fit_transform(samples), expected)


@pytest.mark.parametrize(
    ("dtype", "n_bits"), [("u1", 8), ("u1", 3), ("u1", 10), ("u2", 8), ("u2", 16), ("u4", 12)]
)
@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.usefixtures("small_blocks")
def test_codes_in_files_stay_there(mapped, rng, dtype, n_bits, mode):
    samples = rng.integers(8, size=(30, 3, 2)).astype(dtype)
    coding = BitPlanes(n_bits)
    bits = coding.fit_transform(mapped(samples, mode))
    assert file_behind(bits) is not None
    assert_array_equal(bits, bits_of(samples, n_bits))
    assert_array_equal(coding.inverse_transform(bits), samples)


@pytest.mark.parametrize("dtype", [">u2", "i8", "f4"])
@pytest.mark.parametrize("gray", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_other_values_in_files_are_coded_block_by_block(mapped, rng, dtype, gray):
    samples = rng.integers(1024, size=(30, 3, 2)).astype(dtype)
    coding = BitPlanes(10, gray=gray)
    bits = coding.fit_transform(mapped(samples))
    assert bits.codes.dtype == np.uint16
    assert_array_equal(coding.inverse_transform(mapped(bits.unpacked())), samples)


# Binarise


@given(st.sampled_from([dtype for dtype, _ in TYPES]), seeds)
def test_two_values_come_back_exactly(dtype, seed):
    rng = np.random.default_rng(seed)
    pair = {"b": [False, True], "f": rng.normal(size=2)}
    two = pair.get(np.dtype(dtype).kind, rng.permutation(120)[:2])
    samples = np.array(two, dtype)[rng.permutation(np.arange(24) % 2)].reshape(4, 3, 2)
    coding = Binarize().fit(samples)
    bits = coding.transform(samples)
    assert bits.dtype == bool
    assert bits.shape == samples.shape
    assert_array_equal(bits, samples == samples.max())
    for given_bits in (bits, bits.astype(int), bits.reshape(len(samples), -1)):
        decoded = coding.inverse_transform(given_bits)
        assert decoded.dtype == dtype
        assert_array_equal(decoded, samples)
    assert_array_equal(coding.inverse_transform(bits.astype(float)), samples.astype(float))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
@pytest.mark.parametrize("place", ["in memory", "memory-mapped"])
@pytest.mark.usefixtures("small_blocks")
def test_means_of_either_side_stand_for_many_values(rng, mapped, dtype, place):
    samples = (100.0 * rng.random((30, 6))).astype(dtype)
    coding = Binarize(threshold=30).fit(mapped(samples) if place == "memory-mapped" else samples)
    assert coding.threshold_ == 30.0
    low, high = samples[samples <= 30].mean(), samples[samples > 30].mean()
    assert_allclose((coding.low_, coding.high_), (low, high))
    assert_array_equal(coding.transform(samples), samples > 30)
    p = rng.random((5, 6))
    assert_allclose(coding.inverse_transform(p), low + p * (high - low))
    values = coding.inverse_transform(p > 0.5)
    assert values.dtype == np.float64
    assert_allclose(values, np.where(p > 0.5, high, low))


def test_the_threshold_is_the_middle_of_the_range():
    coding = Binarize().fit([[-1.0, 7.0, 0.5]])
    assert coding.threshold_ == 3.0
    assert_array_equal(coding.transform([[3.0, 3.1, -9.0]]), [[False, True, False]])


@pytest.mark.parametrize("threshold", [None, 3.0])
def test_booleans_stay_as_they_are(threshold):
    samples = np.zeros((2, 3), bool)
    coding = Binarize(threshold).fit(samples)
    for bits in (samples, ~samples):
        assert np.shares_memory(coding.transform(bits), bits)
        assert_array_equal(coding.inverse_transform(bits), bits)


def test_constant_values_come_back():
    samples = np.full((4, 3), 0.1, np.float32)
    coding = Binarize().fit(samples)
    for p in (0.0, 0.3, 1.0):
        assert_allclose(coding.inverse_transform(np.full((2, 3), p)), np.float32(0.1))


# scikit-learn sets parameters to strings and numbers at random to see that they are kept.
@pytest.mark.filterwarnings("ignore:(?s).*violates type hint:UserWarning")
def test_all_checks_of_scikit_learn_pass():
    checks = check_estimator(Binarize(), on_skip=None)
    others = [check for check in checks if check["status"] != "passed"]
    assert len(others) < len(checks)
    assert all("SCIPY_ARRAY_API" in str(check["exception"]) for check in others), others


# Machines


def assert_same_machine(one, other):
    assert_array_equal(one.weight_matrix(), other.weight_matrix())
    assert_array_equal(one.visible_bias_, other.visible_bias_)
    assert_array_equal(one.hidden_bias_, other.hidden_bias_)


@functools.cache
def plain():
    """A machine fitted to the bits as an array, which tests share, and so must not change."""
    return clone(MODEL).fit(clone(CODING).fit_transform(VALUES).unpacked())


def test_packed_bits_train_the_machine_of_their_bits():
    rows = clone(CODING).fit_transform(VALUES)
    bits = rows.unpacked()
    model = clone(MODEL).fit(rows)
    assert model.visible_shape_ == (3, 2)
    assert model.history_[-1]["score"] == plain().history_[-1]["score"]
    assert_same_machine(model, plain())
    for method in ("transform", "score_samples"):
        expected = getattr(plain(), method)(bits)
        for samples in (rows, rows.reshape(len(rows), -1)):
            assert_array_equal(getattr(model, method)(samples), expected)
    mask = np.arange(6).reshape(3, 2) % 4 != 1
    completed = model.complete(rows, mask, method="mean-field")
    assert_array_equal(completed, plain().complete(bits, mask, method="mean-field"))
    assert_array_equal(completed[:, mask], bits[:, mask])


def test_packed_bits_in_files_train_the_same_machine(mapped, monkeypatch):
    rows = clone(CODING).fit_transform(mapped(VALUES))
    assert file_behind(rows) is not None
    # Blocks of two batches.
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(data, "BLOCK_BYTES", 2 * 5 * 3)
    assert_same_machine(clone(MODEL).fit(rows, X_val=rows[:4]), plain())


def test_streams_and_partial_fit_take_packed_bits():
    rows = clone(CODING).fit_transform(VALUES)
    assert_same_machine(clone(MODEL).fit(lambda: iter([rows[:7], rows[7:]])), plain())
    bits = rows.unpacked()
    assert_same_machine(clone(MODEL).partial_fit(rows), clone(MODEL).partial_fit(bits))


def test_a_pipeline_codes_and_learns():
    pipeline = Pipeline([("bits", BitPlanes(N_BITS)), ("rbm", clone(MODEL))])
    assert pipeline.get_params()["bits__n_bits"] == N_BITS
    cloned = clone(pipeline).set_params(bits__n_bits=3, bits__gray=True)
    assert cloned["bits"].get_params() == {"n_bits": 3, "gray": True, "shape": None}
    fitted = clone(pipeline).fit(VALUES)
    bits = bits_of(VALUES, N_BITS).astype(bool)
    assert_array_equal(fitted.transform(VALUES), plain().transform(bits))
    assert_array_equal(fitted.score_samples(VALUES), plain().score_samples(bits))
    assert fitted.score(VALUES) == plain().score(bits)
    with pytest.raises(NotFittedError):
        clone(fitted).transform(VALUES)


def test_no_more_than_a_batch_is_unpacked(monkeypatch):
    samples = np.tile(VALUES, (20, 1))
    rows = clone(CODING).fit_transform(samples)
    traced, measured = [], []
    unpack = PackedBits.unpacked

    def watched(self):
        (measured if isinstance(self.codes, np.ndarray) else traced).append(len(self))
        return unpack(self)

    def refused(self, dtype=None, copy=None):
        raise AssertionError("all bits were asked for")

    monkeypatch.setattr(PackedBits, "unpacked", watched)
    monkeypatch.setattr(PackedBits, "__array__", refused)
    # Training looks at some samples, whatever their number, to measure and to watch.
    monkeypatch.setattr(boltzmann, "MEASURED_ROWS", 16)
    monkeypatch.setattr(watch, "N_WATCHED", 16)
    monkeypatch.setattr(watch, "N_MEASURED", 16)
    model = clone(MODEL).set_params(batch_size=7, n_iter=1).fit(rows)
    assert set(traced) == {7}
    assert max(measured) <= 64 < len(rows)
    measured.clear()
    monkeypatch.setattr(batches, "BATCH", 32)
    model.score_samples(rows)
    assert sum(measured) == len(rows) == 400
    assert max(measured) == 32


# Bad input


def bits_with(entry):
    bits = np.zeros((2, 3, N_BITS))
    bits[0, 0, 0] = entry
    return bits


def coded(X, **parameters):
    return BitPlanes(**{"n_bits": N_BITS, **parameters}).fit(X).transform(X)


def decoded(X, n_bits=N_BITS):
    return BitPlanes(n_bits).fit(VALUES).inverse_transform(X)


BAD = [
    (lambda: coded([[3, 4]]), ValueError, "X: expected whole .* 0 to 3 for n_bits=2, got 3 to 4; "),
    (lambda: coded([[3, 4]]), ValueError, "set n_bits=3"),
    (lambda: coded([[2**40]]), ValueError, "got 1.09951e.12 to .*; shift or scale them"),
    (lambda: coded([[-1, 2]]), ValueError, r"got -1 to 2; shift or scale them, .*X - X.min\(\)"),
    (lambda: coded([[0.5, 2.0]]), ValueError, r"got 0.5; scale and round.*X / X.max\(\) \* 3"),
    (lambda: coded([[0.5, np.nan]]), ValueError, "NaN"),
    (lambda: coded([["a", "b"]]), ValueError, "X: expected numbers, got strings"),
    (lambda: coded([1, 2]), ValueError, "Expected 2D array, got 1D array"),
    (lambda: coded(np.zeros((0, 3, 2))), ValueError, r"at least one sample .*\(0, 3, 2\)"),
    (lambda: coded(VALUES, n_bits=33), ValueError, "n_bits=33: expected at most 32"),
    (lambda: coded(VALUES, n_bits=0), ValueError, "n_bits=0: expected an integer of at least 1"),
    (lambda: coded(VALUES, n_bits=2.0), TypeError, "n_bits=2.0: expected an integer"),
    (
        lambda: coded(VALUES, shape=(3, 3)),
        ValueError,
        r"shape=\(3, 3\): expected a shape of 6 bits, 2 for each of the 3 values.*, got 9",
    ),
    (lambda: BitPlanes().transform(VALUES), NotFittedError, "BitPlanes instance is not fitted"),
    (lambda: BitPlanes().inverse_transform(VALUES), NotFittedError, "not fitted"),
    (
        lambda: clone(CODING).fit(VALUES).transform(VALUES[:, :2]),
        ValueError,
        "X has 2 features, but BitPlanes is expecting 3",
    ),
    (
        lambda: clone(CODING).fit(VALUES[:, None]).transform(VALUES[..., None]),
        ValueError,
        r"X: expected shape \(n_samples, 1, 3\) or \(n_samples, 3\), got .*\(3, 1\)",
    ),
    (
        lambda: decoded(np.zeros((2, 3))),
        ValueError,
        r"X: expected shape \(n_samples, 3, 2\) or \(n_samples, 6\), got \(2, 3\)",
    ),
    (lambda: decoded(bits_with(1.5)), ValueError, "X: expected bits, or probab.*got 0 to 1.5"),
    (lambda: decoded(bits_with(np.nan)), ValueError, "X: expected bits, or .*got nan to nan"),
    (lambda: decoded(bits_with(2).astype(int)), ValueError, "X: expected bits, or .*got 0 to 2"),
    (lambda: decoded(bits_with(0).astype(str)), TypeError, "got dtype <U"),
    (
        lambda: decoded(coded(VALUES, gray=True)),
        ValueError,
        "X: expected bits with n_bits=2 and gray=False, got them with n_bits=2 and gray=True",
    ),
    (
        lambda: BitPlanes(8).fit(VALUES.astype(np.int8)).inverse_transform(np.ones((1, 24), bool)),
        ValueError,
        r"values that int8 can hold, .*got 255; .*X.astype\('uint8'\)",
    ),
    (lambda: Binarize("x").fit(VALUES), TypeError, "threshold='x': expected a real number"),
    (lambda: Binarize().transform(VALUES), NotFittedError, "Binarize instance is not fitted"),
    (lambda: Binarize().inverse_transform(VALUES), NotFittedError, "not fitted"),
    (
        lambda: Binarize().fit(VALUES).inverse_transform(VALUES),
        ValueError,
        "X: expected bits, or probabilities from 0 to 1, got 0 to 3",
    ),
]


@pytest.mark.parametrize(("wrong", "error", "message"), BAD)
@pytest.mark.filterwarnings("ignore:.*violates type hint:UserWarning")
def test_bad_input_is_named(wrong, error, message):
    with pytest.raises(error, match=message):
        wrong()


@pytest.mark.parametrize("coding", [BitPlanes(), Binarize()])
def test_nan_in_files_is_refused(mapped, coding):
    samples = np.zeros((4, 3))
    fitted = clone(coding).fit(mapped(samples))
    samples[2, 1] = np.nan
    with pytest.raises(ValueError, match="X: expected finite numbers, got NaN or inf in samples 0"):
        fitted.transform(mapped(samples))


@pytest.mark.parametrize(
    ("n_samples", "shape", "message"),
    [
        (0, (6,), "X: expected at least one sample"),
        (20, (5,), "X has 5 features, but MPORBM is expecting 6"),
        (20, (2, 3), r"X: expected shape \(n_samples, 3, 2\) or .* 6\), got .*\(2, 3\)"),
    ],
)
def test_machines_say_what_is_wrong_with_packed_bits(n_samples, shape, message):
    codes = np.zeros((n_samples, math.prod(shape)), np.uint8)
    with pytest.raises(ValueError, match=message):
        plain().transform(PackedBits(codes, 1, shape))


@pytest.mark.parametrize("shape", [None, (6, 4)])
def test_masks_of_values_become_masks_of_bits(rng, shape):
    values = rng.integers(16, size=(5, 3, 2))
    coding = BitPlanes(4, shape=shape).fit(values)
    for mask in (rng.random((3, 2)) < 0.5, rng.random((5, 3, 2)) < 0.5):
        # A mask is the coding of values whose bits are all 1 where it is True.
        expected = coding.transform(np.broadcast_to(15 * mask, values.shape))
        coded = np.broadcast_to(coding.transform_mask(mask), expected.shape)
        np.testing.assert_array_equal(coded, np.asarray(expected))
    binary = Binarize().fit(values)
    np.testing.assert_array_equal(binary.transform_mask(mask), mask)
    for wrong in (np.ones((2, 3), bool), np.ones((3, 2))):
        with pytest.raises(ValueError, match="mask: expected bool of shape"):
            coding.transform_mask(wrong)
