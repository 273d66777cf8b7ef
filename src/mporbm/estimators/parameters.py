"""The parameters of estimators: what they can be."""

import math
import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator

from ..learning import NEGATIVE_PHASES, SCHEMES
from ..machine import HIDDEN_UNITS, UNITS
from ..tensor.check import check_choice, check_integer, check_positive, check_real

CHOICES: dict[str, Mapping[str, object] | tuple[str | None, ...]] = {
    "visible_units": UNITS,
    "hidden_units": ChainMap({"auto": None}, cast("dict[str, object]", HIDDEN_UNITS)),
    "negative_phase": NEGATIVE_PHASES,
    "scheme": SCHEMES,
    "rule": ("plain", "centred"),
    "schedule": ("constant", "linear", "cosine"),
    "init": ("data", "random"),
    "on_divergence": ("stop", "back-off"),
    "feature": ("probability", "field", "state"),
    "output": ("flat", "tensor"),
    "boundary": ("open", "periodic"),
    "gauge": ("canonical", None),
    "objective": ("generative", "discriminative", "hybrid"),
}
"""Parameters that are one of a few words, of every estimator that has them."""
LIMITS = {
    "momentum": 1.0,
    "sparsity_target": 1.0,
    "weight_decay": math.inf,
    "sparsity_cost": math.inf,
}
"""Parameters that are numbers from 0 to below a limit."""


def check_parameters(estimator: BaseEstimator) -> None:
    """Refuse parameters of an estimator that no training can have, before it begins."""
    given = {entry.name: getattr(estimator, entry.name) for entry in fields(estimator)}
    for name, choices in CHOICES.items():
        # Only an estimator with bonds to cut has a tolerance for it.
        if name == "scheme" and "rank_tolerance" not in given:
            choices = tuple(n for n, kind in SCHEMES.items() if not kind.needs_bonds)
        if name in given and not (None in choices and given[name] is None):
            check_choice(name, given[name], tuple(choices))
    if given.get("rule") == "centred" and given.get("gauge", "") is None:
        raise ValueError(
            "gauge=None: expected 'canonical' with rule='centred', whose steps have a length "
            "in W, not in its cores; the paper's rule is rule='plain'."
        )
    if estimator.visible_units == "gaussian" and estimator._hidden_kind == "rectified":
        raise ValueError(
            "hidden_units='rectified': expected 'gaussian', 'bernoulli' or 'categorical' for "
            "Gaussian visible units; there is a distribution only while W is small, and nothing "
            "keeps W so while it is learnt."
        )
    if estimator._is_gaussian and given.get("scheme") == "two-site":
        raise ValueError(
            "scheme='two-site': expected 'aop' for two Gaussian layers, whose ranks stay."
        )
    if isinstance(estimator.learning_rate, str) and estimator.learning_rate != "auto":
        raise ValueError(
            f"learning_rate={estimator.learning_rate!r}: expected 'auto' or a number above 0."
        )
    if estimator.learning_rate != "auto":
        check_positive("learning_rate", estimator.learning_rate)
    for name in ("n_gibbs", "batch_size", "n_iter_no_change", "checkpoint_interval"):
        check_integer(name, given[name])
    if isinstance(estimator.n_iter, str) and estimator.n_iter != "auto":
        raise ValueError(f"n_iter={estimator.n_iter!r}: expected 'auto' or an integer from 0 on.")
    if estimator.n_iter != "auto":
        check_integer("n_iter", estimator.n_iter, minimum=0)
    # Where it is the default, "auto" is a rank.
    rank: Any = given.get("rank")
    is_default = isinstance(rank, str) and rank == getattr(type(estimator), "rank", None)
    if "rank" in given and np.ndim(rank) == 0 and not is_default:
        check_integer("rank", rank)
    for name, limit in LIMITS.items():
        if name == "sparsity_target" and estimator.sparsity_target is None:
            continue
        if not 0.0 <= (number := check_real(name, given[name])) < limit:
            raise ValueError(f"{name}={number}: expected a number in [0, {limit:g}).")
    if not 0.0 < check_real("validation_fraction", estimator.validation_fraction) < 1.0:
        raise ValueError(
            f"validation_fraction={estimator.validation_fraction}: expected a number above 0 and "
            f"below 1."
        )
    for name in given.keys() & {"early_stopping", "warm_start", "standardize"}:
        if not isinstance(given[name], (bool, np.bool_)):
            raise TypeError(f"{name}={given[name]!r}: expected True or False.")
    if estimator.checkpoint is not None:
        _check_checkpoint(estimator.checkpoint, given.get("warm_start", False))


def _check_checkpoint(checkpoint: object, warm_start: bool) -> None:
    """Refuse a checkpoint that cannot be written, or that would be mistaken for this training."""
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(
            f"checkpoint={checkpoint!r}: expected the path of a file or None, got "
            f"{type(checkpoint).__name__}."
        )
    folder = os.path.dirname(os.path.abspath(checkpoint))
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"checkpoint={os.fspath(checkpoint)!r}: expected a file in an existing folder, but "
            f"there is no {folder}."
        )
    if warm_start:
        raise ValueError(
            "checkpoint: expected None with warm_start=True, which would find the checkpoint of "
            "the training before and do nothing."
        )
