"""Inference under evidence: completion, denoising and sampling are one operation.

Evidence is an extra field on the visible units, ``p(V | evidence) ~ p(V) exp(<V, field>)``, or, for
units that are known, their values. The paper completes images by one pass up and down, which is
`reconstruct`.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from ..machine import DeepBelief, Machine, Model, Units, gaussian
from ..machine.hash_rng import hash_split
from ..machine.units.base import SMALLEST_NOISE
from ..tensor.arrays import RandomKey
from ..tensor.matmul import MANY_USES

BURN_IN = 0.2
"""The first steps of a chain that averages leave out, as a share of all."""
N_NOISE_STEPS = 100
"""The steps of `estimate_noise`."""
FIRST_NOISE = 0.1
"""The noise that they start with."""
States = Float[Array, "n ..."]
"""Visible states, means or fields, with samples first."""
Count = int | Int[Array, ""]
"""A number of steps, which compiled programs may take as an argument."""
Noise = float | Float[Array, "..."]
"""A flip probability, or a standard deviation, for all units or each."""


class Evidence(eqx.Module):
    """What is known about each visible unit: arrays of the shape of the visible states.

    What is the same for all units may be a scalar, which costs nothing in a compiled program.
    """

    known: Bool[Array, "..."]
    """Whether the unit is clamped."""
    value: States
    """The values of known units."""
    field: Float[Array, "..."]
    """The extra field on the other units."""

    @classmethod
    def from_known(cls, visible: States, observed: Bool[Array, "..."]) -> "Evidence":
        """Evidence that knows observed units exactly, and nothing of the others."""
        return cls(observed, visible, jnp.zeros((), visible.dtype))

    @classmethod
    def from_missing(cls, units: Units, visible: States) -> "Evidence":
        """Evidence that knows all units but those that are NaN, or in a group with one that is."""
        observed = ~units.joined(jnp.isnan(visible))
        return cls.from_known(jnp.where(observed, visible, 0.0), observed)

    def clamp(self, visible: States) -> States:
        """The visible states with known units at their values."""
        return jnp.where(self.known, self.value, visible)


class Posterior(eqx.Module):
    """Mean and variance of each visible unit under ``p(V | evidence)``."""

    mean: States
    variance: States


def observe(
    machine: Model,
    visible: States,
    observed: Bool[Array, "..."],
    noise: Noise | None = None,
) -> tuple[Model, Evidence]:
    """The machine and the evidence that together are the posterior, if noise was on what is seen.

    `noise` is None for exact observations, or what the visible units call noise (`Units.observe`):
    the probability of another state, or the standard deviation for Gaussian units.
    """
    if noise is None:
        return machine, Evidence.from_known(visible, observed)
    seen = machine.visible_units.observe(visible, observed, jnp.asarray(noise, visible.dtype))
    machine = eqx.tree_at(_visible_units, machine, seen.units, is_leaf=_is_units)
    return machine, Evidence(seen.known, visible, seen.field)


def posterior_field(key: RandomKey, machine: Model, evidence: Evidence, visible: States) -> States:
    """Take half a Gibbs step: the visible units' field under evidence, given new hidden ones."""
    return machine.resampled_field(key, visible) + evidence.field


def posterior_step(key: RandomKey, machine: Model, evidence: Evidence, visible: States) -> States:
    """Take a Gibbs step under evidence."""
    up, down = hash_split(key)
    field = posterior_field(up, machine, evidence, visible)
    return evidence.clamp(machine.visible_units.sample(down, field))


def posterior_start(key: RandomKey, machine: Model, evidence: Evidence) -> States:
    """Start chains as independent units that know their bias and the evidence."""
    field = jnp.broadcast_to(machine.visible_bias + evidence.field, evidence.value.shape)
    return evidence.clamp(machine.visible_units.sample(key, field))


def posterior_sample(
    key: RandomKey,
    machine: Model,
    evidence: Evidence,
    n_steps: Count,
    start: States | None = None,
) -> States:
    """Draw once for each sample: the end of a chain of `n_steps`.

    It starts at the given states, or as `posterior_start` says.
    """
    start_key, chain = jax.random.split(key)
    machine = machine.planned(len(evidence.value), MANY_USES)
    if start is None:
        start = posterior_start(start_key, machine, evidence)

    def step(number: Array, visible: Array) -> Array:
        return posterior_step(jax.random.fold_in(chain, number), machine, evidence, visible)

    state: Array = jax.lax.fori_loop(0, n_steps, step, start)
    return state


def posterior_average(
    key: RandomKey, machine: Model, evidence: Evidence, n_steps: Count
) -> Posterior:
    """Average the conditional means along a chain of `n_steps`, its beginning left out.

    ``E[V | H, evidence]`` instead of V itself has the same mean and less variance. The variance
    of a unit is the mean of its conditional variances plus the variance of its conditional means,
    which for a binary unit follows from its mean.
    """
    start, chain = jax.random.split(key)
    machine = machine.planned(len(evidence.value), MANY_USES)
    is_binary = machine.visible_units.is_binary
    n_steps = jnp.asarray(n_steps)
    burn_in = (BURN_IN * n_steps).astype(n_steps.dtype)

    def step(number: Array, visible: Array) -> Array:
        return posterior_step(jax.random.fold_in(chain, number), machine, evidence, visible)

    def count(number: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        visible, average, spread = state
        up, down = hash_split(jax.random.fold_in(chain, number))
        field = posterior_field(up, machine, evidence, visible)
        visible, mean = machine.visible_units.sample_and_mean(down, field)
        # Welford's rule: sums of squares would lose the variance of units far from 0.
        moved = average + (mean - average) / (number - burn_in + 1).astype(mean.dtype)
        if not is_binary:
            spread = spread + (mean - average) * (mean - moved)
        return evidence.clamp(visible), moved, spread

    visible = posterior_start(start, machine, evidence)
    visible = jax.lax.fori_loop(0, burn_in, step, visible)
    zero = jnp.zeros_like(visible)
    state = visible, zero, jnp.zeros((), visible.dtype) if is_binary else zero
    _, mean, spread = jax.lax.fori_loop(burn_in, n_steps, count, state)
    spread = spread / (n_steps - burn_in).astype(visible.dtype)
    return _known_exactly(evidence, mean, machine.visible_units.total_variance(mean, spread))


def exact(machine: Machine, evidence: Evidence) -> Posterior:
    """The posterior of a machine of two Gaussian layers, in closed form."""
    found = gaussian.given(machine, evidence.value, evidence.known, evidence.field)
    return Posterior(evidence.clamp(found.visible_mean), found.visible_variance)


def exact_sample(key: RandomKey, machine: Machine, evidence: Evidence) -> States:
    """Draw once for each sample from the posterior of a machine of two Gaussian layers."""
    return gaussian.draw(key, machine, evidence.value, evidence.known, evidence.field)


def mean_field(machine: Model, evidence: Evidence, n_steps: Count) -> Posterior:
    """Find the best independent units by coordinate ascent: one layer, then the other."""
    machine = machine.planned(len(evidence.value), MANY_USES)

    def field(visible: Array) -> Array:
        return machine.visible_field(machine.hidden_mean(visible)) + evidence.field

    def step(_: Array, visible: Array) -> Array:
        return evidence.clamp(machine.visible_units.mean(field(visible)))

    first = jnp.broadcast_to(machine.visible_bias + evidence.field, evidence.value.shape)
    start = evidence.clamp(machine.visible_units.mean(first))
    visible = jax.lax.fori_loop(0, n_steps, step, start)
    mean = machine.visible_units.mean(field(visible))
    return _known_exactly(evidence, mean, _variance(machine, mean))


def reconstruct(machine: Model, evidence: Evidence, observed: Bool[Array, "..."]) -> Posterior:
    """Pass up and down once from what was observed, as the paper does.

    Other units begin at the mean that their bias gives them. Noise is not modelled: the pass down
    does not know the evidence, but for known units.
    """
    visible = jnp.where(observed, evidence.value, machine.visible_units.mean(machine.visible_bias))
    mean = machine.visible_units.mean(machine.visible_field(machine.hidden_mean(visible)))
    return _known_exactly(evidence, mean, _variance(machine, mean))


def estimate_noise(
    key: RandomKey,
    machine: Model,
    visible: States,
    observed: Bool[Array, "..."],
    scale: Float[Array, "..."] | float = 1.0,
) -> Float[Array, ""]:
    """Estimate the noise under which a batch is likeliest, by stochastic expectation maximisation.

    Each step draws from the posterior under the noise so far, and then takes the noise that fits
    best, by `Units.fit_noise`. The answer is the mean over the second half of the steps. Where both
    layers are Gaussian, expectations take the place of draws. The noise is that of units multiplied
    by `scale`.
    """
    # Numbers that steps begin with and stay above are those of states.
    typical = jnp.sqrt(jnp.mean(jnp.asarray(scale) ** 2))
    scale = jnp.asarray(scale) / typical
    if gaussian.is_gaussian(machine):
        return typical * _exact_noise(machine, visible, observed, scale)
    machine, units = machine.planned(len(visible), MANY_USES), machine.visible_units

    def step(carry: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], Array]:
        state, noise = carry
        noisy, evidence = observe(machine, visible, observed, noise / scale)
        up, down = hash_split(key)
        field = posterior_field(up, noisy, evidence, state)
        state = evidence.clamp(noisy.visible_units.sample(down, field))
        found = units.fit_noise(visible, observed, field, evidence.field, scale)
        noise = found.astype(visible.dtype)
        return (state, noise), noise

    first = jnp.asarray(FIRST_NOISE, visible.dtype)
    keys = jax.random.split(key, N_NOISE_STEPS)
    _, noises = jax.lax.scan(step, (visible, first), keys)
    return typical * noises[N_NOISE_STEPS // 2 :].mean()


def _exact_noise(
    machine: Machine,
    visible: States,
    observed: Bool[Array, "..."],
    scale: Float[Array, "..."] | float,
) -> Float[Array, ""]:
    """Maximise over the noise by expectation maximisation: ``noise^2 = E[(y - v)^2]``."""

    def step(_: Array, noise: Array) -> Array:
        noisy, evidence = observe(machine, visible, observed, noise / scale)
        assert isinstance(noisy, Machine), "what is observed of a machine is one"
        found = exact(noisy, evidence)
        square = scale**2 * ((visible - found.mean) ** 2 + found.variance)
        level = jnp.where(observed, square, 0.0).sum() / jnp.maximum(observed.sum(), 1)
        return jnp.maximum(jnp.sqrt(level), SMALLEST_NOISE).astype(visible.dtype)

    first = FIRST_NOISE * jnp.ones((), visible.dtype)
    found: Array = jax.lax.fori_loop(0, N_NOISE_STEPS, step, first)
    return found


def _variance(machine: Model, mean: States) -> States:
    """The variance of each visible unit with a given mean."""
    return machine.visible_units.total_variance(mean, jnp.zeros((), mean.dtype))


def _visible_units(machine: Model) -> object:
    """The place where a model keeps the units of the data."""
    return (machine.lowest if isinstance(machine, DeepBelief) else machine).visible_units


def _is_units(node: object) -> bool:
    return isinstance(node, Units)


def _known_exactly(evidence: Evidence, mean: States, variance: States) -> Posterior:
    """The posterior with known units at their values, without variance."""
    return Posterior(evidence.clamp(mean), jnp.where(evidence.known, 0.0, variance))
