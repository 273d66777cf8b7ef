"""Double precision where it matters, whatever precision JAX is set to elsewhere."""

from contextlib import AbstractContextManager
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

Tree = TypeVar("Tree")


def double_precision() -> AbstractContextManager[object]:
    """Compute in double precision within a block of this thread."""
    context: AbstractContextManager[object] = jax.enable_x64(True)
    return context


def converted(tree: Tree, dtype: DTypeLike) -> Tree:
    """Convert the floating-point arrays of a tree."""

    def one(leaf: Array) -> Array:
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    whole: Tree = jax.tree.map(one, tree)
    return whole
