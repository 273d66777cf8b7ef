"""A model file with its coding: samples as files have them, and as the machine does."""

import math
from pathlib import Path

import numpy as np

from . import files


def reshaped(path: str, samples: np.ndarray, shape: tuple[int, ...], why: str) -> np.ndarray:
    """Return samples of a file in a shape, which they may also be flattened from."""
    if samples.shape not in (shape, (shape[0], math.prod(shape[1:]))):
        raise ValueError(f"{path}: expected shape {shape}, as {why}, got {samples.shape}.")
    return samples.reshape(shape)


class CodedModel:
    """A fitted estimator, and the coding that its model file remembers, if any."""

    def __init__(self, path: Path, shown: bool):
        self.estimator = files.read_model(path, shown)
        self.coding = getattr(self.estimator, "coding_", None)
        # The shape of a sample as it is in files; samples that came flattened are tensors to the
        # machine.
        self.shape: tuple[int, ...] = self.estimator.visible_shape_
        if self.coding is not None and self.coding.sample_shape_ != (math.prod(self.shape),):
            self.shape = tuple(self.coding.sample_shape_)
        self.is_binary = bool(self.estimator.visible_units == "bernoulli")

    def read_samples(self, path: str, samples: np.ndarray) -> np.ndarray:
        """Return samples of a file in the shape of those that the machine has learnt from."""
        from ..estimators import Binarize

        if samples.dtype == bool and isinstance(self.coding, Binarize):
            # They are as the coding would make them, and so is the answer.
            self.coding, self.shape = None, self.estimator.visible_shape_
        return reshaped(path, samples, (len(samples), *self.shape), "the model has learnt from")

    @property
    def is_scaled(self) -> bool:
        """Whether 1 stands for white, as it does unless whole numbers were coded."""
        return self.coding is None or bool(self.coding.dtype_.kind == "f")

    def encode(self, samples: np.ndarray) -> object:
        """Return samples as the machine has them."""
        if self.coding is None:
            return samples
        return self.coding.transform(samples.reshape(len(samples), -1))

    def comparable(self, path: str, samples: np.ndarray) -> np.ndarray:
        """Return samples of a file as the machine can draw them: bits, if each value is one.

        Values that the machine cannot have are refused.
        """
        from ..estimators import Binarize
        from ..estimators.inputs import check_values

        values = reshaped(path, samples, (len(samples), *self.shape), "the model has learnt from")
        with files.blamed(X=path):
            coded = self.encode(values)
            if self.coding is None:
                check_values(values, self.estimator.visible_units)
        is_bits = isinstance(self.coding, Binarize)
        return np.asarray(coded).reshape(values.shape) if is_bits else values

    def encode_mask(self, mask: np.ndarray) -> np.ndarray:
        """Return what is known of samples as what is known of units."""
        if self.coding is None:
            return mask
        shape = (len(mask), *self.coding.sample_shape_)
        return np.asarray(self.coding.transform_mask(mask.reshape(shape)))

    def decode(self, values: np.ndarray, binary: bool) -> np.ndarray:
        """Return values as the data had them, from units or their probabilities."""
        values = values > 0.5 if binary else values
        if self.coding is None:
            return values
        decoded = np.asarray(self.coding.inverse_transform(values.reshape(len(values), -1)))
        return decoded.reshape(len(values), *self.shape)

    def decode_versions(self, drawn: np.ndarray) -> np.ndarray:
        """Return several versions (n, n_samples, ...) of each sample as the data had them."""
        flat = drawn.reshape(-1, *drawn.shape[2:])
        decoded = self.decode(flat, self.is_binary)
        return decoded.reshape(*drawn.shape[:2], *decoded.shape[1:])

    def check_images(self, output: Path) -> None:
        """Refuse to write samples as a folder of images if they are none."""
        if output.suffix:
            return
        wanted, found = "samples (height, width) or (height, width, 3)", str(self.shape)
        if len(self.shape) == 2 or files.is_color(self.shape):
            if self.is_binary:
                return
            wanted, found = "Bernoulli visible units", "Gaussian ones"
        raise ValueError(
            f"{output}: expected {wanted} to write as images, got {found}; write a .npy file "
            f"instead."
        )
