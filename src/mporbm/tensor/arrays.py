"""The array types that signatures speak of; tests check them at run time.

Axes of the same name have the same size within a call; axes that begin with an underscore, as in
lists of cores, may have any.
"""

import numpy as np
from jax import Array
from jaxtyping import Float, Key, Shaped, UInt32

AnyArray = Array | np.ndarray
"""An array of JAX, traced or not, or of NumPy."""
Tensor = Float[AnyArray, "..."]
"""Floating-point numbers of any shape."""
HostTensor = Float[np.ndarray, "..."]
"""Floating-point numbers of any shape in NumPy."""
Samples = Shaped[np.ndarray, "n *visible"]
"""Samples in NumPy, of any type of numbers, as users and files have them."""
RandomKey = Key[Array, ""] | UInt32[Array, " _words"]
"""One random key of JAX, of the new or the old kind."""
DType = np.dtype
"""The type of the numbers in an array."""
