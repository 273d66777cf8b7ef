"""Random states of scikit-learn, and the keys of JAX that follow from them."""

from enum import IntEnum
from typing import Any

import jax
import numpy as np
from jax import Array
from sklearn.utils import check_random_state


class Purpose(IntEnum):
    """What the keys of a seed are for; training derives its own."""

    WEIGHTS = 0
    TRAINING = 1
    FEATURES = 2
    NOISE = 3
    LOG_PARTITION = 4


def generator_of(random_state: Any) -> np.random.RandomState:
    """Return the generator behind a random state of scikit-learn."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r}: expected None, an integer from 0 to 2^32 - 1 or a "
            f"numpy.random.RandomState."
        ) from error
    return generator


def key_for(seed: int, purpose: Purpose) -> Array:
    """Derive the key of a seed for one purpose."""
    return jax.random.split(jax.random.key(seed), len(Purpose))[purpose]
