"""Small machines are compiled with another library for products; results stay the same."""

import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.training import devices as compiler


@pytest.fixture
def forgetful():
    """What is known of this XLA is asked anew, before and after."""
    compiler._known.cache_clear()
    compiler._compiled.cache_clear()
    yield
    compiler._known.cache_clear()
    compiler._compiled.cache_clear()


def products(matrix):
    return matrix @ matrix


@pytest.mark.parametrize("n_entries", [compiler.SMALL, compiler.SMALL + 1])
def test_a_program_is_compiled_once_for_its_kind_of_machine(n_entries, forgetful):
    matrix = np.random.default_rng(0).normal(size=(5, 5))
    program = compiler.compiled(products, n_entries)
    np.testing.assert_allclose(program(jnp.asarray(matrix)), matrix @ matrix)
    assert compiler.compiled(products, n_entries) is program


def test_small_and_large_machines_are_compiled_apart(forgetful, monkeypatch):
    monkeypatch.setattr(compiler, "_known", lambda: True)
    small = compiler.compiled(products, compiler.SMALL)
    assert compiler.compiled(products, compiler.SMALL + 1) is not small


def test_without_the_option_everything_is_compiled_the_same(forgetful, monkeypatch):
    monkeypatch.setattr(compiler, "EIGEN", {"xla_no_such_option": "1"})
    small = compiler.compiled(products, compiler.SMALL)
    assert compiler.compiled(products, compiler.SMALL + 1) is small
    np.testing.assert_array_equal(small(jnp.eye(2)), np.eye(2))
