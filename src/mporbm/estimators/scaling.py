"""Standardisation of tensors: real values with mean 0 and variance 1, and back."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..tensor import MPSBatch
from ..tensor.arrays import HostTensor, Samples
from ..training.rows import CodedRows, file_behind
from . import inputs
from .coding import Coding
from .inputs import Rows

FEWEST_ROWS = 30
"""The samples of a stream from which on their scale is taken without a warning."""
FAR = 5.0
"""How far from variance 1 and mean 0 data may be, as a factor and in standard deviations."""


@dataclass(eq=False, repr=False)
class Standardize(Coding):
    """Real values less their mean, over their standard deviation; NaN is what is not known.

    `sklearn.preprocessing.StandardScaler` does this for vectors; samples of several modes may also
    share a scale along some of them: a channel or a wavelength has one, whatever the pixel.

    Parameters
    ----------
    modes
        The modes whose positions have a mean and a scale of their own, numbered from 0 (that of
        the samples left out) or from the end. By default every unit has; ``(-1,)`` is one for each
        slice of the last mode, ``()`` one for everything.

    Attributes
    ----------
    mean_, scale_
        Of each unit, of the shape of a sample. A unit that is constant has scale 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mporbm import Standardize
    >>> X = np.random.default_rng(0).normal(10.0, [1.0, 5.0], (50, 4, 2))
    >>> scaling = Standardize(modes=(-1,)).fit(X)
    >>> scaling.scale_.round(1)[0]
    array([1., 5.])
    >>> bool(np.allclose(scaling.inverse_transform(scaling.transform(X)), X))
    True
    """

    modes: Sequence[int] | None = None

    def fit(self, X: object, y: object = None) -> Self:
        """Learn means and scales from what is known of X; `y` is ignored."""
        given, rows = inputs.check_flat(self, X, None, reset=True, missing=True)
        self.sample_shape_ = given if len(given) > 1 else rows.shape[1:]
        mean, scale = moments(rows, self.sample_shape_, self._shared_axes())
        self.set_scale(mean, scale)
        return self

    def set_scale(self, mean: HostTensor, scale: HostTensor) -> None:
        """Become fitted, with a mean and a scale for each unit."""
        self.sample_shape_, self.n_features_in_ = mean.shape, mean.size
        self.mean_, self.scale_ = mean, scale

    def reshaped(self, shape: tuple[int, ...]) -> "Standardize":
        """The same scales for samples of another shape, in C order."""
        other = Standardize()
        other.set_scale(self.mean_.reshape(shape), self.scale_.reshape(shape))
        return other

    def transform(self, X: object) -> Rows:
        """Standardise samples of the fitted shape or flattened, in double precision.

        Those in a file stay there, and are standardised as they are read.
        """
        check_is_fitted(self)
        rows = inputs.check_flat(self, X, self.sample_shape_, reset=False, missing=True)[1]
        return self.coded(rows.reshape(len(rows), *self.sample_shape_))

    def coded(self, rows: Rows) -> Rows:
        """Standardise checked samples."""
        lazy = CodedRows(rows, self._standard)
        return lazy.unpacked() if file_behind(rows) is None else lazy

    def inverse_transform(self, X: ArrayLike) -> Samples:
        """Give values their mean and their scale back: ``(n, *sample_shape_)``."""
        check_is_fitted(self)
        states = np.asarray(X)
        shape = self.sample_shape_
        if states.ndim < 2 or states[0].size != self.n_features_in_:
            raise ValueError(
                f"X: expected samples of shape {shape} or flattened, got shape {states.shape}."
            )
        return np.asarray(states.reshape(len(states), *shape) * self.scale_ + self.mean_)

    def _standard(self, block: Samples) -> Samples:
        return np.asarray((block - self.mean_) / self.scale_)

    def _shared_axes(self) -> tuple[int, ...]:
        """List the modes along which units share their mean and scale."""
        n_modes = len(self.sample_shape_)
        if self.modes is None:
            return ()
        own = set()
        for mode in self.modes:
            if not (isinstance(mode, (int, np.integer)) and -n_modes <= mode < n_modes):
                raise ValueError(
                    f"modes={self.modes!r}: expected integers from {-n_modes} to {n_modes - 1} "
                    f"for samples of shape {self.sample_shape_}, got {mode!r}."
                )
            own.add(int(mode) % n_modes)
        return tuple(axis for axis in range(n_modes) if axis not in own)


def fit_scaling(estimator: BaseEstimator, rows: Rows, of_stream: bool = False) -> None:
    """Learn the scale of Gaussian units from samples, or warn of one that is not theirs.

    Those `of_stream` are the first array of a stream, or of a call of `partial_fit`.
    """
    estimator.__dict__.pop("scaling_", None)
    if estimator.visible_units != "gaussian":
        return
    mean, deviation = moments(rows, estimator.visible_shape_)
    if getattr(estimator, "standardize", False):
        scaling = Standardize()
        scaling.set_scale(mean, deviation)
        estimator.scaling_ = scaling
        if of_stream and len(rows) < FEWEST_ROWS:
            warnings.warn(
                f"X: the scale of Gaussian units is that of the first array of a stream, which has "
                f"{len(rows)} samples; let it begin with {FEWEST_ROWS} or more that are typical.",
                UserWarning,
                stacklevel=5,
            )
        return
    typical = float(np.sqrt(np.mean(deviation**2)))
    if not 1.0 / FAR <= typical <= FAR or np.abs(mean).max() > FAR:
        warnings.warn(
            f"X: expected values of mean 0 and variance 1 for Gaussian units with "
            f"standardize=False, got means up to {np.abs(mean).max():.3g} and a standard deviation "
            f"of {typical:.3g}; leave standardize=True, or scale them (mporbm.Standardize).",
            UserWarning,
            stacklevel=5,
        )


def states_of(estimator: BaseEstimator, rows: Rows) -> Rows:
    """Make visible states of checked samples."""
    scaling: Standardize | None = getattr(estimator, "scaling_", None)
    return rows if scaling is None else scaling.coded(rows)


def values_of(estimator: BaseEstimator, states: HostTensor) -> HostTensor:
    """Give visible states, samples in front, in the units of the data."""
    scaling: Standardize | None = getattr(estimator, "scaling_", None)
    return states if scaling is None else np.asarray(states * scaling.scale_ + scaling.mean_)


def scale_of(estimator: BaseEstimator) -> HostTensor | float:
    """Give the size of a unit of the states in the units of the data."""
    scaling: Standardize | None = getattr(estimator, "scaling_", None)
    return 1.0 if scaling is None else scaling.scale_


def log_scales(
    estimator: BaseEstimator, states: Rows | MPSBatch | None = None
) -> Float[np.ndarray, "..."]:
    """Add up the logarithms of the scales of what is known of each sample, or of all units.

    Log-densities of the data are those of the states less that.
    """
    scaling: Standardize | None = getattr(estimator, "scaling_", None)
    if scaling is None:
        return np.zeros(())
    if states is None:
        return np.asarray(np.log(scaling.scale_).sum())
    known = ~np.isnan(np.asarray(states)).reshape(len(states), -1)
    return np.asarray(known @ np.log(scaling.scale_).reshape(-1))


def moments(
    rows: Rows, shape: tuple[int, ...], shared: tuple[int, ...] = ()
) -> tuple[HostTensor, HostTensor]:
    """Mean and standard deviation of the known values of each unit, in two passes.

    Units share them along some modes. Units without a known value have mean 0, units that do not
    vary, but for rounding errors, scale 1.
    """

    def pooled(values: np.ndarray) -> np.ndarray:
        whole = values.reshape(shape)
        return np.broadcast_to(whole.sum(axis=shared, keepdims=True), shape) if shared else whole

    count, total, over, square = (np.zeros(shape) for _ in range(4))
    for _, block in inputs.blocks(rows):
        values = np.asarray(block, np.float64).reshape(-1, *shape)
        count += pooled((~np.isnan(values)).sum(axis=0))
        total += pooled(np.nansum(values, axis=0))
    mean = total / np.maximum(count, 1.0)
    for _, block in inputs.blocks(rows):
        rest = np.asarray(block, np.float64).reshape(-1, *shape) - mean
        over += pooled(np.nansum(rest, axis=0))
        with np.errstate(over="ignore"):
            square += pooled(np.nansum(rest**2, axis=0))
    # What rounding errors made of the mean, the second pass knows.
    number = np.maximum(count, 1.0)
    mean = mean + over / number
    deviation = np.sqrt(np.maximum(square / number - (over / number) ** 2, 0.0))
    if not np.isfinite(deviation).all():
        raise ValueError(
            f"X: expected values whose squares are finite, got values as far from their mean as "
            f"{np.abs(mean).max():.3g}; divide them by a constant first."
        )
    varies = deviation > 10.0 * np.finfo(np.float64).eps * np.sqrt(number) * np.abs(mean)
    return mean, np.where(varies, deviation, 1.0)
