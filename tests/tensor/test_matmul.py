"""Every plan gives the same products and gradients as the matrix."""

from itertools import combinations, pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
import pytest
from numpy.testing import assert_allclose

from mporbm.machine import CPCoupling, DenseCoupling, KroneckerCoupling, MPOCoupling
from mporbm.tensor import matmul as planning
from mporbm.tensor.matmul import TALL, MergedMPO, Plan, make_plan
from strategies import KINDS, random_coupling

ROWS, COLUMNS, N = (3, 2, 4), (2, 3, 2), 5


def all_plans(coupling):
    """Every way to group the nodes that keeps each bond between neighbours."""
    n_nodes = len(coupling.nodes())
    structure = tuple((node.indices, node.array.shape) for node in coupling.nodes())
    for n_cuts in range(n_nodes):
        for cuts in combinations(range(1, n_nodes), n_cuts):
            bonds = [set(planning.cut_bonds(structure, cut)) for cut in cuts]
            if not any(a & b for a, b in pairwise(bonds)):
                for transposed in (False, True):
                    yield Plan((0, *cuts, n_nodes), transposed, 0, 0, 0, 0)


@eqx.filter_jit
def products(coupling, plan, rows, columns):
    """``W^T x``, ``W y``, and the derivative of the sum of ``<x, W y>`` for each factor."""
    factors, structure = jax.tree.flatten(coupling)

    def merge(factors):
        return MergedMPO.from_nodes(jax.tree.unflatten(structure, factors).nodes(), plan)

    product, pull_back = jax.vjp(merge, factors)
    up, row_states = product.contract_rows(rows)
    down, column_states = product.contract_columns(columns)
    return up, down, *pull_back(product.gradient(row_states, column_states))


@pytest.mark.parametrize("kind", KINDS)
def test_every_plan_gives_what_the_matrix_gives(kind, rng):
    coupling = random_coupling(kind, ROWS, COLUMNS, 2, rng)
    matrix = np.asarray(coupling.to_matrix())
    rows, columns = (jnp.asarray(rng.normal(size=(N, size))) for size in matrix.shape)
    expected = jax.grad(lambda c: jnp.vdot(rows @ c.to_matrix(), columns))(coupling)
    plans = list(all_plans(coupling))
    n_groups = {plan.n_groups for plan in plans}
    assert n_groups == {"dense": {1}, "cp": {1, 2}, "mpo-periodic": {1, 2}}.get(kind, {1, 2, 3})
    for plan in plans:
        up, down, factors = products(coupling, plan, rows, columns)
        assert_allclose(up, rows @ matrix, atol=1e-10)
        assert_allclose(down, columns @ matrix.T, atol=1e-10)
        for found, wanted in zip(factors, jax.tree.leaves(expected), strict=True):
            assert_allclose(found, wanted, atol=1e-10, err_msg=str(plan))


def test_products_of_a_batch_are_done_one_by_one_or_as_one(rng, monkeypatch):
    coupling = random_coupling("mpo", ROWS, COLUMNS, 2, rng)
    matrix = coupling.to_matrix()
    rows, columns = (jnp.asarray(rng.normal(size=(N, size))) for size in matrix.shape)
    plan = Plan((0, 1, 3), False, 0, 0, 0, 0)
    for separate in (True, False):
        monkeypatch.setattr("mporbm.tensor.matmul.one_by_one_is_cheaper", lambda *sizes: separate)  # noqa: B023
        product = MergedMPO.from_nodes(coupling.nodes(), plan)
        lowered = jax.jit(lambda p, x: p.contract_rows(x)[0]).lower(product, rows).as_text()
        assert ("batching_dims = [0]" in lowered) == separate
        up, row_states = product.contract_rows(rows)
        down, column_states = product.contract_columns(columns)
        first, _ = product.gradient(row_states, column_states).cores
        assert_allclose(up, rows @ matrix, atol=1e-10)
        assert_allclose(down, columns @ matrix.T, atol=1e-10)
        assert_allclose(
            first,
            jax.grad(lambda c: jnp.vdot(rows @ c.to_matrix(), columns))(coupling)
            .mpo.cores[0]
            .reshape(first.shape),
            atol=1e-10,
        )


def test_a_tall_gradient_is_as_good_as_another(rng):
    coupling = random_coupling("dense", (8, 9), (2,), 2, rng)
    rows, columns = (jnp.asarray(rng.normal(size=(N, size))) for size in (72, 2))
    product = coupling.matmul_form(N)
    (core,) = product.gradient(
        product.contract_rows(rows)[1], product.contract_columns(columns)[1]
    ).cores
    assert core.shape[0] > TALL * core.shape[1]
    assert_allclose(core, rows.T @ columns, atol=1e-10)


# What is chosen

KEY = jax.random.key(0)


def mpo(visible, hidden, rank, boundary="open"):
    return MPOCoupling.random(KEY, visible, hidden, rank, boundary=boundary)


@pytest.mark.parametrize(
    ("coupling", "n_rows", "groups", "transposed"),
    [
        (lambda: DenseCoupling.random(KEY, (28, 28), (10, 10)), 100, (0, 1), False),
        (lambda: mpo((28, 28), (10, 10), 40), 100, (0, 2), False),
        (lambda: mpo((28, 28), (10, 10), 1), 100, (0, 1, 2), False),
        (lambda: mpo((80, 80, 8), (10, 10, 5), 20), 50, (0, 1, 3), False),
        (lambda: mpo((8, 80, 80), (5, 10, 10), 20), 50, (0, 2, 3), True),
        (lambda: mpo((128, 128, 24), (10, 10, 5), 20), 16, (0, 1, 3), False),
        (lambda: CPCoupling.random(KEY, (80, 80, 8), (500,), 20), 50, (0, 3, 4), False),
        (lambda: KroneckerCoupling.random(KEY, (80, 640), (10, 50)), 50, (0, 1, 2), False),
    ],
    ids=[
        *("dense", "small MPO", "small MPO of rank 1", "large MPO", "large MPO the other way"),
        *("larger MPO", "CP", "Kronecker"),
    ],
)
def test_plans_of_the_papers_machines(coupling, n_rows, groups, transposed):
    plan = make_plan(coupling().nodes(), n_rows)
    assert (plan.groups, plan.transposed) == (groups, transposed)


@pytest.mark.parametrize(
    ("coupling", "n_rows"),
    [
        (lambda: mpo((28, 28), (10, 10), 40), 100),
        (lambda: mpo((80, 80, 8), (10, 10, 5), 20), 50),
        (lambda: mpo((128, 128, 24), (10, 10, 5), 20), 16),
        (lambda: mpo((4,) * 6, (2,) * 6, 5), 50),
        (lambda: mpo((64, 64, 3), (32, 32, 3), 5), 50),
        (lambda: CPCoupling.random(KEY, (80, 80, 8), (500,), 20), 50),
    ],
    ids=["small", "large", "larger", "many modes", "large hidden layer", "CP"],
)
def test_a_plan_is_about_as_short_as_the_best_contraction(coupling, n_rows):
    """The search of opt_einsum over all orders of contraction is the reference."""
    nodes = coupling().nodes()
    visible = [i for node in nodes for i in node.indices if i[0] == "i"]
    hidden = [i for node in nodes for i in node.indices if i[0] == "j"]
    size = {i: n for node in nodes for i, n in zip(node.indices, node.array.shape, strict=True)}
    symbol = {i: opt_einsum.get_symbol(k) for k, i in enumerate(("n", *size))}
    inputs = [("n", *visible), *(node.indices for node in nodes)]
    formula = ",".join("".join(symbol[i] for i in group) for group in inputs)
    formula += "->" + "".join(symbol[i] for i in ("n", *hidden))
    shapes = [(n_rows, *(size[i] for i in visible)), *(node.array.shape for node in nodes)]
    _, best = opt_einsum.contract_path(formula, *shapes, shapes=True, optimize="auto")
    plan = make_plan(nodes, n_rows, n_uses=1)
    assert plan.n_operations + plan.n_merging <= 1.5 * float(best.opt_cost)


def test_operations_are_counted():
    # One group: 784 x 100 by 7 rows, after 280 x 40 by 40 x 280.
    plan = make_plan(mpo((28, 28), (10, 10), 40).nodes(), 100)
    assert plan.n_operations == 2 * 100 * 784 * 100
    assert plan.n_merging == 2 * 280 * 40 * 280
    assert plan.n_bytes == 4 * (784 * 100 + 100 * 100)
    # The first core by 50 x 640 matrices, then 50 x 10 rows by what is merged of two cores.
    plan = make_plan(mpo((80, 80, 8), (10, 10, 5), 20).nodes(), 50)
    assert plan.n_operations == 2 * 50 * 80 * 200 * 640 + 2 * 500 * 12800 * 50
    assert plan.n_merging == 2 * (20 * 80 * 10) * 20 * (8 * 5)
    assert plan.n_bytes == 4 * (80 * 200 + 12800 * 50 + 50 * 200 * 640)


@pytest.mark.parametrize(
    ("coupling", "last", "expected"),
    [
        (lambda: mpo((3, 3, 3), (2, 2, 2), 2), 2, 2 * (6 * 2 * 6 * 2)),
        (lambda: mpo((3, 3, 3), (2, 2, 2), 2), 3, 2 * (6 * 2 * 6 * 2) + 2 * (36 * 2 * 6)),
        (lambda: mpo((3, 3, 3), (2, 2, 2), 2, "periodic"), 2, 2 * (2 * 6 * 2 * 6 * 2)),
        (lambda: CPCoupling.random(KEY, (3, 4), (5,), 2), 2, 2 * (3 * 4 * 2)),
    ],
    ids=["two of a chain", "a chain", "two of a ring", "two of CP"],
)
def test_operations_of_merging_are_counted(coupling, last, expected):
    structure = tuple((node.indices, node.array.shape) for node in coupling().nodes())
    assert planning.merging_operations(structure, 0, last) == expected


def test_memory_comes_first(monkeypatch):
    def groups(coupling, limit, n_rows=100):
        planning._make_plan.cache_clear()
        monkeypatch.setattr(planning, "MEMORY_LIMIT", limit)
        found = make_plan(coupling.nodes(), n_rows, planning.MANY_USES)
        planning._make_plan.cache_clear()
        return found.groups

    dense = 4 * (784 * 100 + 1 * 100)
    assert groups(mpo((28, 28), (10, 10), 40), dense, n_rows=1) == (0, 2)
    assert groups(mpo((28, 28), (10, 10), 40), dense - 1, n_rows=1) == (0, 1, 2)
    # What a single core makes of a batch counts, too: here 500 x 200 x 3072 numbers.
    large, limit = mpo((128, 128, 24), (10, 10, 5), 20), 4 * 500 * 200 * 3072
    assert groups(large, limit, n_rows=500) == (0, 1, 3)
    assert groups(large, limit - 1, n_rows=500) == (0, 3)
    # A ring has to be closed somewhere, whatever that takes: the least memory is taken.
    assert groups(mpo((3, 3, 3), (2, 2, 2), 2, "periodic"), 1) == (0, 3)


def test_plans_are_said_in_words():
    assert str(make_plan(mpo((28, 28), (10, 10), 40).nodes(), 100)) == (
        "dense matrix, 15.7 million operations a product"
    )
    assert str(make_plan(mpo((80, 80, 8), (10, 10, 5), 20).nodes(), 50)) == (
        "cut after factor 1, 1.66 billion operations a product"
    )
    plan = Plan((0, 1, 2, 3), False, 950, 0, 0, 0)
    assert str(plan) == "3 groups of factors, 950 operations a product"


def test_modes_out_of_order_are_refused(rng):
    first, second = random_coupling("kronecker", (3, 2), (2, 2), 1, rng).nodes()
    with pytest.raises(ValueError, match=r"modes i1, i2, \.\.\. in order, got \['i2', 'i1'\]"):
        make_plan([second, first], 5)
