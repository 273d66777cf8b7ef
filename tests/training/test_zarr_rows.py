"""Samples in a zarr store: the same as in memory, and no chunk is read in vain."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mporbm import Binarize, BitPlanes
from mporbm.training import sources as data
from mporbm.training.rows import StoredRows
from mporbm.training.sources import PADDING, ArraySource
from trainings import arrays, model

zarr = pytest.importorskip("zarr")


def store(folder, array, n_together, **options):
    """An array in a zarr store of so many samples a chunk."""
    chunks = (n_together, *array.shape[1:])
    stored = zarr.create_array(
        folder / "X.zarr", shape=array.shape, dtype=array.dtype, chunks=chunks, **options
    )
    stored[:] = array
    return zarr.open_array(folder / "X.zarr", mode="r")


@pytest.fixture
def X(rng):
    return rng.integers(0, 256, (50, 3, 2)).astype(np.uint8)


def test_samples_are_those_in_memory(X, tmp_path):
    rows = StoredRows(store(tmp_path, X, 4))
    assert (rows.shape, rows.dtype, rows.nbytes, rows.ndim) == (X.shape, X.dtype, X.nbytes, X.ndim)
    assert_array_equal(rows, X)
    for chosen in (slice(3, 20), [7, 3, 3, 49, 0], (np.array([2, 1]), ...)):
        assert_array_equal(rows[chosen], X[chosen])
        assert_array_equal(rows.reshape(50, -1)[chosen], X.reshape(50, -1)[chosen])
    with pytest.raises(ValueError, match="copy=False"):
        np.array(rows, copy=False)


@pytest.fixture
def reads(monkeypatch):
    """Every row that was read from a store, call by call."""
    found = []
    read = StoredRows.__getitem__

    def noted(self, chosen):
        found.append(np.atleast_1d(np.arange(len(self))[chosen]))
        return read(self, chosen)

    monkeypatch.setattr(StoredRows, "__getitem__", noted)
    return found


@pytest.mark.parametrize("n_rows", [48, 50])
@pytest.mark.parametrize("n_shares", [1, 2, 3])
def test_every_process_reads_its_chunks(X, tmp_path, monkeypatch, reads, n_rows, n_shares):
    """All samples come once in an epoch, the same at every place however many processes read."""
    monkeypatch.setattr(data, "BLOCK_BYTES", 24 * 6)
    used = np.arange(50)[:n_rows]
    source = ArraySource(StoredRows(store(tmp_path, X, 4)), used=used)

    def epoch(share):
        return list(source.blocks(np.random.default_rng(0), 6, 0, share))

    whole = [block.rows[block.chosen] for block in epoch(None)]
    kept = [block.weight > 0 for block in epoch(None)]
    seen = np.concatenate([rows[known] for rows, known in zip(whole, kept, strict=True)])
    assert sorted(map(bytes, seen)) == sorted(map(bytes, X[used]))
    assert len({block.weight.shape for block in epoch(None)}) == 1

    width = 6 // n_shares
    n_chunks = []
    for number in range(n_shares):
        share = slice(number * width, (number + 1) * width)
        del reads[:]
        blocks = epoch(share)
        n_chunks.append(sum(len(np.unique(rows // 4)) for rows in reads))
        for block, rows, known in zip(blocks, whole, kept, strict=True):
            assert_array_equal(block.chosen[known[:, share]], rows[:, share][known[:, share]])
            assert_array_equal(block.weight > 0, known[:, share])
    # Of 13 chunks each block of 24 samples cuts one at its end, and so does every share of it.
    assert sum(n_chunks) <= 13 + 3 * n_shares


def test_epochs_are_shuffled(X, tmp_path):
    source = ArraySource(StoredRows(store(tmp_path, X, 4)))
    orders = [source._order(np.random.default_rng(seed), 24, 6) for seed in range(2)]
    for order in orders:
        assert sorted(order[order != PADDING]) == list(range(50))
    assert (orders[0] != orders[1]).mean() > 0.5
    assert_array_equal(source._order(None, 24, 6), np.arange(50))


@pytest.mark.parametrize("options", [{}, {"shards": (8, 3, 2)}])
def test_machines_learn_from_stores(X, tmp_path, options):
    stored = store(tmp_path, X, 4, **options)
    assert StoredRows(stored).n_together == (8 if options else 4)
    assert_array_equal(Binarize(127).fit_transform(stored), X > 127)

    bits = BitPlanes(8).fit(stored).transform(stored)
    assert isinstance(data.file_behind(bits), StoredRows)
    assert_array_equal(bits, BitPlanes(8).fit_transform(X))
    again = [model(hidden_shape=(2, 1, 1), n_iter=2, batch_size=6).fit(bits) for _ in range(2)]
    for one, other in zip(*(arrays(m.machine_) for m in again), strict=True):
        assert_array_equal(one, other)
    assert_array_equal(again[0].transform(bits), again[0].transform(np.asarray(bits)))


def test_stored_samples_can_be_missing(X, tmp_path):
    part = X / 255.0
    part[:, 0] = np.nan
    fitted = model(n_iter=1).fit(store(tmp_path, X > 127, 4))
    (tmp_path / "part").mkdir()
    stored = store(tmp_path / "part", part, 4)
    assert_array_equal(
        *(fitted.complete(rows, n_gibbs=3, random_state=0) for rows in (stored, part))
    )


def test_what_is_stored_must_be_samples_of_numbers(tmp_path):
    with pytest.raises(ValueError, match="expected samples of real numbers"):
        model().fit(store(tmp_path, np.ones((4, 2), complex), 2))
