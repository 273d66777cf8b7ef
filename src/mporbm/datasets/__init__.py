"""Data sets to train machines on, as scikit-learn's own loaders give them.

Files are looked for in the folder ``$MPORBM_DATA/<name>``, then in the cache, which is a folder of
the system or ``$MPORBM_CACHE``; what is in neither is downloaded from its publisher into the cache,
if a hash of it is known. The data sets of the paper are in ``reproduction.datasets``.
"""

from .fetch import DatasetNotFoundError
from .loaders import load_digits, load_mnist, load_mnist_5k

__all__ = [
    "DatasetNotFoundError",
    "load_digits",
    "load_mnist",
    "load_mnist_5k",
]
