"""Bad input gets an error that names the argument, what was given and what is expected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mporbm.diagram import draw
from mporbm.machine import (
    CPCoupling,
    DenseCoupling,
    Gaussian,
    KroneckerCoupling,
    Machine,
    MPOCoupling,
    exact,
)
from mporbm.sampling import Tempering
from mporbm.tensor import MPO, MPS, linear_index, max_ranks, multi_index
from mporbm.tensor.convert import from_quimb, from_tensorly, to_quimb, to_tensorly
from tables import check_messages

# What a user without the tests' type checker sees.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KEY = jax.random.key(0)
MATRIX = np.arange(16.0).reshape(4, 4)
NAN = np.where(np.eye(4) > 0, np.nan, 0.0)


def mpo(**options):
    return MPO.random(KEY, (2, 2), (2, 2), rank=2, **options)


def machine():
    return Machine(MPOCoupling(mpo()))


def from_matrix(**options):
    return MPO.from_matrix(MATRIX, (2, 2), (2, 2), **options)


def from_traced(matrix):
    return MPO.from_matrix(matrix, (2, 2), (2, 2)).train


def ring():
    return MPO.random(KEY, (2, 2), (2, 2), rank=2, boundary="periodic")


CASES = [
    # ranks
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=0), ValueError, "rank=0: expected .* at least 1"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=-3), ValueError, "rank=-3: expected"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=2.0), TypeError, "rank=2.0: .*got float"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=True), TypeError, "rank=True: .*got bool"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=(2, 2)), ValueError, r"rank=\(2, 2\).*or 1 of"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=(2.5,)), TypeError, r"rank\[0\]=2.5"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank=5), ValueError, r"rank=5: .*\(4,\).*rank=\(4,\)"),
    (
        lambda: MPO.random(KEY, (80, 80, 8), (10, 10, 5), rank=50),
        ValueError,
        r"rank=50: expected ranks of at most \(800, 40\).*Pass rank=\(50, 40\)",
    ),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), rank="two"), TypeError, "rank='two'.*got str"),
    (
        lambda: mpo(boundary="closed"),
        ValueError,
        "boundary='closed': expected 'open' or 'periodic'",
    ),
    (lambda: mpo(std=0.0), ValueError, "std=0.0: expected a finite number above 0"),
    (lambda: mpo(std="small"), TypeError, "std='small': expected a real number, got str"),
    (lambda: mpo().round(max_rank=0), ValueError, "max_rank=0"),
    (lambda: from_matrix(max_rank=1.5), TypeError, "max_rank=1.5"),
    (lambda: Tempering(1), ValueError, "n_temperatures=1: expected an integer of at least 2"),
    # tolerances
    (lambda: from_matrix(tolerance=1.0), ValueError, r"tolerance=1.0: expected .* in \[0, 1\)"),
    (lambda: from_matrix(tolerance=-0.1), ValueError, "tolerance=-0.1"),
    (lambda: from_matrix(tolerance=float("nan")), ValueError, "tolerance=nan"),
    (lambda: from_matrix(tolerance="1e-3"), TypeError, "tolerance='1e-3'.*got str"),
    (lambda: mpo().round(tolerance=2), ValueError, "tolerance=2.0"),
    # shapes
    (lambda: MPO.random(KEY, (2, 2.0), (2, 2), rank=1), TypeError, r"row_shape\[1\]=2.0"),
    (lambda: MPO.random(KEY, (2, 0), (2, 2), rank=1), ValueError, r"row_shape\[1\]=0"),
    (
        lambda: MPO.random(KEY, 4, (2, 2), rank=1),
        TypeError,
        r"row_shape: .*positive integers.*got 4 \(int\)",
    ),
    (
        lambda: MPO.random(KEY, (), (), rank=1),
        ValueError,
        r"row_shape: expected a non-empty .*got \(\)",
    ),
    (lambda: MPO.random(KEY, (2, 2), (4,), rank=1), ValueError, r"column_shape=\(4,\).*2 modes"),
    (
        lambda: MPO.from_matrix(MATRIX, (2, 3), (2, 2)),
        ValueError,
        r"matrix: .*\(6, 4\), got \(4, 4",
    ),
    (lambda: from_matrix(order="K"), ValueError, "order='K': expected 'C' or 'F'"),
    (lambda: mpo().to_matrix(order="A"), ValueError, "order='A'"),
    (
        lambda: mpo().apply(np.ones((3, 4))),
        ValueError,
        r"columns: .*\(\.\.\., 2, 2\), got \(3, 4\).*re",
    ),
    (lambda: mpo().apply_transpose(np.ones((3, 2, 5))), ValueError, r"rows: .*got \(3, 2, 5\)"),
    (lambda: mpo().apply(np.ones((2, 2)) * 1j), TypeError, "columns: .*complex"),
    (lambda: mpo().apply([[1.0, 2.0], [3.0]]), ValueError, "columns: expected an array of real"),
    (
        lambda: mpo().apply(None),
        TypeError,
        "columns: expected an array of real numbers, got NoneType",
    ),
    (
        lambda: MPO.from_matrix(np.ones((4, 8)), (4, 2), (2, 2)),
        ValueError,
        "transpose it with matrix.T",
    ),
    (lambda: MPO.random(0, (2, 2), (2, 2), rank=1), TypeError, r"key: .*got 0; .*jax.random.key\("),
    (lambda: mpo(dtype=int), TypeError, "dtype=<class 'int'>: expected a floating-point type"),
    (
        lambda: MPO.random(jax.random.split(KEY), (2,), (2,), 1),
        TypeError,
        "key: expected one random",
    ),
    (lambda: MPO.random(jnp.ones(2), (2,), (2,), 1), TypeError, "key: expected one random key"),
    (lambda: mpo(dtype="flot32"), TypeError, "dtype='flot32': expected a floating-point type"),
    (lambda: MPO.random(KEY, (2, 2), (2, 2), jnp.ones(2)), TypeError, "rank=.*expected an integer"),
    (lambda: max_ranks([2, 0]), ValueError, r"sizes\[1\]=0"),
    (lambda: max_ranks([2, 2], "ring"), ValueError, "boundary='ring'"),
    (lambda: DenseCoupling(KEY), TypeError, "weights: expected an array of real numbers.*key"),
    (lambda: jax.jit(from_traced)(MATRIX), TypeError, "matrix: expected concrete numbers.*outside"),
    (lambda: jax.jit(lambda m: m.round(1))(mpo()), TypeError, "round: expected concrete cores"),
    # cores
    (lambda: MPO([]), ValueError, r"cores: expected a non-empty sequence of arrays.*got \[\]"),
    (lambda: MPO(np.ones((2, 2, 2, 2))), TypeError, r"cores: expected a non-empty .*\(ndarray\)"),
    (lambda: MPO([np.ones((1, 2, 1))]), ValueError, r"cores\[0\]: expected 4 axes.*\(1, 2, 1\)"),
    (lambda: MPS([np.ones((1, 2, 2, 1))]), ValueError, r"cores\[0\]: expected 3 axes"),
    (
        lambda: MPO([np.ones((1, 2, 2, 3)), np.ones((2, 2, 2, 1))]),
        ValueError,
        r"cores\[1\]: expected a first axis of 3.*cores\[0\], got shape \(2, 2, 2, 1\)",
    ),
    (
        lambda: MPO([np.ones((1, 2, 2, 2)), np.ones((2, 2, 2, 3))]),
        ValueError,
        r"cores\[0\]: expected a first axis of 3, the last axis of cores\[1\]",
    ),
    (lambda: MPO([np.array("a")]), TypeError, r"cores\[0\]: expected an array of real numbers"),
    # entries
    (lambda: MPO([NAN[None, ..., None]]), ValueError, r"cores\[0\]: .*finite.*4 of 16"),
    (lambda: MPO.from_matrix(NAN, (2, 2), (2, 2)), ValueError, "matrix: .*finite.*4 of 16"),
    (
        lambda: MPS.from_tensor(np.inf * MATRIX[:2, 2:]),
        ValueError,
        "tensor: expected entries that are finite",
    ),
    (lambda: MPS.from_tensor(3.0), ValueError, r"tensor.shape: expected a non-empty .*got \(\)"),
    (lambda: MPO.from_matrix(MATRIX * 1j, (2, 2), (2, 2)), TypeError, "matrix: .*complex128"),
    # algebra
    (lambda: mpo() + MPO.random(KEY, (2, 3), (2, 2), rank=2), ValueError, "other: .*mode sizes"),
    (lambda: mpo() + 1.0, TypeError, "other: expected an MPO, got float"),
    (lambda: mpo().inner(MPS.random(KEY, (2, 2), 2)), TypeError, "other: expected an MPO, got MPS"),
    (lambda: mpo() * np.ones(3), ValueError, r"factor: expected shape \(\), got \(3,\)"),
    (lambda: mpo() @ MPS.random(KEY, (2, 3), 2), ValueError, r"state: .*\(2, 2\), got \(2, 3\)"),
    (lambda: mpo() @ np.ones((2, 2)), TypeError, "state: expected an MPS, got ndarray; .*apply"),
    (lambda: np.ones(3) * mpo(), ValueError, r"factor: expected shape \(\), got \(3,\)"),
    (lambda: mpo() - np.ones((4, 4)), TypeError, "ndarray"),
    (lambda: mpo().inner(np.ones((4, 4))), TypeError, "other: expected an MPO, got ndarray"),
    (lambda: mpo().canonical(2), ValueError, r"center=2: expected a core in 0\.\.1"),
    (lambda: mpo().canonical(0.5), TypeError, "center=0.5"),
    (lambda: ring().canonical(), ValueError, r"canonical: .*R_1 = 2; call .to_open\(\)"),
    (lambda: ring().round(max_rank=1), ValueError, r"round: expected an open train"),
    (lambda: ring().left_grams(), ValueError, "left_grams: expected an open"),
    # index map
    (
        lambda: linear_index((0.0, 1), (2, 2)),
        TypeError,
        r"multi_index\[0\]: expected integers.*flo",
    ),
    (lambda: linear_index((2, 1), (2, 2)), ValueError, r"multi_index\[0\]: .*0\.\.1, got"),
    (
        lambda: linear_index(3, (4,)),
        TypeError,
        "multi_index: expected a sequence of 1 indices, got 3",
    ),
    (
        lambda: linear_index(([0, 1], [0, 1, 1]), (2, 2)),
        ValueError,
        r"multi_index: .*broadcast.*\[\(2,\), \(3,\)\]",
    ),
    (lambda: linear_index((1,), (2, 2)), ValueError, "multi_index: expected 2 indices.*got 1"),
    (lambda: multi_index(4, (2, 2)), ValueError, r"linear_index: expected integers in 0\.\.3"),
    (lambda: multi_index(-1, (2, 2)), ValueError, "linear_index: expected"),
    (lambda: multi_index(1.0, (2, 2)), TypeError, "linear_index: expected integers.*float64"),
    (lambda: multi_index(1, (2, 2.5)), TypeError, r"shape\[1\]=2.5"),
    (lambda: multi_index(1, (2, 2), order="X"), ValueError, "order='X'"),
    # couplings
    (lambda: DenseCoupling(np.ones(4)), ValueError, r"weights: .*n_visible_modes=1 .*\(4,\)"),
    (lambda: DenseCoupling(np.ones((2, 2, 4))), ValueError, r"n_visible_modes=None: .* 1\.\.2"),
    (lambda: DenseCoupling(np.ones((4, 2)), 1.0), TypeError, "n_visible_modes=1.0"),
    (lambda: DenseCoupling(NAN), ValueError, "weights: .*finite in float64, got 4 of 16"),
    (
        lambda: KroneckerCoupling([]),
        ValueError,
        r"factors: expected a non-empty sequence of matrices, got \[\]",
    ),
    (lambda: KroneckerCoupling([np.ones(3)]), ValueError, r"factors\[0\]: .*matrix.*\(3,\)"),
    (
        lambda: KroneckerCoupling.random(KEY, (2, 2), (4,)),
        ValueError,
        r"hidden_shape=\(4,\): expected 2 modes",
    ),
    (lambda: CPCoupling([np.ones((2, 3))], np.ones((2, 4))), ValueError, r"same number.*\[3, 4\]"),
    (lambda: CPCoupling.random(KEY, (2, 2), (2, 2), 3), ValueError, r"hidden_shape=.*\(4,\)"),
    (lambda: CPCoupling.random(KEY, (2, 2), (4,), 0), ValueError, "rank=0"),
    (lambda: CPCoupling.random(KEY, (2, 2), (4,), 1.5), TypeError, "rank=1.5"),
    (
        lambda: MPOCoupling.random(KEY, (2, 2), (4,), rank=1),
        ValueError,
        r"hidden_shape=\(4,\): expected 2 modes",
    ),
    (
        lambda: CPCoupling([np.ones(3)], np.ones((2, 4))),
        ValueError,
        r"visible_factors\[0\]: .*matr",
    ),
    (lambda: MPOCoupling(MATRIX), TypeError, "mpo: expected an MPO, got ndarray"),
    (lambda: MPOCoupling(mpo().round(1)), TypeError, "mpo: .*got Truncation; pass its .train"),
    (lambda: KroneckerCoupling(None), TypeError, r"factors: .*got None \(NoneType\)"),
    # machines
    (lambda: Machine(mpo()), TypeError, "coupling: expected a Coupling, got MPO; wrap it"),
    (
        lambda: Machine(MPOCoupling(mpo()), visible_bias=np.ones(4)),
        ValueError,
        r"visible_bias: expected shape \(2, 2\), got \(4,\); .*visible_bias.reshape\(2, 2\)",
    ),
    (lambda: Machine(MPOCoupling(mpo()), None, NAN[:2, :2]), ValueError, "hidden_bias: .*finite"),
    (
        lambda: Machine(MPOCoupling(mpo()), visible_units="gaussian"),
        TypeError,
        "visible_units: exp",
    ),
    (
        lambda: Machine(MPOCoupling(mpo()), visible_units=Gaussian(np.ones(3))),
        ValueError,
        r"visible_units: .*\(\) or \(2, 2\), got \(3,\)",
    ),
    (lambda: Gaussian(1.0, learnable="no"), TypeError, "learnable='no': expected True or False"),
    (lambda: Gaussian(-1.0), ValueError, "variance: expected numbers above 0, got .*-1"),
    (lambda: machine().energy(np.ones((2, 2)), np.ones(4)), ValueError, r"hidden: .*got \(4,\)"),
    (lambda: machine().free_energy(np.ones((5, 4))), ValueError, r"visible: .*reshape\(-1, 2, 2\)"),
    (
        lambda: machine().energy(np.ones((3, 2, 2)), np.ones((5, 2, 2))),
        ValueError,
        r"hidden: expected leading axes .*visible, \(3,\), got \(5,\)",
    ),
    (
        lambda: machine().sample_hidden(0, np.ones((2, 2))),
        TypeError,
        "key: expected one random key",
    ),
    (lambda: machine().hidden_mean(np.ones(2)), ValueError, r"visible: .*got \(2,\)"),
    (lambda: machine().visible_mean(np.array("x")), TypeError, r"hidden: .*real numbers.*<U1"),
    # enumeration
    (lambda: exact.log_partition(mpo()), TypeError, "machine: expected a Machine, got MPO"),
    (lambda: exact.expectations(None), TypeError, "machine: expected a Machine, got NoneType"),
    (
        lambda: exact.states(30),
        ValueError,
        r"n_units: expected at most 2\^20 states to enumerate, those of 20 .*, got 2\^30",
    ),
    (lambda: exact.states(3.0), TypeError, "n_units=3.0: expected an integer"),
    # diagrams
    (
        lambda: draw(machine(), "gradients"),
        ValueError,
        "what='gradients': expected 'coupling', .* or 'gradient'",
    ),
    (lambda: draw(mpo()), TypeError, "model: expected a Coupling or a Machine, got MPO"),
    (lambda: draw(machine(), "gradient", core=2), ValueError, r"core=2: .*0\.\.1"),
    (lambda: draw(machine(), "gradient", core=0.5), TypeError, "core=0.5"),
    # converters
    (lambda: to_quimb(ring()), ValueError, r"train: .*at least 3 cores.*to_open\(\)"),
    (lambda: to_tensorly(ring()), ValueError, r"train: expected an open MPO.*to_open\(\)"),
    (lambda: from_quimb(MATRIX), TypeError, "network: expected quimb.*got ndarray"),
    (lambda: from_tensorly([MATRIX]), TypeError, "factors: expected TensorLy's.*got list"),
    (lambda: to_quimb(MPOCoupling(mpo())), TypeError, "train: .*got MPOCoupling; .* its .mpo"),
]


def test_messages():
    check_messages(CASES)


def test_integers_and_booleans_are_welcome_where_reals_are():
    assert MPO([np.ones((1, 2, 2, 1), int)]).dtype == jnp.float64
    assert MPS.from_tensor(np.eye(2, dtype=bool)).train.dtype == jnp.float64
    assert MPO.random(KEY, np.array([2, 2]), [2, 2], rank=np.int64(2)).ranks == (2,)
    assert mpo(std=jnp.float32(0.1)).ranks == (2,)
    assert mpo().canonical(np.int64(1)).ranks == (2,)
    assert linear_index(([], []), (2, 2)).size == 0
