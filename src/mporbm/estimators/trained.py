"""What a trained estimator can be used for: features, samples, completion, likelihood."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..machine import Bernoulli, Machine, exact
from ..sampling import LogPartition, log_partition
from ..tensor.check import check_choice, check_integer, check_real
from . import batches, inputs
from .fitted import Fitted
from .progress import sample_bar
from .seeds import key_for

N_SCORED_UNITS = 64
"""Visible units whose conditionals estimate the pseudo-likelihood."""
N_ENUMERATED_UNITS = 20
"""The most units of the smaller layer for which log Z is computed by enumeration."""
LEAST_NOISE = 1e-15
"""Noise below it is taken as this much: its square must not vanish in single precision."""
N_MEASURED_ROWS = 1024
"""The most samples from which noise is estimated."""


class Trained(Fitted):
    """What a fitted estimator without labels is used for."""

    def reconstruct(self, X: Any) -> Any:
        """``E[V | E[H | V]]``: each sample after one pass up and down.

        Samples in MPS form give an `MPSBatch`.
        """
        rows = self._rows(X)
        return batches.in_batches(batches.up_and_down, self.machine_, rows)

    # Samples

    def sample(self, n_samples: int = 1, n_gibbs: int = 1000, random_state: Any = None) -> Any:
        """Samples of the model, ``(n_samples, *visible_shape)``: chains of `n_gibbs` steps each.

        The chains start as independent units at the rates of the visible bias. How many steps
        they need to forget that depends on the machine. Without a `random_state` every call draws
        other samples.

        A machine in MPS form gives an `MPSBatch` of the means ``E[V | H]`` for hidden states that
        were drawn: white noise on every visible unit is not in MPS form.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        if self.in_mps_form_:
            steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
            means = batches.draw_means(self.machine_, self._key(random_state), n_samples, steps)
            return jax.tree.map(np.asarray, means)
        rows = np.broadcast_to(np.float32(0.0), (n_samples, *self.visible_shape_))
        observed = np.broadcast_to(np.False_, rows.shape)
        return self._draws(rows, observed, None, n_gibbs, random_state)

    # Inference under evidence

    def complete(
        self,
        X: Any,
        mask: Any = None,
        *,
        method: str = "gibbs",
        n_gibbs: int = 100,
        binary: bool = False,
        return_std: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Fill in what is not known of each sample.

        Parameters
        ----------
        X
            Samples; values that are not known are ignored, and may be NaN.
        mask
            True where a value is known, for each sample or one for all; by default everything
            that is not NaN is known.
        method
            ``"gibbs"`` is the posterior mean ``E[V | known]``, averaged along a chain of `n_gibbs`
            steps for each sample without the first fifth of them; ``"mean-field"`` the
            approximation by independent units; ``"reconstruct"`` one pass up and down that starts
            with unknown units at the mean that their bias gives them, as the paper does.
        binary
            Whether to give the likelier of 0 and 1 instead of its probability.
        return_std
            Whether to give the standard deviation of every unit, too: 0 where it is known.
        random_state
            A seed; by default every call draws other random numbers.

        Returns
        -------
        array ``(n, *visible_shape)`` in which known values are as given, in double precision if
        they are; or that and its standard deviations
        """
        rows, observed = self._observed(X, mask)
        self._check_question(method, binary)
        answer = self._infer(rows, observed, None, method, n_gibbs, return_std, random_state)
        return self._finished_answer(rows, observed, answer, binary)

    def denoise(
        self,
        X: Any,
        noise: float | None = None,
        *,
        salt_and_pepper: float | None = None,
        mask: Any = None,
        method: str = "gibbs",
        n_gibbs: int = 100,
        binary: bool = False,
        return_std: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Clean each sample of noise: the posterior mean given the noisy values.

        Parameters
        ----------
        X
            Noisy samples.
        noise
            The probability that a binary value was flipped, below one half; for Gaussian units the
            standard deviation of the noise. By default it is estimated from X
            (`estimate_noise`).
        salt_and_pepper
            Instead of `noise`: the share p of values that were replaced by 0 or 1 at random, half
            of them wrongly, so ``noise = p / 2``.
        mask
            True where X was seen at all; by default everywhere but at NaN.
        method, n_gibbs, binary, return_std, random_state
            As for `complete`. ``"reconstruct"`` does not use the noise level.

        Returns
        -------
        array ``(n, *visible_shape)``, or that and its standard deviations
        """
        rows, observed = self._observed(X, mask)
        self._check_question(method, binary)
        level = self._noise(noise, salt_and_pepper)
        if level is None:
            # One pass up and down does not use it.
            reconstruct = method == "reconstruct"
            level = 0.25 if reconstruct else self._estimate_noise(rows, observed)
        answer = self._infer(rows, observed, level, method, n_gibbs, return_std, random_state)
        return self._finished_answer(rows, observed if level == 0.0 else None, answer, binary)

    def posterior_samples(
        self,
        X: Any,
        mask: Any = None,
        *,
        noise: float | None = None,
        salt_and_pepper: float | None = None,
        n_samples: int = 10,
        n_gibbs: int = 100,
        random_state: Any = None,
    ) -> NDArray[Any]:
        """Several plausible versions of each sample, drawn from ``p(V | evidence)``.

        The evidence is what `complete` and `denoise` take: a mask of what was seen, and the noise
        it was seen through, none by default.

        Returns
        -------
        array ``(n, n_samples, *visible_shape)``: the ends of independent chains of `n_gibbs` steps
        """
        rows, observed = self._observed(X, mask)
        n_samples = check_integer("n_samples", n_samples)
        level = self._noise(noise, salt_and_pepper)
        drawn = self._draws(rows, observed, level, n_gibbs, random_state, repeats=n_samples)
        drawn = drawn.reshape(len(rows), n_samples, *self.visible_shape_)
        return drawn if level else _with_known(drawn, rows[:, None], observed[:, None])

    def estimate_noise(self, X: Any, mask: Any = None) -> float:
        """The noise that makes X likeliest under this machine.

        The flip probability of binary values, or the standard deviation for Gaussian units, by
        expectation maximisation over at most 1024 samples. What the machine cannot explain counts
        as noise.
        """
        return self._estimate_noise(*self._observed(X, mask))

    def _observed(self, X: Any, mask: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Rows without their unknown values, and which values are known."""
        self._check_tensor_form("complete, denoise, posterior_samples and estimate_noise")
        rows = inputs.check_rows(self, X, reset=False, allow_nan=True)
        observed = inputs.check_mask(mask, rows)
        if not observed.all():
            rows = np.where(observed, rows, rows.dtype.type(0))
        inputs.check_values(rows, self.visible_units)
        return rows, observed

    def _noise(self, noise: Any, salt_and_pepper: Any) -> float | None:
        """The noise level that was asked for, if any."""
        if salt_and_pepper is not None:
            if noise is not None:
                raise ValueError(
                    f"noise={noise!r}: expected None where salt_and_pepper is given; leave one out."
                )
            if self.visible_units == "gaussian":
                raise ValueError(
                    "salt_and_pepper: expected binary visible units, got Gaussian ones; set noise "
                    "to the standard deviation of the noise."
                )
            density = check_real("salt_and_pepper", salt_and_pepper)
            if not 0.0 <= density < 1.0:
                raise ValueError(f"salt_and_pepper={density}: expected a share in [0, 1).")
            return density / 2.0
        if noise is None:
            return None
        level = check_real("noise", noise)
        limit = math.inf if self.visible_units == "gaussian" else 0.5
        if not 0.0 <= level < limit:
            hint = "; salt & pepper of density p is salt_and_pepper=p" if 0.5 <= level <= 1 else ""
            raise ValueError(f"noise={level}: expected a number in [0, {limit:g}){hint}.")
        return level

    def _check_question(self, method: str, binary: bool) -> None:
        check_choice("method", method, tuple(batches.METHODS))
        if not isinstance(binary, (bool, np.bool_)):
            raise TypeError(f"binary={binary!r}: expected True or False.")
        if binary and self.visible_units == "gaussian":
            raise ValueError(
                "binary=True: expected Bernoulli visible units, got Gaussian ones; leave it False."
            )

    def _estimate_noise(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> float:
        most = max(batches.BATCH_ENTRIES // math.prod(self.visible_shape_), 16)
        n_chosen = min(len(rows), N_MEASURED_ROWS, most)
        chosen = np.arange(n_chosen) * len(rows) // n_chosen
        # Padded with samples of which nothing was seen, which say nothing about noise.
        size = batches.power_of_two(n_chosen)
        dtype = self.machine_.coupling.dtype
        batch = (
            batches.padded(rows[chosen], size, dtype),
            batches.padded(observed[chosen], size, bool),
        )
        return float(batches.noise_level(self.machine_, batch, key_for(self._seed, 3)))

    def _infer(
        self,
        rows: NDArray[Any],
        observed: NDArray[np.bool_],
        noise: float | None,
        method: str,
        n_gibbs: int,
        return_std: bool,
        random_state: Any,
    ) -> Any:
        """The posterior mean of each unit, or that and its standard deviation."""
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs))
        with sample_bar(method, len(rows), bool(self.verbose)) as show:
            return batches.in_batches(
                batches.METHODS[method],
                self.machine_,
                rows,
                self._key(random_state) if method == "gibbs" else None,
                self._traced(noise),
                steps,
                bool(return_std),
                observed=observed,
                chains=True,
                show=show,
            )

    def _finished_answer(self, rows: Any, known: Any, answer: Any, binary: bool) -> Any:
        """The mean as it was asked for; known values exactly as they were given."""
        mean, *deviation = answer if isinstance(answer, tuple) else (answer,)
        if binary:
            mean = (mean > 0.5).astype(mean.dtype)
        if known is not None:
            mean = _with_known(mean, rows, known)
        return (mean, *deviation) if deviation else mean

    def _draws(
        self,
        rows: NDArray[Any],
        observed: NDArray[np.bool_],
        noise: float | None,
        n_gibbs: int,
        random_state: Any,
        repeats: int = 1,
    ) -> NDArray[Any]:
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
        key = self._key(random_state)
        with sample_bar("sample", len(rows), bool(self.verbose)) as show:
            return self._batched(
                batches.draw,
                rows,
                key,
                self._traced(noise),
                steps,
                observed=observed,
                repeats=repeats,
                chains=True,
                show=show,
            )

    # Likelihood

    def log_partition(
        self,
        method: str = "auto",
        *,
        n_chains: int = 256,
        n_temperatures: int = 2000,
        random_state: Any = None,
    ) -> LogPartition:
        """Log Z, so that ``log p(V) = -F(V) - log Z``.

        Parameters
        ----------
        method
            ``"exact"`` by enumeration, for machines of at most 24 units in the smaller layer;
            ``"ais"`` by annealed importance sampling from the base rates of the training data, in
            both directions; ``"auto"`` is exact up to 20 units.
        n_chains, n_temperatures
            Of annealed importance sampling: more of either make it more precise.
        random_state
            A seed; by default the one of the estimator, so that the answer is always the same.

        Returns
        -------
        LogPartition
            `value`, `standard_error`, `effective_sample_size`, the estimate in `reverse`, and the
            95 % `interval`.
        """
        self._check_tensor_form("log_partition and score_samples")
        check_choice("method", method, ("auto", "exact", "ais"))
        machine, base = self._undirected()
        n_units = _smaller_layer(machine)
        if method == "exact" and n_units > exact.MAX_UNITS:
            raise ValueError(
                f"method='exact': expected at most {exact.MAX_UNITS} units in the smaller layer, "
                f"got {n_units}; use method='ais'."
            )
        if method == "exact" or (method == "auto" and n_units <= N_ENUMERATED_UNITS):
            value = float(exact.log_partition(machine))
            return LogPartition(value, 0.0, math.inf, value)
        key = key_for(self._seed, 4) if random_state is None else self._key(random_state)
        return log_partition(key, machine, base, n_chains=n_chains, n_temperatures=n_temperatures)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def _undirected(self) -> tuple[Machine, Any]:
        """The machine that has a log Z, and the base rates of its visible units, if known."""
        return self.machine_, getattr(self, "base_bias_", None)

    def _less_log_partition(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values minus log Z, which is kept as long as the machine is the same."""
        kept = getattr(self, "_partition", None)
        if kept is None or kept[0] is not self.machine_:
            kept = self._partition = (self.machine_, self.log_partition().value)
        less: NDArray[Any] = values - np.asarray(kept[1], values.dtype)
        return less

    def _traced(self, noise: float | None) -> Array | None:
        """Noise as an argument of a compiled function; none at all is another program."""
        return jnp.asarray(max(noise, LEAST_NOISE), self.machine_.coupling.dtype) if noise else None


class TrainedMachine(Trained):
    """The methods of a fitted estimator of one machine, which has a free energy."""

    machine_: Machine

    def gibbs(self, V: Any, n_gibbs: int = 1, random_state: Any = None) -> NDArray[Any]:
        """The visible states V after some Gibbs steps."""
        self._check_tensor_form("gibbs")
        n_gibbs = check_integer("n_gibbs", n_gibbs, minimum=0)
        rows, key = self._rows(V), self._key(random_state)
        return self._batched(batches.chain, rows, key, n_gibbs, chains=True)

    def free_energy(self, X: Any) -> NDArray[Any]:
        """``F(V) = -log sum_H exp(-E(V, H))`` of each sample."""
        rows = self._rows(X)
        return self._batched(batches.free_energy, rows)

    def score_samples(self, X: Any) -> NDArray[Any]:
        """``log p(V) = -F(V) - log Z`` of each sample, to compare machines of any kind by.

        log Z is that of `log_partition` and computed once; its error is the same for all samples.
        """
        rows = self._rows(X)
        energies = self._batched(batches.free_energy, rows)
        return self._less_log_partition(-energies)

    def pseudo_log_likelihood(self, X: Any) -> NDArray[Any]:
        """``sum_i log p(v_i | the other units)`` of each sample: cheap, and needs no log Z.

        It is estimated from the conditionals of 64 visible units, the same at every call and for
        every machine of this shape, so that values can be compared. Bernoulli units only.
        """
        rows = self._rows(X)
        if not isinstance(self.machine_.visible_units, Bernoulli):
            raise ValueError(
                "pseudo_log_likelihood: expected Bernoulli visible units, got Gaussian ones; use "
                "score_samples."
            )
        n_visible = math.prod(self.machine_.visible_shape)
        units = np.random.default_rng(0).permutation(n_visible)[:N_SCORED_UNITS]
        chosen = jnp.asarray(units, jnp.int32)
        return self._batched(batches.pseudo_likelihood, rows, None, chosen)


def _smaller_layer(machine: Machine) -> int:
    """The units of the smaller layer that can be enumerated."""
    layers = [math.prod(machine.hidden_shape)]
    if isinstance(machine.visible_units, Bernoulli):
        layers.append(math.prod(machine.visible_shape))
    return min(layers)


def _with_known(values: NDArray[Any], rows: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Values with those that are known exactly as they were given."""
    filled = values.astype(np.result_type(values, rows.dtype), copy=False)
    np.copyto(filled, rows, where=known)
    return filled
