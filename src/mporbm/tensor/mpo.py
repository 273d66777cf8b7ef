"""Matrix product operators: matrices as trains of 4-way cores, the paper's Eq. (2) and Fig. 3."""

import math
from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike, DTypeLike

from .arrays import RandomKey
from .check import check_batch, check_choice, check_paired_shapes, host_array
from .index import Order
from .matmul import MergedMPO, flatten_batch, make_plan
from .mps import MPS
from .network import Node, contract, index_names
from .ranks import Boundary
from .train import TensorTrain
from .truncation import Truncation


class MPO(TensorTrain):
    """A matrix with rows (I_1..I_d) and columns (J_1..J_d) as cores (R_k, I_k, J_k, R_{k+1}).

    ``A(i_1..i_d, j_1..j_d) = sum_r A^(1)(r_1,i_1,j_1,r_2) ... A^(d)(r_d,i_d,j_d,r_1)``

    Examples
    --------
    >>> import jax
    >>> mpo = MPO.random(jax.random.key(0), (28, 28), (10, 10), rank=40)
    >>> mpo.n_parameters, mpo.compression
    (22400, 3.5)
    >>> mpo.apply(jax.numpy.ones((5, 10, 10))).shape
    (5, 28, 28)
    >>> rounded, error_bound = mpo.round(max_rank=20)
    >>> bool((mpo - rounded).norm() <= error_bound)
    True
    """

    LAYERS = ("i", "j")

    def __init__(self, cores: Sequence[ArrayLike]):
        super().__init__(cores)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The sizes (I_1..I_d) of the row modes."""
        return self._mode_shapes()[0]

    @property
    def column_shape(self) -> tuple[int, ...]:
        """The sizes (J_1..J_d) of the column modes."""
        return self._mode_shapes()[1]

    @property
    def T(self) -> Self:
        """The transposed matrix, with rows and columns of every core exchanged."""
        return type(self)([core.swapaxes(1, 2) for core in self.cores])

    @classmethod
    def random(
        cls,
        key: RandomKey,
        row_shape: Sequence[int],
        column_shape: Sequence[int],
        rank: int | Sequence[int],
        *,
        std: float = 0.01,
        boundary: Boundary = "open",
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Normal cores scaled so that the entries of the *matrix* have standard deviation `std`.

        Parameters
        ----------
        key
            A random key of JAX, such as ``jax.random.key(0)``.
        row_shape, column_shape
            (I_1..I_d) and (J_1..J_d).
        rank
            One for all bonds, or one per bond: (R_2..R_d), or (R_1..R_d) if periodic. A rank above
            what the shapes can use (`max_ranks`) is an error that tells the largest useful ones.
        boundary
            ``"open"`` (R_1 = 1) or ``"periodic"`` (R_1 is the first of the ranks).
        dtype
            The floating-point type of the cores; JAX's default if None.
        """
        rows, columns = check_paired_shapes("row_shape", row_shape, "column_shape", column_shape)
        modes = list(zip(rows, columns, strict=True))
        return cls._random(key, modes, rank, std, boundary, dtype)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        row_shape: Sequence[int],
        column_shape: Sequence[int],
        *,
        max_rank: int | Sequence[int] | None = None,
        tolerance: float = 0.0,
        boundary: Boundary = "open",
        order: Order = "C",
    ) -> Truncation[Self]:
        """Decompose a matrix of shape (I_1...I_d, J_1...J_d) by sequential SVD.

        Parameters
        ----------
        max_rank
            The largest rank kept, one for all bonds or one per bond; None keeps all.
        tolerance
            Ranks fall as long as ``norm(matrix - mpo) <= tolerance * norm(matrix)`` (Frobenius),
            unless `max_rank` forces a larger error.
        boundary
            ``"periodic"`` factors the first split into R_1 R_2 (tensor ring); its last bonds may
            come out larger than `max_ranks`.
        order
            How rows and columns were flattened: ``"C"`` as NumPy does, ``"F"`` as the paper's
            Eq. (1) does.

        Returns
        -------
        Truncation
            The MPO and a guaranteed bound on ``norm(matrix - mpo)``.
        """
        rows, columns = check_paired_shapes("row_shape", row_shape, "column_shape", column_shape)
        modes = list(zip(rows, columns, strict=True))
        check_choice("order", order, ("C", "F"))
        array, dtype = host_array("matrix", matrix, (math.prod(rows), math.prod(columns)))
        d = len(modes)
        tensor = array.reshape((*rows, *columns), order=order)
        paired = tensor.transpose([axis for k in range(d) for axis in (k, d + k)])
        merged = paired.reshape([math.prod(mode) for mode in modes])
        return cls._decompose(merged, modes, max_rank, tolerance, boundary, dtype)

    def to_matrix(self, order: Order = "C") -> Float[Array, "rows columns"]:
        """The full matrix; ``order`` as in `from_matrix`."""
        return network_matrix(self.nodes(), self.row_shape, self.column_shape, order)

    def apply(self, columns: ArrayLike) -> Float[Array, "..."]:
        """``A x`` for each tensor of a batch: (..., J_1..J_d) -> (..., I_1..I_d)."""
        batch = check_batch("columns", columns, self.column_shape, self.dtype)
        leading, flat = flatten_batch(batch, self.n_cores)
        result, _ = self._merged(len(flat)).contract_columns(flat)
        return result.reshape(*leading, *self.row_shape)

    def apply_transpose(self, rows: ArrayLike) -> Float[Array, "..."]:
        """``A^T y`` for each tensor of a batch: (..., I_1..I_d) -> (..., J_1..J_d)."""
        batch = check_batch("rows", rows, self.row_shape, self.dtype)
        leading, flat = flatten_batch(batch, self.n_cores)
        result, _ = self._merged(len(flat)).contract_rows(flat)
        return result.reshape(*leading, *self.column_shape)

    def _merged(self, n_rows: int) -> MergedMPO:
        """The MPO as it is cheapest to multiply once with a batch of `n_rows`."""
        nodes = self.nodes()
        return MergedMPO.from_nodes(nodes, make_plan(nodes, n_rows, n_uses=1))

    def __matmul__(self, state: MPS) -> MPS:
        """``A x`` for an MPS x with modes (J_1..J_d): an MPS whose ranks are the products."""
        if not isinstance(state, MPS):
            raise TypeError(
                f"state: expected an MPS, got {type(state).__name__}; full tensors go to apply."
            )
        if state.shape != self.column_shape:
            raise ValueError(f"state: expected shape {self.column_shape}, got {state.shape}.")
        return self._apply_to_state(state)

    @eqx.filter_jit
    def _apply_to_state(self, state: MPS) -> MPS:
        return MPS(
            [
                jnp.einsum("rijs,qjt->rqist", a, x).reshape(
                    a.shape[0] * x.shape[0], a.shape[1], a.shape[3] * x.shape[2]
                )
                for a, x in zip(self.cores, state.cores, strict=True)
            ]
        )


def network_matrix(
    nodes: Sequence[Node],
    row_shape: tuple[int, ...],
    column_shape: tuple[int, ...],
    order: Order = "C",
) -> Float[Array, "rows columns"]:
    """The matrix of any network with rows ``i1, i2, ...`` and columns ``j1, j2, ...``."""
    check_choice("order", order, ("C", "F"))
    rows, columns = index_names("i", len(row_shape)), index_names("j", len(column_shape))
    if order == "F":
        rows, columns = rows[::-1], columns[::-1]
    tensor = contract(nodes, (*rows, *columns))
    return tensor.reshape(math.prod(row_shape), math.prod(column_shape))
