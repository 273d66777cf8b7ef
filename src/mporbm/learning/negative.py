"""Negative phases: how samples of the model are drawn while it learns.

Each is an ``(init, step)`` pair. ``init(key, machine, n_chains)`` gives the state of the chains;
``step(key, machine, state, data)`` moves them and gives the new state and the samples, weighted.
"""

from abc import abstractmethod
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine
from ..sampling import Tempering, gibbs, independent_units
from ..sampling.tempering import TemperingState
from .gauge import natural
from .gradient import Batch, gradient
from .parameters import Parameters

NegativePhaseName = Literal["cd", "pcd", "fpcd", "pt"]


class NegativePhase(eqx.Module):
    """How model samples are drawn: `n_gibbs` steps of a chain for every update."""

    n_gibbs: int = eqx.field(static=True)

    def __init__(self, n_gibbs: int = 1):
        self.n_gibbs = n_gibbs

    @abstractmethod
    def init(self, key: Array, machine: Machine, n_chains: int) -> Any:
        """The state of the chains before the first update."""

    @abstractmethod
    def step(self, key: Array, machine: Machine, state: Any, data: Batch) -> tuple[Any, Batch]:
        """The chains after some steps, and the samples they give."""


class ContrastiveDivergence(NegativePhase):
    """CD-K: chains that start at the data anew for every update (Hinton 2002; Algorithm 1)."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> None:
        """Nothing to remember."""

    def step(self, key: Array, machine: Machine, state: None, data: Batch) -> tuple[None, Batch]:
        """K Gibbs steps away from the data, with their weights."""
        return None, Batch(gibbs(key, machine, data.visible, self.n_gibbs), data.weight)


class PersistentCD(NegativePhase):
    """PCD: chains that go on from update to update (Tieleman 2008)."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> Array:
        """Independent visible units at the rates that the visible bias gives them."""
        return independent_units(key, machine, (n_chains,))

    def step(self, key: Array, machine: Machine, state: Array, data: Batch) -> tuple[Array, Batch]:
        """K Gibbs steps."""
        visible = gibbs(key, machine, state, self.n_gibbs)
        return visible, equal_weights(visible)


class FastState(eqx.Module):
    """Chains, and the fast weights that push them on."""

    visible: Array
    fast: Parameters


class FastPersistentCD(NegativePhase):
    """FPCD: persistent chains that see the parameters plus *fast* ones (Tieleman & Hinton 2009).

    The fast parameters learn from the same gradient as the regular ones and are forgotten by 5 %
    with every update: they raise the energy where the chains are, so that these move on. For a
    factorised coupling there is a fast offset for every factor.
    """

    learning_rate: Array
    gauge: bool = eqx.field(static=True)

    DECAY = 0.95

    def __init__(self, n_gibbs: int = 1, learning_rate: Any = 0.01, gauge: bool = True):
        super().__init__(n_gibbs)
        self.learning_rate = jnp.asarray(learning_rate, float)
        self.gauge = gauge

    def init(self, key: Array, machine: Machine, n_chains: int) -> FastState:
        """Chains as of `PersistentCD`, fast parameters of zero."""
        return FastState(
            independent_units(key, machine, (n_chains,)), Parameters.zeros_like(machine)
        )

    def step(
        self, key: Array, machine: Machine, state: FastState, data: Batch
    ) -> tuple[FastState, Batch]:
        """K Gibbs steps of the machine with fast parameters, which then learn and decay."""
        regular = Parameters.of(machine)
        both: Parameters = jax.tree.map(jnp.add, regular, state.fast)
        visible = gibbs(key, both.into(machine), state.visible, self.n_gibbs)
        samples = equal_weights(visible)
        ascent, _ = gradient(machine, data, samples)
        if self.gauge:
            factors = natural(machine.coupling, ascent.factors)
            ascent = Parameters(factors, ascent.visible_bias, ascent.hidden_bias)
        fast: Parameters = jax.tree.map(
            lambda f, g: (self.DECAY * f + self.learning_rate * g).astype(f.dtype),
            state.fast,
            ascent,
        )
        return FastState(visible, fast), samples


class ParallelTempering(NegativePhase):
    """PT: the coldest chains of a parallel tempering (Desjardins et al. 2010)."""

    tempering: Tempering

    def __init__(self, n_gibbs: int = 1, n_temperatures: int = 10):
        super().__init__(n_gibbs)
        self.tempering = Tempering(n_temperatures)

    def init(self, key: Array, machine: Machine, n_chains: int) -> TemperingState:
        """Chains at every temperature."""
        return self.tempering.init(key, machine, n_chains)

    def step(
        self, key: Array, machine: Machine, state: TemperingState, data: Batch
    ) -> tuple[TemperingState, Batch]:
        """K steps of Gibbs sampling and exchanges."""

        def move(state: TemperingState, key: Array) -> tuple[TemperingState, None]:
            return self.tempering.step(key, machine, state)[0], None

        state, _ = jax.lax.scan(move, state, jax.random.split(key, self.n_gibbs))
        return state, equal_weights(state.visible[-1])


def equal_weights(visible: Array) -> Batch:
    """Samples that count the same."""
    return Batch(visible, jnp.full(len(visible), 1.0 / len(visible), visible.dtype))
