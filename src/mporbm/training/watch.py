"""What is watched after every epoch: a few samples, the likelihood, and whether all is well."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ..learning import Algorithm, LearningState
from ..learning.monitor import N_SCORED_UNITS, scored_units
from ..machine import Machine, Model, exact
from ..machine.gaussian import is_gaussian
from ..sampling import Evidence, LogPartition, gibbs_step, log_partition
from ..tensor.arrays import HostTensor, Samples
from .checkpoint import Entry
from .sources import Source

N_WATCHED, WATCHED_ENTRIES = 128, 2**22
"""The most samples that are watched every epoch, and visible values unless a batch has more."""
N_MEASURED, MEASURED_ENTRIES = 1024, 2**24
"""The most samples, and visible values of them, whose likelihood or validation is measured."""
FEWEST_UNITS, SAMPLES_PER_UNIT = 32, 32
"""Units of the score where an epoch has few samples, and samples of an epoch that allow one more:
else short epochs would be watched for longer than they learn."""
N_ENUMERATED = 2**12
"""The most states of the smaller layer over which log Z is summed up in every epoch."""
N_CHAINS, ANNEALING_SHARE = 256, 0.16
"""Chains that estimate log Z, and what they may cost, as a share of all products of learning."""
STEPS_AT_ONCE, FEWEST_STEPS, LAST_STEPS = 400, 300, 3
"""Steps that an estimate is worth; those that are enough for a single one, after the last epoch;
and how many times as many the last of several has."""
FEWEST_COMPLETE = 32
"""Samples without missing values from which on their log-likelihood is watched."""
TOLERANCE = 0.1
"""By how much a healthy machine may be worse than independent units, relative to these, plus 1."""


class DivergenceError(Exception):
    """A machine is out of bounds; the message says how."""


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
        n_measured = max(min(N_MEASURED, MEASURED_ENTRIES // n_visible), 1)
        # Whatever is missing of a sample, its log-likelihood is not that of what was drawn for it.
        self._incomplete = bool(source.incomplete)
        measured = source.head(max(n_measured, n_watched))
        self._measured = complete_rows(measured) if source.incomplete else measured
        self._held = None if validation is None else validation.head(n_measured)
        self._measures_held = validation is not None and not validation.incomplete
        n_units, n_samples = N_SCORED_UNITS, source.n_batches(1)
        if n_samples is not None:  # A stream does not know.
            n_units = min(max(n_samples // SAMPLES_PER_UNIT, FEWEST_UNITS), N_SCORED_UNITS)
        self._units = jax.device_put(scored_units(n_visible, n_units))
        limit = self._objective.field_limit(machine, self._rows)
        self.field_limit = jnp.asarray(limit if algorithm.is_bounded else math.inf)
        # An update multiplies some 6 batches with W, a step of the chains twice their number.
        n_updates = len(algorithm.scheme.groups(machine))
        self._steps_per_batch = ANNEALING_SHARE * n_updates * 3.0 * batch_size / N_CHAINS
        # A directed network has no base rates on top: they are those of its chains.
        measures = self._measured is not None or self._measures_held
        self._has_likelihood = base_bias is not None and measures
        self._base: np.ndarray | None = None
        self._least = -math.inf
        if base_bias is not None and isinstance(machine, Machine):
            start = np.asarray(machine.visible_bias)
            # Visible units beyond those of the data are at the bias that they start with.
            others = start.reshape(-1)[base_bias.size :]
            self._base = np.concatenate([base_bias.reshape(-1), others]).reshape(start.shape)
            if len(others) == 0:
                # A training that does not start at the base rates has to find them first.
                least = min(self._independent_likelihood(machine, b) for b in (self._base, start))
                self._least = least - TOLERANCE * abs(least) - 1.0

    def n_steps(self, n_batches: int, number: int, n_epochs: int) -> int:
        """Count the steps of annealing after epoch `number` of `n_epochs`, each of so many batches.

        The likelihood is watched at even distances, as often as the steps of the whole training are
        enough for, and after the last epoch by three times as many; 0 where it is not watched.
        """
        total = self._steps_per_batch * n_batches * n_epochs
        n_times = max(int(total / STEPS_AT_ONCE) - LAST_STEPS + 1, int(total >= FEWEST_STEPS))
        n_times = min(n_times, n_epochs)
        if number * n_times // n_epochs == (number - 1) * n_times // n_epochs:
            return 0
        steps = int(total / (n_times + LAST_STEPS - 1))
        return steps * LAST_STEPS if number == n_epochs else steps

    def look(self, key: Array, state: LearningState, machine: Model, n_steps: int) -> Entry:
        """Look at a machine after an epoch, or raise `DivergenceError`.

        `machine` is that of the state, or its mean. Its log Z is estimated by `n_steps` of
        annealing, if not 0, unless it is small enough to sum over all states.
        """
        seen = self._objective.watch(machine, jax.device_put(self._rows), self._units)
        largest = float(seen.largest_field)
        if machine is not state.machine:
            # Only its fields are asked for: one unit will do.
            rows, unit = jax.device_put(self._rows), self._units[:1]
            learning = self._objective.watch(state.machine, rows, unit)
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
        if self._has_likelihood:
            found = self._log_partition(key, machine.undirected, state, n_steps)
        if self._least > -math.inf:
            least = self._least_log_partition(key, state, machine.undirected)
            if found is not None:
                least = max(least, found.interval[0])
            if not -float(seen.free_energy) - least > self._least:
                raise DivergenceError("the machine became worse than independent units")
        if found is not None:
            if self._measured is not None:
                rows, unit = jax.device_put(self._measured), self._units[:1]
                density = -float(self._objective.watch(machine, rows, unit).free_energy)
                entry["log_likelihood"] = density - found.value
            entry["log_partition_error"] = found.standard_error
            if not found.exact:
                entry["effective_sample_size"] = found.effective_sample_size
        if self._held is not None:
            other = self._objective.watch(machine, jax.device_put(self._held), self._units)
            entry["validation_score"] = float(other.score)
            entry["free_energy_gap"] = float(other.free_energy - seen.free_energy)
            if found is not None and self._measures_held:
                entry["validation_log_likelihood"] = -float(other.free_energy) - found.value
        return entry

    def _log_partition(
        self, key: Array, machine: Machine, state: LearningState, n_steps: int
    ) -> LogPartition | None:
        """Compute log Z, or estimate it, from both directions where there are chains."""
        if is_gaussian(machine) or (exact.fewest_states(machine) or math.inf) <= N_ENUMERATED:
            return LogPartition.known(float(exact.log_partition(machine)))
        if n_steps == 0:
            return None
        chains = self._phase.visible_states(state.chains)
        n_starts = N_CHAINS if chains is None else min(len(chains), N_CHAINS)
        # There and back, with a tenth of the steps to mix.
        number = int(n_steps * N_CHAINS / (N_CHAINS + 1.1 * n_starts))
        return log_partition(
            key,
            machine,
            self._base,
            samples=chains,
            n_chains=N_CHAINS,
            n_temperatures=max(number, 1),
        )

    def _least_log_partition(self, key: Array, state: LearningState, machine: Machine) -> float:
        """Compute what log Z is at least: the sum over some states alone.

        They are the chains of the negative phase, or else come from the data by a Gibbs step:
        where a training has gone wrong, they are far likelier than the data.
        """
        if machine.visible_units.n_states(machine.visible_shape) is None:
            return -math.inf
        visible = self._phase.visible_states(state.chains)
        if visible is None:
            rows = self._as_states(machine, self._base)
            visible = gibbs_step(key, machine, rows)
        flat = np.asarray(visible).reshape(len(visible), -1)
        distinct = np.array(list({row.tobytes(): row for row in flat}.values()))
        # Of one shape, whatever their number, for the compiled program's sake.
        padded = np.resize(distinct, flat.shape)
        energies = np.asarray(_free_energy(machine, padded.reshape(visible.shape)), np.float64)
        return float(np.logaddexp.reduce(-energies[: len(distinct)]))

    def _independent_likelihood(self, machine: Machine, bias: HostTensor) -> float:
        """Average the log-likelihood of the watched samples by independent units."""
        states = self._as_states(machine, bias)
        terms = machine.visible_units.log_density(states, jnp.asarray(bias, states.dtype))
        return float(terms.reshape(len(states), -1).sum(axis=1).mean())

    def _as_states(self, machine: Machine, bias: HostTensor | None) -> Array:
        """Make visible states of the watched samples; those of a deep machine are flat.

        What is missing of them is drawn from independent units with a bias.
        """
        rows = jnp.asarray(self._rows, machine.coupling.dtype)
        states = machine.visible_units.of_values(rows.reshape(-1, *machine.visible_shape))
        if not self._incomplete or bias is None:
            return states
        evidence = Evidence.from_missing(machine.visible_units, states)
        field = jnp.broadcast_to(jnp.asarray(bias, states.dtype), states.shape)
        return evidence.clamp(machine.visible_units.sample(jax.random.key(0), field))


def complete_rows(rows: Samples) -> Samples | None:
    """The rows without NaN; None if they are too few to stand for others."""
    complete = rows[~np.isnan(rows).reshape(len(rows), -1).any(axis=1)]
    return complete if len(complete) >= FEWEST_COMPLETE else None


@eqx.filter_jit
def _free_energy(machine: Machine, visible: PyTree) -> Array:
    return machine.free_energy(visible)
