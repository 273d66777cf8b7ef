"""A machine whose visible layer is in matrix product state form and never formed as a tensor."""

import math
from typing import Self

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from ..machine.couplings import COUPLINGS, MPOCoupling
from ..machine.hash_rng import hash_split
from ..machine.machine import Machine
from ..machine.units import Bernoulli, Gaussian
from ..tensor import MPS, MPSBatch
from ..tensor.check import check_array, check_key
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
        hidden_bias: ArrayLike | None = None,
        variance: ArrayLike = 1.0,
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

    def planned(self, n_rows: int, n_uses: int = N_USES) -> Self:
        """The same machine: there is one way along the chain."""
        return self

    def hidden_field(self, visible: object) -> Array:
        """``W^T(V) + C``, an array (n, J_1..J_d)."""
        cores = self._check_visible(visible).cores
        fields = FIELD_CONTRACTION.contract(cores, self.coupling.mpo.cores)
        return fields.reshape(-1, *self.hidden_shape) + self.hidden_bias

    def hidden_mean(self, visible: object) -> Array:
        """``p(H = 1 | V) = sigmoid(W^T(V) + C)``."""
        return self.hidden_units.mean(self.hidden_field(visible))

    def sample_hidden(self, key: Array, visible: object) -> Array:
        """A draw from ``p(H | V)``."""
        return self.hidden_units.sample(check_key(key), self.hidden_field(visible))

    def visible_field(self, hidden: ArrayLike) -> MPSBatch:  # type: ignore[override]
        """``W(H) + B``, with ranks R_k times those of H and the rank of B added."""
        h = self._check_hidden(hidden).reshape(-1, *self.hidden_shape)
        mpo = self.coupling.mpo.to_open()
        cores = []
        for w, content in zip(mpo.cores, _as_train(h), strict=True):
            core = jnp.einsum("rijq,najb->nraiqb", w, content)
            n, r, a, i, q, b = core.shape
            cores.append(core.reshape(n, r * a, i, q * b))
        return MPSBatch(cores) + MPSBatch([core[None] for core in self.visible_bias.cores])

    def visible_mean(self, hidden: ArrayLike) -> MPSBatch:  # type: ignore[override]
        """``E[V | H] = variance (W(H) + B)``."""
        return self.visible_field(hidden) * self.variance

    def energy(self, visible: object, hidden: ArrayLike) -> Array:
        """``E(V, H)`` of each pair."""
        batch = self._check_visible(visible)
        interaction = self._sum_hidden(self._check_hidden(hidden) * self.hidden_field(batch))
        return self._own_energy(batch) - interaction

    def free_energy(self, visible: object) -> Array:
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

    def _check_visible(self, visible: object) -> MPSBatch:  # type: ignore[override]
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
        core = tensors if k == center else jnp.eye(max(left, right), dtype=tensors.dtype)
        core = core.reshape(-1, left, size, right)
        cores.append(jnp.broadcast_to(core, (len(tensors), *core.shape[1:])))
    return cores


def hidden_gibbs(key: Array, machine: MPSMachine, n_chains: int, n_gibbs: Array) -> Array:
    """Hidden states (n_chains, J_1..J_d) after Gibbs steps from units without a field of V.

    Given H, the hidden field of V is normal: ``variance (G H + W^T(B)) + sqrt(variance) u`` with
    u of covariance ``G = W^T W``. So V need not be drawn, and yet the steps are exact.
    """
    gram, variance = machine.gram(), machine.variance
    values, vectors = jnp.linalg.eigh(gram)
    root = vectors * jnp.sqrt(jnp.maximum(variance * values, 0.0))
    offset = variance * machine.bias_field() + machine.hidden_bias.reshape(-1)
    first_key, chain_key = hash_split(key)
    units = machine.hidden_units
    start = units.sample(first_key, jnp.broadcast_to(offset, (n_chains, len(offset))))

    def step(number: Array, hidden: Array) -> Array:
        noise_key, unit_key = hash_split(jax.random.fold_in(chain_key, number))
        noise = jax.random.normal(noise_key, hidden.shape, hidden.dtype)
        field = variance * hidden @ gram + noise @ root.T + offset
        return units.sample(unit_key, field)

    hidden: Array = jax.lax.fori_loop(0, n_gibbs, step, start)
    return hidden.reshape(n_chains, *machine.hidden_shape)
