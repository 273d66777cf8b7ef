"""Samples that are stored with their labels."""

from typing import Any

import equinox as eqx


class LabelledRows(eqx.Module):
    """Samples as they are stored, each with the number of its class: rows of an `ArraySource`."""

    rows: Any
    labels: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of samples, and the shape of a sample."""
        shape: tuple[int, ...] = self.rows.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The type of the samples."""
        return self.rows.dtype

    @property
    def nbytes(self) -> int:
        """The memory of samples and labels."""
        return int(self.rows.nbytes + self.labels.nbytes)

    @property
    def base(self) -> Any:
        """The samples: who looks for the file behind a view finds it behind them."""
        return self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Any) -> "LabelledRows":
        return LabelledRows(self.rows[chosen], self.labels[chosen])
