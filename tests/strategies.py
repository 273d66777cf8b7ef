"""Random trains and machines for property tests, drawn with NumPy, which compiles nothing.

Every new shape compiles every program anew. By default numbers are random and shapes come from a
short list, so that all properties share their programs; the profile "thorough" draws shapes, too.
"""

import itertools
import math

import jax
import numpy as np
import scipy.stats
from hypothesis import settings
from hypothesis import strategies as st

from mporbm.machine import (
    Coupling,
    CPCoupling,
    DenseCoupling,
    Gaussian,
    KroneckerCoupling,
    Machine,
    MPOCoupling,
    exact,
    labelled_machine,
)
from mporbm.machine.layered import stack_of
from mporbm.tensor import MPO, MPS

seeds = st.integers(0, 2**32 - 1)
boundaries = st.sampled_from(["open", "periodic"])

VISIBLE, HIDDEN = (3, 2), (2, 2)
"""One tiny shape for all tests of samplers and learning, so that programs compile once."""
MODES = {
    1: ((3,), (2,)),
    2: (VISIBLE, HIDDEN),
    3: ((2, 1, 3), (1, 2, 2)),
    4: ((1, 3, 2, 1), (2, 1, 1, 2)),
    5: ((1, 2, 1, 3, 1), (2, 1, 2, 1, 1)),
}
"""Rows and columns of each order: never the same, some modes of size 1, at most 6 entries."""
RANKS = {
    1: ((2,), (1,)),
    2: ((2, 2), (3, 1)),
    3: ((2, 3, 2), (1, 2, 3)),
    4: ((3, 2, 3, 1), (2, 3, 1, 2)),
    5: ((2, 2, 3, 1, 2), (3, 1, 2, 2, 1)),
}
"""Ranks of each order, the first one of a ring, and others for a second train of the same shape."""


def is_thorough() -> bool:
    """Whether shapes and ranks are random as well."""
    return settings.get_current_profile_name() == "thorough"


@st.composite
def shapes(draw, order, max_size=48, layer=None):
    """`order` modes of size 1..3 with at most `max_size` entries together."""
    if not is_thorough():
        return draw(st.sampled_from(MODES[order])) if layer is None else MODES[order][layer]
    sizes = []
    for _ in range(order):
        room = max_size // math.prod(sizes)
        sizes.append(draw(st.integers(1, min(3, room))))
    return tuple(sizes)


@st.composite
def shape_pairs(draw, order, max_size=48):
    """Modes of rows and of columns."""
    if not is_thorough():
        return MODES[order]
    return draw(shapes(order, max_size)), draw(shapes(order, max_size))


@st.composite
def bond_shapes(draw, order, boundary, second=False):
    """(R_k, R_{k+1}) of each core; a `second` train has others than the first."""
    ranks = list(RANKS[order][second])
    if is_thorough():
        ranks = [draw(st.integers(1, 3)) for _ in range(order)]
    if boundary == "open":
        ranks[0] = 1
    return list(zip(ranks, [*ranks[1:], ranks[0]], strict=True))


@st.composite
def mpos(draw, order=None, boundary=None, like=None, max_size=48):
    """An MPO of order 1..5 with normal cores; `like` fixes the modes to another one's."""
    if like is None:
        order = draw(st.integers(1, 5)) if order is None else order
        rows, columns = draw(shape_pairs(order, max_size))
    else:
        order, rows, columns = like.n_cores, like.row_shape, like.column_shape
    boundary = draw(boundaries) if boundary is None else boundary
    bonds = draw(bond_shapes(order, boundary, second=like is not None))
    rng = np.random.default_rng(draw(seeds))
    modes = zip(bonds, rows, columns, strict=True)
    return MPO([rng.normal(size=(left, i, j, right)) for (left, right), i, j in modes])


@st.composite
def mps(draw, shape, boundary=None):
    bonds = draw(bond_shapes(len(shape), draw(boundaries) if boundary is None else boundary))
    rng = np.random.default_rng(draw(seeds))
    modes = zip(bonds, shape, strict=True)
    return MPS([rng.normal(size=(left, i, right)) for (left, right), i in modes])


@st.composite
def matrices(draw):
    """A matrix with the shapes of its rows and columns."""
    order = draw(st.integers(1, 5))
    rows, columns = draw(shape_pairs(order))
    rng = np.random.default_rng(draw(seeds))
    return rng.normal(size=(math.prod(rows), math.prod(columns))), rows, columns


def full_tensor(train) -> np.ndarray:
    """All entries of an MPS, or of an MPO with rows and columns of a core beside each other."""
    cores = [np.asarray(core, np.float64) for core in train.cores]
    whole = cores[0]
    for core in cores[1:]:
        whole = np.tensordot(whole, core, axes=1)
    return np.trace(whole, axis1=0, axis2=-1)


def full_matrix(mpo: MPO) -> np.ndarray:
    """The matrix of an MPO by NumPy alone."""
    d = mpo.n_cores
    tensor = full_tensor(mpo).transpose([*range(0, 2 * d, 2), *range(1, 2 * d, 2)])
    return tensor.reshape(math.prod(mpo.row_shape), math.prod(mpo.column_shape))


def random_coupling(kind: str, visible, hidden, rank, rng) -> Coupling:
    """A coupling with normal factors; hidden modes are merged where it needs a vector."""
    if kind == "dense":
        return DenseCoupling(rng.normal(size=(*visible, *hidden)), len(visible))
    if kind == "kronecker":
        pairs = zip(visible, hidden, strict=True)
        return KroneckerCoupling([rng.normal(size=pair) for pair in pairs])
    if kind == "cp":
        factors = [rng.normal(size=(size, rank)) for size in visible]
        return CPCoupling(factors, rng.normal(size=(math.prod(hidden), rank)))
    first = rank if kind == "mpo-periodic" else 1
    ranks = [first, *[rank] * (len(visible) - 1), first]
    modes = zip(ranks, visible, hidden, ranks[1:], strict=False)
    return MPOCoupling(MPO([rng.normal(size=shape) for shape in modes]))


KINDS = ("dense", "kronecker", "cp", "mpo", "mpo-periodic")


def random_machine(coupling: Coupling, rng, gaussian: bool = False) -> Machine:
    """A machine with normal biases and, if Gaussian, a variance of its own for each unit."""
    visible = coupling.visible_shape
    return Machine(
        coupling,
        rng.normal(size=visible),
        rng.normal(size=coupling.hidden_shape),
        Gaussian(rng.uniform(0.5, 2.0, size=visible), learnable=True) if gaussian else None,
    )


@st.composite
def machines(draw, kinds=KINDS):
    """A machine of order 1..5 with at most 6 units in either layer."""
    order = draw(st.integers(1, 5))
    visible, hidden = draw(shape_pairs(order, 6))
    rank = draw(st.integers(1, 3)) if is_thorough() else 2
    kind = draw(st.sampled_from(kinds))
    rng = np.random.default_rng(draw(seeds))
    coupling = random_coupling(kind, visible, hidden, rank, rng)
    return random_machine(coupling, rng, gaussian=draw(st.booleans()))


def tiny_machine(kind: str = "mpo", seed: int = 0, scale: float = 1.0, rank: int = 2) -> Machine:
    """A machine of 6 visible and 4 hidden units whose distribution is far from uniform."""
    rng = np.random.default_rng(seed)
    coupling = random_coupling(kind, VISIBLE, HIDDEN, rank, rng)
    machine = random_machine(coupling, rng)
    return Machine(
        jax.tree.map(lambda factor: scale * factor, coupling),
        machine.visible_bias,
        machine.hidden_bias,
    )


def random_labelled(machine: Machine, rng, n_classes: int = 3) -> Machine:
    """The machine with a label whose weights and biases are normal."""
    weights = rng.normal(size=(n_classes, *machine.hidden_shape))
    return labelled_machine(machine, weights, rng.normal(size=n_classes))


def log_joint(machine: Machine, visible: np.ndarray) -> np.ndarray:
    """``-E(V, y, H)`` of a labelled machine by NumPy alone, without the potential of V.

    For some V, all labels and all binary hidden states: (n, classes, hidden states).
    """
    low, top = stack_of(machine)
    h, v = binary_states(low.hidden_shape), visible.reshape(len(visible), -1)
    w, u = (np.asarray(m.coupling.to_matrix()) for m in (low, top))
    b, c, d = (np.ravel(x) for x in (low.visible_bias, low.hidden_bias, top.hidden_bias))
    layers = v @ w @ h.T + (v @ b)[:, None] + h @ c
    return layers[:, None, :] + (d[:, None] + u.T @ h.T)


def label_distribution(machine: Machine) -> np.ndarray:
    """``p(V, y, H)`` of all states of a labelled machine of binary units."""
    weights = np.exp(log_joint(machine, all_states(stack_of(machine)[0])))
    return weights / weights.sum()


def label_numbers(samples, n_classes: int) -> np.ndarray:
    """Which of all states of V and the label each sample is."""
    samples = np.asarray(samples)
    assert (samples[:, -n_classes:].sum(axis=1) == 1.0).all()
    return state_numbers(samples[:, :-n_classes]) * n_classes + samples[:, -n_classes:].argmax(1)


def binary_states(shape) -> np.ndarray:
    """Every state of a layer of binary units as a row."""
    n_units = math.prod(shape)
    return (np.arange(2**n_units)[:, None] >> np.arange(n_units)[::-1] & 1).astype(float)


LAYERS = (VISIBLE, HIDDEN, (2, 1), (1, 2))
"""The layers of the deepest tiny stack."""


def tiny_stack(n_layers: int = 2, kind: str = "mpo", seed: int = 0, gaussian: bool = False):
    """Machines of which each has the hidden layer of the one before as its visible layer."""
    rng = np.random.default_rng(seed)
    shapes = itertools.pairwise(LAYERS[: n_layers + 1])
    return tuple(
        random_machine(random_coupling(kind, *pair, 2, rng), rng, gaussian and pair[0] == VISIBLE)
        for pair in shapes
    )


def data_distribution(deep: Machine) -> np.ndarray:
    """``p(V)`` of a tiny deep machine: that of its even layers, summed over all but the first."""
    even = np.asarray(exact.visible_distribution(deep))
    return even.reshape(2 ** math.prod(VISIBLE), -1).sum(axis=1)


def exact_samples(machine: Machine, n_samples: int, rng) -> np.ndarray:
    """Independent visible states drawn from the enumerated distribution."""
    probabilities = np.asarray(exact.visible_distribution(machine))
    return all_states(machine)[rng.choice(len(probabilities), n_samples, p=probabilities)]


def all_states(machine: Machine) -> np.ndarray:
    """Every visible state, in the order of `exact.visible_distribution`."""
    return binary_states(machine.visible_shape).reshape(-1, *machine.visible_shape)


def assert_distributed(samples, probabilities) -> None:
    """Chi-squared test that binary samples come from a distribution over all states."""
    assert_numbers_distributed(state_numbers(samples), probabilities)


def state_numbers(samples) -> np.ndarray:
    """Which of all states each binary sample is."""
    flat = np.asarray(samples).reshape(len(samples), -1)
    assert set(np.unique(flat)) <= {0.0, 1.0}
    return flat.astype(int) @ (2 ** np.arange(flat.shape[1])[::-1])


def assert_numbers_distributed(numbers, probabilities) -> None:
    """Chi-squared test that numbers 0, 1, ... come from a distribution."""
    observed = np.bincount(numbers, minlength=len(probabilities))
    expected = len(numbers) * np.asarray(probabilities)
    # States too rare for the normal approximation count as one.
    rare = expected < 5.0
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-300))
    statistic = ((observed - expected) ** 2 / expected).sum()
    limit = scipy.stats.chi2.isf(1e-5, len(expected) - 1)
    assert statistic < limit, f"chi-squared {statistic:.1f}, expected at most {limit:.1f}"
