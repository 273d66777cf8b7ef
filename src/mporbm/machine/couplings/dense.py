"""The dense coupling of the standard RBM (Fig. 4 a)."""

import math
from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
from numpy.typing import ArrayLike

from ...tensor import MPO
from ...tensor.check import check_array, check_integer, check_shape
from ...tensor.network import Node
from ...tensor.random import factor_std, normal_arrays
from .base import COUPLINGS, Coupling
from .mpo import MPOCoupling


@COUPLINGS.register("dense")
class DenseCoupling(Coupling):
    """Every visible unit wired to every hidden unit by a weight of its own: the standard RBM.

    Parameters
    ----------
    weights
        The tensor W of shape ``(*visible_shape, *hidden_shape)``.
    n_visible_modes
        How many of its axes belong to the visible layer; 1 for a matrix, else it must be said.
    """

    weights: Array
    n_visible_modes: int = eqx.field(static=True)

    def __init__(self, weights: ArrayLike, n_visible_modes: int | None = None):
        self.weights = check_array("weights", weights)
        check_shape("weights.shape", self.weights.shape)
        if n_visible_modes is None:
            if self.weights.ndim > 2:
                raise ValueError(
                    f"n_visible_modes=None: expected an integer in 1..{self.weights.ndim - 1}, "
                    f"the number of visible axes of weights of shape {self.weights.shape}."
                )
            n_visible_modes = 1
        self.n_visible_modes = check_integer("n_visible_modes", n_visible_modes)
        if self.weights.ndim <= self.n_visible_modes:
            raise ValueError(
                f"weights: expected more than n_visible_modes={n_visible_modes} axes (the visible "
                f"modes, then the hidden ones), got shape {self.weights.shape}."
            )

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
        """Normal weights of standard deviation `std`."""
        visible = check_shape("visible_shape", visible_shape)
        hidden = check_shape("hidden_shape", hidden_shape)
        (weights,) = normal_arrays(key, [(*visible, *hidden)], factor_std(std, 1), dtype)
        return cls(weights, len(visible))

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Build the coupling from its only factor."""
        return cls(factors[0], n_visible_modes)

    def transposed(self) -> "DenseCoupling":
        """Put the hidden axes of the weights before the visible ones."""
        d, n_modes = self.n_visible_modes, self.weights.ndim
        return DenseCoupling(self.weights.transpose([*range(d, n_modes), *range(d)]), n_modes - d)

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return self.weights.shape[: self.n_visible_modes]

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_e)."""
        return self.weights.shape[self.n_visible_modes :]

    def nodes(self) -> list[Node]:
        """A single node."""
        return [Node("W", self.weights, (*self._visible_indices(), *self._hidden_indices()))]

    def to_mpo(self) -> MPOCoupling:
        """The full-rank MPO: W itself on one core, identities that pass its indices on else."""
        visible, hidden = _pad_shapes(self.visible_shape, self.hidden_shape)
        d = len(visible)
        tensor = self.weights.reshape(*visible, *hidden)
        tensor = tensor.transpose([axis for k in range(d) for axis in (k, d + k)])
        sizes = [i * j for i, j in zip(visible, hidden, strict=True)]
        before = [math.prod(sizes[:k]) for k in range(d)]
        after = [math.prod(sizes[k + 1 :]) for k in range(d)]
        # W stands where the two sides meet, so that no bond is larger than `max_ranks`.
        center = next(k for k in range(d) if before[k] * sizes[k] >= after[k])
        cores = []
        for k in range(d):
            left = before[k] if k <= center else sizes[k] * after[k]
            right = after[k] if k >= center else before[k] * sizes[k]
            content = tensor if k == center else jnp.eye(max(left, right), dtype=self.dtype)
            cores.append(content.reshape(left, visible[k], hidden[k], right))
        return MPOCoupling(MPO(cores))


def _pad_shapes(
    visible_shape: tuple[int, ...], hidden_shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both shapes with as many modes as the longer one: trailing modes of size 1."""
    n_modes = max(len(visible_shape), len(hidden_shape))
    visible, hidden = (
        (*shape, *(1,) * (n_modes - len(shape))) for shape in (visible_shape, hidden_shape)
    )
    return visible, hidden
