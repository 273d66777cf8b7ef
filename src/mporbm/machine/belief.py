"""Deep belief networks: a machine on top of directed layers (Hinton, Osindero & Teh 2006)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from ..tensor.matmul import N_USES
from .hash_rng import hash_split
from .layered import LayeredCoupling
from .machine import Machine
from .units import Units


class DeepBelief(eqx.Module):
    """``p(X_0..X_L) = p(X_0 | X_1) ... p(X_{L-2} | X_{L-1}) p(X_{L-1}, X_L)``.

    The last factor is the distribution of the machine on top, the others are the visible
    conditionals of the machines of `generation`. What is inferred from data is the factorised
    ``q(X_1 | X_0) ... q(X_{L-1} | X_{L-2})``, the hidden conditionals of those of `recognition`;
    only the last step up, to X_L, is exact.

    To data it looks like a machine with the visible layer X_0 and the hidden layer X_L, whose
    fields are those of a pass with the means of all layers between. A network of one layer is the
    machine on top.
    """

    recognition: tuple[Machine, ...]
    generation: tuple[Machine, ...]
    top: Machine

    def __check_init__(self) -> None:
        shapes = [
            [(m.visible_shape, m.hidden_shape) for m in side]
            for side in (self.recognition, self.generation)
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"recognition: expected machines of the shapes {shapes[1]}, those of generation, "
                f"got {shapes[0]}."
            )
        # Refuses layers that do not fit.
        _ = self.coupling

    @classmethod
    def of_stack(cls, stack: tuple[Machine, ...]) -> "DeepBelief":
        """The network of machines that each learnt the hidden layer of the one before."""
        return cls(stack[:-1], stack[:-1], stack[-1])

    @property
    def stack(self) -> tuple[Machine, ...]:
        """The machines that generate, the lowest first."""
        return (*self.generation, self.top)

    @property
    def undirected(self) -> Machine:
        """The machine that chains sample and that has a log Z: the one on top."""
        return self.top

    @property
    def lowest(self) -> Machine:
        """The machine that makes X_0."""
        return self.stack[0]

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """Shape of the data layer X_0."""
        return self.lowest.visible_shape

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """Shape of the last layer X_L."""
        return self.top.hidden_shape

    @property
    def visible_units(self) -> Units:
        """Units of the data layer X_0."""
        return self.lowest.visible_units

    @property
    def visible_bias(self) -> Array:
        """Bias of the data layer X_0."""
        return self.lowest.visible_bias

    @property
    def coupling(self) -> LayeredCoupling:
        """All generative weights."""
        return LayeredCoupling([machine.coupling for machine in self.stack])

    @property
    def n_batch_entries(self) -> int:
        """The numbers that a sample takes in the larger of the outer layers."""
        return max(math.prod(self.visible_shape), math.prod(self.hidden_shape))

    def planned(self, n_rows: int, n_uses: int = N_USES) -> "DeepBelief":
        """The same network, made ready for `n_uses` fields of batches of `n_rows`."""
        planned: DeepBelief = jax.tree.map(
            lambda machine: machine.planned(n_rows, n_uses),
            self,
            is_leaf=lambda node: isinstance(node, Machine),
        )
        return planned

    def up_mean(self, visible: ArrayLike) -> Array:
        """X_{L-1} by a pass of means."""
        state = jnp.asarray(visible)
        for machine in self.recognition:
            state = machine.hidden_mean(state)
        return state

    def up_samples(self, key: Array, visible: ArrayLike) -> list[Array]:
        """X_0..X_{L-1}, drawn one after the other from q."""
        states = [jnp.asarray(visible)]
        for number, machine in enumerate(self.recognition):
            states.append(machine.sample_hidden(jax.random.fold_in(key, number), states[-1]))
        return states

    def down_samples(self, key: Array, state: Array) -> list[Array]:
        """X_0..X_{L-1}, drawn one after the other, from X_{L-1} on downwards."""
        states = [state]
        for number, machine in enumerate(reversed(self.generation)):
            states.append(machine.sample_visible(jax.random.fold_in(key, number), states[-1]))
        return states[::-1]

    def hidden_field(self, visible: ArrayLike) -> Array:
        """What the units of X_L feel."""
        return self.top.hidden_field(self.up_mean(visible))

    def hidden_mean(self, visible: ArrayLike) -> Array:
        """The probabilities that the units of X_L are on."""
        return self.top.hidden_mean(self.up_mean(visible))

    def sample_hidden(self, key: Array, visible: ArrayLike) -> Array:
        """A draw of X_L, by a pass of random states."""
        up, last = hash_split(key)
        return self.top.sample_hidden(last, self.up_samples(up, visible)[-1])

    def visible_field(self, hidden: ArrayLike) -> Array:
        """What the units of X_0 feel after a pass of means down from X_L."""
        stack = self.stack
        for machine in stack[:0:-1]:
            hidden = machine.visible_mean(hidden)
        return stack[0].visible_field(hidden)

    def visible_mean(self, hidden: ArrayLike) -> Array:
        """The mean of X_0 after a pass of means down from X_L."""
        return self.visible_units.mean(self.visible_field(hidden))

    def resampled_field(self, key: Array, visible: ArrayLike) -> Array:
        """What the units of X_0 feel after a pass of random states up to X_L and down again."""
        if not self.generation:
            return self.top.resampled_field(key, visible)
        up, through, last, down = hash_split(key, 4)
        state = self.top.resampled_field(through, self.up_samples(up, visible)[-1])
        state = self.top.visible_units.sample(last, state)
        return self.generation[0].visible_field(self.down_samples(down, state)[1])


Model = Machine | DeepBelief
"""What data are explained by."""
