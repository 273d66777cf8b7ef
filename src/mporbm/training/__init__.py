"""The training loop: data sources, checkpoints, locks, signals, devices and processes."""

from .checkpoint import CheckpointWarning
from .labelled_rows import LabelledRows
from .loop import DivergenceWarning, Training
from .packed_bits import PackedBits
from .safetensors_io import FileFormatError
from .sources import ArraySource, StreamSource
from .specification import Specification, TrainingConfig

__all__ = [
    "ArraySource",
    "CheckpointWarning",
    "DivergenceWarning",
    "FileFormatError",
    "LabelledRows",
    "PackedBits",
    "Specification",
    "StreamSource",
    "Training",
    "TrainingConfig",
]
