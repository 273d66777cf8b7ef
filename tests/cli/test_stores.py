"""Commands take zarr stores as they take files, and refuse broken ones."""

import numpy as np
import pytest

zarr = pytest.importorskip("zarr")

OPTIONS = ["--hidden-shape", "2,2", "--rank", "2", "--n-iter", "1", "--batch-size", "10", "--quiet"]


@pytest.fixture
def samples(tmp_path, rng):
    samples = rng.random((30, 4, 4)) < 0.4
    stored = zarr.create_array(
        tmp_path / "x.zarr", shape=samples.shape, dtype=bool, chunks=(7, 4, 4)
    )
    stored[:] = samples
    np.save(tmp_path / "x.npy", samples)
    return tmp_path / "x.zarr"


def test_a_store_is_learnt_from_and_transformed(ok, samples, tmp_path):
    model = tmp_path / "m.safetensors"
    ok("fit", samples, "-o", model, *OPTIONS)
    features = []
    for name in ("x.zarr", "x.npy"):
        out = tmp_path / f"{name}-features.npy"
        ok("transform", model, tmp_path / name, "-o", out, "--quiet")
        features.append(np.load(out))
    np.testing.assert_array_equal(*features)


def test_bytes_in_a_store_need_a_coding(refused, tmp_path):
    path = tmp_path / "grey.zarr"
    zarr.create_array(path, shape=(30, 4, 4), dtype=np.uint8, chunks=(7, 4, 4), fill_value=200)
    message = refused("fit", path, "-o", tmp_path / "m.safetensors", *OPTIONS)
    assert message.startswith(f"{path}: expected values from 0 to 1, got up to 200; pass --binar")


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b'{"zarr_format": 3}', b"\xff"])
def test_broken_stores_are_refused(refused, samples, tmp_path, content):
    metadata = samples / "zarr.json"
    metadata.unlink() if content is None else metadata.write_bytes(content)
    message = refused("fit", samples, "-o", tmp_path / "m.safetensors", *OPTIONS)
    assert message.startswith(f"{samples}: expected a zarr array of numbers: ")


def test_a_store_that_is_not_there(refused, tmp_path):
    message = refused("fit", tmp_path / "x.zarr", "-o", tmp_path / "m.safetensors", *OPTIONS)
    assert "there is no such file" in message
