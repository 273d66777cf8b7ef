"""A coupling with W formed once, for all products until it changes."""

from collections.abc import Sequence
from typing import Any, Self

from ...tensor.matmul import N_USES, MatmulForm
from ...tensor.network import Node
from .base import Coupling


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
        """Return those of the coupling."""
        return self.coupling.parts()

    def nodes(self) -> list[Node]:
        """Return those of the coupling."""
        return self.coupling.nodes()

    def to_mpo(self) -> Coupling:
        """The same W as an MPO."""
        return self.coupling.to_mpo()

    @classmethod
    def from_factors(cls, factors: Sequence[Any], n_visible_modes: int) -> Self:
        """Refuse: what is planned is not kept."""
        raise TypeError("PlannedCoupling: expected the factors of the coupling that is planned.")

    @property
    def factors(self) -> tuple[Any, ...]:
        """The factors of the coupling."""
        return self.coupling.factors

    def with_factors(self, factors: Sequence[Any]) -> Coupling:
        """Build the coupling with other factors, which is not planned."""
        return self.coupling.with_factors(factors)

    def product(self, n_rows: int, n_uses: int = N_USES) -> MatmulForm:
        """The form that was made."""
        return self.merged
