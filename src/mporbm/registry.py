"""Registries: the names under which users choose units, couplings, negative phases and schemes.

Whoever adds one registers its class under a name; estimators, command line, model files and
documentation find it there.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

T = TypeVar("T")
Kind = TypeVar("Kind", bound=type)


class Registry(dict[str, type[T]]):
    """Classes by name, in the order in which they were registered.

    Examples
    --------
    >>> from mporbm.registry import Registry
    >>> SHAPES = Registry()
    >>> @SHAPES.register("square")
    ... class Square:
    ...     def __init__(self, side=1):
    ...         self.side = side
    >>> SHAPES.build("square", {"side": 3, "color": "blue"}).side
    3
    """

    def register(self, name: str) -> Callable[[Kind], Kind]:
        """Decorate a class to be found under a name."""

        def decorate(kind: Kind) -> Kind:
            if name in self:
                raise ValueError(f"name={name!r}: expected a new name, got that of {self[name]}.")
            self[name] = kind
            return kind

        return decorate

    def build(self, name: str, options: Mapping[str, object]) -> T:
        """Construct the class of a name from those options that its constructor takes."""
        return self[name](**accepted(self[name], options))


def accepted(function: Callable[..., object], options: Mapping[str, T]) -> dict[str, T]:
    """Choose the options that a function has parameters for."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in names}
