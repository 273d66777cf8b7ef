"""Machines of two Gaussian layers learn by maximum likelihood, for it is known in closed form.

With the means mu of the visible units, their precisions ``Lambda = 1 / s`` and hidden variances t,
the gauge ``C = -W^T mu``, ``B = Lambda mu`` gives hidden units the mean 0, and a sample whose
unknown units are L has the log-density

``(sum log Lambda - <V - mu, Lambda (V - mu)> + log |K| - log |K_L| + <a, K_L^-1 a>) / 2``

over the known units, up to ``-log(2 pi) / 2`` for each, where ``K_L = 1 / t - W_L^T s_L W_L``, K is
that of all units, and ``a = W^T (V - mu)`` over the known ones: what is missing is integrated out.
Variances are learnt for every unit, as logarithms. The distribution exists while K is positive;
``log |K|`` falls without bound towards where it ends, so no step leads out.

The gradient is stiff, as variances along the axes of V are ``1 / (1 - w^2)``: Algorithm 1's steps
of a given length stop some 17 nats below what quasi-Newton steps reach on the serology data of
`benchmarks/real.py`. These take all samples at once.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from ..machine import Gaussian, Machine
from ..machine.gaussian import ROWS_AT_ONCE
from ..precision import converted
from ..tensor.network import squared_norm
from .algorithm import Algorithm, LearningState
from .gradient import Batch
from .monitor import StepInfo
from .quasi_newton import Memory, minimise
from .rule import Rates

N_STEPS = 20
"""The quasi-Newton steps of an epoch."""
LEAST_VARIANCE = 1e-4
"""What is added to the variance of every unit in the data: noise that bounds its own from below."""


class FactorModel(NamedTuple):
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


class MaximumLikelihood(Algorithm):
    """Quasi-Newton ascent of the exact log-likelihood, some steps for every epoch.

    Scheme, negative phase and rates have no part in it; of the rule, the weight decay has.
    """

    complete: bool = eqx.field(static=True, default=True)
    """Whether every value of every sample is known."""

    def init(self, key: Array, machine: Machine, n_chains: int) -> LearningState:
        """Give every unit a variance of its own; nothing is known of the curvature yet."""
        machine = converted(machine, jnp.result_type(float))
        machine = FactorModel.of(machine).into(machine)
        flat, _ = ravel_pytree(FactorModel.of(machine))
        return LearningState(machine, Memory.empty(flat), (), None)

    def step(
        self, key: Array, state: LearningState, data: Batch, rates: Rates
    ) -> tuple[LearningState, StepInfo]:
        """Take some steps; the batch are all samples."""
        machine = state.machine
        flat, restore = ravel_pytree(FactorModel.of(machine))

        def loss(flat: Array) -> Array:
            model: FactorModel = restore(flat)
            learnt = model.into(machine)
            decay = 0.5 * self.rule.weight_decay * _squared_norm(learnt)
            return decay - log_likelihood(learnt, data, self.complete)

        point, memory, _ = minimise(loss, flat, state.velocity, N_STEPS)
        machine = restore(point.x).into(machine)
        field = machine.hidden_field(jnp.nan_to_num(data.visible))
        info = StepInfo(jnp.linalg.norm(point.gradient), jnp.abs(field).max())
        return LearningState(machine, memory, (), None), info


def log_likelihood(machine: Machine, data: Batch, complete: bool = True) -> Array:
    """Average the log-density of samples; NaN is unknown, if they are not complete.

    Hidden units have the mean 0.
    """
    model, weights = FactorModel.of(machine), machine.coupling.to_matrix()
    hidden, dtype = machine.hidden_units, machine.coupling.dtype
    assert isinstance(hidden, Gaussian), "hidden units are Gaussian"
    t = jnp.broadcast_to(hidden.variance, machine.hidden_shape).reshape(-1).astype(dtype)
    s = jnp.exp(model.log_variance).reshape(-1)
    whole = jnp.diag(1.0 / t) - weights.T @ (s[:, None] * weights)
    rows = (data.visible - model.mean).reshape(len(data), -1)
    known = ~jnp.isnan(rows)
    rows = jnp.where(known, rows, 0.0)
    terms = jnp.where(known, model.log_variance.reshape(-1) + (rows**2 + LEAST_VARIANCE) / s, 0.0)
    own = (terms + math.log(2.0 * math.pi) * known).sum(axis=1)
    pulls = rows @ weights

    def explained(known: Array, pull: Array) -> Array:
        free = jnp.where(known, 0.0, s)
        root = jnp.linalg.cholesky(jnp.diag(1.0 / t) - weights.T @ (free[:, None] * weights))
        half = jax.scipy.linalg.solve_triangular(root, pull, lower=True)
        return half @ half - _log_determinant(root)

    if complete:
        gain = (pulls**2 * t).sum(axis=1) + jnp.log(t).sum()
    else:
        each = jax.checkpoint(lambda row: explained(*row))
        gain = jax.lax.map(each, (known, pulls), batch_size=ROWS_AT_ONCE)
    return 0.5 * (data.mean(gain - own) + _log_determinant(jnp.linalg.cholesky(whole)))


def _log_determinant(root: Array) -> Array:
    """The logarithm of the determinant of a matrix with a Cholesky factor."""
    return 2.0 * jnp.log(jnp.diagonal(root)).sum()


def _squared_norm(machine: Machine) -> Array:
    """``|W|^2``."""
    squares = [squared_norm(part.nodes()) for part in machine.coupling.parts()]
    return sum(squares[1:], start=squares[0])
