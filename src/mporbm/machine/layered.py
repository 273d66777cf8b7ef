"""Deep Boltzmann machines: layers in a row, each wired to its neighbours.

``-E(X_0..X_L) = sum_k <X_{k-1}, W_k(X_k)> + sum_k <B_k, X_k> - sum potential(X_0)``
(Salakhutdinov & Hinton 2009).

Even layers are wired to odd layers only. A deep machine therefore is a `Machine` whose visible
layer holds all even layers, flattened one after the other, and whose hidden layer holds all odd
ones: conditionals, Gibbs steps, log Z, evidence and gradients are those of any machine. The data
are its first visible units.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..tensor.check import check_sequence
from ..tensor.index import Order
from ..tensor.matmul import N_USES, MatmulForm
from ..tensor.network import Node
from .couplings import Coupling, DenseCoupling, MPOCoupling
from .machine import Machine
from .units import JointUnits, Units


class LayeredForm(MatmulForm):
    """The couplings W_1..W_L as one W between the even layers and the odd ones.

    A coupling whose lower layer is odd is contracted the other way round.
    """

    products: tuple[MatmulForm, ...]
    sizes: tuple[int, ...] = eqx.field(static=True)

    def contract_rows(self, batch: Array) -> tuple[Array, list[PyTree[Array]]]:
        """The fields that even layers make for odd ones."""
        return self._contract(batch, 0)

    def contract_columns(self, batch: Array) -> tuple[Array, list[PyTree[Array]]]:
        """The fields that odd layers make for even ones."""
        return self._contract(batch, 1)

    def gradient(self, rows: list[PyTree[Array]], columns: list[PyTree[Array]]) -> Self:
        """The gradient of every coupling."""
        both = zip(self.products, rows, columns, strict=True)
        products = tuple(
            product.gradient(even, odd) if k % 2 == 0 else product.gradient(odd, even)
            for k, (product, even, odd) in enumerate(both)
        )
        return type(self)(products, self.sizes)

    def _contract(self, batch: Array, parity: int) -> tuple[Array, list[PyTree[Array]]]:
        """The fields of every other layer from the states of the layers between them."""
        states = dict(enumerate(split_layers(batch, self.sizes[parity::2])))
        fields: dict[int, Array] = {}
        kept = []
        for k, product in enumerate(self.products):
            upwards = k % 2 == parity
            source, target = (k, k + 1) if upwards else (k + 1, k)
            contract = product.contract_rows if upwards else product.contract_columns
            field, between = contract(states[source // 2])
            fields[target] = fields[target] + field if target in fields else field
            kept.append(between)
        return jnp.concatenate([fields[k] for k in sorted(fields)], axis=-1), kept


class LayeredCoupling(Coupling):
    """Couplings between neighbouring layers as one coupling between even and odd layers.

    Parameters
    ----------
    couplings
        W_1..W_L; the hidden shape of each is the visible shape of the next.
    """

    couplings: tuple[Coupling, ...]

    def __init__(self, couplings: Sequence[Coupling]):
        check_sequence("couplings", couplings, "couplings")
        for k, (lower, upper) in enumerate(pairwise(couplings)):
            if lower.hidden_shape != upper.visible_shape:
                raise ValueError(
                    f"couplings[{k + 1}]: expected the visible shape {lower.hidden_shape}, the "
                    f"hidden shape of couplings[{k}], got {upper.visible_shape}."
                )
        self.couplings = tuple(couplings)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the layers X_0..X_L."""
        hidden = (coupling.hidden_shape for coupling in self.couplings)
        return (self.couplings[0].visible_shape, *hidden)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of units of the layers."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each layer begins among the even layers or among the odd ones."""
        return tuple(sum(self.sizes[k % 2 : k : 2]) for k in range(len(self.sizes)))

    @property
    def visible_shape(self) -> tuple[int, ...]:
        """The number of units in even layers."""
        return (sum(self.sizes[::2]),)

    @property
    def hidden_shape(self) -> tuple[int, ...]:
        """The number of units in odd layers."""
        return (sum(self.sizes[1::2]),)

    @classmethod
    def from_factors(cls, factors: Sequence[ArrayLike], n_visible_modes: int) -> Self:
        """Refuse: files keep every coupling by itself."""
        raise TypeError("LayeredCoupling: expected the couplings between neighbouring layers.")

    def parts(self) -> tuple[Coupling, ...]:
        """W_1..W_L."""
        return self.couplings

    def rebalanced(self) -> "LayeredCoupling":
        """Return the same couplings, each with balanced factors if they have grown apart."""
        balanced = [coupling.rebalanced() for coupling in self.couplings]
        same = all(new is old for new, old in zip(balanced, self.couplings, strict=True))
        return self if same else LayeredCoupling(balanced)

    def nodes(self) -> list[Node]:
        """A single node, W as a matrix."""
        return DenseCoupling(self.to_matrix()).nodes()

    def to_mpo(self) -> MPOCoupling:
        """A single core, W as a matrix."""
        return DenseCoupling(self.to_matrix()).to_mpo()

    def to_matrix(self, order: Order = "C") -> Array:
        """W as a matrix, with a block for every coupling; each layer in C order."""
        starts = self.starts
        matrix = jnp.zeros((*self.visible_shape, *self.hidden_shape), self.dtype)
        for k, coupling in enumerate(self.couplings):
            block = coupling.to_matrix()
            row, column = starts[k], starts[k + 1]
            if k % 2:
                block, row, column = block.T, column, row
            n_rows, n_columns = block.shape
            matrix = matrix.at[row : row + n_rows, column : column + n_columns].set(block)
        return matrix

    def matmul_form(self, n_rows: int, n_uses: int = N_USES) -> LayeredForm:
        """Every coupling in the form that is best for it."""
        products = tuple(coupling.matmul_form(n_rows, n_uses) for coupling in self.couplings)
        return LayeredForm(products, self.sizes)

    def describe(self, n_rows: int) -> str:
        """Say in words what is multiplied with batches."""
        return "all layers together"

    def layers(self, visible: Array, hidden: Array) -> tuple[Array, ...]:
        """X_0..X_L of a batch as tensors, or what belongs to their units."""
        even = split_layers(visible, self.sizes[::2])
        odd = split_layers(hidden, self.sizes[1::2])
        flat = [(odd if k % 2 else even)[k // 2] for k in range(len(self.sizes))]
        pairs = zip(flat, self.shapes, strict=True)
        return tuple(layer.reshape(*layer.shape[:-1], *shape) for layer, shape in pairs)


def split_layers(flat: Array, sizes: Sequence[int]) -> list[Array]:
    """Layers that stand one after the other along the last axis."""
    return jnp.split(flat, np.cumsum(sizes)[:-1], axis=-1)


def deep_boltzmann(stack: Sequence[Machine]) -> Machine:
    """The deep Boltzmann machine of L machines, each on the hidden layer of the one before.

    A layer in the middle belongs to two of them, and gets the mean of both biases. If the one
    below was trained with two copies of its visible layer and the one above with two copies of its
    hidden layer (`Copies`), the conditional distribution of a middle layer is the geometric mean
    of theirs: the doubled inputs of pre-training (Salakhutdinov & Hinton 2009, Section 3.1).

    The units of X_0 are the visible units of the first machine, those of X_k for k > 0 the hidden
    units of the k-th one: any of them may be categorical.
    """
    coupling = LayeredCoupling([machine.coupling for machine in stack])
    middle = [0.5 * (low.hidden_bias + up.visible_bias) for low, up in pairwise(stack)]
    biases = [stack[0].visible_bias, *middle, stack[-1].hidden_bias]
    flat = [bias.reshape(-1) for bias in biases]
    kinds = [stack[0].visible_units, *(machine.hidden_units for machine in stack)]
    layers = zip(kinds, coupling.shapes, coupling.sizes, strict=True)
    units = [kind.single.reshape(shape, (size,)) for kind, shape, size in layers]
    return Machine(
        coupling,
        jnp.concatenate(flat[::2]),
        jnp.concatenate(flat[1::2]),
        JointUnits.of(units[::2], coupling.sizes[::2]),
        JointUnits.of(units[1::2], coupling.sizes[1::2]),
    )


def stack_of(machine: Machine) -> tuple[Machine, ...]:
    """What `deep_boltzmann` makes a deep machine of: every coupling with its biases."""
    coupling = layered(machine)
    biases = coupling.layers(machine.visible_bias, machine.hidden_bias)
    units = layer_units(machine)
    return tuple(
        Machine(one, biases[k], biases[k + 1], units[k], units[k + 1])
        for k, one in enumerate(coupling.couplings)
    )


def layer_units(machine: Machine) -> tuple[Units, ...]:
    """The kinds of units of the layers X_0..X_L of a deep machine."""
    coupling = layered(machine)
    halves = machine.visible_units, machine.hidden_units
    layers = zip(coupling.shapes, coupling.sizes, coupling.starts, strict=True)
    return tuple(
        halves[k % 2].slice(start, start + size).reshape((size,), shape)
        for k, (shape, size, start) in enumerate(layers)
    )


def layered(machine: Machine) -> LayeredCoupling:
    """The coupling of a deep machine, which knows its layers."""
    coupling = machine.unplanned().coupling
    if not isinstance(coupling, LayeredCoupling):
        raise TypeError(
            f"machine: expected a deep machine, got one with a {type(coupling).__name__}; make one "
            f"with deep_boltzmann([machine])."
        )
    return coupling
