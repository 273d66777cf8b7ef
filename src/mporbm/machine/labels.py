"""Machines with labels: a class as one more group of visible units (Larochelle & Bengio 2008)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..tensor.check import check_array, check_key
from .hash_rng import hash_bits, hash_split
from .machine import Machine


class LabelledMachine(Machine):
    """A machine whose hidden layer also feels a label y, one of K classes.

    ``-E(V, y, H) = -E(V, H) + d_y + <U_y, H>``. Labels are integers 0..K-1 over the leading axes
    of a batch. Where they may be given but are not, they are summed out: without them the methods
    are those of the machine of V and H alone, except that p(H | V) is a mixture over the labels.

    To temper or anneal a machine of given labels, take `given`.

    Parameters
    ----------
    machine
        What V and H have with each other.
    label_weights
        U, of shape ``(K, *hidden_shape)``.
    label_bias
        d, of shape (K,); zeros by default.

    Examples
    --------
    >>> import jax
    >>> from mporbm.machine import LabelledMachine, Machine, MPOCoupling
    >>> machine = Machine(MPOCoupling.random(jax.random.key(0), (8, 8), (4, 4), rank=3))
    >>> classifier = LabelledMachine(machine, jax.numpy.zeros((10, 4, 4)))
    >>> classifier.label_log_probability(jax.numpy.zeros((3, 8, 8))).shape
    (3, 10)
    """

    label_weights: Array
    label_bias: Array

    def __init__(self, machine: Machine, label_weights: Any, label_bias: Any = None):
        if not isinstance(machine, Machine):
            raise TypeError(f"machine: expected a Machine, got {type(machine).__name__}.")
        super().__init__(
            machine.coupling, machine.visible_bias, machine.hidden_bias, machine.visible_units
        )
        weights = check_array("label_weights", label_weights)
        if weights.ndim == 0 or len(weights) == 0 or weights.shape[1:] != self.hidden_shape:
            modes = ", ".join(map(str, self.hidden_shape))
            raise ValueError(
                f"label_weights: expected shape (n_classes, {modes}), the hidden modes after the "
                f"classes, got {weights.shape}."
            )
        bias = np.zeros(len(weights)) if label_bias is None else label_bias
        dtype = self.coupling.dtype
        self.label_weights = weights.astype(dtype)
        self.label_bias = check_array("label_bias", bias, (len(weights),)).astype(dtype)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.label_bias)

    def given(self, labels: Any) -> Machine:
        """The machine of V and H that labels leave: its hidden bias is ``C + U_y``.

        An array of labels gives a bias for each of them.
        """
        parts = self.coupling, self.visible_bias, self.hidden_bias, self.visible_units
        bias = self.hidden_bias + self.label_weights[jnp.asarray(labels)]
        machine: Machine = eqx.tree_at(lambda m: m.hidden_bias, Machine(*parts), bias)
        return machine

    # Labels

    def label_field(self, hidden: Any) -> Array:
        """``d_y + <U_y, H>``, what each label feels, along a last axis."""
        h = self._check_hidden(hidden)
        flat = h.reshape(*h.shape[: h.ndim - len(self.hidden_shape)], -1)
        return flat @ self.label_weights.reshape(self.n_classes, -1).T + self.label_bias

    def sample_labels(self, key: Array, hidden: Any) -> Array:
        """A draw from ``p(y | H)``, the softmax of the label field."""
        return draw_labels(check_key(key), self.label_field(hidden))

    def label_logits(self, visible: Any) -> Array:
        """``d_y + sum softplus(W^T(V) + C + U_y)`` of each label, along a last axis."""
        terms = self.hidden_units.log_partition(self._hidden_fields(visible))
        return self.label_bias + self._sum_hidden(terms)

    def label_log_probability(self, visible: Any) -> Array:
        """``log p(y | V)`` of each label, exactly: the logits, normalised."""
        return jax.nn.log_softmax(self.label_logits(visible))

    # Both layers, with labels summed out unless they are given

    def energy(self, visible: Any, hidden: Any, labels: Any = None) -> Array:
        """``E(V, y, H)``; without labels ``-log sum_y exp(-E(V, y, H))``."""
        return super().energy(visible, hidden) - _chosen(self.label_field(hidden), labels)

    def free_energy(self, visible: Any, labels: Any = None) -> Array:
        """``F(V, y) = -log sum_H exp(-E(V, y, H))``; without labels ``-log sum_y exp(-F(V, y))``.

        For Bernoulli units ``F(V, y) = -<V, B> - d_y - sum softplus(W^T(V) + C + U_y)``.
        """
        v = self._check_visible(visible)
        own = self._sum_visible(v * self.visible_bias - self.visible_units.potential(v))
        return -own - _chosen(self.label_logits(v), labels)

    def hidden_free_energy(self, hidden: Any) -> Array:
        """``-log sum_{V,y} exp(-E(V, y, H))``."""
        return super().hidden_free_energy(hidden) - _chosen(self.label_field(hidden), None)

    def hidden_field(self, visible: Any) -> Array:
        """``W^T(V) + C + sum_y p(y | V) U_y``, the mean field."""
        return self._mixed(visible, self._hidden_fields(visible))

    def hidden_mean(self, visible: Any) -> Array:
        """``p(H = 1 | V) = sum_y p(y | V) sigmoid(W^T(V) + C + U_y)``."""
        return self._mixed(visible, self.hidden_units.mean(self._hidden_fields(visible)))

    def sample_hidden(self, key: Array, visible: Any) -> Array:
        """A draw from ``p(H | V)``: first of the label, then given the label."""
        first, second = hash_split(check_key(key))
        labels = draw_labels(first, self.label_logits(visible))
        return self.given(labels).sample_hidden(second, visible)

    def to_mpo(self) -> "LabelledMachine":
        """The same machine with its coupling embedded into an MPO."""
        machine = super().to_mpo()
        weights = self.label_weights.reshape(self.n_classes, *machine.hidden_shape)
        return LabelledMachine(machine, weights, self.label_bias)

    def _hidden_fields(self, visible: Any) -> Array:
        """``W^T(V) + C + U_y`` for each label: ``(..., K, *hidden_shape)``."""
        field = super().hidden_field(visible)
        return jnp.expand_dims(field, -1 - len(self.hidden_shape)) + self.label_weights

    def _mixed(self, visible: Any, values: Array) -> Array:
        """The mean over ``p(y | V)`` of values ``(..., K, *hidden_shape)``."""
        n_modes = len(self.hidden_shape)
        weight = jnp.exp(self.label_log_probability(visible))
        weight = weight.reshape(*weight.shape, *[1] * n_modes)
        return (weight * values).sum(axis=-1 - n_modes)


def draw_labels(key: Array, logits: Array) -> Array:
    """Random labels with the probabilities that logits along the last axis give them.

    The largest logit after Gumbel noise, as `jax.random.categorical` does, by cheaper bits.
    """
    uniform = (hash_bits(key, logits.shape).astype(logits.dtype) + 0.5) * 2.0**-32
    # In single precision a number may be rounded to 1, whose noise would be infinite.
    uniform = jnp.minimum(uniform, 1.0 - np.finfo(logits.dtype).epsneg)
    return jnp.argmax(logits - jnp.log(-jnp.log(uniform)), axis=-1)


def _chosen(logits: Array, labels: Any) -> Array:
    """The logit of each label; without labels ``log sum_y exp``."""
    if labels is None:
        return jax.nn.logsumexp(logits, axis=-1)
    index = jnp.broadcast_to(jnp.asarray(labels), logits.shape[:-1])
    return jnp.take_along_axis(logits, index[..., None], axis=-1)[..., 0]
