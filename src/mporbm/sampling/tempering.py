"""Parallel tempering: chains at several temperatures that exchange their states."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from ..machine import Machine
from ..machine.hash_rng import hash_split
from ..tensor.arrays import RandomKey
from ..tensor.check import check_integer
from .gibbs import between, gibbs_step, independent_units


class TemperingState(eqx.Module):
    """Visible states of shape ``(n_temperatures, n_chains, *visible_shape)``, coldest last."""

    visible: Float[Array, "temperatures chains ..."]
    n_steps: Int[Array, ""]


class TemperingInfo(eqx.Module):
    """How a step went."""

    acceptance: Float[Array, ""]
    """The share of proposed exchanges that were accepted."""


class Tempering(eqx.Module):
    """Chains at inverse temperatures 0 = b_1 < ... < b_T = 1 (Desjardins et al., 2010).

    Every step makes one Gibbs step at each temperature and then proposes to exchange the states
    of neighbours, (1, 2), (3, 4), ... and (2, 3), (4, 5), ... in turns. With the hidden layer
    summed out, the exchange of V and V' at b and b' is accepted with probability

    ``min(1, p_b(V') p_b'(V) / (p_b(V) p_b'(V')))``.

    With a `base_bias` B_0, the base rates of the data, the visible bias is ``(1 - b) B_0 + b B``;
    by default it is B at every temperature.
    """

    n_temperatures: int = eqx.field(static=True)
    base_bias: Float[Array, "..."] | None = None

    def __init__(self, n_temperatures: int = 10, base_bias: Float[Array, "..."] | None = None):
        self.n_temperatures = check_integer("n_temperatures", n_temperatures, minimum=2)
        self.base_bias = base_bias

    @property
    def inverse_temperatures(self) -> Float[Array, " temperatures"]:
        """The inverse temperatures b_1..b_T, evenly spaced from 0 to 1."""
        return jnp.linspace(0.0, 1.0, self.n_temperatures)

    def init(self, key: RandomKey, machine: Machine, n_chains: int) -> TemperingState:
        """Start chains as independent units, which is exact for the hottest."""
        hottest = between(machine, self._base(machine), 0.0)
        visible = independent_units(key, hottest, (self.n_temperatures, n_chains))
        return TemperingState(visible, jnp.zeros((), jnp.int32))

    def step(
        self, key: RandomKey, machine: Machine, state: TemperingState
    ) -> tuple[TemperingState, TemperingInfo]:
        """Take a Gibbs step at every temperature, then exchange states between neighbours."""
        gibbs_key, exchange_key = hash_split(key)
        b, base = self.inverse_temperatures.astype(machine.coupling.dtype), self._base(machine)
        visible = jax.vmap(lambda key, v, b: gibbs_step(key, between(machine, base, b), v, b))(
            hash_split(gibbs_key, self.n_temperatures), state.visible, b
        )
        source, acceptance = self._exchange(exchange_key, machine, visible, b, state.n_steps % 2)
        source = source.reshape(*source.shape, *(1,) * (visible.ndim - 2))
        visible = jnp.take_along_axis(visible, source, axis=0)
        return TemperingState(visible, state.n_steps + 1), TemperingInfo(acceptance)

    def _exchange(
        self,
        key: RandomKey,
        machine: Machine,
        visible: Float[Array, "temperatures chains ..."],
        b: Float[Array, " temperatures"],
        parity: int | Int[Array, ""],
    ) -> tuple[Int[Array, "temperatures chains"], Float[Array, ""]]:
        """The temperature that each new state comes from, and the share of accepted exchanges."""
        n_chains = visible.shape[1]
        # As one batch, chains that devices share would have to be gathered.
        field = jax.vmap(machine.hidden_field)(visible)
        colder = jnp.minimum(jnp.arange(self.n_temperatures) + 1, self.n_temperatures - 1)

        tilt = machine.visible_bias - self._base(machine)
        pull = (visible * tilt).sum(axis=tuple(range(2, visible.ndim)))

        def score(b: Array, field: Array, pull: Array) -> Array:
            """``log p_b(V) + log Z_b``, but for <V, B_0>, which cancels in an exchange."""
            terms = machine.hidden_units.log_partition(
                b.reshape(-1, *(1,) * (field.ndim - 1)) * field
            )
            return terms.sum(axis=tuple(range(2, field.ndim))) + b[:, None] * pull

        log_ratio = (
            score(b, field[colder], pull[colder])
            + score(b[colder], field, pull)
            - score(b, field, pull)
            - score(b[colder], field[colder], pull[colder])
        )
        # Entry t stands for the pair (t, t + 1); the last one has no partner.
        active = (jnp.arange(self.n_temperatures) % 2 == parity).at[-1].set(False)
        uniform = jax.random.uniform(key, (self.n_temperatures, n_chains), dtype=log_ratio.dtype)
        accepted = active[:, None] & (jnp.log(uniform) < log_ratio)
        received = jnp.roll(accepted, 1, axis=0)
        source = jnp.arange(self.n_temperatures)[:, None] + accepted - received
        return source, accepted.sum() / (jnp.maximum(active.sum(), 1) * n_chains)

    def _base(self, machine: Machine) -> Float[Array, "..."]:
        return machine.visible_bias if self.base_bias is None else self.base_bias
