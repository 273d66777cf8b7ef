"""The canonical polyadic coupling of the tensor-variate RBM (Fig. 4 b)."""

import math
from collections.abc import Sequence
from typing import Self

import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from numpy.typing import ArrayLike

from ...tensor import MPO
from ...tensor.check import check_array, check_integer, check_sequence, check_shape
from ...tensor.network import Node
from ...tensor.random import factor_std, normal_arrays
from .base import COUPLINGS, Coupling
from .mpo import MPOCoupling


@COUPLINGS.register("cp")
class CPCoupling(Coupling):
    """A rank-R canonical polyadic decomposition with a vector hidden layer: the TvRBM.

    ``W(i_1..i_d, j) = sum_r W^(1)(i_1, r) ... W^(d)(i_d, r) W^(h)(j, r)``; weights of the R terms
    are absorbed into the factors.
    """

    visible_factors: tuple[Array, ...]
    hidden_factor: Array

    def __init__(self, visible_factors: Sequence[ArrayLike], hidden_factor: ArrayLike):
        check_sequence("visible_factors", visible_factors, "matrices")
        named = {f"visible_factors[{k}]": factor for k, factor in enumerate(visible_factors)}
        *first, last = check_matrices({**named, "hidden_factor": hidden_factor})
        self.visible_factors, self.hidden_factor = tuple(first), last
        ranks = [factor.shape[1] for factor in (*first, last)]
        if len(set(ranks)) > 1:
            raise ValueError(
                f"visible_factors, hidden_factor: expected the same number of columns R in every "
                f"factor, got {ranks}."
            )

    @classmethod
    def random(
        cls,
        key: Array,
        visible_shape: Sequence[int],
        hidden_shape: Sequence[int],
        rank: int,
        *,
        std: float = 0.01,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Normal factors scaled so that the entries of W have standard deviation `std`."""
        visible = check_shape("visible_shape", visible_shape)
        hidden = check_shape("hidden_shape", hidden_shape)
        if len(hidden) != 1:
            raise ValueError(
                f"hidden_shape={hidden}: expected one mode, such as ({math.prod(hidden)},): the "
                f"hidden layer of a TvRBM is a vector."
            )
        rank = check_integer("rank", rank)
        scale = factor_std(std, len(visible) + 1, rank)
        shapes = [(size, rank) for size in (*visible, *hidden)]
        *visible_factors, hidden_factor = normal_arrays(key, shapes, scale, dtype)
        return cls(visible_factors, hidden_factor)

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Build the coupling from the visible factors and, last, the hidden one."""
        return cls(factors[:-1], factors[-1])

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return tuple(factor.shape[0] for factor in self.visible_factors)

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J,)."""
        return self.hidden_factor.shape[:1]

    def nodes(self) -> list[Node]:
        """One node per mode, all on the common index ``r``."""
        return [
            *(
                Node(f"W^{{({k})}}", factor, (f"i{k}", "r"))
                for k, factor in enumerate(self.visible_factors, start=1)
            ),
            Node("W^{(h)}", self.hidden_factor, ("j1", "r")),
        ]

    def to_mpo(self) -> MPOCoupling:
        """The MPO of rank R with cores diagonal in the bond, the hidden mode on the first core."""
        first, *others = self.visible_factors
        # W^(1)(i,r) W^(h)(j,r) as the first core; then W^(k)(i,r) on the diagonal of each bond.
        cores = [(first[:, None, :] * self.hidden_factor)[None]]
        eye = jnp.eye(first.shape[1], dtype=first.dtype)
        cores += [jnp.einsum("ir,rs->ris", factor, eye)[:, :, None, :] for factor in others]
        cores[-1] = cores[-1].sum(axis=-1, keepdims=True)
        return MPOCoupling(MPO(cores))


def check_matrices(named: dict[str, ArrayLike]) -> tuple[Array, ...]:
    """Check that arrays are matrices with at least one entry, and bring them to one precision."""
    arrays = [check_array(name, matrix) for name, matrix in named.items()]
    for name, array in zip(named, arrays, strict=True):
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"{name}: expected a matrix, got shape {array.shape}.")
    dtype = jnp.result_type(*arrays)
    return tuple(array.astype(dtype) for array in arrays)
