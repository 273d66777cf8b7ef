"""Machines of two Gaussian layers learn by maximum likelihood, for it is known in closed form.

With the means mu of the visible units, their precisions ``Lambda = 1 / s`` and hidden variances t,
the gauge ``C = -W^T mu``, ``B = Lambda mu`` gives hidden units the mean 0, and samples with the
second moments ``S = E[(V - mu) (V - mu)^T]`` have on average the log-density

``(sum log Lambda - tr(Lambda S) + tr(t W^T S W) + log |t K|) / 2``,  ``K = 1 / t - W^T s W``,

up to ``-log(2 pi) / 2`` for each unit. Variances are learnt for every unit, as logarithms. The
distribution exists while K is positive; ``log |K|`` falls without bound towards where it ends, so
no step leads out. Of samples with missing values S is the expected one given what was observed,
computed anew for every epoch: expectation maximisation (Dempster, Laird & Rubin 1977), whose
gradient is that of the log-probability of what was observed.

The gradient is stiff, as variances along the axes of V are ``1 / (1 - w^2)``: on the serology data
of `benchmarks/real.py`, steps of a given length as those of Algorithm 1 stopped 17 nats below what
quasi-Newton steps reach. These take all samples at once.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from ..machine import Gaussian, Machine
from ..machine.gaussian import (
    given,
    hidden_variance,
    precision_root,
    solve_root,
    within_bounds,
)
from ..precision import converted
from ..tensor.network import squared_norm
from .algorithm import Algorithm, LearningState
from .gradient import Batch
from .monitor import StepInfo
from .quasi_newton import Memory, minimise
from .rule import Rates

N_STEPS = 20
"""The quasi-Newton steps of an epoch."""
START = 0.5
"""What the largest singular value of scaled weights becomes that begin beyond the boundary, 1."""
LEAST_VARIANCE = 1e-4
"""What is added to the variance of every unit in the data: noise that bounds its own from below."""


class FactorModel(eqx.Module):
    """The parameters that are learnt."""

    factors: tuple[PyTree, ...]
    mean: Array
    log_variance: Array

    @classmethod
    def of(cls, machine: Machine) -> "FactorModel":
        """Take them out of a machine whose hidden units have the mean 0."""
        units = machine.visible_units
        assert isinstance(units, Gaussian), "visible units are Gaussian"
        log_variance = jnp.broadcast_to(units.log_variance, machine.visible_shape)
        log_variance = log_variance.astype(machine.coupling.dtype)
        mean = jnp.exp(log_variance) * machine.visible_bias
        return cls(machine.coupling.factors, mean, log_variance)

    def into(self, machine: Machine) -> Machine:
        """Put them into a machine in place of its own."""
        coupling = machine.coupling.with_factors(self.factors)
        units = eqx.tree_at(lambda u: u.log_variance, machine.visible_units, self.log_variance)
        biases = self.mean / jnp.exp(self.log_variance), -coupling.apply_transpose(self.mean)
        return Machine(coupling, *biases, units, machine.hidden_units)


class Moments(eqx.Module):
    """What a likelihood knows of samples: their mean and covariance, ``root^T root + diagonal``.

    Flat samples.
    """

    mean: Array
    root: Array
    diagonal: Array

    @classmethod
    def of(cls, data: Batch) -> "Moments":
        """Take them from complete samples."""
        rows = data.visible.reshape(len(data), -1)
        mean = data.mean(rows)
        return cls(mean, jnp.sqrt(data.weight)[:, None] * (rows - mean), jnp.zeros_like(mean))

    @classmethod
    def expected(cls, machine: Machine, data: Batch) -> "Moments":
        """Take those that a machine expects of samples in which NaN are missing values.

        Given what was observed, a sample has the covariance ``s_L + s_L W K_L^-1 W^T s_L`` on what
        was not, L; see `mporbm.machine.gaussian`.
        """
        n, n_hidden = len(data), machine.hidden_bias.size
        known = ~jnp.isnan(data.visible)
        found = given(machine, data.visible, known)
        rows = jnp.where(known, data.visible, found.visible_mean).reshape(n, -1)
        whole = cls.of(Batch(rows, data.weight))
        s, t, weights = _layers(machine)
        free = jnp.where(known.reshape(n, -1), 0.0, s)

        def spread(free: Array) -> Array:
            """A root of what the hidden layer adds to the covariance of a sample."""
            return solve_root(precision_root(weights, t, free), (free[:, None] * weights).T)

        def add(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
            own = spread(row[0])
            return total + row[1] * own.T @ own, None

        each = free, data.weight
        if len(s) <= n * n_hidden:
            total, _ = jax.lax.scan(add, whole.root.T @ whole.root, each)
            values, vectors = jnp.linalg.eigh(total)
            root = jnp.sqrt(jnp.maximum(values, 0.0))[:, None] * vectors.T
        else:
            spreads = jax.lax.map(lambda row: jnp.sqrt(row[1]) * spread(row[0]), each)
            root = jnp.concatenate([whole.root, spreads.reshape(-1, len(s))])
        return cls(whole.mean, root, data.weight @ free)


class MaximumLikelihood(Algorithm):
    """Quasi-Newton ascent of the exact log-likelihood, some steps for every epoch.

    Scheme, negative phase and rates have no part in it; of the rule, the weight decay has.
    """

    complete: bool = eqx.field(static=True, default=True)
    """Whether every value of every sample is known."""
    is_bounded: ClassVar[bool] = False

    def init(self, key: Array, machine: Machine, n_chains: int) -> LearningState:
        """Give every unit a variance of its own; nothing is known of the curvature yet.

        Weights without a distribution shrink until there is one.
        """
        machine = converted(machine, jnp.result_type(float))
        machine = FactorModel.of(machine).into(machine)
        coupling = within_bounds(machine, 1.0, START).coupling
        model = eqx.tree_at(lambda m: m.factors, FactorModel.of(machine), coupling.factors)
        machine = model.into(machine)
        flat, _ = ravel_pytree(FactorModel.of(machine))
        return LearningState(machine, Memory.empty(flat), (), None)

    def step(
        self, key: Array, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Take some steps; the batch are all samples."""
        machine = state.machine
        moments = Moments.of(data) if self.complete else Moments.expected(machine, data)
        # The best means are known.
        begin = FactorModel.of(machine)
        mean = moments.mean.reshape(machine.visible_shape)
        flat, restore = ravel_pytree(FactorModel(begin.factors, mean, begin.log_variance))

        def loss(flat: Array) -> Array:
            model: FactorModel = restore(flat)
            learnt = model.into(machine)
            decay = 0.5 * self.rule.weight_decay * _squared_norm(learnt)
            return decay - log_likelihood(learnt, moments)

        # Where the moments are new, so is the function.
        memory = state.velocity
        memory = eqx.tree_at(lambda m: m.is_done, memory, memory.is_done & self.complete)
        point, memory, _ = minimise(loss, flat, memory, N_STEPS)
        machine = restore(point.x).into(machine)
        # Fields have no bound here that would tell of anything.
        info = StepInfo(jnp.linalg.norm(point.gradient), jnp.zeros((), flat.dtype))
        return LearningState(machine, memory, (), None), info


def log_likelihood(machine: Machine, moments: Moments) -> Array:
    """Average the log-density of samples with given moments; hidden units have the mean 0."""
    s, t, weights = _layers(machine)
    gap = moments.mean - FactorModel.of(machine).mean.reshape(-1)
    roots = jnp.concatenate([moments.root, gap[None]])
    squares = (roots**2).sum(axis=0) + moments.diagonal
    explained = ((roots @ weights) ** 2).sum(axis=0)
    explained = explained + moments.diagonal @ weights**2
    precision = precision_root(weights, t, s)
    own = jnp.log(2.0 * math.pi * s) + (squares + LEAST_VARIANCE) / s
    volume = 2.0 * jnp.log(jnp.diagonal(precision)).sum() + jnp.log(t).sum()
    return 0.5 * (explained @ t + volume - own.sum())


def _layers(machine: Machine) -> tuple[Array, Array, Array]:
    """The variances of both layers, flat, and W as a matrix."""
    s = jnp.exp(FactorModel.of(machine).log_variance).reshape(-1)
    return s, hidden_variance(machine), machine.coupling.to_matrix()


def _squared_norm(machine: Machine) -> Array:
    """``|W|^2``."""
    squares = [squared_norm(part.nodes()) for part in machine.coupling.parts()]
    return sum(squares[1:], start=squares[0])
