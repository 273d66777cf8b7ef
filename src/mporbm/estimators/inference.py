"""Inference: samples, completion and denoising, as one operation under evidence."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..precision import converted, double_precision
from ..tensor.arrays import HostTensor, Samples
from ..tensor.check import check_choice, check_integer, check_real
from . import batches, inputs
from .base import EstimatorBase, Purpose, RandomState, key_for
from .scaling import scale_of, states_of, values_of

LEAST_NOISE = 1e-15
"""Noise below it is taken as this much: its square must not vanish in single precision."""
STEPS_FROM_CHAINS, STEPS_ALONE = 100, 1000
"""The Gibbs steps of samples from the chains of the training, and from independent units."""
N_MEASURED_ROWS = 1024
"""The most samples from which noise is estimated."""
Known = Bool[np.ndarray, "n ..."]


class InferenceMixin(EstimatorBase):
    """What a fitted estimator is used for, whatever its machine."""

    _CONTINUED: ClassVar[Callable[..., Array]] = staticmethod(batches.continued)
    """How samples are made of the states that chains start at."""

    def reconstruct(self, X: ArrayLike) -> Float[np.ndarray, "n ..."]:
        """Pass each sample up and down once: ``E[V | E[H | V]]``."""
        return values_of(self, self._batched(batches.up_and_down, self._rows(X)))

    def sample(
        self,
        n_samples: int = 1,
        n_gibbs: int | None = None,
        random_state: RandomState = None,
    ) -> HostTensor:
        """Draw samples of the model, ``(n_samples, *visible_shape)``, by chains of `n_gibbs` steps.

        The chains start at states that those of the training have passed through (`chains_`), which
        learning has driven through the modes of the model, several at the same state if there are
        fewer, and take 100 steps by default. Where there are none (after ``negative_phase="cd"``)
        they start as independent units at the rates of the visible bias, and take 1000. How many
        steps they need to forget their start depends on the machine. Chains of deep belief networks
        are those of the machine on top, and a pass down follows. Without a `random_state` every
        call draws other samples.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples)
        chains = getattr(self, "chains_", None)
        if n_gibbs is None:
            n_gibbs = STEPS_ALONE if chains is None else STEPS_FROM_CHAINS
        n_gibbs, key = check_integer("n_gibbs", n_gibbs, minimum=0), self._key(random_state)
        if chains is None:
            return self._sample_anew(key, n_samples, n_gibbs)
        order = np.random.default_rng(np.asarray(jax.random.key_data(key))).permutation(len(chains))
        starts = chains[np.resize(order, n_samples)]
        options: dict[str, Any] = {"chains": True, "title": "sample"}
        drawn = self._batched(self._CONTINUED, starts, key, jnp.asarray(n_gibbs), **options)
        return values_of(self, self._narrowed(drawn))

    def _sample_anew(self, key: Array, n_samples: int, n_gibbs: int) -> HostTensor:
        """Draw samples by chains that start as independent units."""
        rows = np.broadcast_to(np.float32(0.0), (n_samples, *self.visible_shape_))
        observed = np.broadcast_to(np.False_, rows.shape)
        return self._draws(rows, observed, None, n_gibbs, key)

    @available_if(lambda self: not self._is_deep)
    def gibbs(self, V: ArrayLike, n_gibbs: int = 1, random_state: RandomState = None) -> HostTensor:
        """Move visible states V by some Gibbs steps."""
        n_gibbs = check_integer("n_gibbs", n_gibbs, minimum=0)
        rows, key = np.asarray(self._rows(V)), self._key(random_state)
        moved = self._batched(batches.chain, self._widened(rows), key, n_gibbs, chains=True)
        return values_of(self, self._narrowed(moved))

    # Inference under evidence

    def complete(
        self,
        X: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        method: str = "auto",
        n_gibbs: int = 100,
        binary: bool = False,
        return_std: bool = False,
        random_state: RandomState = None,
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
            ``"auto"`` is the closed form where both layers are Gaussian, and ``"gibbs"`` elsewhere.
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
        return self._infer(rows, observed, None, method, n_gibbs, binary, return_std, random_state)

    def denoise(
        self,
        X: ArrayLike,
        noise: float | None = None,
        *,
        salt_and_pepper: float | None = None,
        mask: ArrayLike | None = None,
        method: str = "auto",
        n_gibbs: int = 100,
        binary: bool = False,
        return_std: bool = False,
        random_state: RandomState = None,
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
        return self._infer(rows, observed, level, method, n_gibbs, binary, return_std, random_state)

    def posterior_samples(
        self,
        X: ArrayLike,
        mask: ArrayLike | None = None,
        *,
        noise: float | None = None,
        salt_and_pepper: float | None = None,
        n_samples: int = 10,
        n_gibbs: int = 100,
        random_state: RandomState = None,
    ) -> HostTensor:
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
        key = self._key(random_state)
        drawn = self._draws(rows, observed, level, n_gibbs, key, repeats=n_samples)
        drawn = drawn.reshape(len(rows), n_samples, *self.visible_shape_)
        return drawn if level else _with_known(drawn, rows[:, None], observed[:, None])

    def estimate_noise(self, X: ArrayLike, mask: ArrayLike | None = None) -> float:
        """The noise that makes X likeliest under this machine.

        The flip probability of binary values, or the standard deviation for Gaussian units, by
        expectation maximisation over at most 1024 samples. What the machine cannot explain counts
        as noise.
        """
        return self._estimate_noise(*self._observed(X, mask))

    def _observed(self, X: object, mask: ArrayLike | None) -> tuple[Samples, Known]:
        """Check samples and mask; unknown values become 0."""
        check_is_fitted(self)
        rows = np.asarray(inputs.check_rows(self, X, reset=False, allow_nan=True))
        observed = inputs.check_mask(mask, rows)
        if not observed.all():
            rows = np.where(observed, rows, rows.dtype.type(0))
        inputs.check_values(rows, self.visible_units)
        return rows, observed

    def _noise(self, noise: float | None, salt_and_pepper: float | None) -> float | None:
        """Check the noise level that was asked for, if any."""
        gaussian = self.visible_units == "gaussian"
        if salt_and_pepper is not None:
            if noise is not None:
                raise ValueError(
                    f"noise={noise!r}: expected None where salt_and_pepper is given; leave one out."
                )
            if gaussian:
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
        level, limit = check_real("noise", noise), math.inf if gaussian else 0.5
        if not 0.0 <= level < limit:
            hint = "; salt & pepper of density p is salt_and_pepper=p" if 0.5 <= level <= 1 else ""
            raise ValueError(f"noise={level}: expected a number in [0, {limit:g}){hint}.")
        return level

    def _check_question(self, method: str, binary: bool) -> None:
        check_choice("method", method, batches.METHODS)
        if not isinstance(binary, (bool, np.bool_)):
            raise TypeError(f"binary={binary!r}: expected True or False.")
        if binary and self.visible_units == "gaussian":
            raise ValueError(
                "binary=True: expected Bernoulli visible units, got Gaussian ones; leave it False."
            )

    def _estimate_noise(self, rows: Samples, observed: Known) -> float:
        most = max(batches.BATCH_ENTRIES // math.prod(self.visible_shape_), 16)
        n_chosen = min(len(rows), N_MEASURED_ROWS, most)
        chosen = np.arange(n_chosen) * len(rows) // n_chosen
        # Padded with samples of which nothing was seen, which say nothing about noise.
        size = batches.power_of_two(n_chosen)
        states, key = np.asarray(states_of(self, rows[chosen])), key_for(self._seed, Purpose.NOISE)
        with double_precision() if self._is_gaussian else nullcontext():
            machine = self.machine_
            if self._is_gaussian:
                machine = converted(machine, jnp.float64)
            dtype = machine.coupling.dtype
            batch = (
                batches.padded(self._widened(states), size, dtype),
                batches.padded(self._widened(observed[chosen]), size, bool),
            )
            scale = jnp.asarray(scale_of(self), dtype)
            return float(batches.noise_level(machine, batch, key, scale))

    def _infer(
        self,
        rows: Samples,
        observed: Known,
        noise: float | None,
        method: str,
        n_gibbs: int,
        binary: bool,
        return_std: bool,
        random_state: RandomState,
    ) -> HostTensor | tuple[HostTensor, ...]:
        """The posterior mean of each unit, or that and its standard deviation."""
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs))
        answer = batches.in_batches(
            batches.posterior,
            self.machine_,
            self._widened(np.asarray(states_of(self, rows))),
            self._key(random_state) if method in ("auto", "gibbs") else None,
            self._traced(noise),
            steps,
            method,
            bool(return_std),
            observed=self._widened(observed),
            chains=True,
            title=method if self.verbose else "",
        )
        mean, *deviation = map(self._narrowed, jax.tree.leaves(answer))
        mean = values_of(self, mean)
        deviation = [np.asarray(part * scale_of(self)) for part in deviation]
        if binary:
            mean = (mean > 0.5).astype(mean.dtype)
        if not noise:
            mean = _with_known(mean, rows, observed)
        return (mean, *deviation) if deviation else mean

    def _draws(
        self,
        rows: Samples,
        observed: Known,
        noise: float | None,
        n_gibbs: int,
        key: Array,
        repeats: int = 1,
    ) -> HostTensor:
        steps = jnp.asarray(check_integer("n_gibbs", n_gibbs, minimum=0))
        drawn = self._batched(
            batches.draw,
            self._widened(np.asarray(states_of(self, rows))),
            key,
            self._traced(noise),
            steps,
            observed=self._widened(observed),
            repeats=repeats,
            chains=True,
            title="sample",
        )
        return values_of(self, self._narrowed(drawn))

    def _widened(self, data: Samples) -> Samples:
        """Make data the first visible units of a machine that has more, of which nothing is known.

        Those of a deep or labelled machine hold other layers, too.
        """
        shape = self.machine_.visible_bias.shape
        if data.shape[1:] == shape:
            return data
        more = shape[0] - self.n_features_in_
        return np.pad(data.reshape(len(data), -1), ((0, 0), (0, more)))

    def _narrowed(self, visible: Samples) -> Samples:
        """Take the data out of the visible units of a machine that has more."""
        if visible.shape[1:] == self.visible_shape_:
            return visible
        return visible[:, : self.n_features_in_].reshape(len(visible), *self.visible_shape_)

    def _traced(self, noise: float | None) -> Array | None:
        """Make noise an argument of a compiled function; none at all is another program."""
        if not noise:
            return None
        level = np.maximum(noise / scale_of(self), LEAST_NOISE)
        return jnp.asarray(level, self.machine_.coupling.dtype)


def _with_known(values: HostTensor, rows: Samples, known: Known) -> HostTensor:
    """Put known values, exactly as they were given, in place of inferred ones."""
    filled = values.astype(np.result_type(values, rows.dtype), copy=False)
    np.copyto(filled, rows, where=known)
    return filled
