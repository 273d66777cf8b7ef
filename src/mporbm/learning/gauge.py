"""Gradients that do not depend on the gauge.

W does not change when G G^-1 is inserted on a bond, but the gradient of a core does: it is the
gradient of W seen through the other cores. With the Gram matrices L and R of what stands to the
left and to the right of core k, ``L^-1 g R^-1`` is the gradient in mixed-canonical form centred on
core k: its step in W is the Euclidean step projected on what core k can reach. A learning rate then
means the same for every rank, order and gauge, and the same as for a dense machine.
"""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Coupling
from ..tensor.network import Gram, Node, environment_grams


def precondition(coupling: Coupling, position: int, gradient: Array) -> Array:
    """Multiply a factor's gradient by the inverse Gram tensors of the network around it."""
    nodes, k = _network(coupling, position)
    return _apply(nodes[k], environment_grams(nodes, k), gradient, ridge_solve)


def transport_velocity(
    coupling: Coupling, position: int, former: Coupling, velocity: Array
) -> Array:
    """Express a factor's former velocity as a gradient of now.

    The velocity is a step in W through the factors as they were. `precondition` of this is the
    closest step that the factor can take now, never a larger one; the same numbers in the factor
    itself might be any step, once the factors around it have changed.
    """
    nodes, k = _network(coupling, position)
    grams = environment_grams(nodes, k, _network(former, position)[0])
    return _apply(nodes[k], grams, velocity, jnp.matmul)


def step_shares(coupling: Coupling, moved: Sequence[int]) -> dict[int, float]:
    """Say by how much the natural step of each moved factor is shortened.

    Those of several factors of a network add up in W: shared out, they are no longer than one.
    """
    parts = [position for position, part in enumerate(coupling.parts()) for _ in part.nodes()]
    moved_parts = [parts[k] for k in moved]
    return {k: 1.0 / moved_parts.count(parts[k]) for k in moved}


def _network(coupling: Coupling, position: int) -> tuple[list[Node], int]:
    """The network that a factor stands in, and its position there."""
    for part in coupling.parts():
        nodes = part.nodes()
        if position < len(nodes):
            return nodes, position
        position -= len(nodes)
    raise IndexError(f"position: expected a factor of the coupling, got one {position} too far.")


def _apply(
    node: Node, grams: list[Gram], array: Array, operation: Callable[[Array, Array], Array]
) -> Array:
    """Combine each Gram tensor, as a matrix, with an array over the bonds of the tensor."""
    result = array.reshape(node.array.shape)
    for gram in grams:
        axes = [node.indices.index(i) for i in gram.indices]
        moved = jnp.moveaxis(result, axes, range(len(axes)))
        size = math.prod(moved.shape[: len(axes)])
        combined = operation(gram.array.reshape(size, size), moved.reshape(size, -1))
        result = jnp.moveaxis(combined.reshape(moved.shape), range(len(axes)), axes)
    return result.reshape(array.shape)


def ridge_solve(matrix: Array, right: Array) -> Array:
    """``(matrix + ridge)^-1 right`` for a Gram matrix.

    The ridge, far below what the gradient's noise lets matter, keeps the factorisation positive
    where bonds are redundant.
    """
    size = len(matrix)
    precision = np.finfo(matrix.dtype)
    relative = max(math.sqrt(precision.eps) / size, 10.0 * precision.eps)
    ridge = relative * jnp.trace(matrix) + precision.tiny
    solution: Array
    if size == 1:
        solution = right / (matrix + ridge)
    else:
        factor = jax.scipy.linalg.cho_factor(matrix + ridge * jnp.eye(size, dtype=matrix.dtype))
        solution = jax.scipy.linalg.cho_solve(factor, right)
    return solution
