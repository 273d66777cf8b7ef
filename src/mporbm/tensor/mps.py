"""Matrix product states (tensor trains): tensors as trains of 3-way cores, and batches of them."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike, DTypeLike

from .arrays import AnyArray, DType, RandomKey
from .check import check_integer, check_sequence, check_shape, check_tolerance, host_array
from .cross import FunctionOfIndices, cross_cores
from .network import contract, index_names
from .ranks import Boundary
from .train import TensorTrain, sum_cores
from .truncation import Truncation

Signal = Callable[[Float[np.ndarray, " points"]], ArrayLike]
"""A function of positions from 0 to 1, asked for many at a time."""


class MPS(TensorTrain):
    """A tensor of shape (I_1..I_d) as cores of shape (R_k, I_k, R_{k+1}).

    Examples
    --------
    >>> import jax, numpy as np
    >>> tensor = np.arange(24.0).reshape(2, 3, 4)
    >>> mps, error_bound = MPS.from_tensor(tensor, tolerance=1e-6)
    >>> mps.ranks, bool(np.allclose(mps.to_tensor(), tensor, rtol=1e-4))
    ((2, 2), True)
    """

    LAYERS = ("i",)

    def __init__(self, cores: Sequence[ArrayLike]):
        super().__init__(cores)

    @property
    def shape(self) -> tuple[int, ...]:
        """The mode sizes (I_1..I_d)."""
        return self._mode_shapes()[0]

    @classmethod
    def random(
        cls,
        key: RandomKey,
        shape: Sequence[int],
        rank: int | Sequence[int],
        *,
        std: float = 1.0,
        boundary: Boundary = "open",
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Normal cores scaled so that the entries of the tensor have standard deviation `std`."""
        modes = [(size,) for size in check_shape("shape", shape)]
        return cls._random(key, modes, rank, std, boundary, dtype)

    @classmethod
    def from_tensor(
        cls,
        tensor: ArrayLike,
        *,
        max_rank: int | Sequence[int] | None = None,
        tolerance: float = 0.0,
        boundary: Boundary = "open",
    ) -> Truncation[Self]:
        """Decompose a full tensor by sequential SVD; see `MPO.from_matrix` for the parameters."""
        array, dtype = host_array("tensor", tensor)
        modes = [(size,) for size in check_shape("tensor.shape", array.shape)]
        return cls._decompose(array, modes, max_rank, tolerance, boundary, dtype)

    def to_tensor(self) -> Float[Array, "..."]:
        """The full tensor of shape (I_1..I_d)."""
        return contract(self.nodes(), index_names("i", self.n_cores))


def interpolate(
    function: FunctionOfIndices,
    shape: Sequence[int],
    *,
    max_rank: int = 64,
    tolerance: float = 1e-6,
) -> MPS:
    """The MPS that interpolates a function of d indices.

    Parameters
    ----------
    function
        Gives the values (m,) at an array (m, d) of indices.
    shape
        (I_1..I_d): index k runs over ``0..I_k - 1``.
    max_rank
        The largest rank of a bond.
    tolerance
        Ranks grow until no value that is looked at is off by more, relative to the largest one. A
        function that is zero nearly everywhere can hide from that.
    """
    sizes = check_shape("shape", shape)
    check_integer("max_rank", max_rank)
    check_tolerance("tolerance", tolerance)
    return MPS(cross_cores(function, sizes, max_rank, tolerance))


class MPSBatch(eqx.Module):
    """n tensors of shape (I_1..I_d) as open MPS: cores of shape (n, S_k, I_k, S_{k+1}).

    Bonds are padded with zeros to the largest of all samples, so that one program serves them all.
    Samples are chosen along the first axis, as from an array; no full tensor is ever formed.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm.tensor import MPSBatch
    >>> tones = [lambda x, f=f: np.sin(2 * np.pi * f * x) for f in (3.0, 50.5)]
    >>> signals = MPSBatch.from_functions(tones, order=30)
    >>> signals.shape[0], len(signals.shape[1:]), set(signals.ranks)
    (2, 30, {2})
    """

    cores: tuple[Float[AnyArray, "n _left _mode _right"], ...]

    def __init__(self, cores: Sequence[ArrayLike]):
        check_sequence("cores", cores, "arrays (n, S_k, I_k, S_{k+1})")
        arrays = [core if isinstance(core, Array) else np.asarray(core) for core in cores]
        bond = 1
        for k, core in enumerate(arrays):
            if core.ndim != 4 or 0 in core.shape[1:] or core.dtype.kind != "f":
                raise ValueError(
                    f"cores[{k}]: expected an array of floats with axes (n, S_k, I_k, S_{{k+1}}), "
                    f"got dtype {core.dtype} and shape {core.shape}."
                )
            if core.shape[:2] != (len(arrays[0]), bond):
                raise ValueError(
                    f"cores[{k}]: expected first axes ({len(arrays[0])}, {bond}), the number of "
                    f"samples and the last bond, got shape {core.shape}."
                )
            bond = core.shape[3]
        if bond != 1:
            raise ValueError(
                f"cores[{len(arrays) - 1}]: expected a last axis of 1, got {bond}; samples are "
                f"open trains (see MPS.to_open)."
            )
        self.cores = tuple(arrays)

    @classmethod
    def from_mps(cls, trains: Sequence[MPS]) -> Self:
        """Put open MPS of one shape together."""
        check_sequence("trains", trains, "MPS of one shape")
        for k, train in enumerate(trains):
            if train.shape != trains[0].shape or train.boundary != "open":
                raise ValueError(
                    f"trains[{k}]: expected an open MPS of shape {trains[0].shape}, as trains[0] "
                    f"has, got a {train.boundary} one of shape {train.shape}."
                )
        cores = []
        for k, size in enumerate(trains[0].shape):
            own = [np.asarray(train.cores[k]) for train in trains]
            left, right = (max(core.shape[axis] for core in own) for axis in (0, 2))
            core = np.zeros((len(own), left, size, right), np.result_type(*own))
            for target, part in zip(core, own, strict=True):
                target[: part.shape[0], :, : part.shape[2]] = part
            cores.append(core)
        return cls(cores)

    @classmethod
    def from_tensors(
        cls, tensors: ArrayLike, *, max_rank: int | None = None, tolerance: float = 0.0
    ) -> Self:
        """Decompose full tensors (n, I_1..I_d), each by sequential SVD (`MPS.from_tensor`)."""
        array = np.asarray(tensors)
        if array.ndim < 2 or 0 in array.shape:
            raise ValueError(
                f"tensors: expected shape (n, I_1..I_d), got {array.shape}; a single one is "
                f"tensor[None]."
            )
        found = [MPS.from_tensor(t, max_rank=max_rank, tolerance=tolerance).train for t in array]
        return cls.from_mps(found)

    @classmethod
    def from_signals(
        cls, signals: ArrayLike, *, max_rank: int | None = None, tolerance: float = 1e-6
    ) -> "MPSBatch":
        """Decompose signals (n, 2^d) in quantics form: d modes of size 2, the coarsest first.

        Mode k is the k-th binary digit of the position; smooth, periodic and self-similar signals
        have low rank (Khoromskij 2011).
        """
        array = np.asarray(signals)
        if array.ndim != 2 or array.shape[1] < 2 or array.shape[1] & (array.shape[1] - 1):
            raise ValueError(
                f"signals: expected shape (n, 2^d), got {array.shape}; cut or pad them to a power "
                f"of two."
            )
        order = array.shape[1].bit_length() - 1
        tensors = array.reshape(len(array), *(2,) * order)
        return cls.from_tensors(tensors, max_rank=max_rank, tolerance=tolerance).uniform()

    @classmethod
    def from_functions(
        cls,
        functions: Sequence[Signal],
        order: int,
        *,
        max_rank: int = 64,
        tolerance: float = 1e-6,
    ) -> "MPSBatch":
        """Interpolate functions on the points ``0, 2^-d, ... < 1`` in quantics form, d = `order`.

        Each is asked for arrays of a few of these points only (`interpolate`).
        """
        check_sequence("functions", functions, "functions of an array of positions")
        shape = (2,) * check_integer("order", order)
        places = 0.5 ** np.arange(1, len(shape) + 1)

        def train(function: Signal) -> MPS:
            return interpolate(
                lambda index: function(index @ places),
                shape,
                max_rank=max_rank,
                tolerance=tolerance,
            )

        return cls.from_mps([train(function) for function in functions]).uniform()

    def uniform(self) -> "MPSBatch":
        """The same tensors with all bonds padded to the largest one.

        Neighbouring cores of one shape are computed in a loop: long trains compile like short ones.
        """
        bonds = (1, *(max(self.ranks, default=1),) * len(self.ranks), 1)
        rooms = [
            ((0, 0), (0, left - core.shape[1]), (0, 0), (0, right - core.shape[3]))
            for core, (left, right) in zip(self.cores, pairwise(bonds), strict=True)
        ]
        return MPSBatch([np.pad(core, room) for core, room in zip(self.cores, rooms, strict=True)])

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        return (len(self), *(core.shape[2] for core in self.cores))

    @property
    def ndim(self) -> int:
        """The number of axes of `shape`, the axis of samples included."""
        return len(self.cores) + 1

    @property
    def ranks(self) -> tuple[int, ...]:
        """The bond sizes (S_2..S_d)."""
        return tuple(core.shape[1] for core in self.cores[1:])

    @property
    def dtype(self) -> DType:
        """The floating-point type of the cores."""
        return self.cores[0].dtype

    @property
    def nbytes(self) -> int:
        """The memory of the cores in bytes."""
        return sum(core.nbytes for core in self.cores)

    def __len__(self) -> int:
        return int(self.cores[0].shape[0])

    def __getitem__(self, chosen: object) -> "MPSBatch":
        # scikit-learn says X[chosen, ...].
        chosen, *others = chosen if isinstance(chosen, tuple) else (chosen,)
        if any(other is not Ellipsis for other in others) or isinstance(chosen, (int, np.integer)):
            raise IndexError("MPSBatch: expected a slice or an array of samples, the first axis.")
        selected: MPSBatch = jax.tree.map(lambda core: core[chosen], self)
        return selected

    def astype(self, dtype: DTypeLike) -> "MPSBatch":
        """The same tensors with cores of another floating-point type."""
        converted: MPSBatch = jax.tree.map(lambda core: core.astype(dtype), self)
        return converted

    def to_tensors(self) -> Float[Array, "n ..."]:
        """The full tensors (n, I_1..I_d)."""
        front = jnp.ones((len(self), 1, 1), self.dtype)
        for core in self.cores:
            front = jnp.einsum("nas,nsit->nait", front, core)
            front = front.reshape(len(self), -1, core.shape[3])
        return front.reshape(self.shape)

    __array_ufunc__ = None

    def __mul__(self, factor: ArrayLike) -> "MPSBatch":
        """Multiples by a number, or by one for each sample; the last core carries it."""
        factors = factor if isinstance(factor, Array) else np.asarray(factor)
        if factors.shape not in ((), (len(self),)):
            raise ValueError(
                f"factor: expected a number or shape ({len(self)},), one for each sample, got "
                f"shape {factors.shape}."
            )
        last = self.cores[-1]
        scaled = (last * factors.reshape(-1, 1, 1, 1)).astype(last.dtype)
        multiple: MPSBatch = eqx.tree_at(lambda b: b.cores, self, (*self.cores[:-1], scaled))
        return multiple

    __rmul__ = __mul__

    def __add__(self, other: "MPSBatch") -> "MPSBatch":
        """Sums, sample by sample; one sample is added to all. Ranks add up."""
        n = max(len(self), len(other))
        if self.shape[1:] != other.shape[1:] or {len(self), len(other)} - {1, n}:
            raise ValueError(f"other: expected shape {self.shape}, got {other.shape}.")
        first, second = (
            [jnp.broadcast_to(core, (n, *core.shape[1:])) for core in batch.cores]
            for batch in (self, other)
        )
        return MPSBatch(sum_cores(first, second, shared_ends=True))

    def inner(self, other: "MPSBatch") -> Float[Array, "n m"]:
        """``<A_n, B_m>`` of all pairs, an array (n, m)."""
        front = jnp.ones((len(self), len(other), 1, 1), jnp.result_type(self.dtype, other.dtype))
        for a, b in zip(self.cores, other.cores, strict=True):
            front = jnp.einsum("nmst,nsiu,mtiv->nmuv", front, a, b)
        return front[:, :, 0, 0]

    def squared_norms(self) -> Float[Array, " n"]:
        """``<A_n, A_n>`` of each sample."""
        front = jnp.ones((len(self), 1, 1), self.dtype)
        for core in self.cores:
            front = jnp.einsum("nst,nsiu,ntiv->nuv", front, core, core)
        return front[:, 0, 0]
