"""The machines that the paper compares its own with: RBM, MvRBM and TvRBM."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..learning.start import automatic_rank
from ..tensor.check import check_integer
from .boltzmann import BoltzmannEstimator
from .inference import InferenceMixin
from .likelihood import LikelihoodMixin
from .model_file import ESTIMATORS


@ESTIMATORS.register("RBM")
class RBM(InferenceMixin, LikelihoodMixin, BoltzmannEstimator):
    """Restricted Boltzmann machine: every visible unit wired to every hidden unit.

    The parameters are those of `MPORBM` without `rank`, `boundary`, `scheme`, `gauge` and
    `rank_tolerance`; `hidden_shape` may be a number, or have any number of modes.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import RBM
    >>> X = np.random.default_rng(0).random((20, 4, 4)) < 0.3
    >>> RBM(hidden_shape=8, n_iter=2, random_state=0).fit(X).transform(X).shape
    (20, 8)
    """

    coupling: ClassVar[str] = "dense"


@ESTIMATORS.register("MvRBM")
@dataclass(eq=False, repr=False, kw_only=True)
class MvRBM(InferenceMixin, LikelihoodMixin, BoltzmannEstimator):
    """Matrix-variate RBM: a Kronecker product, one matrix for each mode (Qi et al. 2016).

    The parameters are those of `MPORBM` without `rank`, `boundary` and `rank_tolerance`;
    `scheme` is ``"aop"`` or ``"su"``.
    """

    scheme: str = "aop"
    gauge: str | None = "canonical"

    coupling: ClassVar[str] = "kronecker"


@ESTIMATORS.register("TvRBM")
@dataclass(eq=False, repr=False, kw_only=True)
class TvRBM(InferenceMixin, LikelihoodMixin, BoltzmannEstimator):
    """Tensor-variate RBM: a CP decomposition, with a vector as hidden layer (Nguyen et al. 2015).

    The parameters are those of `MPORBM` without `boundary` and `rank_tolerance`; `hidden_shape` is
    a number or has one mode, `scheme` is ``"aop"`` or ``"su"``, `rank` the number R of terms.
    """

    scheme: str = "aop"
    gauge: str | None = "canonical"
    rank: int | Literal["auto"] = "auto"

    coupling: ClassVar[str] = "cp"

    def _resolved_hidden_shape(self) -> tuple[int, ...]:
        """Give the hidden shape asked for; by default as many units as other machines have."""
        shape = super()._resolved_hidden_shape()
        return (math.prod(shape),) if self.hidden_shape is None else shape

    def check_parameters(self) -> None:
        """Refuse parameters that no training can have, before it begins."""
        super().check_parameters()
        if self.rank != "auto":
            check_integer("rank", self.rank)

    def coupling_options(self) -> Mapping[str, object]:
        """List what the coupling is built with besides both shapes."""
        if self.rank != "auto":
            return {"rank": self.rank}
        n_weights = sum(self.visible_shape_) + math.prod(self._resolved_hidden_shape())
        n_samples = getattr(self, "_n_samples", None)
        return {"rank": automatic_rank(n_samples, lambda rank: rank * n_weights)}
