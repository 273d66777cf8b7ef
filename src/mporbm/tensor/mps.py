"""Matrix product states (tensor trains): vectors as trains of 3-way cores."""

from collections.abc import Sequence
from typing import Self

from jax import Array
from jaxtyping import Float
from numpy.typing import ArrayLike, DTypeLike

from .arrays import RandomKey
from .check import check_shape, host_array
from .network import contract, index_names
from .ranks import Boundary
from .train import TensorTrain
from .truncation import Truncation


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

    def __init__(self, cores: Sequence[ArrayLike]):
        super().__init__(cores)

    @classmethod
    def _layers(cls) -> tuple[str, ...]:
        return ("i",)

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
