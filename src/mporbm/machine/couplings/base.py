"""The coupling: how the visible and the hidden layer are wired, the weight tensor W."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ...registry import Registry
from ...tensor.arrays import DType, Samples
from ...tensor.check import check_batch
from ...tensor.index import Order
from ...tensor.matmul import N_USES, MatmulForm, MergedMPO, Plan, flatten_batch, make_plan
from ...tensor.mpo import network_matrix
from ...tensor.network import Node, index_names


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
    def to_mpo(self) -> "Coupling":
        """The same W as an MPO; a layer with fewer modes gets trailing modes of size 1."""

    def parts(self) -> tuple["Coupling", ...]:
        """The couplings that W is put together from, each a network of its own; here itself."""
        return (self,)

    @classmethod
    @abstractmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Build the coupling from its `factors`, as model files keep them."""

    @classmethod
    def from_data(
        cls, rng: np.random.Generator, rows: Samples, hidden_shape: Sequence[int]
    ) -> Self | None:
        """Build small weights that look where samples vary; None if there is no way to."""
        return None

    def transposed(self) -> "Coupling | None":
        """Build the coupling of both layers in exchanged roles; None if it has another form."""
        return None

    @property
    def factors(self) -> tuple[PyTree, ...]:
        """The arrays that learning moves, in the order of the nodes."""
        return tuple(jax.tree.leaves(self))

    def with_factors(self, factors: Sequence[PyTree]) -> "Coupling":
        """Build the same coupling with other factors."""
        coupling: Coupling = jax.tree.unflatten(jax.tree.structure(self), factors)
        return coupling

    def unplanned(self) -> "Coupling":
        """Return the coupling without a form that was made for its products."""
        return self

    @property
    def used_ranks(self) -> tuple[int, ...] | None:
        """The ranks to watch while learning, where there are bonds."""
        return None

    def rebalanced(self) -> "Coupling":
        """Return the same W with factors of equal size if they have grown apart; or itself."""
        return self

    @property
    def n_parameters(self) -> int:
        """The number of weights, biases excluded, as the paper counts (Table 5)."""
        return sum(array.size for array in self.factors)

    @property
    def dtype(self) -> DType:
        """The floating-point type of the weights."""
        dtype: DType = self.factors[0].dtype
        return dtype

    def plan(self, n_rows: int, n_uses: int = N_USES) -> Plan:
        """How W is best multiplied `n_uses` times with batches of `n_rows`."""
        return make_plan(self.nodes(), n_rows, n_uses)

    def describe(self, n_rows: int) -> str:
        """Say in words how W is multiplied with batches of `n_rows`."""
        return str(self.plan(n_rows))

    def matmul_form(self, n_rows: int, n_uses: int = N_USES) -> MatmulForm:
        """W in the form that is best for `n_uses` products with batches of `n_rows`."""
        return MergedMPO.from_nodes(self.nodes(), self.plan(n_rows, n_uses))

    def apply(self, hidden: ArrayLike) -> Array:
        """``W(H)`` for a batch: (..., J_1..J_e) -> (..., I_1..I_d)."""
        batch = check_batch("hidden", hidden, self.hidden_shape, self.dtype)
        leading, flat = flatten_batch(batch, len(self.hidden_shape))
        result, _ = self.matmul_form(len(flat), n_uses=1).contract_columns(flat)
        return result.reshape(*leading, *self.visible_shape)

    def apply_transpose(self, visible: ArrayLike) -> Array:
        """``W^T(V)`` for a batch: (..., I_1..I_d) -> (..., J_1..J_e)."""
        batch = check_batch("visible", visible, self.visible_shape, self.dtype)
        leading, flat = flatten_batch(batch, len(self.visible_shape))
        result, _ = self.matmul_form(len(flat), n_uses=1).contract_rows(flat)
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


class PlannedCoupling(Coupling):
    """A coupling with what all its products share: made once, before they are repeated.

    For sampling: its factors are those of `coupling`, its leaves are not.
    """

    coupling: Coupling
    merged: MatmulForm

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return self.coupling.visible_shape

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_e)."""
        return self.coupling.hidden_shape

    def unplanned(self) -> Coupling:
        """Return the coupling that is planned."""
        return self.coupling

    def parts(self) -> tuple[Coupling, ...]:
        """Return the parts of the coupling that is planned."""
        return self.coupling.parts()

    def nodes(self) -> list[Node]:
        """Return the nodes of the coupling that is planned."""
        return self.coupling.nodes()

    def to_mpo(self) -> Coupling:
        """The same W as an MPO."""
        return self.coupling.to_mpo()

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Refuse: what is planned is not kept."""
        raise TypeError("PlannedCoupling: expected the factors of the coupling that is planned.")

    @property
    def factors(self) -> tuple[PyTree, ...]:
        """The factors of the coupling."""
        return self.coupling.factors

    def with_factors(self, factors: Sequence[PyTree]) -> Coupling:
        """Build the coupling with other factors, which is not planned."""
        return self.coupling.with_factors(factors)

    def matmul_form(self, n_rows: int, n_uses: int = N_USES) -> MatmulForm:
        """The form that was made."""
        return self.merged


COUPLINGS: Registry[Coupling] = Registry()
"""The forms of W by name, as model files have them."""
