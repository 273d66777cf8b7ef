"""The hash of positions behaves like independent uniform bits."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from mporbm.machine.hash_rng import hash_bits, hash_split

N = 2**18


@pytest.fixture(scope="module")
def words():
    """A long sequence for each of a few keys."""
    keys = jax.random.split(jax.random.key(0), 8)
    return np.asarray(jax.jit(jax.vmap(lambda key: hash_bits(key, (N,))))(keys))


@pytest.fixture(scope="module", params=["seeds", "jax.random.split", "split", "splits of splits"])
def columns(request):
    """A short sequence for each of many keys."""
    n_keys = 2**14
    if request.param == "seeds":
        keys = jax.vmap(jax.random.key)(jnp.arange(n_keys))
    elif request.param == "splits of splits":
        key = jax.random.key(2)
        keys = jax.lax.scan(lambda key, _: tuple(hash_split(key)), key, length=n_keys)[1]
    else:
        keys = {"split": hash_split}.get(request.param, jax.random.split)(jax.random.key(1), n_keys)
    return np.asarray(jax.jit(jax.vmap(lambda key: hash_bits(key, (16,))))(keys))


def assert_even(counts):
    """Chi-squared test of equal probabilities, for each row of counts."""
    counts = np.asarray(counts, float)
    expected = counts.sum(axis=1, keepdims=True) / counts.shape[1]
    statistic = ((counts - expected) ** 2 / expected).sum(axis=1)
    p = scipy.stats.chi2.sf(statistic, counts.shape[1] - 1)
    assert p.min() > 1e-4 / len(p)
    # Too even would be as suspicious as too uneven.
    assert scipy.stats.kstest(p, "uniform").pvalue > 1e-4


def nibbles(words):
    """Each group of four bits as a row."""
    return [(words >> shift) & 15 for shift in range(0, 32, 4)]


def counts_of(values, n):
    return np.bincount(values.astype(np.int64).ravel(), minlength=n)


def test_all_bits_are_uniform(words, columns):
    for sequences in (words, columns.T):
        assert_even([counts_of(part, 16) for sequence in sequences for part in nibbles(sequence)])


@pytest.mark.parametrize("lag", [1, 2, 3, 28, 784, 1024])
def test_entries_of_one_key_are_independent(words, lag):
    assert_even(
        [
            counts_of(16 * a[:-lag] + b[lag:], 256)
            for sequence in words
            for a, b in zip(nibbles(sequence), nibbles(sequence)[::-1], strict=True)
        ]
    )


def test_entries_of_two_keys_are_independent(words, columns):
    assert_even(
        [
            counts_of(16 * a + b, 256)
            for first, second in pairwise(words)
            for a, b in zip(nibbles(first), nibbles(second), strict=True)
        ]
    )
    # The same position of one key and the next, and two positions over all keys.
    assert_even([counts_of(16 * (c[:-1] >> 28) + (c[1:] >> 28), 256) for c in columns.T])
    pairs = [(columns[:, i], columns[:, j]) for i in range(16) for j in range(i)]
    assert_even([counts_of(16 * (a >> 28) + (b >> 28), 256) for a, b in pairs])


def test_no_two_bits_of_neighbours_are_correlated(words):
    bits = ((words[0][:, None] >> np.arange(32)) & 1) * 2.0 - 1.0
    correlations = bits[:-1].T @ bits[1:] / np.sqrt(N - 1)
    assert np.abs(correlations).max() < scipy.stats.norm.isf(1e-4 / 32**2)
    assert correlations.std() == pytest.approx(1.0, abs=0.1)


def test_an_entry_depends_on_the_key_and_its_position_only():
    key = jax.random.key(5)
    long = hash_bits(key, (3, 4))
    np.testing.assert_array_equal(long.ravel()[:5], hash_bits(key, (5,)))
    assert long.dtype == jnp.uint32
    assert hash_bits(key, ()).shape == ()
    assert hash_bits(key, (0, 4)).shape == (0, 4)
    assert not np.array_equal(long, hash_bits(jax.random.key(6), (3, 4)))


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_are_split_for_every_generator(impl):
    keys = hash_split(jax.random.key(0, impl=impl), 3)
    assert keys.shape == (3,)
    assert keys.dtype == jax.random.key(0, impl=impl).dtype
    assert len({int(hash_bits(key, ())) for key in keys}) == 3
