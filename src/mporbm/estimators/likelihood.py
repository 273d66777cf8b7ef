"""Likelihood: free energies, log Z, and scores that compare machines of any kind."""

import math
import warnings

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..learning.monitor import scored_units
from ..machine import exact
from ..machine.gaussian import is_gaussian
from ..precision import converted, double_precision
from ..sampling import LogPartition, log_partition
from ..sampling.ais import FEWEST_EFFECTIVE
from ..tensor.arrays import HostTensor
from ..tensor.check import check_choice
from . import batches, incomplete
from .base import EstimatorBase, Purpose, RandomState, key_for
from .scaling import log_scales

N_ENUMERATED_UNITS = 20
"""The most units of the smaller layer for which log Z is computed by enumeration."""
PerSample = Float[np.ndarray, " n"]


class LikelihoodWarning(UserWarning):
    """So few chains were effective that log Z cannot be trusted."""


class LikelihoodMixin(EstimatorBase):
    """What a fitted estimator says about the probability of samples."""

    @available_if(lambda self: not self._is_deep)
    def free_energy(self, X: ArrayLike) -> PerSample:
        """Compute ``F(V) = -log sum_H exp(-E(V, H))`` of each sample.

        Where data are standardised, it has the logarithms of the scales in it, so that
        probabilities are those of the data.
        """
        found = self._batched(batches.free_energy, self._rows(X))
        return np.asarray(found + log_scales(self).astype(found.dtype))

    def score_samples(self, X: ArrayLike, log_z: LogPartition | None = None) -> PerSample:
        """Compute ``log p(V) = -F(V) - log Z`` of each sample, to compare machines of any kind by.

        log Z is what `log_partition` has given, by default with its defaults, and then computed
        once; its error is the same for all samples.

        Of a sample with missing values (NaN) it is the log-probability of what was observed. The
        sum over the missing ones is estimated by 16 chains of 200 steps, the same at every call
        (`mporbm.sampling.incomplete`), mostly to within 0.2 nats on digits of 8x8 pixels with half
        of them missing, and by far less precisely where next to nothing was observed. Where both
        layers are Gaussian, it has a closed form.
        """
        if not self._TAKES_MISSING:
            return self._less_log_partition(-self.free_energy(X), log_z)
        rows, missing = self._checked(X, missing=True)
        if missing:
            key = key_for(self._seed, Purpose.LOG_PARTITION)
            found = incomplete.log_clamped(self, rows, key)
        else:
            found = -self._batched(batches.free_energy, rows)
        volume = log_scales(self, rows if missing else None)
        return self._less_log_partition(found - volume.astype(found.dtype), log_z)

    @available_if(lambda self: not self._is_deep)
    def pseudo_log_likelihood(self, X: ArrayLike) -> PerSample:
        """Estimate ``sum_i log p(v_i | the other units)`` of each sample, cheaply, without log Z.

        It is estimated from the conditionals of 128 visible units, which lie evenly among all, the
        same at every call and for every machine of this shape, so that values can be compared.
        Bernoulli units only.
        """
        rows = self._rows(X)
        if not self.machine_.visible_units.is_binary:
            raise ValueError(
                f"pseudo_log_likelihood: expected Bernoulli visible units alone, got "
                f"{self.machine_.visible_units}; use score_samples."
            )
        chosen = jnp.asarray(scored_units(math.prod(self.machine_.visible_shape)))
        return self._batched(batches.pseudo_likelihood, rows, None, chosen)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Average `score_samples`."""
        return float(self.score_samples(X).mean())

    def log_partition(
        self,
        method: str = "auto",
        *,
        n_chains: int = 256,
        n_temperatures: int | None = None,
        random_state: RandomState = None,
    ) -> LogPartition:
        """Estimate log Z, so that ``log p(V) = -F(V) - log Z``.

        Parameters
        ----------
        method
            ``"exact"`` by enumeration, for machines of at most 24 units in the smaller layer, or
            in closed form where both layers are Gaussian;
            ``"ais"`` by annealed importance sampling between the base rates of the training data
            and the machine, in both directions. After a training with persistent chains those of
            the second start at `chains_`, and both are combined (`mporbm.sampling.ais.bridge`).
            ``"auto"`` is exact up to 20 units, and in closed form.
        n_chains, n_temperatures
            Of annealed importance sampling: more of either make it more precise. By default there
            are as many temperatures, from 1000 to 16,000, as an effective sample size of an eighth
            of the chains takes.
        random_state
            A seed; by default the one of the estimator, so that the answer is always the same.

        Returns
        -------
        LogPartition
            `value`, `standard_error`, `effective_sample_size`, the estimates of both directions,
            `forward` and `reverse`, and the 95 % `interval`. One with an effective sample size
            below 10 warns.
        """
        check_is_fitted(self)
        check_choice("method", method, ("auto", "exact", "ais"))
        machine = self.machine_.undirected
        n_states = exact.fewest_states(machine) or math.inf
        if method == "exact" and not is_gaussian(machine) and n_states > 2**exact.MAX_UNITS:
            raise ValueError(
                f"method='exact': expected at most {exact.MAX_UNITS} units in the smaller layer, "
                f"got {math.log2(n_states):.0f}; use method='ais'."
            )
        if is_gaussian(machine) and method != "ais":
            with double_precision():
                value = float(exact.log_partition(converted(machine, jnp.float64)))
            return LogPartition.known(value)
        if method == "exact" or (method == "auto" and n_states <= 2**N_ENUMERATED_UNITS):
            return LogPartition.known(float(exact.log_partition(machine)))
        key = key_for(self._seed, Purpose.LOG_PARTITION)
        if random_state is not None:
            key = self._key(random_state)
        found = log_partition(
            key,
            machine,
            self._known_base_bias(),
            samples=getattr(self, "chains_", None),
            n_chains=n_chains,
            n_temperatures=n_temperatures,
        )
        if not found.effective_sample_size >= min(FEWEST_EFFECTIVE, n_chains / 2):
            warnings.warn(
                f"log_partition: an effective sample size of {found.effective_sample_size:.1f} of "
                f"{n_chains} chains; log Z may be off by some nats, mostly too low. Try more "
                f"n_temperatures or n_chains.",
                LikelihoodWarning,
                stacklevel=2,
            )
        return found

    def _known_base_bias(self) -> HostTensor | None:
        """Give the base bias of the visible units of the machine that has a log Z, if known.

        For units beyond those of the data it is that of the chains, or what they have learnt.
        """
        machine, base = self.machine_.undirected, getattr(self, "base_bias_", None)
        if base is not None and machine.visible_shape != self.visible_shape_:
            chains = getattr(self, "chains_", None)
            whole = (
                machine.visible_bias if chains is None else machine.visible_units.base_bias(chains)
            )
            base = np.concatenate([np.asarray(base).reshape(-1), np.asarray(whole)[base.size :]])
        return base

    def _less_log_partition(self, values: PerSample, log_z: LogPartition | None) -> PerSample:
        """Subtract log Z; if not given, it is kept as long as the machine is the same."""
        if log_z is None:
            kept = getattr(self, "_partition", None)
            if kept is None or kept[0] is not self.machine_:
                kept = self._partition = (self.machine_, self.log_partition())
            log_z = kept[1]
        less: PerSample = values - np.asarray(log_z.value, values.dtype)
        return less
