"""The machine: energy, fields, conditionals and free energy (the paper's Eqs. 3-5 and Fig. 4)."""

from typing import Self, cast

import equinox as eqx
import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ..tensor import MPO
from ..tensor.check import check_array, check_batch, check_key
from ..tensor.matmul import N_USES, MatmulForm
from .couplings import Coupling, PlannedCoupling
from .units import Bernoulli, Units


class Machine(eqx.Module):
    """A coupling, two bias tensors B and C, and the kind of units of each layer.

    ``-E(V, H) = <V, W(H)> + <V, B> + <C, H> - sum potential(V) - sum potential(H)``, with potential
    0 for Bernoulli and categorical, and ``x^2 / (2 variance)`` for Gaussian units.

    Every method takes batches: arrays of shape ``(..., *visible_shape)`` or
    ``(..., *hidden_shape)``, and computes in the precision of the coupling.

    Parameters
    ----------
    coupling
        W in one of its forms.
    visible_bias, hidden_bias
        B and C; zeros by default, as in Algorithm 1.
    visible_units, hidden_units
        The kind of each layer, `Bernoulli()` by default. Real units in both layers have a
        distribution only while W is small: ``1 / variance - W W^T`` has to be positive.

    Examples
    --------
    >>> import jax
    >>> from mporbm.machine import Machine, MPOCoupling
    >>> mporbm = Machine(MPOCoupling.random(jax.random.key(0), (28, 28), (10, 10), rank=40))
    >>> images = jax.numpy.zeros((3, 28, 28))
    >>> mporbm.hidden_mean(images).shape, mporbm.free_energy(images).shape
    ((3, 10, 10), (3,))
    """

    coupling: Coupling
    visible_bias: Array
    hidden_bias: Array
    visible_units: Units
    hidden_units: Units

    def __init__(
        self,
        coupling: Coupling,
        visible_bias: ArrayLike | None = None,
        hidden_bias: ArrayLike | None = None,
        visible_units: Units | None = None,
        hidden_units: Units | None = None,
    ):
        coupling = _check_coupling(coupling)
        self.coupling = coupling
        self.visible_bias = _bias("visible_bias", visible_bias, coupling.visible_shape, coupling)
        self.hidden_bias = _bias("hidden_bias", hidden_bias, coupling.hidden_shape, coupling)
        self.visible_units = _units("visible_units", visible_units, self.visible_shape, coupling)
        self.hidden_units = _units("hidden_units", hidden_units, self.hidden_shape, coupling)

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """(I_1..I_d)."""
        return self.coupling.visible_shape

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """(J_1..J_e)."""
        return self.coupling.hidden_shape

    @property
    def undirected(self) -> "Machine":
        """The machine that chains sample and that has a log Z: itself."""
        return self

    @property
    def n_batch_entries(self) -> int:
        """The numbers that a sample takes in the larger of both layers."""
        return max(self.visible_bias.size, self.hidden_bias.size)

    def planned(self, n_rows: int, n_uses: int = N_USES) -> Self:
        """Return the same machine, ready for `n_uses` fields of batches of `n_rows`.

        One that is ready already stays as it is.
        """
        if self.coupling.unplanned() is not self.coupling:
            return self
        return self.formed(self.coupling.matmul_form(n_rows, n_uses))

    def formed(self, form: MatmulForm) -> Self:
        """Return the same machine with W in a form that was made for its products."""
        coupling = PlannedCoupling(self.coupling.unplanned(), form)
        return cast("Self", eqx.tree_at(lambda m: m.coupling, self, coupling))

    def unplanned(self) -> Self:
        """Return the same machine without the form that W was brought to."""
        return cast("Self", eqx.tree_at(lambda m: m.coupling, self, self.coupling.unplanned()))

    def energy(self, visible: ArrayLike, hidden: ArrayLike) -> Array:
        """``E(V, H)`` of each pair, the paper's Eq. (3) and Fig. 4 (a)-(d)."""
        v, h = self._check_visible(visible), self._check_hidden(hidden)
        batches = v.shape[: -len(self.visible_shape)], h.shape[: -len(self.hidden_shape)]
        try:
            np.broadcast_shapes(*batches)
        except ValueError:
            raise ValueError(
                f"hidden: expected leading axes that broadcast against those of visible, "
                f"{batches[0]}, got {batches[1]}."
            ) from None
        interaction = self._sum_visible(v * self.visible_field(h) - self.visible_units.potential(v))
        own = self._sum_hidden(h * self.hidden_bias - self.hidden_units.potential(h))
        return -interaction - own

    def hidden_field(self, visible: ArrayLike) -> Array:
        """``W^T(V) + C``, what each hidden unit feels."""
        return self.coupling.apply_transpose(visible) + self.hidden_bias

    def visible_field(self, hidden: ArrayLike) -> Array:
        """``W(H) + B``, what each visible unit feels."""
        return self.coupling.apply(hidden) + self.visible_bias

    def hidden_mean(self, visible: ArrayLike) -> Array:
        """``p(H = 1 | V) = sigmoid(W^T(V) + C)``, the paper's Eq. (5) and Fig. 4 (f)."""
        return self.hidden_units.mean(self.hidden_field(visible))

    def visible_mean(self, hidden: ArrayLike) -> Array:
        """``E[V | H]``: ``sigmoid(W(H) + B)`` for Bernoulli units, Eq. (4) and Fig. 4 (e)."""
        return self.visible_units.mean(self.visible_field(hidden))

    def sample_hidden(self, key: Array, visible: ArrayLike) -> Array:
        """A draw from ``p(H | V)``."""
        return self.hidden_units.sample(check_key(key), self.hidden_field(visible))

    def sample_visible(self, key: Array, hidden: ArrayLike) -> Array:
        """A draw from ``p(V | H)``."""
        return self.visible_units.sample(check_key(key), self.visible_field(hidden))

    def resampled_field(self, key: Array, visible: ArrayLike) -> Array:
        """What visible units feel after a draw from ``p(H | V)``: half a Gibbs step."""
        return self.visible_field(self.sample_hidden(key, visible))

    def free_energy(self, visible: ArrayLike) -> Array:
        """``F(V) = -log sum_H exp(-E(V, H))``.

        For Bernoulli units ``-<V, B> - sum softplus(W^T(V) + C)``.
        """
        v = self._check_visible(visible)
        own = self._sum_visible(v * self.visible_bias - self.visible_units.potential(v))
        return -own - self._sum_hidden(self.hidden_units.log_partition(self.hidden_field(v)))

    def hidden_free_energy(self, hidden: ArrayLike) -> Array:
        """``-log sum_V exp(-E(V, H))``: the free energy with the visible layer summed out."""
        h = self._check_hidden(hidden)
        own = self._sum_hidden(h * self.hidden_bias - self.hidden_units.potential(h))
        return -own - self._sum_visible(self.visible_units.log_partition(self.visible_field(h)))

    def unnormalized_log_probability(self, visible: ArrayLike) -> Array:
        """``log p(V) + log Z = -F(V)``."""
        return -self.free_energy(visible)

    def to_mpo(self) -> "Machine":
        """The same machine with its coupling embedded into an MPO.

        A layer with fewer modes than the other gets trailing modes of size 1.
        """
        coupling = self.coupling.to_mpo()
        return Machine(
            coupling,
            self.visible_bias.reshape(coupling.visible_shape),
            self.hidden_bias.reshape(coupling.hidden_shape),
            self.visible_units.reshape(self.visible_shape, coupling.visible_shape),
            self.hidden_units.reshape(self.hidden_shape, coupling.hidden_shape),
        )

    def _check_visible(self, visible: ArrayLike) -> Array:
        return check_batch("visible", visible, self.visible_shape, self.coupling.dtype)

    def _check_hidden(self, hidden: ArrayLike) -> Array:
        return check_batch("hidden", hidden, self.hidden_shape, self.coupling.dtype)

    def _sum_visible(self, terms: Array) -> Array:
        return terms.sum(axis=tuple(range(-len(self.visible_shape), 0)))

    def _sum_hidden(self, terms: Array) -> Array:
        return terms.sum(axis=tuple(range(-len(self.hidden_shape), 0)))


def _check_coupling(coupling: object) -> Coupling:
    if not isinstance(coupling, Coupling):
        hint = "; wrap it in MPOCoupling(...)" if isinstance(coupling, MPO) else ""
        raise TypeError(f"coupling: expected a Coupling, got {type(coupling).__name__}{hint}.")
    return coupling


def _bias(name: str, value: ArrayLike | None, shape: tuple[int, ...], coupling: Coupling) -> Array:
    if value is None:
        # Not zeros of JAX, which would compile a program for each shape.
        zeros: Array = jax.device_put(np.zeros(shape, coupling.dtype))
        return zeros
    return check_array(name, value, shape).astype(coupling.dtype)


def _units(name: str, units: object, shape: tuple[int, ...], coupling: Coupling) -> Units:
    if units is None:
        return Bernoulli()
    if not isinstance(units, Units):
        raise TypeError(f"{name}: expected Bernoulli() or another kind of units, got {units!r}.")
    units.check_shape(name, shape)
    cast_units: Units = jax.tree.map(lambda x: x.astype(coupling.dtype), units)
    return cast_units
