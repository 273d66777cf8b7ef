"""What is watched after every epoch: a few samples, the likelihood, and whether all is well."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ..learning import Algorithm, LearningState
from ..machine import Machine, Model, exact
from ..sampling import LogPartition
from ..sampling.gibbs import gibbs_step
from ..sampling.trajectory import Population, base_machine, follow
from ..tensor.arrays import AnyArray, HostTensor
from .checkpoint import Entry
from .sources import Source

N_WATCHED, WATCHED_ENTRIES = 128, 2**22
"""The most samples that are watched every epoch, and visible values unless a batch has more."""
N_VALIDATED, VALIDATED_ENTRIES = 1024, 2**24
"""The most samples, and visible values of them, that a validation score looks at."""
N_SCORED_UNITS, MOST_UNITS = 64, 2**24
"""Visible units whose conditionals make the pseudo-likelihood, out of the first so many."""
N_ENUMERATED = 2**12
"""The most states of the smaller layer over which log Z is summed up in every epoch."""
N_CHAINS, FOLLOWING_SHARE = 256, 0.12
"""Chains that follow a machine, and what they may cost, as a share of all products of learning."""
FEWEST_STEPS, FEWEST_AT_ONCE = 400, 10
"""Trainings too short for so many steps of these chains are not followed; others not for fewer."""
TOLERANCE = 0.02
"""By how much a healthy machine may be worse than independent units, relative to these."""


def scored_units(n_visible: int) -> np.ndarray:
    """The units whose conditionals stand for all: the same for every machine of a size."""
    order = np.random.default_rng(0).permutation(min(n_visible, MOST_UNITS))
    return order[:N_SCORED_UNITS].astype(np.int32)


class Trajectory(eqx.Module):
    """Chains that follow the machines of a training, and the last machine that they have met."""

    population: Population
    machine: Machine


class Watch:
    """The samples that are watched, and what is known of log Z.

    Parameters
    ----------
    base_bias
        The visible bias of independent units at the base rates of the data. Without one the
        likelihood is not watched.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        machine: Model,
        source: Source,
        validation: Source | None,
        batch_size: int,
        base_bias: HostTensor | None = None,
    ):
        self.objective, self.phase = algorithm.objective, algorithm.negative_phase
        n_visible = math.prod(machine.visible_shape)
        n_watched = min(N_WATCHED, max(batch_size, WATCHED_ENTRIES // n_visible))
        self._rows = source.head(n_watched)
        n_validated = max(min(N_VALIDATED, VALIDATED_ENTRIES // n_visible), 1)
        self._held = None if validation is None else validation.head(n_validated)
        self._units = jax.device_put(scored_units(n_visible))
        self.field_limit = jnp.asarray(self.objective.field_limit(machine, self._rows))
        n_groups = len(algorithm.scheme.groups(machine))
        # An update multiplies some 6 batches with W, a step of the chains 3 times their number.
        self._steps_per_batch = FOLLOWING_SHARE * n_groups * 2.0 * batch_size / N_CHAINS
        self.trajectory: Trajectory | None = None
        self._base: Machine | None = None
        if base_bias is not None and isinstance(machine, Machine):
            self._base = base_machine(machine, base_bias)
            start = base_machine(machine, np.asarray(machine.visible_bias))
            self._least = min(self._independent(self._base), self._independent(start))

    def template(self, machine: Model) -> Trajectory | None:
        """What a checkpoint may have of the trajectory."""
        if self._base is None:
            return None
        assert isinstance(machine, Machine)
        begin = eqx.filter_eval_shape(Population.begin, jax.random.key(0), self._base, N_CHAINS)
        return Trajectory(begin, machine)

    def n_steps(self, n_batches: int, n_epochs: int) -> int:
        """Say how many steps of the chains some batches of each of some epochs are worth."""
        return int(self._steps_per_batch * n_batches * n_epochs)

    def healthy(self, machine: Model, learning: Model) -> bool:
        """Whether no field of a machine, or of the one behind its mean, is out of bounds.

        The margin is for samples that are not watched: no epoch may begin out of bounds.
        """
        machines = [machine] if machine is learning else [machine, learning]
        fields = [self.look(m, self._rows).largest_field for m in machines]
        return all(float(field) < 0.5 * float(self.field_limit) for field in fields)
