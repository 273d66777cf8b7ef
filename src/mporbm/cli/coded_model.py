"""A model file with its coding: samples as files have them, and as the machine does."""

import math
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import files


class CodedModel:
    """A fitted estimator, and the coding that its model file remembers, if any.

    Parameters
    ----------
    path
        The model file.
    shown
        Whether the estimator shows its progress.
    """

    def __init__(self, path: Path, shown: bool):
        self.estimator = files.read_model(path, shown)
        self.coding = getattr(self.estimator, "coding_", None)

    def read_samples(self, path: str, samples: NDArray[Any]) -> NDArray[Any]:
        """Return samples of a file in the shape of those that the machine has learnt from."""
        from ..estimators import Binarize

        if samples.dtype == bool and isinstance(self.coding, Binarize):
            # They are as the coding would make them, and so is the answer.
            self.coding = None
        if samples.shape[1:] not in (self.shape, (math.prod(self.shape),)):
            raise ValueError(
                f"{path}: expected samples of shape {self.shape}, as the model has learnt from, "
                f"got {samples.shape[1:]}."
            )
        return samples.reshape(len(samples), *self.shape)

    @property
    def is_binary(self) -> bool:
        """Whether visible units are 0 or 1."""
        return bool(self.estimator.visible_units == "bernoulli")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample as it is in files."""
        visible: tuple[int, ...] = self.estimator.visible_shape_
        if self.coding is None or self.coding.sample_shape_ == (math.prod(visible),):
            # Samples that came flattened are tensors to the machine.
            return visible
        return tuple(self.coding.sample_shape_)

    @property
    def is_scaled(self) -> bool:
        """Whether 1 stands for white, as it does unless whole numbers were coded."""
        return self.coding is None or self.coding.dtype_.kind == "f"

    def encode(self, samples: NDArray[Any]) -> Any:
        """Return samples as the machine has them."""
        if self.coding is None:
            return samples
        return self.coding.transform(samples.reshape(len(samples), -1))

    def encode_mask(self, mask: NDArray[np.bool_]) -> Any:
        """Return what is known of samples as what is known of units."""
        if self.coding is None:
            return mask
        return self.coding.transform_mask(mask.reshape(len(mask), *self.coding.sample_shape_))

    def decode(self, values: NDArray[Any], binary: bool) -> NDArray[Any]:
        """Return values as the data had them, from units or their probabilities."""
        values = values > 0.5 if binary else values
        if self.coding is None:
            return values
        decoded: NDArray[Any] = self.coding.inverse_transform(values.reshape(len(values), -1))
        return decoded.reshape(len(values), *self.shape)

    def decode_versions(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """Return several versions (n, n_samples, ...) of each sample as the data had them."""
        n, n_samples = drawn.shape[:2]
        flat = drawn.reshape(n * n_samples, *drawn.shape[2:])
        decoded = self.decode(flat, self.is_binary)
        return decoded.reshape(n, n_samples, *decoded.shape[1:])

    def check_images(self, output: Path) -> None:
        """Refuse to write samples as images if they are none."""
        files.check_images(output, self.shape)
        if not output.suffix and not self.is_binary:
            raise ValueError(
                f"{output}: expected Bernoulli visible units to write as images, got Gaussian "
                f"ones; write a .npy file instead."
            )
