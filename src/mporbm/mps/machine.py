"""A machine whose visible layer is in matrix product state form and never formed as a tensor."""

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from ..machine.couplings import COUPLINGS, MPOCoupling
from ..machine.machine import Machine
from ..machine.units import Bernoulli, Gaussian
from ..tensor import MPS, MPSBatch
from ..tensor.check import check_array, check_batch
from ..tensor.environments import FIELD_CONTRACTION, OVERLAP_CONTRACTION
from ..tensor.matmul import N_USES


class MPSMachine(Machine):
    """A `Machine` with Gaussian visible units whose states V and bias B are MPS.

    ``W^T(V)``, ``<V, B>`` and ``<V, V>`` are contractions along the chain, so their cost is linear
    in the order d, however many visible units there are. The conditional mean of V stays an MPS,
    ``variance (W(H) + B)``; V itself, the mean plus white noise, does not. The hidden layer is a
    small full tensor.

    Parameters
    ----------
    coupling
        W as an MPO.
    visible_bias
        B; one open MPS.
    hidden_bias
        C; zeros by default.
    variance
        Of every visible unit.
    """

    coupling: MPOCoupling
    visible_bias: MPS  # type: ignore[assignment]

    def __init__(
        self,
        coupling: MPOCoupling,
        visible_bias: MPS,
        hidden_bias: Any = None,
        variance: Any = 1.0,
    ):
        if COUPLINGS.get("mpo") is not type(coupling):
            raise TypeError(f"coupling: expected an MPOCoupling, got {type(coupling).__name__}.")
        if not isinstance(visible_bias, MPS) or visible_bias.boundary != "open":
            raise TypeError(
                f"visible_bias: expected an open MPS, got {type(visible_bias).__name__}."
            )
        if visible_bias.shape != coupling.visible_shape:
            raise ValueError(
                f"visible_bias: expected shape {coupling.visible_shape}, got {visible_bias.shape}."
            )
        hidden = jnp.zeros(coupling.hidden_shape) if hidden_bias is None else hidden_bias
        self.coupling = coupling
        self.visible_bias = MPS([core.astype(coupling.dtype) for core in visible_bias.cores])
        self.hidden_bias = check_array("hidden_bias", hidden, coupling.hidden_shape).astype(
            coupling.dtype
        )
        self.visible_units = Gaussian(check_array("variance", variance, ()).astype(coupling.dtype))
        self.hidden_units = Bernoulli()

    @property
    def variance(self) -> Array:
        """The variance of every visible unit."""
        assert isinstance(self.visible_units, Gaussian)
        return self.visible_units.variance

    @property
    def bias_cores(self) -> tuple[Array, ...]:
        """B as an MPO to a single hidden unit: <V, B> is then a field."""
        return tuple(core[:, :, None] for core in self.visible_bias.cores)

    @property
    def n_batch_entries(self) -> int:
        """The numbers that a sample takes in the hidden layer, the only one that is formed."""
        return math.prod(self.hidden_shape)

    def planned(self, n_rows: int, n_uses: int = N_USES) -> "MPSMachine":
        """The same machine: there is one way along the chain."""
        return self

    def hidden_field(self, visible: Any) -> Array:
        """``W^T(V) + C``, an array (n, J_1..J_d)."""
        cores = self._check_visible(visible).cores
        fields = FIELD_CONTRACTION.contract(cores, self.coupling.mpo.cores)
        return fields.reshape(-1, *self.hidden_shape) + self.hidden_bias

    def visible_field(self, hidden: Any) -> MPSBatch:  # type: ignore[override]
        """``W(H) + B``, with ranks R_k times those of H and the rank of B added."""
        h = check_batch("hidden", hidden, self.hidden_shape, self.coupling.dtype)
        h = h.reshape(-1, *self.hidden_shape)
        mpo = self.coupling.mpo.to_open()
        cores = []
        for w, content in zip(mpo.cores, _as_train(h), strict=True):
            core = jnp.einsum("rijq,najb->nraiqb", w, content)
            n, r, a, i, q, b = core.shape
            cores.append(core.reshape(n, r * a, i, q * b))
        return MPSBatch(cores) + MPSBatch([core[None] for core in self.visible_bias.cores])

    def visible_mean(self, hidden: Any) -> MPSBatch:  # type: ignore[override]
        """``E[V | H] = variance (W(H) + B)``."""
        return self.visible_field(hidden) * self.variance

    def energy(self, visible: Any, hidden: Any) -> Array:
        """``E(V, H)`` of each pair."""
        batch = self._check_visible(visible)
        h = check_batch("hidden", hidden, self.hidden_shape, self.coupling.dtype)
        interaction = self._sum_hidden(h * self.hidden_field(batch))
        return self._own_energy(batch) - interaction

    def free_energy(self, visible: Any) -> Array:
        """``F(V) = |V|^2 / (2 variance) - <V, B> - sum softplus(W^T(V) + C)``."""
        batch = self._check_visible(visible)
        log_partition = self.hidden_units.log_partition(self.hidden_field(batch))
        return self._own_energy(batch) - self._sum_hidden(log_partition)

    def gram(self) -> Array:
        """``W^T W``, an array (J, J): what fields of visible means are made of."""
        return OVERLAP_CONTRACTION.contract(self.coupling.mpo.cores, self.coupling.mpo.cores)

    def bias_field(self) -> Array:
        """``W^T(B)``, flat."""
        return OVERLAP_CONTRACTION.contract(self.bias_cores, self.coupling.mpo.cores)[0]

    def _own_energy(self, batch: MPSBatch) -> Array:
        bias = FIELD_CONTRACTION.contract(batch.cores, self.bias_cores)[:, 0]
        return batch.squared_norms() / (2.0 * self.variance) - bias

    def _check_visible(self, visible: Any) -> MPSBatch:  # type: ignore[override]
        if not isinstance(visible, MPSBatch):
            raise TypeError(
                f"visible: expected an MPSBatch, got {type(visible).__name__}; for full tensors "
                f"use MPSBatch.from_tensors(...)."
            )
        if visible.shape[1:] != self.visible_shape:
            raise ValueError(
                f"visible: expected samples of shape {self.visible_shape}, got {visible.shape[1:]}."
            )
        return visible.astype(self.coupling.dtype)


def _as_train(tensors: Array) -> list[Array]:
    """Tensors (n, J_1..J_d) as MPS, exactly: all on one core, others pass their indices on."""
    sizes = tensors.shape[1:]
    d = len(sizes)
    before = [math.prod(sizes[:k]) for k in range(d + 1)]
    after = [math.prod(sizes[k:]) for k in range(d + 1)]
    # Where both sides meet bonds are smallest.
    center = next(k for k in range(d) if before[k + 1] >= after[k + 1])
    cores = []
    for k, size in enumerate(sizes):
        left = before[k] if k <= center else after[k]
        right = after[k + 1] if k >= center else before[k + 1]
        if k == center:
            cores.append(tensors.reshape(-1, left, size, right))
        else:
            eye = jnp.eye(max(left, right), dtype=tensors.dtype)
            cores.append(
                jnp.broadcast_to(
                    eye.reshape(1, left, size, right), (len(tensors), left, size, right)
                )
            )
    return cores
