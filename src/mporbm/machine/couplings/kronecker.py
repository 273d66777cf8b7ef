"""The Kronecker coupling of the matrix-variate RBM (Fig. 4 c)."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from jax import Array
from jax.typing import DTypeLike
from numpy.typing import ArrayLike

from ...tensor import MPO
from ...tensor.arrays import Samples
from ...tensor.check import check_paired_shapes, check_sequence
from ...tensor.network import Node
from ...tensor.random import factor_std, normal_arrays
from ...tensor.sketch import sketch_rows
from .base import COUPLINGS, Coupling
from .cp import check_matrices
from .mpo import MPOCoupling


@COUPLINGS.register("kronecker")
class KroneckerCoupling(Coupling):
    """One matrix W^(k) of shape (I_k, J_k) per mode, for any number of modes: the MvRBM.

    As a matrix, W is the Kronecker product ``W^(1) x ... x W^(d)`` of its factors.
    """

    matrices: tuple[Array, ...]

    def __init__(self, factors: Sequence[ArrayLike]):
        check_sequence("factors", factors, "matrices")
        named = {f"factors[{k}]": factor for k, factor in enumerate(factors)}
        self.matrices = check_matrices(named)

    @classmethod
    def random(
        cls,
        key: Array,
        visible_shape: Sequence[int],
        hidden_shape: Sequence[int],
        *,
        std: float = 0.01,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Normal factors scaled so that the entries of W have standard deviation `std`."""
        visible, hidden = check_paired_shapes(
            "visible_shape", visible_shape, "hidden_shape", hidden_shape
        )
        scale = factor_std(std, len(visible))
        return cls(normal_arrays(key, list(zip(visible, hidden, strict=True)), scale, dtype))

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Build the coupling from one matrix for each mode."""
        return cls(factors)

    @classmethod
    def from_data(
        cls, rng: np.random.Generator, rows: Samples, hidden_shape: Sequence[int]
    ) -> Self:
        """Build the best Kronecker product of random combinations of samples."""
        visible, hidden = check_paired_shapes(
            "visible_shape", rows.shape[1:], "hidden_shape", hidden_shape
        )
        mpo = sketch_rows(rng, rows, hidden, (1,) * (len(visible) - 1))
        return cls([core[0, :, :, 0] for core in mpo.cores])

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return tuple(factor.shape[0] for factor in self.matrices)

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_d)."""
        return tuple(factor.shape[1] for factor in self.matrices)

    def nodes(self) -> list[Node]:
        """One disconnected node per mode."""
        return [
            Node(f"W^{{({k})}}", factor, (f"i{k}", f"j{k}"))
            for k, factor in enumerate(self.matrices, start=1)
        ]

    def to_mpo(self) -> MPOCoupling:
        """The MPO of rank 1 with the same factors."""
        return MPOCoupling(MPO([factor[None, :, :, None] for factor in self.matrices]))
