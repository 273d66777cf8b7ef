"""What the loaders share: the form of what they give, and the check of what they take."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_bunch(
    data: NDArray[Any],
    target: Any,
    target_names: list[str],
    *,
    description: str,
    source: str,
    return_X_y: bool,
    **more: Any,
) -> Any:
    """A data set as scikit-learn's loaders give it: a Bunch, or `(data, target)`."""
    from sklearn.utils import Bunch

    labels = np.asarray(target, np.int64)
    if return_X_y:
        return data, labels
    return Bunch(
        data=data,
        target=labels,
        target_names=target_names,
        DESCR=description,
        source=source,
        **more,
    )


def check_word(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of a few words."""
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r}: expected {expected}.")
