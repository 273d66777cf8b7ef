"""Negative phases: how samples of the model are drawn while it learns.

Each is an ``(init, step)`` pair. ``init(key, machine, n_chains)`` gives the state of the chains;
``step(key, machine, state, data)`` moves them and gives the new state and the samples, weighted.
A phase that is registered can be chosen by its name, in estimators and on the command line. Its
constructor gets those of `n_gibbs`, `gauge` and, of the plain rule, `learning_rate` and `bias_rate`
that it has parameters for; others keep their defaults.
"""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ..machine import Machine
from ..machine.hash_rng import hash_split
from ..registry import Registry
from ..sampling import Tempering, gibbs, independent_units
from ..sampling.tempering import TemperingState
from .gauge import precondition, step_shares
from .gradient import Batch, Parameters, gradient

REPLICATED = -1
"""Stands for the axis of chains of an array that has none: every device has a copy of it."""
NEGATIVE_PHASES: "Registry[NegativePhase]" = Registry()
"""What the parameter `negative_phase` of estimators may be."""


class NegativePhase(eqx.Module):
    """How model samples are drawn: by K = `n_gibbs` steps of a chain for every update."""

    n_gibbs: int = eqx.field(static=True)
    keeps_factors: ClassVar[bool] = False
    """Whether a state holds something in the shape of W's factors, which must then stay."""

    def __init__(self, n_gibbs: int = 1):
        self.n_gibbs = n_gibbs

    @abstractmethod
    def init(self, key: Array, machine: Machine, n_chains: int) -> PyTree:
        """Give the state of the chains before the first update; `n_chains` is the batch size."""

    @abstractmethod
    def step(
        self, key: Array, machine: Machine, state: PyTree, data: Batch
    ) -> tuple[PyTree, Batch]:
        """Move the chains, and give samples of the model with weights that sum to 1.

        `data` has as many rows as there are chains, in the machine's precision; rows of weight 0
        are padding. The machine is planned for batches of this many rows: a phase that multiplies
        other numbers of them plans again, by ``machine.unplanned().planned(n_rows)``.
        """

    def visible_states(self, state: PyTree) -> Array | None:
        """Give the visible states of the chains of the model itself, or None.

        To be overridden by a phase whose state is more than these.
        """
        return state if isinstance(state, Array) else None

    def chain_axes(self, state: PyTree) -> PyTree:
        """Give, for each array of a state, the axis of its chains, which devices share.

        To be overridden if chains do not lie along the first axis of every array.
        """
        return jax.tree.map(lambda _: 0, state)

    def forget_gauge(self, state: PyTree) -> PyTree:
        """Drop what a state holds in the shape of W's factors, after these were rebalanced.

        To be overridden by a phase with such a state; schemes that rebalance factors call it.
        """
        return state


@NEGATIVE_PHASES.register("cd")
class ContrastiveDivergence(NegativePhase):
    """CD-K: chains that start at the data anew for every update (Hinton 2002; Algorithm 1)."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> None:
        """Nothing to remember."""

    def step(self, key: Array, machine: Machine, state: None, data: Batch) -> tuple[None, Batch]:
        """K Gibbs steps away from the data, with their weights."""
        return None, Batch(gibbs(key, machine, data.visible, self.n_gibbs), data.weight)


@NEGATIVE_PHASES.register("pcd")
class PersistentCD(NegativePhase):
    """PCD: chains that go on from update to update (Tieleman 2008)."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> Array:
        """Visible units drawn independently, by the visible bias alone."""
        return independent_units(key, machine, (n_chains,))

    def step(self, key: Array, machine: Machine, state: Array, data: Batch) -> tuple[Array, Batch]:
        """K Gibbs steps."""
        visible = gibbs(key, machine, state, self.n_gibbs)
        return visible, Batch.equal(visible)


class FastState(eqx.Module):
    """Chains, and the fast weights that push them on."""

    visible: Array
    fast: Parameters


@NEGATIVE_PHASES.register("fpcd")
class FastPersistentCD(NegativePhase):
    """FPCD: persistent chains that see the parameters plus *fast* ones (Tieleman & Hinton 2009).

    The fast parameters learn from the same gradient as the regular ones and are forgotten by 5 %
    with every update: they raise the energy where the chains are, so that these move on. For a
    factorised coupling there is a fast offset for every factor.
    """

    learning_rate: Array
    bias_rate: Array
    gauge: bool = eqx.field(static=True)
    keeps_factors: ClassVar[bool] = True

    DECAY = 0.95

    def __init__(
        self,
        n_gibbs: int = 1,
        learning_rate: ArrayLike = 0.01,
        gauge: bool = True,
        *,
        bias_rate: ArrayLike | None = None,
    ):
        super().__init__(n_gibbs)
        self.learning_rate = jnp.asarray(learning_rate, float)
        self.bias_rate = jnp.asarray(learning_rate if bias_rate is None else bias_rate, float)
        self.gauge = gauge

    def init(self, key: Array, machine: Machine, n_chains: int) -> FastState:
        """Chains as of `PersistentCD`, fast parameters of zero."""
        return FastState(
            independent_units(key, machine, (n_chains,)), Parameters.zeros_like(machine)
        )

    def visible_states(self, state: FastState) -> Array:
        """Give the chains, without the fast parameters."""
        return state.visible

    def chain_axes(self, state: FastState) -> PyTree:
        """The first; fast parameters have none."""
        replicated = jax.tree.map(lambda _: REPLICATED, state)
        return eqx.tree_at(lambda s: s.visible, replicated, 0)

    def forget_gauge(self, state: FastState) -> FastState:
        """Keep fast biases only: fast factors are offsets in the gauge that was."""
        zeros = tuple(jnp.zeros_like(factor) for factor in state.fast.factors)
        return FastState(state.visible, Parameters(zeros, *state.fast.biases))

    def step(
        self, key: Array, machine: Machine, state: FastState, data: Batch
    ) -> tuple[FastState, Batch]:
        """K Gibbs steps of the machine with fast parameters, which then learn and decay."""
        regular = Parameters.of(machine)
        both: Parameters = jax.tree.map(jnp.add, regular, state.fast)
        visible = gibbs(key, both.into(machine), state.visible, self.n_gibbs)
        samples = Batch.equal(visible)
        ascent, _ = gradient(machine.unplanned(), data, samples)
        factors = ascent.factors
        if self.gauge:
            share = step_shares(machine.coupling, range(len(factors)))
            factors = tuple(
                share[k] * precondition(machine.coupling, k, g) for k, g in enumerate(factors)
            )

        def learn(fast: Array, ascent: Array, rate: Array) -> Array:
            return (self.DECAY * fast + rate * ascent).astype(fast.dtype)

        old = state.fast
        pairs = zip(old.factors, factors, strict=True)
        fast = Parameters(
            tuple(learn(f, g, self.learning_rate) for f, g in pairs),
            learn(old.visible_bias, ascent.visible_bias, self.bias_rate),
            learn(old.hidden_bias, ascent.hidden_bias, self.bias_rate),
        )
        return FastState(visible, fast), samples


@NEGATIVE_PHASES.register("pt")
class ParallelTempering(NegativePhase):
    """PT: the coldest chains of a parallel tempering (Desjardins et al. 2010)."""

    tempering: Tempering

    def __init__(self, n_gibbs: int = 1, n_temperatures: int = 10):
        super().__init__(n_gibbs)
        self.tempering = Tempering(n_temperatures)

    def init(self, key: Array, machine: Machine, n_chains: int) -> TemperingState:
        """Chains at every temperature."""
        return self.tempering.init(key, machine, n_chains)

    def visible_states(self, state: TemperingState) -> Array:
        """Give the coldest chains."""
        return state.visible[-1]

    def chain_axes(self, state: TemperingState) -> PyTree:
        """The one after that of the temperatures."""
        replicated = jax.tree.map(lambda _: REPLICATED, state)
        return eqx.tree_at(lambda s: s.visible, replicated, 1)

    def step(
        self, key: Array, machine: Machine, state: TemperingState, data: Batch
    ) -> tuple[TemperingState, Batch]:
        """K steps of Gibbs sampling and exchanges."""
        # All temperatures together are a larger batch, which is planned for by itself.
        n_rows = self.tempering.n_temperatures * len(state.visible[0])
        machine = machine.unplanned().planned(n_rows)

        def move(state: TemperingState, key: Array) -> tuple[TemperingState, None]:
            return self.tempering.step(key, machine, state)[0], None

        state, _ = jax.lax.scan(move, state, hash_split(key, self.n_gibbs))
        return state, Batch.equal(state.visible[-1])
