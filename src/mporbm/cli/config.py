"""Configuration files, and what their options and those of the command line ask for."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import expected
from .fit_options import EPOCHS, RANK, RATE, SEED, SHAPE, FitOption, fit_options, fitted_classes

MOST_CONFIG_BYTES, MOST_CONFIG_DOTS = 2**16, 1000
"""The longest configuration file; a key of n parts takes memory with the square of n."""
MOST_LEVELS = 4
"""How deep values may be nested: a file, a table, a list of shapes, a shape."""
TYPES: dict[type | str, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    SEED: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    SHAPE: ((int, str, list), "whole numbers, such as [10, 10]"),
    RANK: ((int, str, list), "whole numbers, such as [10, 10]"),
    RATE: ((int, float, str), '"auto" or a number'),
    EPOCHS: ((int, str), '"auto" or a whole number'),
}
"""What TOML may have for each kind of option, and what errors call it; else strings."""


def read_toml(path: Path) -> dict[str, object]:
    """Read a configuration file, of no more than a configuration can need."""
    with open(path, "rb") as file:
        content = file.read(MOST_CONFIG_BYTES + 1)
    if len(content) > MOST_CONFIG_BYTES or content.count(b".") > MOST_CONFIG_DOTS:
        raise ValueError(
            f"{path}: expected a TOML file of at most {MOST_CONFIG_BYTES} bytes, at most "
            f"{MOST_CONFIG_DOTS} of them dots."
        )
    # Integers of thousands of digits are no TOMLDecodeError.
    with expected(path, "a TOML file", (ValueError, RecursionError)):
        table = tomllib.loads(content.decode())
        if not _is_plain(table, MOST_LEVELS):
            raise ValueError(f"it has more than {MOST_LEVELS} levels, or integers above 64 bits.")
    return table


def _is_plain(value: object, levels: int) -> bool:
    """Whether a value is not too deep, and its integers are TOML's; Python's have no limit."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_plain(item, levels - 1) for item in items)
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def read_options(path: Path) -> dict[str, object]:
    """Read the options of a configuration file of `mporbm fit`, under the names of Python."""
    known = fit_options()
    return {check_option(path, key, value, known): value for key, value in read_toml(path).items()}


def check_option(path: Path, key: str, value: object, known: Mapping[str, FitOption]) -> str:
    """Return the name in Python of an option of a configuration file, whose value has to fit."""
    name = key.replace("-", "_")
    if name not in known:
        raise ValueError(f"{path}: {key:.100}: there is no such option; see mporbm fit --help.")
    option = known[name]
    types, text = TYPES.get(option.kind, ((str,), "a string"))
    # In Python, a bool is an int.
    fits = isinstance(value, types) and (option.kind is bool or not isinstance(value, bool))
    if option.choices:
        fits, text = value in option.choices, f"one of {', '.join(option.choices)}"
    if not fits:
        raise ValueError(f"{path}: {key}={value!r:.100}: expected {text}.")
    return name


def make_estimator(options: Mapping[str, object], verbose: int) -> Any:
    """Make the estimator that options ask for; JAX is told where to keep what it compiles."""
    import mporbm

    mporbm.enable_compilation_cache()
    model = str(options.get("model", "mporbm"))
    cls = fitted_classes()[model]
    parameters: dict[str, object] = {"verbose": verbose}
    for name, option in fit_options().items():
        if name not in options or option.parameter is None:
            continue
        if option.parameter not in cls.__dataclass_fields__:
            raise ValueError(f"{name}: {model} has no such option; see mporbm fit --help.")
        parameters[option.parameter] = parse_value(option, options[name])
    return cls(**parameters)


def make_coding(options: Mapping[str, Any]) -> Any:
    """Make the coding that options ask for, if they do."""
    from ..estimators import Binarize, BitPlanes

    chosen = [name for name in ("binarize", "bit_planes") if name in options]
    if len(chosen) > 1:
        raise ValueError("binarize: expected no such option where bit_planes is given.")
    if chosen and options.get("visible_units") == "gaussian":
        raise ValueError(f"{chosen[0]}: expected Bernoulli visible units, got Gaussian ones.")
    if "bit_planes" in options:
        shape = options.get("coded_shape")
        return BitPlanes(
            options["bit_planes"],
            gray=options.get("gray", False),
            shape=None if shape is None else parse_shape("coded_shape", shape),
        )
    for name in ("gray", "coded_shape"):
        if name in options:
            raise ValueError(f"{name}: expected bit_planes, too.")
    return Binarize(options["binarize"]) if "binarize" in options else None


def parse_value(option: FitOption, value: object) -> object:
    """Return a value as the estimators have it, from the command line or a file."""
    if option.choices:
        return None if value == "none" else value
    parsers = {SHAPE: parse_shape, RANK: _parse_rank, RATE: _parse_rate}
    parsers |= {EPOCHS: _parse_epochs, SEED: _parse_seed}
    return parsers[option.kind](option.name, value) if option.kind in parsers else value


def parse_shape(name: str, value: object) -> tuple[int, ...]:
    """Return integers that are separated by commas, or in a list."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        if all(isinstance(part, str) or type(part) is int for part in parts):
            sizes = [int(str(part)) for part in parts]
            if _is_plain(sizes, 1):
                return tuple(sizes)
    except ValueError:
        pass
    raise ValueError(
        f"{name}={value!r:.100}: expected integers of 64 bits separated by commas, such as 10,10."
    )


def _parse_rank(name: str, value: object) -> object:
    return value if value == "auto" else parse_rank(name, value)


def parse_rank(name: str, value: object) -> int | tuple[int, ...]:
    """Return one rank for all bonds, or one for each."""
    ranks = parse_shape(name, value)
    return ranks[0] if len(ranks) == 1 and not isinstance(value, list) else ranks


def _parse_rate(name: str, value: object) -> object:
    try:
        return value if value == "auto" else float(str(value))
    except ValueError as error:
        raise ValueError(f"{name}={value!r:.100}: expected auto or a number above 0.") from error


def _parse_epochs(name: str, value: object) -> object:
    try:
        return value if value == "auto" else int(str(value))
    except ValueError as error:
        raise ValueError(f"{name}={value!r:.100}: expected auto or a whole number.") from error


def _parse_seed(name: str, value: object) -> object:
    if not (isinstance(value, int) and 0 <= value < 2**32):
        raise ValueError(f"{name}={value}: expected an integer from 0 to 2^32 - 1.")
    return value
