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
from ..tensor import MPO
from ..tensor.network import Gram, Node, environment_grams


def natural(coupling: Coupling, gradients: Sequence[Array | None]) -> tuple[Array | None, ...]:
    """Each factor's gradient times the inverse Gram tensors of the network around it.

    None, the gradient of a factor that stays, stays None.
    """

    def solve(position: int, gradient: Array) -> Array:
        nodes, k = _network(coupling, position)
        return _apply(nodes[k], environment_grams(nodes, k), gradient, regular_solve)

    return tuple(None if g is None else solve(k, g) for k, g in enumerate(gradients))


def carried(coupling: Coupling, position: int, former: Coupling, velocity: Array) -> Array:
    """A factor's former velocity as a gradient of now.

    The velocity is a step in W through the factors as they were. `natural` of this is the closest
    step that the factor can take now, never a larger one; the same numbers in the factor itself
    might be any step, once the factors around it have changed.
    """
    nodes, k = _network(coupling, position)
    grams = environment_grams(nodes, k, _network(former, position)[0])
    return _apply(nodes[k], grams, velocity, jnp.matmul)


def shares(coupling: Coupling, moved: Sequence[int]) -> dict[int, float]:
    """Of each moved factor, by how much its natural step is shortened.

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


def regular_solve(matrix: Array, right: Array) -> Array:
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


UNBALANCED = 10.0
"""By which factor the cores may be too large before they are brought into balance."""


def tidied(mpo: MPO, norm: float) -> MPO:
    """The same open MPO, in balance if its cores have grown large and cancel each other.

    `norm` is that of W.
    """
    norms = math.prod(float(np.linalg.norm(core)) for core in mpo.cores)
    # In balance the product of the norms is |W| times at most the root of every rank.
    if norms <= UNBALANCED * norm:
        return mpo
    candidate = balanced(mpo)
    least = math.prod(float(np.linalg.norm(core)) for core in candidate.cores)
    return candidate if norms > UNBALANCED * least else mpo


def balanced(mpo: MPO) -> MPO:
    """The same open MPO with equal, diagonal Gram matrices on both sides of every bond.

    Gradient steps leave the gauge to chance; large cores that cancel each other lose digits.
    """
    cores = [np.asarray(core, np.float64) for core in mpo.canonical(-1).cores]
    weights = []
    for k in range(len(cores) - 1, 0, -1):
        core = cores[k]
        u, values, v = np.linalg.svd(core.reshape(len(core), -1), full_matrices=False)
        cores[k] = v.reshape(-1, *core.shape[1:])
        cores[k - 1] = np.tensordot(cores[k - 1], u * values, axes=1)
        weights.append(np.sqrt(values))
    # Now every core but the first is right-orthonormal: half of each weight goes to its right.
    for k, half in enumerate(reversed(weights)):
        cores[k] = cores[k] / np.maximum(half, 1e-8 * half.max())
        cores[k + 1] = half[:, None, None, None] * cores[k + 1]
    # Bonds larger than the cores can fill keep their size.
    bonds = [core.shape[0] for core in mpo.cores[1:]]
    return padded(MPO([core.astype(mpo.dtype) for core in cores]), bonds)


def padded(mpo: MPO, ranks: Sequence[int]) -> MPO:
    """The same open MPO with zero rows and columns up to the given ranks."""
    sizes = (1, *ranks, 1)
    return MPO(
        [
            np.pad(core, ((0, left - core.shape[0]), (0, 0), (0, 0), (0, right - core.shape[-1])))
            for core, left, right in zip(mpo.cores, sizes, sizes[1:], strict=False)
        ]
    )
