"""How near reconstructed samples are to the true ones."""

import numpy as np

LEAST_ERROR = 1e-6
"""The least mean squared error, relative to the peak: a perfect sample has 60 dB, not infinity."""


def psnr(answer: np.ndarray, truth: np.ndarray, peak: float | None = None) -> float:
    """Compute the mean over samples of the peak signal-to-noise ratio, in dB.

    Parameters
    ----------
    answer, truth
        Samples (n, ...) and what they should be.
    peak
        The largest difference that values can have; by default the range of the true values.

    Examples
    --------
    >>> psnr(np.array([[0.1, 0.9]]), np.array([[0.0, 1.0]]))
    20.0
    """
    if peak is None:
        peak = float(truth.max()) - float(truth.min()) or 1.0
    errors = (np.asarray(answer, np.float64) - truth) ** 2
    means = errors.reshape(len(truth), -1).mean(axis=1) / peak**2
    return float(np.mean(-10.0 * np.log10(np.maximum(means, LEAST_ERROR))))
