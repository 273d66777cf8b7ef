"""Gradients that do not depend on the gauge.

W does not change when G G^-1 is inserted on a bond, but the gradient of a core does: it is the
gradient of W seen through the other cores. With the Gram matrices L and R of what stands to the
left and to the right of core k, ``L^-1 g R^-1`` is the gradient in mixed-canonical form centred on
core k: its step in W is the Euclidean step projected on what core k can reach. A learning rate then
means the same for every rank, order and gauge, and the same as for a dense machine.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..machine import Coupling
from ..tensor.network import Node, environment_grams


def natural(coupling: Coupling, gradients: Sequence[Array | None]) -> tuple[Array | None, ...]:
    """Each factor's gradient times the inverse Gram tensors of the network around it.

    None, the gradient of a factor that stays, stays None.
    """
    nodes = coupling.nodes()
    return tuple(
        None if gradient is None else _solve(nodes, k, gradient)
        for k, gradient in enumerate(gradients)
    )


def _solve(nodes: list[Node], position: int, gradient: Array) -> Array:
    node = nodes[position]
    result = gradient.reshape(node.array.shape)
    for gram in environment_grams(nodes, position):
        axes = [node.indices.index(i) for i in gram.indices]
        moved = jnp.moveaxis(result, axes, range(len(axes)))
        matrix = gram.array.reshape(2 * (math.prod(moved.shape[: len(axes)]),))
        solved = _regular_solve(matrix, moved.reshape(len(matrix), -1))
        result = jnp.moveaxis(solved.reshape(moved.shape), range(len(axes)), axes)
    return result.reshape(gradient.shape)


def _regular_solve(matrix: Array, right: Array) -> Array:
    """``(matrix + ridge)^-1 right`` for a Gram matrix.

    The ridge, far below what the gradient's noise lets matter, keeps the factorisation positive
    where bonds are redundant.
    """
    size = len(matrix)
    precision = np.finfo(matrix.dtype)
    ridge = math.sqrt(precision.eps) * jnp.trace(matrix) / size + precision.tiny
    solution: Array
    if size == 1:
        solution = right / (matrix + ridge)
    else:
        factor = jax.scipy.linalg.cho_factor(matrix + ridge * jnp.eye(size, dtype=matrix.dtype))
        solution = jax.scipy.linalg.cho_solve(factor, right)
    return solution
