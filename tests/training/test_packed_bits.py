"""Packed bits are an array of their bits, and training on them is training on that."""

import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split

from mporbm.learning import Algorithm, ContrastiveDivergence, Rates, Simultaneous
from mporbm.training import ArraySource, PackedBits, StreamSource
from mporbm.training import sources as data
from mporbm.training.block import Pace, run_block
from mporbm.training.rows import unpacked
from strategies import VISIBLE, seeds, shapes, tiny_machine
from tables import check_messages

N_BITS = VISIBLE[1]


def packed(n_rows=23, seed=0):
    """Random samples of the visible shape: a code of two bits for each row of it."""
    codes = np.random.default_rng(seed).integers(2**N_BITS, size=(n_rows, VISIBLE[0]))
    return PackedBits(codes.astype(np.uint8), N_BITS)


def bits_of(packed_bits):
    """The bits, one by one."""
    codes = np.asarray(packed_bits.codes).astype(int)
    planes = [codes >> k & 1 for k in range(packed_bits.n_bits)]
    return np.stack(planes[::-1], axis=-1).reshape(packed_bits.shape).astype(bool)


@st.composite
def packings(draw):
    """Codes of any unsigned type in samples of one to three modes."""
    n_bits = draw(st.integers(1, 32))
    types = [t for t in (np.uint8, np.uint16, np.uint32) if 8 * np.dtype(t).itemsize >= n_bits]
    shape = draw(shapes(draw(st.integers(1, 3))))
    rng = np.random.default_rng(draw(seeds))
    codes = rng.integers(2**n_bits, size=(draw(st.integers(0, 5)), *shape))
    return PackedBits(codes.astype(draw(st.sampled_from(types))), n_bits, gray=draw(st.booleans()))


@given(packings())
def test_bits_are_those_of_the_codes_the_highest_first(rows):
    bits = bits_of(rows)
    assert rows.shape == bits.shape
    assert (rows.ndim, rows.dtype, len(rows)) == (bits.ndim, bool, len(bits))
    assert rows.nbytes == rows.codes.nbytes
    assert isinstance(rows.unpacked(), np.ndarray)
    for unpacked_bits in (rows.unpacked(), np.asarray(rows), unpacked(rows), unpacked(bits)):
        assert unpacked_bits.dtype == bool
        assert_array_equal(unpacked_bits, bits)
    assert_array_equal(np.asarray(rows, np.float32), bits.astype(np.float32))


def test_bits_are_of_jax_where_the_codes_are():
    rows = packed()
    on_device = jax.tree.map(jnp.asarray, rows)
    bits = on_device.unpacked()
    assert isinstance(bits, jax.Array)
    assert bits.dtype == bool
    assert_array_equal(bits, bits_of(rows))


def test_codes_narrower_than_the_bits_have_zeros_in_front():
    wide = PackedBits(np.array([[200]], np.uint8), 10)
    assert_array_equal(wide.unpacked(), [[[0, 0, 1, 1, 0, 0, 1, 0, 0, 0]]])


INDICES = [
    slice(3, 9),
    slice(None, None, -2),
    np.array([5, 0, 5]),
    np.array([[1, 2], [0, 22]]),
    np.arange(23) % 3 == 0,
    [4, 2],
    4,
    (np.array([7, 1]), ...),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_chosen_samples_stay_packed(index):
    rows = packed()
    chosen = rows[index]
    assert isinstance(chosen, PackedBits)
    assert chosen.shape == bits_of(rows)[index].shape
    assert_array_equal(chosen.unpacked(), bits_of(rows)[index])


@pytest.mark.parametrize("shape", [(5,), (3, 4)])
def test_samples_are_chosen_and_unpacked_in_compiled_functions(shape, rng):
    rows = packed()
    index = rng.integers(len(rows), size=shape)
    chosen = jax.jit(lambda rows, index: rows[index])(rows, index)
    assert isinstance(chosen, PackedBits)
    bits = jax.jit(lambda rows, index: rows[index].unpacked())(rows, index)
    for one in (chosen.unpacked(), bits):
        assert_array_equal(one, bits_of(rows)[index])


def test_the_codes_are_the_only_leaf():
    rows = packed()
    assert [leaf is rows.codes for leaf in jax.tree.leaves(rows)] == [True]
    other = PackedBits(rows.codes, N_BITS, gray=True)
    assert jax.tree.structure(rows) == jax.tree.structure(packed(seed=1))
    assert jax.tree.structure(rows) != jax.tree.structure(other)


@pytest.mark.parametrize("shape", [(23, 6), (23, -1), ((-1, 2, 3),), (23, 1, -1, 2)])
def test_samples_get_another_shape_without_being_unpacked(shape):
    rows = packed()
    reshaped = rows.reshape(*shape)
    assert np.shares_memory(reshaped.codes, rows.codes)
    assert_array_equal(reshaped.unpacked(), bits_of(rows).reshape(*shape))


def test_scikit_learn_splits_and_pickles_them():
    rows = packed()
    for part, bits in zip(
        train_test_split(rows, random_state=0),
        train_test_split(bits_of(rows), random_state=0),
        strict=True,
    ):
        assert isinstance(part, PackedBits)
        assert_array_equal(part, bits)
    assert_array_equal(pickle.loads(pickle.dumps(rows)), rows)


def test_what_packed_bits_cannot_do_is_said():
    table = [
        (lambda: PackedBits(np.zeros((2, 3), int), 4), TypeError, "codes: .*unsigned.*int64"),
        (
            lambda: PackedBits(np.zeros((2, 3), np.uint8), 4, (6,)),
            ValueError,
            r"shape=\(6,\): expected a shape of 12 bits, got 6",
        ),
        (lambda: packed()[0, 1], IndexError, "expected an index of the first axis"),
        (lambda: packed()[:, 0], IndexError, r"use unpacked\(\)"),
        (lambda: packed().reshape(-1), ValueError, "cannot reshape"),
        (lambda: packed().reshape(6, 23), ValueError, r"the first axis of \(23, 3, 2\)"),
        (lambda: packed().reshape(23, 4), ValueError, "cannot reshape"),
        (lambda: packed()[0].reshape(3, 2), ValueError, "to stay"),
        (lambda: np.array(packed(), copy=False), ValueError, "copy=False: expected None or True"),
    ]
    check_messages(table)


# As training data


@pytest.fixture(params=["resident", "in memory", "memory-mapped"])
def rows(request, monkeypatch, tmp_path):
    """Packed bits where a source is to read them: on the device or in blocks of two batches."""
    rows = packed()
    if request.param == "resident":
        return rows
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(data, "BLOCK_BYTES", 2 * 5 * VISIBLE[0])
    if request.param == "memory-mapped":
        np.save(tmp_path / "codes.npy", rows.codes)
        rows = PackedBits(np.load(tmp_path / "codes.npy", mmap_mode="r"), N_BITS)
        assert data.file_behind(rows) is not None
        assert data.file_behind(rows.reshape(23, -1)[2:]) is not None
    return rows


def taken(blocks):
    """The samples that batches take, padding left out, in order."""
    return np.concatenate(
        [np.asarray(b.rows)[b.chosen.reshape(-1)][b.weight.reshape(-1) > 0.0] for b in blocks]
    )


def test_a_source_gives_the_samples_of_the_array(rows):
    source, plain = ArraySource(rows), ArraySource(bits_of(rows))
    blocks = list(source.blocks(np.random.default_rng(0), 5))
    expected = list(plain.blocks(np.random.default_rng(0), 5))
    assert_array_equal(taken(blocks), taken(expected))
    for block in blocks:
        assert isinstance(block.rows, PackedBits)
        assert block.rows.nbytes == len(block.rows) * VISIBLE[0]
    if not source.resident:
        assert [len(block.rows) for block in blocks] == [10, 10, 10]
    for n_rows in (4, 100):
        head = source.head(n_rows)
        assert isinstance(head, np.ndarray)
        assert_array_equal(head, plain.head(n_rows))
    assert source.fingerprint() == plain.fingerprint()
    some = ArraySource(rows, used=np.array([3, 8]))
    assert_array_equal(some.head(2), bits_of(rows)[[3, 8]])
    assert source.fingerprint() != some.fingerprint()


def test_streams_of_packed_bits_are_streams_of_bits():
    rows = packed()
    source = StreamSource(lambda: iter([rows[:4], rows[4:]]), np.asarray)
    assert_array_equal(source.head(6), bits_of(rows)[:6])
    assert_array_equal(taken(source.blocks(None, 5)), bits_of(rows))


def sizes(jaxpr):
    """The size of every array that a program makes, those of its loops and calls included."""
    found = []
    for equation in jaxpr.eqns:
        found += [variable.aval.size for variable in equation.outvars]
        for part in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")
        ):
            inner = getattr(part, "jaxpr", part)
            found += sizes(inner) if hasattr(inner, "eqns") else []
    return found


def test_a_compiled_block_unpacks_a_batch_at_a_time():
    n_rows, batch_size = 1000, 5
    algorithm, machine = Algorithm(Simultaneous(), ContrastiveDivergence(1)), tiny_machine()
    key = jax.random.key(0)
    state = algorithm.init(key, machine, batch_size)
    rows = jax.tree.map(jnp.asarray, packed(n_rows))
    index = jnp.arange(n_rows).reshape(-1, batch_size)

    def program(rows):
        block = rows, index, jnp.ones(index.shape, jnp.float32)
        pace = Pace(Rates(0.1, 0.1), Rates(0.0, 0.0), jnp.asarray(1000.0))
        return run_block(algorithm, state, None, block, key, jnp.asarray(0), pace)

    def largest(function):
        return max(sizes(eqx.filter_make_jaxpr(function)(rows)[0].jaxpr))

    # The index of all samples is the largest; the samples themselves would have been seen.
    assert largest(program) <= n_rows
    assert largest(lambda rows: program(rows.unpacked())) == n_rows * np.prod(VISIBLE)
