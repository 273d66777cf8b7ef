"""Machines with a label: one more layer of a single categorical unit (Larochelle & Bengio 2008).

``-E(V, y, H) = <V, W(H)> + <V, B> + <C, H> - sum potential(V) + d_y + <U_y, H>`` is the energy of a
deep Boltzmann machine with the layers V, H and y, the last one one-hot over K classes. As a
`Machine` its visible layer is flat, the units of V and then the K of the label; everything that
works for machines works for it. Here stands what labels have besides: ``p(y | V)`` exactly.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ..tensor.check import check_array, check_batch
from .couplings import DenseCoupling
from .layered import LayeredCoupling, deep_boltzmann, layer_units, layered
from .machine import Machine
from .units import Categorical


def labelled_machine(
    machine: Machine, label_weights: ArrayLike, label_bias: ArrayLike | None = None
) -> Machine:
    """The machine of V, H and a label that the hidden layer feels, too.

    Parameters
    ----------
    machine
        The machine of V and H.
    label_weights
        U, of shape ``(K, *hidden_shape)``.
    label_bias
        d, of shape (K,); zeros by default.

    Examples
    --------
    >>> import jax
    >>> from mporbm.machine import Machine, MPOCoupling, label_logits, labelled_machine
    >>> machine = Machine(MPOCoupling.random(jax.random.key(0), (8, 8), (4, 4), rank=3))
    >>> classifier = labelled_machine(machine, jax.numpy.zeros((10, 4, 4)))
    >>> classifier.visible_shape
    (74,)
    >>> label_logits(classifier, jax.numpy.zeros((3, 8, 8))).shape
    (3, 10)
    """
    if not isinstance(machine, Machine):
        raise TypeError(f"machine: expected a Machine, got {type(machine).__name__}.")
    weights = check_array("label_weights", label_weights)
    if weights.ndim == 0 or len(weights) == 0 or weights.shape[1:] != machine.hidden_shape:
        modes = ", ".join(map(str, machine.hidden_shape))
        raise ValueError(
            f"label_weights: expected shape (n_classes, {modes}), the hidden modes after the "
            f"classes, got {weights.shape}."
        )
    bias = np.zeros(len(weights)) if label_bias is None else label_bias
    bias = check_array("label_bias", bias, (len(weights),))
    weights = jnp.moveaxis(weights.astype(machine.coupling.dtype), 0, -1)
    coupling = DenseCoupling(weights, len(machine.hidden_shape))
    top = Machine(coupling, machine.hidden_bias, bias, machine.hidden_units, Categorical())
    return deep_boltzmann([machine, top])


def with_labels(machine: Machine, visible: ArrayLike, labels: ArrayLike) -> Array:
    """Visible states of a labelled machine: V flattened, and the labels one-hot after it.

    Labels are integers 0..K-1 over the leading axes of V; any other integer stands for no label,
    and then all K entries are 0.
    """
    coupling = _check_labelled(machine)
    flat = _flat_data(coupling, visible)
    chosen: Array = jax.nn.one_hot(jnp.asarray(labels), coupling.sizes[2], dtype=flat.dtype)
    chosen = jnp.broadcast_to(chosen, (*flat.shape[:-1], coupling.sizes[2]))
    return jnp.concatenate([flat, chosen], axis=-1)


def label_fields(machine: Machine, flat: Array) -> Array:
    """``W^T(V) + C + U_y``, what the hidden layer feels with each label: (..., K, hidden units).

    `flat` are visible states of a labelled machine, or the units of V alone; what is said about
    the label there does not matter. The cost is that of one product ``W^T(V)``.
    """
    n_data, _, n_classes = _check_labelled(machine).sizes
    nothing = jnp.zeros((*flat.shape[:-1], n_classes), flat.dtype)
    field = machine.hidden_field(jnp.concatenate([flat[..., :n_data], nothing], axis=-1))
    every = jnp.eye(n_classes, n_data + n_classes, n_data, dtype=flat.dtype)
    return field[..., None, :] + machine.coupling.apply_transpose(every)


def logits_of_fields(machine: Machine, fields: Array) -> Array:
    """``log p(y | V)`` up to a constant, from what `label_fields` gave."""
    bias = machine.visible_bias[layered(machine).starts[2] :]
    return bias + machine.hidden_units.log_partition(fields).sum(axis=-1)


def label_logits(machine: Machine, visible: ArrayLike) -> Array:
    """``d_y + sum softplus(W^T(V) + C + U_y)``: ``log p(y | V)`` up to a constant, exactly.

    Of states V of shape (..., I_1..I_d) the logits of all labels, along a last axis.
    """
    flat = _flat_data(_check_labelled(machine), visible)
    return logits_of_fields(machine, label_fields(machine, flat))


def _flat_data(coupling: LayeredCoupling, visible: ArrayLike) -> Array:
    """The layer V of a batch, flattened."""
    shape = coupling.shapes[0]
    batch = check_batch("visible", visible, shape, coupling.dtype)
    return batch.reshape(*batch.shape[: -len(shape)], -1)


def _check_labelled(machine: Machine) -> LayeredCoupling:
    """The coupling of a labelled machine, with the layers V, H and y."""
    coupling = layered(machine)
    if len(coupling.couplings) != 2 or not isinstance(layer_units(machine)[2], Categorical):
        raise ValueError(
            f"machine: expected the layers V, H and a label, got layers of shapes "
            f"{coupling.shapes}; make such a machine with labelled_machine(...)."
        )
    return coupling
