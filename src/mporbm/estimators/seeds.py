"""Random states of scikit-learn, and the keys of JAX that follow from them."""

from typing import Any

import jax
import numpy as np
from jax import Array
from sklearn.utils import check_random_state


def generator_of(random_state: Any) -> np.random.RandomState:
    """The generator behind a random state of scikit-learn."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r}: expected None, an integer from 0 to 2^32 - 1 or a "
            f"numpy.random.RandomState."
        ) from error
    return generator


def key_for(seed: int, purpose: int) -> Array:
    """The key for weights (0), features (2), noise (3) or log Z (4); training has its own (1)."""
    return jax.random.split(jax.random.key(seed), 5)[purpose]
