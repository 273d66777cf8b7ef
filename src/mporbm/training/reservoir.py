"""States that the chains of a training have passed through, where samples can start.

Learning drives persistent chains from mode to mode faster than they would go by themselves. States
of the second half of a training, far enough apart to be of different modes, are as many starts for
samples as a batch has chains times the number of moments.
"""

import equinox as eqx
import jax
import numpy as np
from jax import Array

from ..machine import Model
from ..tensor.arrays import AnyArray

N_KEPT, KEPT_ENTRIES = 1000, 2**20
"""The most states that are kept, and values of them, unless there are more chains."""
FIRST_SHARE = 0.5
"""The share of the training after which states are kept."""


class Reservoir(eqx.Module):
    """The states of all chains at some moments, the latest last; the others are not there yet."""

    states: AnyArray
    n_moments: AnyArray

    @classmethod
    def begin(cls, machine: Model, visible: Array) -> "Reservoir":
        """Make room for chains like `visible`."""
        n_states = min(N_KEPT, KEPT_ENTRIES // visible[0].size)
        n_moments = max(n_states // len(visible), 1)
        # Bits take a byte each.
        dtype = np.uint8 if machine.undirected.visible_units.is_binary else visible.dtype
        return cls(np.zeros((n_moments, *visible.shape), dtype), np.zeros((), np.int32))

    def is_due(self, before: float, now: float) -> bool:
        """Whether a moment lies between two shares of the training."""
        number = [
            np.floor((share - FIRST_SHARE) / (1.0 - FIRST_SHARE) * len(self.states) + 1e-9)
            for share in (before, now)
        ]
        return bool(number[1] > max(number[0], 0.0))

    def add(self, visible: Array) -> "Reservoir":
        """Keep another moment, in place of the first if there is no room."""
        new = np.asarray(visible).astype(self.states.dtype)[None]
        n_moments = min(int(self.n_moments) + 1, len(self.states))
        return Reservoir(np.concatenate([self.states[1:], new]), np.array(n_moments, np.int32))

    @property
    def kept(self) -> np.ndarray:
        """The states that are there, ``(n, *visible_shape)``."""
        found = jax.tree.map(np.asarray, self)
        there: np.ndarray = found.states[len(found.states) - int(found.n_moments) :]
        return there.reshape(-1, *there.shape[2:])
