"""Weights and biases of categorical units that sum to 0 over the categories.

Of a group of K units exactly one is on. Adding to ``W(i_1..k, j_1..j_d)`` something that is the
same for all k, and taking it from the hidden bias, therefore changes all energies alike, and so
does adding a constant to the biases of a group. Nothing in the data could decide on these numbers:
they would wander about with the noise of gradients, and models that are the same would look
different. Here W and B are those of zero sum, and with categorical hidden units W and C as well:

``sum_k W(i_1..k, j_1..j_d) = 0,  sum_k B(i_1..k) = 0``.

k runs along the last mode of the layer, so that it is one factor that has to be of zero sum: the
last matrix of a Kronecker product, the last core of an MPO. To take the mean away is linear in this
factor and has to do with none of its bonds: gradients of zero sum stay so when they are multiplied
by inverse Gram matrices, added up with momentum, or split between two cores of the two-site scheme.
With units that stand in the groups of a longer last mode, the sum is over each group.

Layers that are joined, as those of a label and of deep machines, stay as they are: each is one part
of a flat layer, in which no factor has an axis.
"""

from collections.abc import Sequence

import equinox as eqx
from jax import Array

from ..machine import Coupling, Machine
from ..tensor.network import index_names
from .gradient import Parameters, Planned


def zero_sum_machine(machine: Machine) -> Machine:
    """Build the same distribution with weights and biases of zero sum.

    What W loses for all units of a group is felt whatever their state is, also if it is the mean of
    units without a field: the bias of the other layer takes it over.
    """
    changed = _zero_sum_layer(machine, hidden=False)
    return _zero_sum_layer(changed, hidden=True)


def zero_sum_step(planned: Planned, ascent: Parameters) -> Parameters:
    """Take out of a gradient what would lead away from zero sums."""
    machine, pull_back = planned
    factors: Sequence[Array | None] = ascent.factors
    biases = list(ascent.biases)
    for hidden in (False, True):
        factors = _zero_sum_factors(machine, pull_back.coupling, factors, hidden)
        biases[hidden] = _zero_sum_bias(machine, biases[hidden], hidden)
    return Parameters(tuple(factors), *biases)


def _zero_sum_layer(machine: Machine, hidden: bool) -> Machine:
    """Build the same machine with zero sums over the units of one layer."""
    before = machine.coupling
    found = _zero_sum_factors(machine, before, before.factors, hidden)
    own = machine.hidden_bias if hidden else machine.visible_bias
    bias = _zero_sum_bias(machine, own, hidden)
    if bias is own:
        return machine
    after = before.with_factors(found)
    if hidden:
        mean = machine.hidden_units.mean(0.0 * own)
        biases = machine.visible_bias + (before.apply(mean) - after.apply(mean)), bias
    else:
        mean = machine.visible_units.mean(0.0 * own)
        lost = before.apply_transpose(mean) - after.apply_transpose(mean)
        biases = bias, machine.hidden_bias + lost
    changed: Machine = eqx.tree_at(
        lambda m: (m.coupling, m.visible_bias, m.hidden_bias), machine, (after, *biases)
    )
    return changed


def _zero_sum_bias(machine: Machine, bias: Array, hidden: bool) -> Array:
    """Take the mean over each group from a bias of one layer."""
    if hidden:
        return machine.hidden_units.zero_sum(bias, -1, machine.hidden_shape)
    return machine.visible_units.zero_sum(bias, -1, machine.visible_shape)


def _zero_sum_factors(
    machine: Machine, coupling: Coupling, factors: Sequence[Array | None], hidden: bool
) -> list[Array | None]:
    """Take the mean over each group from those factors that have the last mode of a layer.

    `coupling` is that of the machine, perhaps with merged cores; None stands for a factor that does
    not move.
    """
    changed = list(factors)
    if coupling.parts()[0] is not coupling:
        return changed
    units = machine.hidden_units if hidden else machine.visible_units
    layer = machine.hidden_shape if hidden else machine.visible_shape
    n_modes = len(coupling.hidden_shape if hidden else coupling.visible_shape)
    index = index_names("j" if hidden else "i", n_modes)[-1]
    for k, (node, factor) in enumerate(zip(coupling.nodes(), factors, strict=True)):
        if factor is not None and index in node.indices:
            shaped = factor.reshape(node.array.shape)
            rest = units.zero_sum(shaped, node.indices.index(index), layer)
            changed[k] = rest.reshape(factor.shape)
    return changed
