"""The training loop: data sources, checkpoints, signals, devices and processes."""

from .checkpoint import CheckpointWarning
from .loop import DivergenceWarning, Specification, Training, TrainingConfig
from .rows import LabelledRows, PackedBits
from .safetensors_io import FileFormatError
from .sources import ArraySource, StreamSource

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
