"""What labels teach: the gradient of ``log p(y | V)``, which is exact (Larochelle & Bengio 2008).

A machine with a label (`mporbm.machine.labelled_machine`) learns ``log p(V, y)`` as any machine
learns the distribution of its visible layer. What is special about labels is that their conditional
distribution is known in closed form, and so is its gradient: nothing has to be sampled. Of samples
without a label, all of whose label units are 0, the gradient is zero.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..machine import Machine
from ..machine.labels import label_fields, logits_of_fields
from .device_sums import summed
from .gradient import Batch, GradientInfo, gradient
from .parameters import Parameters


def discriminative_gradient(
    machine: Machine, data: Batch, moved: Sequence[int] | None = None
) -> tuple[Parameters, GradientInfo]:
    """The gradient of ``E_data[log p(y | V)]``.

    `data` are visible states of a labelled machine, V and the label after it. `moved` are the
    positions of the factors to derive for, all by default; the last one is U. The gradient of the
    visible bias is zero but for the bias of the label.
    """

    def derive(machine: Machine, data: Batch) -> tuple[tuple[Parameters, Array], Array]:
        theta = Parameters.of(machine)
        chosen = range(len(theta.factors)) if moved is None else moved

        def objective(part: Parameters) -> tuple[Array, tuple[Array, Array]]:
            factors = (
                own if new is None else new
                for own, new in zip(theta.factors, part.factors, strict=True)
            )
            candidate = Parameters(tuple(factors), *part.biases).into(machine)
            return _log_probability(candidate, data)

        part = Parameters(
            tuple(w if k in chosen else None for k, w in enumerate(theta.factors)), *theta.biases
        )
        ascent, (hidden_rate, largest) = jax.grad(objective, has_aux=True)(part)
        return (ascent, hidden_rate), largest

    (ascent, hidden_rate), largest = summed(derive, machine, data)
    return ascent, GradientInfo(hidden_rate, largest)


def classification_gradient(
    machine: Machine,
    data: Batch,
    samples: Batch,
    moved: Sequence[int] | None = None,
    *,
    discriminative: bool = True,
    generative_weight: Any = None,
) -> tuple[Parameters, GradientInfo]:
    """The gradient of ``E_data[log p(y | V) + generative_weight log p(V, y)]``.

    Without `discriminative` the first part is left out, with a `generative_weight` of None the
    second one, which alone looks at the samples of the model.
    """
    if generative_weight is None:
        return discriminative_gradient(machine, data, moved)
    ascent, info = gradient(machine, data, samples, moved)
    ascent = jax.tree.map(lambda g: (generative_weight * g).astype(g.dtype), ascent)
    if discriminative:
        exact, _ = discriminative_gradient(machine, data, moved)
        ascent = jax.tree.map(jnp.add, exact, ascent)
    return ascent, info


def label_score(machine: Machine, data: Batch) -> Array:
    """``E_data[log p(y | V)]``: how well a machine tells the labels of samples."""
    return _log_probability(machine, data)[0]


def _log_probability(machine: Machine, data: Batch) -> tuple[Array, tuple[Array, Array]]:
    """``E_data[log p(y | V)]``; then ``E_data[H | V, y]`` and the largest absolute hidden field."""
    machine = machine.planned(len(data.visible))
    fields = label_fields(machine, data.visible)
    logits = logits_of_fields(machine, fields)
    labels = data.visible[:, -logits.shape[-1] :]
    value = data.mean((labels * jax.nn.log_softmax(logits)).sum(axis=-1))
    own = jnp.einsum("ny,nyj->nj", labels, fields)
    hidden_rate = data.mean(labels.sum(axis=-1, keepdims=True) * machine.hidden_units.mean(own))
    return value, (hidden_rate, jnp.abs(fields).max())
