"""Learning with labels (Larochelle & Bengio 2008).

A machine with a label (`mporbm.machine.labelled_machine`) learns ``log p(V, y)`` as any machine
learns the distribution of its visible layer. What is special about labels is that ``log p(y | V)``
is known in closed form, and so is its gradient: nothing has to be sampled for it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from ..machine import Machine
from ..machine.labels import label_fields, logits_of_fields, with_labels
from ..machine.layered import layered
from ..tensor.matmul import MatmulForm
from .gradient import (
    Batch,
    GradientInfo,
    Objective,
    Parameters,
    Planned,
    PullBack,
    log_likelihood_gradient,
    plan_again,
    sum_over_devices,
)
from .monitor import Snapshot


class Classification(Objective):
    """``E_data[log p(y | V) + generative_weight log p(V, y)]``, or one of its parts.

    Samples are stored with their labels (`mporbm.training.LabelledRows`), and become visible
    states [V, y] with one-hot labels.

    Parameters
    ----------
    discriminative
        Whether ``log p(y | V)`` is a part.
    generative_weight
        How much ``log p(V, y)`` counts; None for not at all.
    label_speed
        By how much faster than W the weights of the labels learn: a single unit feels them, while
        W is felt by all of the data.
    """

    discriminative: bool = eqx.field(static=True, default=True)
    generative_weight: Array | None = None
    label_speed: Array | float = 1.0

    def batch(self, machine: Machine, stored: PyTree, weight: Array) -> Batch:
        """Join samples and labels to visible states."""
        visible = stored.rows.astype(machine.coupling.dtype)
        return Batch(with_labels(machine, visible, stored.labels), weight)

    def gradient(
        self, machine: Machine, pull_back: PullBack, data: Batch, samples: Batch
    ) -> tuple[Parameters, GradientInfo]:
        """Derive both parts of the objective, and add them up."""
        parts = []
        if self.discriminative:
            parts.append(discriminative_gradient(machine, pull_back, data))
        if self.generative_weight is not None:
            ascent, info = log_likelihood_gradient(machine, pull_back, data, samples)
            parts.append((_times(self.generative_weight, ascent), info))
        ascent = parts[0][0] if len(parts) == 1 else jax.tree.map(jnp.add, *(a for a, _ in parts))
        faster = _times(self.label_speed, ascent.factors[-1])
        ascent = Parameters((*ascent.factors[:-1], faster), *ascent.biases)
        return ascent, parts[-1][1]

    @eqx.filter_jit
    def watch(self, machine: Machine, stored: PyTree, units: Array) -> Snapshot:
        """Look at a few samples; the score is the mean ``log p(y | V)``."""
        rows, n_data = stored.rows, layered(machine).sizes[0]
        visible = with_labels(machine, rows.astype(machine.coupling.dtype), stored.labels)
        field = machine.hidden_field(visible)
        passed = machine.visible_mean(machine.hidden_units.mean(field))
        with_own_label = jnp.concatenate([passed[:, :n_data], visible[:, n_data:]], axis=1)
        return Snapshot(
            ((visible - passed)[:, :n_data] ** 2).mean(),
            _log_probability(machine, Batch.equal(visible))[0],
            machine.free_energy(visible).mean(),
            jnp.maximum(jnp.abs(field).max(), jnp.abs(machine.hidden_field(with_own_label)).max()),
        )

    def field_limit(self, machine: Machine, stored: PyTree) -> float:
        """Say beyond which field a training diverges, by the samples without their labels."""
        return super().field_limit(machine, stored.rows)


def _times(factor: Array | float, gradient: PyTree) -> PyTree:
    """Multiply all arrays of a gradient, which keep their precision."""
    return jax.tree.map(lambda array: (factor * array).astype(array.dtype), gradient)


def discriminative_gradient(
    machine: Machine, pull_back: PullBack, data: Batch
) -> tuple[Parameters, GradientInfo]:
    """``grad E_data[log p(y | V)]``, exactly, of a machine that `plan_update` made ready.

    `data` are visible states [V, y]. The gradient of the visible bias is zero but for the label.
    """

    def derive(planned: Planned, data: Batch) -> tuple[tuple[Parameters, Array], Array]:
        machine, pull_back = planned

        def objective(
            theta: tuple[MatmulForm, Array, Array],
        ) -> tuple[Array, tuple[Array, Array]]:
            form, *biases = theta
            moved = eqx.tree_at(
                lambda m: (m.visible_bias, m.hidden_bias), machine.formed(form), biases
            )
            return _log_probability(moved, data)

        form = machine.coupling.matmul_form(len(data))
        theta = form, machine.visible_bias, machine.hidden_bias
        (form, *biases), (rate, largest) = jax.grad(objective, has_aux=True)(theta)
        return (Parameters(pull_back(form), *biases), rate), largest

    (ascent, hidden_mean), largest = sum_over_devices(
        derive, plan_again, (machine, pull_back), data
    )
    return ascent, GradientInfo(hidden_mean, largest)


def _log_probability(machine: Machine, data: Batch) -> tuple[Array, tuple[Array, Array]]:
    """``E_data[log p(y | V)]``; then ``E_data[H]`` and the largest absolute hidden field."""
    fields = label_fields(machine, data.visible)
    logits = logits_of_fields(machine, fields)
    labels = data.visible[:, -logits.shape[-1] :]
    value = data.mean((labels * jax.nn.log_softmax(logits)).sum(axis=-1))
    own = jnp.einsum("ny,nyj->nj", labels, fields)
    return value, (data.mean(machine.hidden_units.mean(own)), jnp.abs(fields).max())
