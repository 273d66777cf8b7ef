"""The peak signal-to-noise ratio against plain loops."""

import pytest

from mporbm.evaluation.images import psnr
from reproduction_support.fakes import plain_psnr


def test_psnr_is_the_mean_over_images(rng):
    truth = rng.random((5, 28, 28)) < 0.3
    answer = rng.random((5, 28, 28))
    answer[3] = truth[3]
    assert psnr(answer, truth) == pytest.approx(plain_psnr(answer, truth))
    assert psnr(answer[:1] > 2, truth[:1] > 2) == 60.0
    assert psnr(~truth, truth) == 0.0


def test_the_peak_is_the_range_of_the_true_values_or_given(rng):
    truth, answer = rng.random((5, 3, 4)), rng.random((5, 3, 4))
    truth.flat[:2] = 0.0, 1.0
    expected = psnr(answer, truth, peak=1.0)
    assert psnr(answer, truth) == pytest.approx(expected)
    assert psnr(9.0 * answer - 2.0, 9.0 * truth - 2.0) == pytest.approx(expected)
    assert psnr(answer, truth, peak=10.0) == pytest.approx(expected + 20.0)
    assert psnr(truth[:1], truth[:1], peak=10.0) == 60.0
