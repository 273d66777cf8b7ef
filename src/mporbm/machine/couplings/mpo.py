"""The coupling of the paper: a matrix product operator (Fig. 4 d)."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from jax import Array
from jax.typing import DTypeLike
from numpy.typing import ArrayLike

from ...tensor import MPO, Truncation
from ...tensor.arrays import Samples
from ...tensor.balance import rebalance_if_needed, used_ranks
from ...tensor.check import check_paired_shapes
from ...tensor.network import Node
from ...tensor.ranks import Boundary
from ...tensor.sketch import sketch_rows
from .base import COUPLINGS, Coupling


@COUPLINGS.register("mpo")
class MPOCoupling(Coupling):
    """A matrix product operator between two layers of the same order: the MPORBM."""

    mpo: MPO

    def __init__(self, mpo: MPO):
        self.mpo = _check_mpo(mpo)

    @classmethod
    def random(
        cls,
        key: Array,
        visible_shape: Sequence[int],
        hidden_shape: Sequence[int],
        rank: int | Sequence[int],
        *,
        std: float = 0.01,
        boundary: Boundary = "open",
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Normal cores; the parameters are those of `MPO.random`."""
        visible, hidden = check_paired_shapes(
            "visible_shape", visible_shape, "hidden_shape", hidden_shape
        )
        return cls(MPO.random(key, visible, hidden, rank, std=std, boundary=boundary, dtype=dtype))

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Build the coupling from its cores."""
        return cls(MPO(factors))

    @classmethod
    def from_data(
        cls,
        rng: np.random.Generator,
        rows: Samples,
        hidden_shape: Sequence[int],
        rank: Sequence[int] = (),
        boundary: Boundary = "open",
    ) -> Self | None:
        """Build small cores that span the directions in which samples vary; None for a ring."""
        if boundary == "periodic":
            return None
        _, hidden = check_paired_shapes(
            "visible_shape", rows.shape[1:], "hidden_shape", hidden_shape
        )
        return cls(sketch_rows(rng, rows, hidden, rank))

    def transposed(self) -> "MPOCoupling":
        """Exchange the visible and the hidden index of every core."""
        return MPOCoupling(self.mpo.T)

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return self.mpo.row_shape

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_d)."""
        return self.mpo.column_shape

    def nodes(self) -> list[Node]:
        """One node per core."""
        return self.mpo.nodes("W")

    def to_mpo(self) -> "MPOCoupling":
        """Return this coupling, which is an MPO."""
        return self

    @property
    def used_ranks(self) -> tuple[int, ...]:
        """The ranks, without zero rows and columns that leave room for them to grow."""
        return used_ranks(self.mpo)

    def rebalanced(self) -> "MPOCoupling":
        """Return the same W, with balanced cores if they have grown large and cancel each other."""
        balanced = rebalance_if_needed(self.mpo)
        return self if balanced is self.mpo else MPOCoupling(balanced)


def _check_mpo(mpo: object) -> MPO:
    if not isinstance(mpo, MPO):
        hint = "; pass its .train" if isinstance(mpo, Truncation) else ""
        raise TypeError(f"mpo: expected an MPO, got {type(mpo).__name__}{hint}.")
    return mpo
