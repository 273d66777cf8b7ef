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
from ..sampling import LogPartition, gibbs_step
from ..sampling.gibbs import independent_log_partition
from ..sampling.trajectory import Population, base_machine, follow
from ..tensor.arrays import HostTensor
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
TOLERANCE = 0.1
"""By how much a healthy machine may be worse than independent units, relative to these, plus 1."""


class DivergenceError(Exception):
    """A machine is out of bounds; the message says how."""


class Trajectory(eqx.Module):
    """Chains that follow the machines of a training, and the machine that they have met last."""

    population: Population
    machine: Machine


def scored_units(n_visible: int) -> np.ndarray:
    """Choose the units whose conditionals stand for all: the same for all machines of a size."""
    order = np.random.default_rng(0).permutation(min(n_visible, MOST_UNITS))
    return order[:N_SCORED_UNITS].astype(np.int32)


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
        base_bias: HostTensor | None,
    ):
        self._objective, self._phase = algorithm.objective, algorithm.negative_phase
        n_visible = math.prod(machine.visible_shape)
        n_watched = min(N_WATCHED, max(batch_size, WATCHED_ENTRIES // n_visible))
        self._rows = source.head(n_watched)
        n_validated = max(min(N_VALIDATED, VALIDATED_ENTRIES // n_visible), 1)
        self._held = None if validation is None else validation.head(n_validated)
        self._units = jax.device_put(scored_units(n_visible))
        self.field_limit = jnp.asarray(self._objective.field_limit(machine, self._rows))
        self.trajectory: Trajectory | None = None
        # An update multiplies some 6 batches with W, a step of the chains 3 times their number.
        n_updates = len(algorithm.scheme.groups(machine))
        self._steps_per_batch = FOLLOWING_SHARE * n_updates * 2.0 * batch_size / N_CHAINS
        self._base: Machine | None = None
        if base_bias is not None and isinstance(machine, Machine):
            self._base = base_machine(machine, base_bias)
            start = base_machine(machine, np.asarray(machine.visible_bias))
            likelihoods = [self._independent_likelihood(base) for base in (self._base, start)]
            # A training that does not start at the base rates has to find them first.
            self._least = min(likelihoods) - TOLERANCE * abs(min(likelihoods)) - 1.0

    def template(self, machine: Model) -> Trajectory | None:
        """Give the shapes of a trajectory, for a checkpoint that may have one."""
        if self._base is None or not isinstance(machine, Machine):
            return None
        begin = eqx.filter_eval_shape(Population.begin, jax.random.key(0), self._base, N_CHAINS)
        return Trajectory(begin, machine)

    def look(
        self, key: Array, state: LearningState, machine: Model, n_batches: int, n_left: int
    ) -> Entry:
        """Look at a machine after an epoch, or raise `DivergenceError`.

        `machine` is that of the state, or its mean. It has learnt from `n_batches` since chains
        have followed it, and `n_left` epochs are to come.
        """
        seen = self._objective.watch(machine, jax.device_put(self._rows), self._units)
        largest = float(seen.largest_field)
        if machine is not state.machine:
            rows = jax.device_put(self._rows)
            learning = self._objective.watch(state.machine, rows, self._units)
            largest = max(largest, float(learning.largest_field))
        # The margin is for samples that are not watched: no epoch may begin out of bounds.
        if not largest < 0.5 * float(self.field_limit):
            raise DivergenceError("fields grew out of bounds")
        entry: Entry = {
            "reconstruction_error": float(seen.reconstruction_error),
            "score": float(seen.score),
            "free_energy": float(seen.free_energy),
        }
        found = None
        if self._base is not None and isinstance(machine, Machine):
            found = self._log_partition(key, machine, n_batches, n_left)
            least = self._least_log_partition(key, state, machine) if found is None else found.value
            if not -float(seen.free_energy) - least > self._least:
                raise DivergenceError("the machine became worse than independent units")
        if found is not None:
            entry["log_likelihood"] = -float(seen.free_energy) - found.value
            entry["log_partition_error"] = found.standard_error
            if not found.exact:
                entry["effective_sample_size"] = found.effective_sample_size
        if self._held is not None:
            other = self._objective.watch(machine, jax.device_put(self._held), self._units)
            entry["validation_score"] = float(other.score)
            entry["free_energy_gap"] = float(other.free_energy - seen.free_energy)
            if found is not None:
                entry["validation_log_likelihood"] = -float(other.free_energy) - found.value
        return entry

    def _log_partition(
        self, key: Array, machine: Machine, n_batches: int, n_left: int
    ) -> LogPartition | None:
        """Compute or estimate log Z, if the training is worth it and it is time to."""
        if (exact.fewest_states(machine) or math.inf) <= N_ENUMERATED:
            value = float(exact.log_partition(machine))
            return LogPartition(value, 0.0, math.inf, value)
        n_steps = int(self._steps_per_batch * n_batches)
        if self.trajectory is None:
            n_steps *= 1 + n_left
            if n_steps < FEWEST_STEPS:
                return None
        elif n_steps < FEWEST_AT_ONCE and n_left > 0:
            return None
        self._follow(key, machine, max(n_steps // 2, 1))
        assert self.trajectory is not None
        return self.trajectory.population.summary()

    def _follow(self, key: Array, machine: Machine, n_steps: int) -> None:
        """Let chains follow a machine: the first time from independent units, at length."""
        begin_key, key = jax.random.split(key)
        if self.trajectory is None:
            assert self._base is not None
            start = base_machine(machine, np.asarray(self._base.visible_bias))
            population = _begin(begin_key, start, N_CHAINS)
            population = follow(key, population, start, machine, jnp.asarray(n_steps), cooling=True)
        else:
            population, start = self.trajectory.population, self.trajectory.machine
            population = follow(key, population, start, machine, jnp.asarray(n_steps))
        self.trajectory = Trajectory(population, machine)

    def _least_log_partition(self, key: Array, state: LearningState, machine: Machine) -> float:
        """Compute what log Z is at least: the sum over some states alone.

        They are the chains of the negative phase, or else come from the data by a Gibbs step:
        where a training has gone wrong, they are far likelier than the data.
        """
        if machine.visible_units.n_states(machine.visible_shape) is None:
            return -math.inf
        visible = self._phase.visible_states(state.chains)
        if visible is None:
            rows = jnp.asarray(self._rows, machine.coupling.dtype)
            visible = gibbs_step(key, machine, machine.visible_units.of_values(rows))
        distinct = np.unique(np.asarray(visible).reshape(len(visible), -1), axis=0)
        # Of one shape, whatever their number, for the compiled program's sake.
        padded = np.resize(distinct, (len(visible), distinct.shape[1]))
        energies = np.asarray(_free_energy(machine, padded.reshape(visible.shape)), np.float64)
        return float(np.logaddexp.reduce(-energies[: len(distinct)]))

    def _independent_likelihood(self, base: Machine) -> float:
        """Average the log-likelihood of the watched samples by independent units."""
        rows = jnp.asarray(self._rows, base.coupling.dtype)
        free_energy = _free_energy(base, base.visible_units.of_values(rows))
        return -float(free_energy.mean()) - float(independent_log_partition(base))


_begin = eqx.filter_jit(Population.begin)


@eqx.filter_jit
def _free_energy(machine: Machine, visible: PyTree) -> Array:
    return machine.free_energy(visible)
