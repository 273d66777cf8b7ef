"""Configuration files, and what their options and those of the command line ask for."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .fit_options import RANK, RATE, SEED, SHAPE, FitOption, fit_options, fitted_classes

MOST_CONFIG_BYTES, MOST_CONFIG_DOTS = 2**16, 1000
"""The longest configuration file; a key of n parts takes memory with the square of n."""
TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    SEED: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    SHAPE: ((int, str, list), "whole numbers, such as [10, 10]"),
    RANK: ((int, str, list), "whole numbers, such as [10, 10]"),
    RATE: ((int, float, str), '"auto" or a number'),
}
"""What TOML may have for each kind of option, and what errors call it; else strings."""


def read_toml(path: Path) -> dict[str, Any]:
    """Read a configuration file, of no more than a configuration can need."""
    with open(path, "rb") as file:
        content = file.read(MOST_CONFIG_BYTES + 1)
    if len(content) > MOST_CONFIG_BYTES or content.count(b".") > MOST_CONFIG_DOTS:
        raise ValueError(
            f"{path}: expected a TOML file of at most {MOST_CONFIG_BYTES} bytes, at most "
            f"{MOST_CONFIG_DOTS} of them dots."
        )
    try:
        return tomllib.loads(content.decode())
    # Integers of thousands of digits are no TOMLDecodeError.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected a TOML file: {error}") from error


def read_options(path: Path) -> dict[str, Any]:
    """Read the options of a configuration file of `mporbm fit`, under the names of Python."""
    known = fit_options()
    return {check_option(path, key, value, known): value for key, value in read_toml(path).items()}


def check_option(path: Path, key: str, value: Any, known: Mapping[str, FitOption]) -> str:
    """Return the name in Python of an option of a configuration file, whose value has to fit."""
    name = key.replace("-", "_")
    if name not in known:
        raise ValueError(f"{path}: {key:.100}: there is no such option; see mporbm fit --help.")
    expected = _mismatch(known[name], value)
    if expected is not None:
        raise ValueError(f"{path}: {key}={_shown(value)}: expected {expected}.")
    return name


def _mismatch(option: FitOption, value: Any) -> str | None:
    """Return what the value of an option should have been, if it is not."""
    if option.choices:
        return None if value in option.choices else f"one of {', '.join(option.choices)}"
    allowed, text = TYPES.get(option.kind, ((str,), "a string"))
    if not _is_small(value):
        return f"{text}, of at most 63 bits"
    # In Python, a bool is an int.
    fits = isinstance(value, allowed) and (option.kind is bool or not isinstance(value, bool))
    return None if fits else text


def _is_small(value: Any) -> bool:
    """Whether integers have the range of TOML; Python's have none, and cannot all be printed."""
    values = value if isinstance(value, list) else [value]
    return all(not isinstance(item, int) or -(2**63) <= item < 2**63 for item in values)


def _shown(value: Any) -> str:
    """Return a value as errors show it, however long or deeply nested."""
    try:
        return f"{value!r:.100}"
    except (ValueError, RecursionError):
        return "something huge"


def make_estimator(options: Mapping[str, Any], verbose: int) -> Any:
    """Make the estimator that options ask for; JAX is told where to keep what it compiles."""
    import mporbm

    mporbm.enable_compilation_cache()
    model = options.get("model", "mporbm")
    cls = fitted_classes()[model]
    parameters: dict[str, Any] = {"verbose": verbose}
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


def parse_value(option: FitOption, value: Any) -> Any:
    """Return a value as the estimators have it, from the command line or a file."""
    if option.choices:
        return None if value == "none" else value
    parsers = {SHAPE: parse_shape, RANK: parse_rank, RATE: _parse_rate, SEED: _parse_seed}
    return parsers[option.kind](option.name, value) if option.kind in parsers else value


def parse_shape(name: str, value: Any) -> tuple[int, ...]:
    """Return integers that are separated by commas, or in a list."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        if not all(isinstance(part, str) or type(part) is int for part in parts):
            raise TypeError
        sizes = tuple(int(part) for part in parts)
        if not _is_small(list(sizes)):
            raise ValueError
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}={_shown(value)}: expected integers separated by commas, such as 10,10."
        ) from error
    return sizes


def parse_rank(name: str, value: Any) -> int | tuple[int, ...]:
    """Return one rank for all bonds, or one for each."""
    ranks = parse_shape(name, value)
    return ranks[0] if len(ranks) == 1 and not isinstance(value, list) else ranks


def _parse_rate(name: str, value: Any) -> Any:
    try:
        return value if value == "auto" else float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={_shown(value)}: expected auto or a number above 0.") from error


def _parse_seed(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise ValueError(f"{name}={value}: expected an integer from 0 to 2^32 - 1.")
    return value
