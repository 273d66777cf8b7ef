"""Objectives: what is learnt, what a batch of stored samples is, and what is watched meanwhile."""

import math
from typing import Any

import equinox as eqx
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ..machine import Machine
from .gradient import Batch, GradientInfo, PullBack, log_likelihood_gradient
from .monitor import Snapshot, snapshot
from .parameters import Parameters


class Objective(eqx.Module):
    """What depends on the kind of machine that learns and on what its samples are."""

    def batch(self, machine: Any, stored: Array, weight: Array) -> Batch:
        """Make stored samples ready for learning."""
        visible = stored.reshape(-1, *machine.visible_shape).astype(machine.coupling.dtype)
        return Batch(machine.visible_units.of_values(visible), weight)

    def gradient(
        self, machine: Machine, pull_back: PullBack, data: Batch, samples: Batch
    ) -> tuple[Parameters, GradientInfo]:
        """Derive for the factors that `pull_back` leads to and for both biases."""
        return log_likelihood_gradient(machine, pull_back, data, samples)

    def watch(self, machine: Any, stored: Array, units: Array) -> Snapshot:
        """Look at a few samples; `units` are those whose conditionals make the score."""
        return snapshot(machine, stored, units)

    def field_limit(self, machine: Any, stored: NDArray[np.generic]) -> float:
        """Say beyond which field a training diverges.

        Sensible weights stay far below: on average 1 for every visible unit.
        """
        largest = float(np.abs(np.asarray(stored, np.float64)).max(initial=1.0))
        n_visible: int = math.prod(machine.visible_shape)
        return 1000.0 + n_visible * largest**2


class LogLikelihood(Objective):
    """``E_data[log p(V)]``, the objective of the paper."""
