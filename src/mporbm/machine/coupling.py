"""Couplings: how the visible and the hidden layer are wired, the weight tensor W in its forms.

==================== ======= =============================================== ==========
coupling             machine W(i_1..i_d, j_1..j_d)                           paper
==================== ======= =============================================== ==========
`DenseCoupling`      RBM     any                                             Fig. 4 (a)
`CPCoupling`         TvRBM   ``sum_r W1(i1,r) ... Wd(id,r) Wh(j,r)``         Fig. 4 (b)
`KroneckerCoupling`  MvRBM   ``W1(i1,j1) ... Wd(id,jd)``                     Fig. 4 (c)
`MPOCoupling`        MPORBM  ``sum_r W1(r1,i1,j1,r2) ... Wd(rd,id,jd,r1)``   Fig. 4 (d)
==================== ======= =============================================== ==========
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..tensor import MPO, Truncation
from ..tensor.check import (
    check_array,
    check_batch,
    check_integer,
    check_paired_shapes,
    check_sequence,
    check_shape,
)
from ..tensor.index import Order
from ..tensor.matmul import MatmulForm, MergedMPO, flatten_batch
from ..tensor.mpo import network_matrix
from ..tensor.network import Node, index_names
from ..tensor.plan import N_USES, Plan, make_plan
from ..tensor.random import factor_std, normal_arrays
from ..tensor.ranks import Boundary


class Coupling(eqx.Module):
    """The weight tensor W between a visible layer (I_1..I_d) and a hidden layer (J_1..J_e).

    A coupling says what its shapes and its `nodes` are and how it embeds into an MPO; the rest
    follows.
    """

    @property
    @abstractmethod
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""

    @property
    @abstractmethod
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_e)."""

    @abstractmethod
    def nodes(self) -> list[Node]:
        """The tensor network of W with visible indices ``i1..id`` and hidden ``j1..je``.

        The modes of either layer are in order, from node to node.
        """

    @abstractmethod
    def to_mpo(self) -> "MPOCoupling":
        """The same W as an MPO; a layer with fewer modes gets trailing modes of size 1."""

    def parts(self) -> tuple["Coupling", ...]:
        """The couplings that W is put together from, each a network of its own; here itself."""
        return (self,)

    @property
    def n_parameters(self) -> int:
        """The number of weights, biases excluded, as the paper counts (Table 5)."""
        return sum(array.size for array in jax.tree.leaves(self))

    @property
    def dtype(self) -> Any:
        """The floating-point type of the weights."""
        return jax.tree.leaves(self)[0].dtype

    def plan(self, n_rows: int, n_uses: int = N_USES) -> Plan:
        """How W is best multiplied `n_uses` times with batches of `n_rows`."""
        return make_plan(self.nodes(), n_rows, n_uses)

    def product(self, n_rows: int, n_uses: int = N_USES) -> MatmulForm:
        """W in the form that is best for `n_uses` products with batches of `n_rows`."""
        return MergedMPO.from_nodes(self.nodes(), self.plan(n_rows, n_uses))

    def planned(self, n_rows: int, n_uses: int = N_USES) -> "PlannedCoupling":
        """The same coupling, made ready for products with batches of `n_rows`."""
        return PlannedCoupling(self, self.product(n_rows, n_uses))

    def apply(self, hidden: Any) -> Array:
        """``W(H)`` for a batch: (..., J_1..J_e) -> (..., I_1..I_d)."""
        batch = check_batch("hidden", hidden, self.hidden_shape, self.dtype)
        leading, flat = flatten_batch(batch, len(self.hidden_shape))
        result, _ = self.product(len(flat), n_uses=1).contract_columns(flat)
        return result.reshape(*leading, *self.visible_shape)

    def apply_transpose(self, visible: Any) -> Array:
        """``W^T(V)`` for a batch: (..., I_1..I_d) -> (..., J_1..J_e)."""
        batch = check_batch("visible", visible, self.visible_shape, self.dtype)
        leading, flat = flatten_batch(batch, len(self.visible_shape))
        result, _ = self.product(len(flat), n_uses=1).contract_rows(flat)
        return result.reshape(*leading, *self.hidden_shape)

    def to_matrix(self, order: Order = "C") -> Array:
        """W as a matrix, visible by hidden units; ``order`` is how both layers are flattened.

        ``"C"`` is NumPy's ``V.reshape(-1)``, ``"F"`` the paper's Eq. (1).
        """
        return network_matrix(self.nodes(), self.visible_shape, self.hidden_shape, order)

    def _visible_indices(self) -> tuple[str, ...]:
        return index_names("i", len(self.visible_shape))

    def _hidden_indices(self) -> tuple[str, ...]:
        return index_names("j", len(self.hidden_shape))


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

    def __init__(self, weights: Any, n_visible_modes: int | None = None):
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
        dtype: Any = None,
    ) -> Self:
        """Normal weights of standard deviation `std`."""
        visible = check_shape("visible_shape", visible_shape)
        hidden = check_shape("hidden_shape", hidden_shape)
        (weights,) = normal_arrays(key, [(*visible, *hidden)], factor_std(std, 1), dtype)
        return cls(weights, len(visible))

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

    def to_mpo(self) -> "MPOCoupling":
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


class KroneckerCoupling(Coupling):
    """One matrix W^(k) of shape (I_k, J_k) per mode, for any number of modes: the MvRBM.

    As a matrix, W is the Kronecker product ``W^(1) x ... x W^(d)`` of its factors.
    """

    factors: tuple[Array, ...]

    def __init__(self, factors: Sequence[Any]):
        check_sequence("factors", factors, "matrices")
        named = {f"factors[{k}]": factor for k, factor in enumerate(factors)}
        self.factors = _check_matrices(named)

    @classmethod
    def random(
        cls,
        key: Array,
        visible_shape: Sequence[int],
        hidden_shape: Sequence[int],
        *,
        std: float = 0.01,
        dtype: Any = None,
    ) -> Self:
        """Normal factors scaled so that the entries of W have standard deviation `std`."""
        visible, hidden = check_paired_shapes(
            "visible_shape", visible_shape, "hidden_shape", hidden_shape
        )
        scale = factor_std(std, len(visible))
        return cls(normal_arrays(key, list(zip(visible, hidden, strict=True)), scale, dtype))

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return tuple(factor.shape[0] for factor in self.factors)

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_d)."""
        return tuple(factor.shape[1] for factor in self.factors)

    def nodes(self) -> list[Node]:
        """One disconnected node per mode."""
        return [
            Node(f"W^{{({k})}}", factor, (f"i{k}", f"j{k}"))
            for k, factor in enumerate(self.factors, start=1)
        ]

    def to_mpo(self) -> "MPOCoupling":
        """The MPO of rank 1 with the same factors."""
        return MPOCoupling(MPO([factor[None, :, :, None] for factor in self.factors]))


class CPCoupling(Coupling):
    """A rank-R canonical polyadic decomposition with a vector hidden layer: the TvRBM.

    ``W(i_1..i_d, j) = sum_r W^(1)(i_1, r) ... W^(d)(i_d, r) W^(h)(j, r)``; weights of the R terms
    are absorbed into the factors.
    """

    visible_factors: tuple[Array, ...]
    hidden_factor: Array

    def __init__(self, visible_factors: Sequence[Any], hidden_factor: Any):
        check_sequence("visible_factors", visible_factors, "matrices")
        named = {f"visible_factors[{k}]": factor for k, factor in enumerate(visible_factors)}
        *first, last = _check_matrices({**named, "hidden_factor": hidden_factor})
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
        dtype: Any = None,
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

    def to_mpo(self) -> "MPOCoupling":
        """The MPO of rank R with cores diagonal in the bond, the hidden mode on the first core."""
        first, *others = self.visible_factors
        # W^(1)(i,r) W^(h)(j,r) as the first core; then W^(k)(i,r) on the diagonal of each bond.
        cores = [(first[:, None, :] * self.hidden_factor)[None]]
        eye = jnp.eye(first.shape[1], dtype=first.dtype)
        cores += [jnp.einsum("ir,rs->ris", factor, eye)[:, :, None, :] for factor in others]
        cores[-1] = cores[-1].sum(axis=-1, keepdims=True)
        return MPOCoupling(MPO(cores))


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
        dtype: Any = None,
    ) -> Self:
        """Normal cores; the parameters are those of `MPO.random`."""
        visible, hidden = check_paired_shapes(
            "visible_shape", visible_shape, "hidden_shape", hidden_shape
        )
        return cls(MPO.random(key, visible, hidden, rank, std=std, boundary=boundary, dtype=dtype))

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
        """Itself."""
        return self


class PlannedCoupling(Coupling):
    """A coupling with what all its products share: made once, before they are repeated.

    For sampling: its factors are those of `coupling`, its leaves are not.
    """

    coupling: Coupling
    merged: MatmulForm

    @property
    def n_parameters(self) -> int:
        """The number of weights, biases excluded."""
        return self.coupling.n_parameters

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return self.coupling.visible_shape

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_e)."""
        return self.coupling.hidden_shape

    @property
    def dtype(self) -> Any:
        """The floating-point type of the weights."""
        return self.coupling.dtype

    def parts(self) -> tuple[Coupling, ...]:
        """Those of the coupling."""
        return self.coupling.parts()

    def nodes(self) -> list[Node]:
        """Those of the coupling."""
        return self.coupling.nodes()

    def to_mpo(self) -> "MPOCoupling":
        """The same W as an MPO."""
        return self.coupling.to_mpo()

    def product(self, n_rows: int, n_uses: int = N_USES) -> MatmulForm:
        """The form that was made."""
        return self.merged

    def planned(self, n_rows: int, n_uses: int = N_USES) -> "PlannedCoupling":
        """Itself."""
        return self


def _pad_shapes(
    visible_shape: tuple[int, ...], hidden_shape: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Both shapes with as many modes as the longer one: trailing modes of size 1."""
    n_modes = max(len(visible_shape), len(hidden_shape))
    visible, hidden = (
        (*shape, *(1,) * (n_modes - len(shape))) for shape in (visible_shape, hidden_shape)
    )
    return visible, hidden


def _check_mpo(mpo: Any) -> MPO:
    if not isinstance(mpo, MPO):
        hint = "; pass its .train" if isinstance(mpo, Truncation) else ""
        raise TypeError(f"mpo: expected an MPO, got {type(mpo).__name__}{hint}.")
    return mpo


def _check_matrices(named: dict[str, Any]) -> tuple[Array, ...]:
    """Matrices with at least one entry each, all in one precision."""
    arrays = [check_array(name, matrix) for name, matrix in named.items()]
    for name, array in zip(named, arrays, strict=True):
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"{name}: expected a matrix, got shape {array.shape}.")
    dtype = jnp.result_type(*arrays)
    return tuple(array.astype(dtype) for array in arrays)
