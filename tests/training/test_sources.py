"""Blocks of an epoch: every row once, in the generator's order, from memory, file or stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mporbm.training import ArraySource, StreamSource
from mporbm.training import sources as data

SHAPE = (3, 2)


def numbered_rows(n_rows, dtype):
    """Different rows of one type: the bits of their number."""
    bits = (np.arange(n_rows)[:, None] >> np.arange(6)) & 1
    return bits.reshape(n_rows, *SHAPE).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of two batches of 5 bytes-sized rows, from memory too."""
    monkeypatch.setattr(data, "RESIDENT_BYTES", 0)
    monkeypatch.setattr(data, "BLOCK_BYTES", 2 * 5 * 6)


@pytest.fixture(params=["resident", "in memory", "memory-mapped"])
def place(request, monkeypatch, tmp_path):
    """A function that puts rows where a source is to read them."""
    if request.param == "resident":
        return lambda rows: rows
    request.getfixturevalue("small_blocks")
    if request.param == "in memory":
        return lambda rows: rows

    def mapped(rows):
        np.save(tmp_path / "rows.npy", rows)
        return np.load(tmp_path / "rows.npy", mmap_mode="r")

    return mapped


def streamed(rows, sizes):
    """A source that gives the rows in pieces of these sizes, then the rest."""
    ends = np.cumsum([0, *sizes])
    pieces = [rows[a:b] for a, b in zip(ends, [*ends[1:], len(rows)], strict=True)]
    return StreamSource(lambda: iter(pieces), np.asarray)


def taken(blocks):
    """The rows that batches take and their weights, padding left out, in order."""
    rows, weights = [], []
    for block in blocks:
        weight = block.weight.reshape(-1)
        rows.append(np.asarray(block.rows)[block.chosen.reshape(-1)][weight > 0.0])
        weights.append(weight[weight > 0.0])
    return np.concatenate(rows), np.concatenate(weights)


def numbers(blocks):
    """Which of the numbered rows come, in order."""
    rows, _ = taken(blocks)
    return (rows.reshape(len(rows), -1).astype(int) << np.arange(6)).sum(axis=1)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
@pytest.mark.parametrize("n_rows", [1, 5, 12, 23])
def test_an_epoch_has_every_row_once_with_its_weight(place, n_rows, dtype, rng):
    rows = numbered_rows(n_rows, dtype)
    weight = rng.uniform(0.5, 2.0, n_rows).astype(np.float32)
    blocks = list(ArraySource(place(rows), weight).blocks(rng, batch_size=5))
    chosen = numbers(blocks)
    assert_array_equal(np.sort(chosen), np.arange(n_rows))
    assert_array_equal(taken(blocks)[1], weight[chosen] / np.float32(weight.mean()))
    assert all(block.rows.dtype == dtype for block in blocks)


def test_rows_keep_their_order_without_a_generator(place):
    source = ArraySource(place(numbered_rows(12, bool)))
    assert_array_equal(numbers(source.blocks(None, 5)), np.arange(12))


def test_blocks_of_an_epoch_have_one_shape(place):
    source = ArraySource(place(numbered_rows(23, bool)))
    blocks = list(source.blocks(None, 5))
    assert len({(block.rows.shape, block.chosen.shape) for block in blocks}) == 1
    n_batches = sum((block.weight.max(axis=1) > 0.0).sum() for block in blocks)
    assert n_batches == source.n_batches(5) == 5


def test_small_data_stay_on_the_device_and_large_ones_come_in_small_blocks(monkeypatch):
    rows = numbered_rows(23, np.uint8)
    (block,) = ArraySource(rows).blocks(None, 5)
    assert block.rows.shape == rows.shape
    monkeypatch.setattr(data, "RESIDENT_BYTES", rows.nbytes - 1)
    monkeypatch.setattr(data, "BLOCK_BYTES", 2 * 5 * 6)
    blocks = list(ArraySource(rows).blocks(None, 5))
    assert len(blocks) == 3
    assert all(block.rows.nbytes <= data.BLOCK_BYTES for block in blocks)


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_the_order_is_that_of_the_generator(place, kind):
    rows = numbered_rows(23, bool)
    source = ArraySource(place(rows)) if kind == "array" else streamed(rows, [4, 7])
    first, again, other = (
        numbers(source.blocks(np.random.default_rng([0, epoch]), 5)) for epoch in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != np.arange(23)).any()
    assert_array_equal(np.sort(other), np.arange(23))


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_skipped_blocks_leave_the_rest_of_the_epoch_as_it_was(place, kind):
    rows = numbered_rows(23, bool)
    source = ArraySource(place(rows)) if kind == "array" else streamed(rows, [4, 7])
    every = list(source.blocks(np.random.default_rng(0), 5))
    for skip in range(len(every) + 1):
        rest = list(source.blocks(np.random.default_rng(0), 5, skip))
        assert len(rest) == len(every) - skip
        for one, other in zip(every[skip:], rest, strict=True):
            for a, b in zip(one, other, strict=True):
                assert_array_equal(a, b)


@given(st.lists(st.integers(0, 13), max_size=6), st.integers(1, 7), st.booleans())
def test_stream_pieces_of_any_size_give_every_row_once(sizes, batch_size, shuffled):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "BLOCK_BYTES", 2 * 5 * 6)
        rows = numbered_rows(sum(sizes) + 1, np.uint8)
        rng = np.random.default_rng(0) if shuffled else None
        blocks = list(streamed(rows, sizes).blocks(rng, batch_size))
    assert_array_equal(np.sort(numbers(blocks)), np.sort(np.arange(len(rows)) % 64))
    assert (taken(blocks)[1] == 1.0).all()
    assert len({block.chosen.shape for block in blocks}) == 1
    assert all(block.rows.dtype == np.uint8 for block in blocks)


def test_head_gives_rows_of_the_data(place):
    rows = numbered_rows(23, np.uint8)
    source = ArraySource(place(rows))
    assert_array_equal(source.head(100), rows)
    for n_rows in (1, 5, 12, 22):
        some = source.head(n_rows)
        assert some.shape == (n_rows, *SHAPE)
        assert some.dtype == np.uint8
        # From everywhere: sorted data are common.
        positions = (some.reshape(n_rows, -1).astype(int) << np.arange(6)).sum(axis=1)
        assert np.diff([*positions, 23]).max() <= np.ceil(23 / n_rows)


def test_head_of_a_stream_is_its_beginning():
    rows = numbered_rows(23, np.uint8)
    source = streamed(rows, [2, 0, 9])
    for n_rows in (3, 7, 100, 5):
        assert_array_equal(source.head(n_rows), rows[:n_rows])


def test_head_leaves_a_stream_that_can_be_read_once_whole():
    rows = numbered_rows(23, np.uint8)
    once = iter([rows[:4], rows[4:]])
    source = StreamSource(lambda: once, np.asarray)
    source.head(3)
    source.head(20)
    assert_array_equal(numbers(source.blocks(None, 5)), np.arange(23))


def test_a_stream_reads_no_more_than_the_head_needs():
    rows, read = numbered_rows(23, np.uint8), []

    def pieces():
        for start in range(0, 23, 4):
            read.append(start)
            yield rows[start : start + 4]

    StreamSource(pieces, np.asarray).head(6)
    assert read == [0, 4]


@pytest.mark.parametrize("kind", ["array", "stream"])
def test_fingerprints_tell_data_apart(place, kind):
    def fingerprint(rows, weight=None):
        if kind == "stream":
            return streamed(rows, [4]).fingerprint()
        return ArraySource(place(rows), weight).fingerprint()

    rows = numbered_rows(12, np.uint8)
    changed = rows.copy()
    changed[7, 1, 1] ^= 1
    assert fingerprint(rows) == fingerprint(rows.copy())
    assert fingerprint(rows) != fingerprint(changed)
    assert fingerprint(rows) != fingerprint(rows[:11])
    if kind == "array":
        weight = np.ones(12, np.float32)
        assert fingerprint(rows) == fingerprint(rows, weight)
        assert fingerprint(rows) != fingerprint(rows, 2.0 * weight)
        assert fingerprint(rows) != fingerprint(rows.astype(bool))


def test_memory_maps_are_recognised_behind_views(tmp_path):
    np.save(tmp_path / "rows.npy", numbered_rows(12, bool))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert data.file_behind(mapped) is not None
    assert data.file_behind(np.asarray(mapped).reshape(12, -1)[2:]) is not None
    assert data.file_behind(np.array(mapped)) is None
    assert data.file_behind(mapped[[3, 1]]) is None


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_release_keeps_what_a_map_says(tmp_path, mode):
    np.save(tmp_path / "rows.npy", numbered_rows(12, np.uint8))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode=mode)
    expected = np.array(mapped)
    if mode != "r":
        # Changes that are not in the file (mode "c") would be lost with their pages.
        mapped[3] = expected[3] = 7
    data.release(mapped)
    assert_array_equal(mapped, expected)
